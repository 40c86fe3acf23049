"""The model of ExoGrid: the paper's small domain (section 6.1)."""

from __future__ import annotations

import numpy as np

from exo_envs.core.batches import as_size, endogenous_column
from exo_envs.core.kernels import CompiledStep, LazyModule
from exo_envs.core.mdp import BoolArray, IntArray, State, Successors, Variable
from exo_envs.domains.floor import Floor, FloorMDP, Move
from exo_envs.domains.grid.parameters import GridParameters, World


class GridMDP(FloorMDP):
    """A robot looks for an object that somebody carries about, past a guard in one of two doors.

    See :class:`exo_envs.domains.grid.GridEnv` for the domain.
    """

    kernels = LazyModule("exo_envs.domains.grid.kernels")
    parameters: GridParameters
    floor = Floor(3, 4, walls=((1, 1),))
    tables = ((0, 0), (0, 3), (2, 3))
    doors = ((0, 1), (2, 1))
    start = (2, 0)

    exogenous_variables = (
        Variable("object", len(tables)),
        Variable("carrier", 2),
        Variable("guard", len(doors)),
        Variable("guard_intent", len(doors)),
        Variable("weather", 2),
    )
    done = floor.num_cells  # the robot's value when the episode is over
    endogenous_variables = (Variable("robot", done + 1),)
    num_actions = len(Move)
    noise = (1, len(exogenous_variables))

    def __init__(self, parameters: GridParameters | None = None) -> None:
        self.parameters = p = parameters or GridParameters()
        self._set_up(
            World,
            probability=np.array([p.carry, p.turn, p.follow, p.reconsider, p.weather_change]),
            num_tables=len(self.tables),
            moves=self.floor.moves,
            table_at=self._places(self.tables),
            door_at=self._places(self.doors),
        )

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """The robot starts in its corner; everything else is anywhere."""
        size = as_size(self, size)
        uniforms = rng.random((size, len(self.exogenous_sizes)))
        exogenous = (uniforms * self.exogenous_sizes).astype(np.int64)
        return State(np.full((size, 1), self.floor.cell(*self.start)), exogenous)

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors:
        """Two n': the robot moves, or it slips."""
        # Noise above and below every probability of slipping.
        outcomes = np.stack([self._move(state, action, noise)[0] for noise in (2.0, -1.0)], axis=-2)
        probabilities = np.array([1.0 - self.parameters.slip, self.parameters.slip])
        return Successors(outcomes, np.broadcast_to(probabilities, outcomes.shape[:-1]).copy())

    def _places(self, positions: tuple[tuple[int, int], ...]) -> IntArray:
        """Which of the positions each cell is, or -1, shape (cells,)."""
        places = np.full(self.floor.num_cells, -1)
        places[[self.floor.cell(*position) for position in positions]] = range(len(positions))
        return places

    def is_terminal(self, state: State) -> BoolArray:
        return np.equal(endogenous_column(self, state, 0), self.done)

    def compiled_step(self) -> CompiledStep:
        return CompiledStep(self.kernels.step, (self._world,), self.noise)
