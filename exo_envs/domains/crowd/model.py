"""The model of ExoCrowd: the paper's Crowd domain (section 6.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import as_integers
from exo_envs.core.batches import as_size, as_values, endogenous_column, exogenous_lanes
from exo_envs.core.kernels import CompiledStep, LazyModule
from exo_envs.core.mdp import BoolArray, FloatArray, IntArray, State, Variable
from exo_envs.domains.crowd.parameters import CrowdParameters, Phase, World
from exo_envs.domains.floor import Floor, FloorMDP, Move


class CrowdMDP(FloorMDP):
    """A robot looks for an object among agents who walk about and carry objects.

    See :class:`exo_envs.domains.crowd.CrowdEnv` for the domain.

    Attributes:
        parameters: the numbers of the domain.
        floor: the cells.
        table_cells: the cells of the tables, shape (num_tables,).
        start: the cell in which the robot starts, next to the centre.
        done: the robot's value when the episode is over.
        num_porters: how many of the agents, the first ones, are porters.
        occupancy_slice: where the occupancies are in x.
        agent_slice: where the agents are in x; ``x[..., agent_slice]`` reshaped to
            (..., num_agents, 3) holds their cells, destinations and whether they carry.
        object_slice: where the objects are in x; see :meth:`decode_object`.
    """

    kernels = LazyModule("exo_envs.domains.crowd.kernels")
    parameters: CrowdParameters
    num_actions = len(Move)

    def __init__(self, parameters: CrowdParameters | None = None) -> None:
        self.parameters = p = parameters or CrowdParameters()
        self.floor = floor = Floor(p.grid_size, p.grid_size)
        self.table_cells = place_tables(floor, p.num_tables)
        self.start = floor.cell(p.grid_size // 2 - 1, p.grid_size // 2)
        self.done = floor.num_cells
        self.num_porters = p.num_porters
        self.noise = (0, p.num_agents)
        self.occupancy_slice = slice(0, floor.num_cells)
        self.agent_slice = slice(floor.num_cells, floor.num_cells + 3 * p.num_agents)
        self.object_slice = slice(self.agent_slice.stop, self.agent_slice.stop + p.num_objects)
        self.endogenous_variables = (Variable("robot", floor.num_cells + 1),)
        self.exogenous_variables = _exogenous_variables(p, floor)

        table_at = np.full(floor.num_cells + 1, -1)  # by the robot's value
        table_at[self.table_cells] = np.arange(p.num_tables)
        positions = np.stack(np.divmod(self.table_cells, floor.columns), axis=-1)
        first_goal, last_goal = 0, p.num_porters - 1
        if p.goal == "fixed":
            first_goal, last_goal = p.num_porters, p.num_objects - 1
        self._set_up(
            World,
            columns=floor.columns,
            table_cells=self.table_cells,
            table_positions=positions,
            table_at=table_at,
            ways=_ways_to_tables(floor, positions),
            targets=np.vstack([floor.moves, np.full(len(Move), self.done)]),
            phase_bounds=_phase_bounds(p, positions),
            first_goal=first_goal,
            last_goal=last_goal,
        )

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """The robot is next to the centre, the crowd is about as busy as it will be later on."""
        p, size = self.parameters, as_size(self, size)
        uniforms = rng.random((size, 3 * p.num_agents + p.num_objects + 1))
        exogenous = np.empty((size, self.object_slice.stop), dtype=np.int64)
        self.kernels.begin(uniforms, self._world, exogenous)
        endogenous = np.empty((size, 1), dtype=np.int64)
        endogenous.fill(self.start)
        return State(endogenous, exogenous)

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """P(x'|x): agents walk, porters carry, and occupancy says where the agents are now."""
        shape, x = exogenous_lanes(self, exogenous, check=False)  # the kernel does that
        following, uniforms = np.empty_like(x), rng.random((len(x), self.noise[1]))
        if not self.kernels.exogenous_step(0, len(x), x, uniforms, self._world, following):
            as_values("exogenous", x, self.exogenous_variables)
        return following.reshape(shape)

    def is_terminal(self, state: State) -> BoolArray:
        return np.equal(endogenous_column(self, state, 0), self.done)

    def compiled_step(self) -> CompiledStep:
        return CompiledStep(self.kernels.step, (self._world,), self.noise)

    def decode_object(self, values: IntArray) -> tuple[IntArray, BoolArray]:
        """What values of object variables mean.

        Returns:
            The places: the number of a table, or ``num_tables`` for a hand; and whether the
            object is the goal. Both have the shape of ``values``.
        """
        variable = self.exogenous_variables[self.object_slice.start]
        array = as_integers("the batch of object values", values)[..., None]
        values = as_values("exogenous", array, (variable,))[..., 0]
        is_goal = values > self.parameters.num_tables
        return values - (self.parameters.num_tables + 1) * is_goal, is_goal


def _exogenous_variables(p: CrowdParameters, floor: Floor) -> tuple[Variable, ...]:
    occupancies = (
        Variable(f"occupancy_{row}_{column}", 2)
        for row in range(floor.rows)
        for column in range(floor.columns)
    )
    names = [f"porter_{i}" for i in range(p.num_porters)]
    names += [f"wanderer_{i}" for i in range(p.num_agents - p.num_porters)]
    sizes = {"cell": floor.num_cells, "destination": p.num_tables, "carrying": 2}
    agents = (Variable(f"{name}_{what}", size) for name in names for what, size in sizes.items())
    objects = (Variable(f"object_{i}", 2 * (p.num_tables + 1)) for i in range(p.num_objects))
    return (*occupancies, *agents, *objects)


def _phase_bounds(p: CrowdParameters, table_positions: NDArray[np.int64]) -> FloatArray:
    """Cumulative shares of a porter's time that its phases take in the long run, shape (4,).

    The phases are those of :class:`Phase`. A walk between two tables takes
    distance / (1 - stand_still) steps; putting the object down and turning back take one each,
    and to pick it up 1 / pick_up; only the share ``stroll`` of the cycles has a stroll. All are
    multiplied out here, since any may be infinite.
    """
    steps = np.abs(table_positions[:, None] - table_positions).sum(axis=-1)
    distance = steps.sum() / (p.num_tables * (p.num_tables - 1))
    moving = 1.0 - p.stand_still
    walk, turn = p.pick_up * distance, p.pick_up * moving
    durations = np.array([walk + turn, p.stroll * (walk + turn), p.stroll * walk, moving])
    if not durations.any():  # nobody ever moves
        durations[Phase.WAITING] = 1.0
    bounds = np.cumsum(durations / durations.sum())
    bounds[-1] = 1.0  # whatever the rounding
    return bounds


def place_tables(floor: Floor, num_tables: int) -> NDArray[np.int64]:
    """The cells of the tables, shape (num_tables,): spread out, none in the lower left quarter.

    The first stands in the upper right corner, each further one as far as possible from those
    before it (in steps; of several such cells it takes the one with the lowest number).

    >>> place_tables(Floor(8, 8), 6)
    array([ 7, 24, 61,  2, 20, 38])
    """
    rows, columns = np.divmod(np.arange(floor.num_cells), floor.columns)
    lower_left = (rows >= floor.rows - floor.rows // 2) & (columns < floor.columns // 2)
    cells = np.flatnonzero(~lower_left).astype(np.int64)
    positions = np.stack(np.divmod(cells, floor.columns), axis=-1)
    distance = np.full(len(cells), np.inf)  # to the nearest table
    chosen = [floor.columns - 1]  # in the top row every cell may have a table
    while len(chosen) < num_tables:
        steps = np.abs(positions - positions[chosen[-1]]).sum(axis=-1)
        distance = np.minimum(distance, steps)
        chosen.append(int(distance.argmax()))
    return cells[chosen]


def _ways_to_tables(floor: Floor, table_positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """The next cells on shortest paths from a cell to a table, (num_cells, num_tables, 3).

    The cell itself, for an agent that makes no step; then the cell above or below and the one to
    the left or right, or twice the same where only one of them is nearer to the table.
    """
    cells = np.arange(floor.num_cells)[:, None]
    positions = np.concatenate(np.divmod(cells, floor.columns), axis=-1)
    direction = np.sign(table_positions - positions[:, None])  # (num_cells, num_tables, 2)
    down = cells + floor.columns * direction[..., 0]
    right = cells + direction[..., 1]
    down, right = (
        np.where(direction[..., 0] == 0, right, down),
        np.where(direction[..., 1] == 0, down, right),
    )
    return np.stack(np.broadcast_arrays(cells, down, right), axis=-1)
