"""The model of ExoCrowd: the paper's Crowd domain (section 6.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exo_envs.crowd import kernels
from exo_envs.errors import unknown_name
from exo_envs.floor import Floor, Move
from exo_envs.inputs import as_actions, as_state
from exo_envs.mdp import BoolArray, ExoMDP, FloatArray, IntArray, State, Variable

GOALS = ("movable", "fixed")


@dataclass(frozen=True)
class CrowdParameters:
    """The numbers of ExoCrowd. The paper gives 124 variables and 10^80 states; the rest is ours.

    Attributes:
        grid_size: the floor has ``grid_size`` x ``grid_size`` cells.
        num_agents: how many agents there are, porters included.
        num_porters: how many of them carry an object about; porter i carries object i. More
            agents alone are more wanderers.
        num_objects: how many objects there are; those without a porter never move.
        num_tables: how many tables there are; see :func:`place_tables`.
        goal: the goal is drawn anew each episode, from the porters' objects ("movable", the
            paper's Goal 2) or from the other ones ("fixed", its Goal 1).
        goal_reward: paid for standing at the table with the goal; ends the episode.
        crash_cost: the price of stepping into an occupied cell.
        stand_still: the probability that an agent on its way makes no step.
        pick_up: the probability that a porter at its object's table picks the object up, which
            so lies there for ``1 / pick_up`` steps on average.
        discount: the paper's gamma.
        horizon: the length of an episode.
    """

    grid_size: int = 8
    num_agents: int = 16
    num_porters: int = 6
    num_objects: int = 12
    num_tables: int = 6
    goal: str = "movable"
    goal_reward: float = 1000.0
    crash_cost: float = 100.0
    stand_still: float = 0.1
    pick_up: float = 0.2
    discount: float = 0.97
    horizon: int = 50

    def __post_init__(self) -> None:
        """Refuse numbers that make no crowd."""
        if self.goal not in GOALS:
            raise unknown_name("goal", self.goal, GOALS)
        for name, least in {
            "grid_size": 2,
            "num_agents": 0,
            "num_porters": 0,
            "num_objects": 1,
            "num_tables": 2,
            "horizon": 1,
        }.items():
            _check_whole(name, getattr(self, name), least)
        for name, most in {
            "goal_reward": math.inf,
            "crash_cost": math.inf,
            "stand_still": 1.0,
            "pick_up": 1.0,
            "discount": 1.0,
        }.items():
            _check_real(name, getattr(self, name), most)
        if self.discount == 0:
            raise ValueError("discount is above 0, not 0")
        self._check_counts()

    def _check_counts(self) -> None:
        """Refuse counts that do not go together."""
        for name, limit in (("num_agents", self.num_agents), ("num_objects", self.num_objects)):
            if self.num_porters > limit:
                raise ValueError(
                    f"num_porters={self.num_porters} is more than {name}={limit}: "
                    "every porter is an agent and has an object of its own"
                )
        if self.goal == "movable" and self.num_porters == 0:
            raise ValueError('goal="movable" needs a porter, and num_porters is 0')
        if self.goal == "fixed" and self.num_objects == self.num_porters:
            raise ValueError(
                f'goal="fixed" needs an object without a porter, and each of the '
                f"num_objects={self.num_objects} has one"
            )
        places = len(_cells_for_tables(Floor(self.grid_size, self.grid_size)))
        if self.num_tables > places:
            raise ValueError(
                f"num_tables={self.num_tables} do not fit: a floor with grid_size="
                f"{self.grid_size} has {places} cells outside its lower left quarter"
            )


def _check_whole(name: str, number: object, least: int) -> None:
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        raise TypeError(f"{name} is a whole number, not {number!r}")
    if number < least:
        raise ValueError(f"{name} is at least {least}, not {number}")


def _check_real(name: str, number: object, most: float) -> None:
    if isinstance(number, bool) or not isinstance(number, (int, float, np.number)):
        raise TypeError(f"{name} is a number, not {number!r}")
    if not (0 <= number <= most and math.isfinite(number)):
        raise ValueError(f"{name} is in [0, {most:g}], not {number}")


def place_tables(floor: Floor, num_tables: int) -> NDArray[np.int64]:
    """The cells of the tables, shape (num_tables,): spread out, none in the lower left quarter.

    The first stands in the upper right corner, each further one as far as possible from those
    before it (in steps; of several such cells it takes the one with the lowest number).

    >>> place_tables(Floor(8, 8), 6)
    array([ 7, 24, 61,  2, 20, 38])
    """
    cells = _cells_for_tables(floor)
    positions = np.stack(np.divmod(cells, floor.columns), axis=-1)
    distance = np.full(len(cells), np.inf)  # to the nearest table
    chosen = [floor.columns - 1]  # in the top row every cell may have a table
    while len(chosen) < num_tables:
        steps = np.abs(positions - positions[chosen[-1]]).sum(axis=-1)
        distance = np.minimum(distance, steps)
        chosen.append(int(distance.argmax()))
    return cells[chosen]


def _cells_for_tables(floor: Floor) -> NDArray[np.int64]:
    rows, columns = np.divmod(np.arange(floor.num_cells), floor.columns)
    lower_left = (rows >= floor.rows - floor.rows // 2) & (columns < floor.columns // 2)
    return np.flatnonzero(~lower_left).astype(np.int64)


class CrowdMDP(ExoMDP):
    """A robot looks for an object among agents who walk about and carry objects.

    See :class:`exo_envs.crowd.CrowdEnv` for the domain.

    Attributes:
        parameters: the numbers of the domain.
        floor: the cells.
        table_cells: the cells of the tables, shape (num_tables,).
        start: the cell in which the robot starts.
        done: the robot's value when the episode is over.
        num_porters: how many of the agents, the first ones, are porters.
        occupancy_slice: where the occupancies are in x.
        agent_slice: where the agents are in x; ``x[..., agent_slice]`` reshaped to
            (..., num_agents, 3) holds their cells, destinations and whether they carry.
        object_slice: where the objects are in x; see :meth:`decode_object`.
    """

    num_actions = len(Move)

    def __init__(self, parameters: CrowdParameters | None = None) -> None:
        """Build the model from its parameters."""
        self.parameters = p = parameters or CrowdParameters()
        self.discount = p.discount
        self.horizon = p.horizon
        self.floor = floor = Floor(p.grid_size, p.grid_size)
        self.table_cells = place_tables(floor, p.num_tables)
        self.start = floor.cell(p.grid_size - 1, 0)
        self.done = floor.num_cells
        self.num_porters = p.num_porters
        self.occupancy_slice = slice(0, floor.num_cells)
        self.agent_slice = slice(floor.num_cells, floor.num_cells + 3 * p.num_agents)
        self.object_slice = slice(self.agent_slice.stop, self.agent_slice.stop + p.num_objects)
        self.endogenous_variables = (Variable("robot", floor.num_cells + 1),)
        self.exogenous_variables = _exogenous_variables(p, floor)

        self._targets = np.vstack([floor.moves, np.full(len(Move), self.done)])
        self._table_at = np.full(floor.num_cells + 1, -1)  # by the robot's value
        self._table_at[self.table_cells] = np.arange(p.num_tables)
        self._table_positions = np.stack(np.divmod(self.table_cells, floor.columns), axis=-1)
        self._ways = _ways(floor, self._table_positions)
        self._carrying_share = _carrying_share(p, self._table_positions)
        first, last = 0, p.num_porters - 1
        if p.goal == "fixed":
            first, last = p.num_porters, p.num_objects - 1
        self._goals = (first, last)

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """The robot is in its corner, the crowd is about as busy as it will be later on."""
        p = self.parameters
        uniforms = rng.random((size, 3 * p.num_agents + p.num_objects + 1))
        exogenous = np.empty((size, self.object_slice.stop), dtype=np.int64)
        kernels.begin(
            uniforms,
            self._table_positions,
            self.floor.columns,
            self.floor.num_cells,
            p.num_agents,
            p.num_porters,
            self._carrying_share,
            self._goals,
            exogenous,
        )
        return State(np.full((size, 1), self.start), exogenous)

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """P(x'|x): agents walk, porters carry, and occupancy says where the agents are now."""
        p = self.parameters
        x = self._rows(exogenous)
        following = np.empty_like(x)
        in_range = kernels.advance(
            x,
            rng.random((len(x), p.num_agents)),
            self._ways,
            self.table_cells,
            p.num_porters,
            p.stand_still,
            p.pick_up,
            following,
        )
        if not in_range:
            self._complain(np.full(len(x), self.start), x)
        return following.reshape(exogenous.shape)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """P(n'|n,a,x), a certainty: the robot moves unless it crashes or has reached the goal."""
        batch_shape, robots, x, actions = self._flat(state, action)
        following = np.empty_like(robots)
        in_range = kernels.move_robot(
            robots,
            x,
            actions,
            self._targets,
            self._table_at,
            self.parameters.num_tables,
            self.parameters.num_objects,
            following,
        )
        if not in_range:
            self._complain(robots, x, actions)
        return following.reshape(*batch_shape, 1)

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """The goal object pays for being reached, an occupancy for being walked into."""
        batch_shape, robots, x, actions = self._flat(state, action)
        terms = np.zeros(x.shape)
        in_range = kernels.pay(
            robots,
            x,
            actions,
            self._targets,
            self._table_at,
            self.parameters.num_tables,
            self.parameters.num_objects,
            self.parameters.goal_reward,
            self.parameters.crash_cost,
            terms,
        )
        if not in_range:
            self._complain(robots, x, actions)
        return terms.reshape(*batch_shape, x.shape[-1])

    def is_terminal(self, state: State) -> BoolArray:
        """The episode is over once the goal has been reached."""
        return np.asarray(state.endogenous[..., 0] == self.done)

    def decode_object(self, values: IntArray) -> tuple[IntArray, BoolArray]:
        """What values of object variables mean.

        Returns:
            The places: the number of a table, or ``num_tables`` for a hand; and whether the
            object is the goal. Both have the shape of ``values``.
        """
        values = np.asarray(values)
        is_goal = values > self.parameters.num_tables
        return values - (self.parameters.num_tables + 1) * is_goal, is_goal

    def _flat(
        self, state: State, action: IntArray
    ) -> tuple[tuple[int, ...], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The shape of a batch, and n, x and a as the flat arrays of the kernels."""
        n, x, a = state.endogenous[..., 0], state.exogenous, np.asarray(action)
        batch_shape = a.shape
        if not n.shape == x.shape[:-1] == batch_shape:
            batch_shape = np.broadcast_shapes(n.shape, x.shape[:-1], a.shape)
            n, a = np.broadcast_to(n, batch_shape), np.broadcast_to(a, batch_shape)
            x = np.broadcast_to(x, (*batch_shape, x.shape[-1]))
        return (
            batch_shape,
            np.ascontiguousarray(n, dtype=np.int64).reshape(-1),
            self._rows(x),
            np.ascontiguousarray(a, dtype=np.int64).reshape(-1),
        )

    def _rows(self, exogenous: IntArray) -> NDArray[np.int64]:
        """The rows of x, (lanes, m); not a copy where that can be helped."""
        width = self.object_slice.stop
        if exogenous.shape[-1] != width:  # the kernels rely on it
            raise ValueError(f"x has {exogenous.shape[-1]} variables; it should have {width}")
        return np.ascontiguousarray(exogenous, dtype=np.int64).reshape(-1, width)

    def _complain(
        self,
        robots: NDArray[np.int64],
        exogenous: NDArray[np.int64],
        actions: NDArray[np.int64] | None = None,
    ) -> None:
        """Raise the error that says what is wrong with values that a kernel refused."""
        as_state(self, State(robots[:, None], exogenous), robots.shape)
        if actions is not None:
            as_actions(self, actions, robots.shape)


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


def _ways(floor: Floor, table_positions: NDArray[np.int64]) -> NDArray[np.int64]:
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


def _carrying_share(p: CrowdParameters, table_positions: NDArray[np.int64]) -> float:
    """The share of its time that a porter carries its object, in the long run.

    It carries it for distance / (1 - stand_still) steps and one more to put it down, then lets
    it lie for 1 / pick_up steps; all are multiplied out here, since either may be infinite.
    """
    steps = np.abs(table_positions[:, None] - table_positions).sum(axis=-1)
    distance = steps.sum() / (p.num_tables * (p.num_tables - 1))
    moving = 1.0 - p.stand_still
    carried = p.pick_up * (distance + moving)
    return float(carried / (carried + moving)) if carried + moving > 0 else 0.0
