"""The numbers of ExoCrowd, as users give them and as the kernels take them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, NamedTuple

from exo_envs.core.arguments import (
    Constraints,
    check_choice,
    check_discount,
    check_fields,
    check_horizon,
    check_probability,
    check_total,
    real,
    whole,
)
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import FloatArray, IntArray

#: Pairs of a cell and a table, at most: the way from every cell to every table is kept.
MAX_WAYS = 20_000_000


@dataclass(frozen=True)
class CrowdParameters:
    """The numbers of ExoCrowd. The paper gives 124 variables and 10^80 states; the rest is ours.

    Attributes:
        grid_size: the floor has ``grid_size`` x ``grid_size`` cells.
        num_agents: how many agents there are, porters included.
        num_porters: how many of them carry an object about; porter i carries object i. More
            agents alone are more wanderers.
        num_objects: how many objects there are; those without a porter never move.
        num_tables: how many tables there are; see
        :func:`exo_envs.domains.crowd.model.place_tables`.
        goal: the goal is drawn anew each episode, from the porters' objects ("movable", the
            paper's Goal 2) or from the other ones ("fixed", its Goal 1).
        goal_reward: paid for standing at the table with the goal; ends the episode.
        crash_cost: the price of stepping into an occupied cell.
        stand_still: the probability that an agent on its way makes no step.
        pick_up: the probability that a porter at its object's table picks the object up, which
            so takes it ``1 / pick_up`` steps on average.
        stroll: the probability that a porter who has put its object down first strolls to another
            table and back, and leaves the object lying there meanwhile.
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
    pick_up: float = 0.5
    stroll: float = 0.0
    discount: float = 0.97
    horizon: int = 50

    constraints: ClassVar[Constraints] = {
        **dict.fromkeys(("num_agents", "num_porters"), whole(0)),
        "num_objects": whole(1),
        **dict.fromkeys(("grid_size", "num_tables"), whole(2)),
        **dict.fromkeys(("goal_reward", "crash_cost"), real(0)),
        **dict.fromkeys(("stand_still", "pick_up", "stroll"), check_probability),
        "discount": check_discount,
        "horizon": check_horizon,
    }

    def __post_init__(self) -> None:
        check_choice("goal", self.goal, ("movable", "fixed"))
        check_fields(self)
        cells = self.grid_size**2
        counts = ("grid_size", "num_agents", "num_objects")
        check_total("variables", cells + 3 * self.num_agents + self.num_objects, self, *counts)
        ways = ("grid_size", "num_tables")
        check_total("ways to tables", cells * self.num_tables, self, *ways, most=MAX_WAYS)
        for name, limit in (("num_agents", self.num_agents), ("num_objects", self.num_objects)):
            if self.num_porters > limit:
                raise ArgumentError(
                    f"num_porters={self.num_porters} is more than {name}={limit}: "
                    "every porter is an agent and has an object of its own"
                )
        if self.goal == "movable" and self.num_porters == 0:
            raise ArgumentError('goal="movable" needs a porter, and num_porters is 0')
        if self.goal == "fixed" and self.num_objects == self.num_porters:
            raise ArgumentError(
                f'goal="fixed" needs an object without a porter, and each of the '
                f"num_objects={self.num_objects} has one"
            )
        places = self.grid_size**2 - (self.grid_size // 2) ** 2
        if self.num_tables > places:
            raise ArgumentError(
                f"num_tables={self.num_tables} do not fit: a floor with grid_size="
                f"{self.grid_size} has {places} cells outside its lower left quarter"
            )


class Phase(IntEnum):
    """What a porter is doing."""

    CARRYING = 0  # its object to a table
    STROLLING = 1  # to another table, its object left behind
    RETURNING = 2  # to its object
    WAITING = 3  # at its object's table, until it picks it up


class World(NamedTuple):
    """All that the kernels need of a model."""

    columns: int
    table_cells: IntArray  # (num_tables,)
    table_positions: IntArray  # (num_tables, 2): their rows and columns
    table_at: IntArray  # (num_cells + 1,): the table in a cell, or -1
    ways: IntArray  # (num_cells, num_tables, 3): the cell itself, two next ones to a table
    targets: IntArray  # (num_cells + 1, num_actions): where a move leads; the last is `done`
    num_agents: int
    num_porters: int
    stand_still: float
    pick_up: float
    stroll: float
    phase_bounds: FloatArray  # (4,): cumulative probabilities of a porter's phases
    first_goal: int  # objects first_goal ... last_goal may be the goal
    last_goal: int
    goal_reward: float
    crash_cost: float
