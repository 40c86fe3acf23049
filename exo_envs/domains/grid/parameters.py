"""The numbers of ExoGrid, as users give them and as the kernels take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from exo_envs.core.arguments import (
    Constraints,
    check_discount,
    check_fields,
    check_horizon,
    check_probability,
    real,
)
from exo_envs.core.mdp import FloatArray, IntArray

_PROBABILITIES = ("slip", "carry", "turn", "follow", "reconsider", "weather_change")


@dataclass(frozen=True)
class GridParameters:
    """The numbers of ExoGrid; all of them are ours, the paper names none.

    Attributes:
        goal_reward: paid for standing at the table with the object; ends the episode.
        crash_cost: the price of walking into the guard.
        slip: the probability that the robot stays where it is instead of moving.
        carry: the probability that the carrier takes the object to the next table.
        turn: the probability that the carrier turns round.
        follow: the probability that the guard goes where it intends to be.
        reconsider: the probability that the guard changes its intent.
        weather_change: the probability that the weather changes.
        discount: the paper's gamma.
        horizon: the length of an episode.
    """

    goal_reward: float = 100.0
    crash_cost: float = 30.0
    slip: float = 0.1
    carry: float = 0.2
    turn: float = 0.05
    follow: float = 0.9
    reconsider: float = 0.3
    weather_change: float = 0.1
    discount: float = 0.95
    horizon: int = 40

    constraints: ClassVar[Constraints] = {
        **dict.fromkeys(("goal_reward", "crash_cost"), real(0)),
        **dict.fromkeys(_PROBABILITIES, check_probability),
        "discount": check_discount,
        "horizon": check_horizon,
    }

    def __post_init__(self) -> None:
        check_fields(self)


class World(NamedTuple):
    """All that the kernels need of a model."""

    probability: FloatArray  # (5,): of the event that each variable waits for
    num_tables: int
    slip: float
    goal_reward: float
    crash_cost: float
    moves: IntArray  # (cells, actions)
    table_at: IntArray  # (cells,): the table in a cell, or -1
    door_at: IntArray  # (cells,): the door in a cell, or -1
