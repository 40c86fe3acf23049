"""The numbers of ExoFactory, as users give them and as the kernels take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from exo_envs.core.arguments import (
    Constraints,
    check_discount,
    check_fields,
    check_horizon,
    check_probability,
    check_size,
    check_total,
    real,
    whole,
)
from exo_envs.core.mdp import FloatArray, IntArray
from exo_envs.domains.floor import Move

NUM_STATIONS = 5  # one in each corner of the floor and one near the middle
WORK = len(Move)  # the action after those of Move
DOWN, UP = 0, 1  # the values of a machine

_PROBABILITIES = ("stall", "no_order", "fail", "repair", "self_repair", "wander", "noise_flip")


@dataclass(frozen=True)
class FactoryParameters:
    """The numbers of ExoFactory; all of them are ours, the paper names none.

    Attributes:
        rows: the rows of the floor, at least 3.
        columns: the columns of the floor, at least 3.
        queue_length: the orders on the belt, the live one included.
        clock_size: the values of the belt's clock, hence the least number of steps that an order
            stays in one place.
        num_technicians: the technicians.
        num_noise: the binary variables that never matter.
        order_reward: paid for working at the live order's station, once per order.
        down_cost: the price of working at a station whose machine is down.
        stall: the probability that the clock does not tick (before its last value).
        no_order: the probability that no order enters the belt when it moves; if one does, all
            stations are equally likely. The default makes all six values equally likely.
        fail: the probability that an up machine goes down.
        repair: the probability that a down machine comes up where a technician stands.
        self_repair: the same where none stands.
        wander: the probability that a technician goes to another station, all equally likely.
        noise_flip: the probability that an odd-numbered noise variable changes; the even-numbered
            are fair coins, tossed in every step.
        discount: the paper's gamma.
        horizon: the length of an episode.
    """

    rows: int = 5
    columns: int = 6
    queue_length: int = 4
    clock_size: int = 5
    num_technicians: int = 2
    num_noise: int = 10
    order_reward: float = 100.0
    down_cost: float = 400.0
    stall: float = 0.1
    no_order: float = 1 / 6
    fail: float = 0.1
    repair: float = 0.6
    self_repair: float = 0.03
    wander: float = 0.2
    noise_flip: float = 0.1
    discount: float = 0.97
    horizon: int = 50

    constraints: ClassVar[Constraints] = {
        **dict.fromkeys(("rows", "columns"), whole(3)),
        "queue_length": whole(1),
        "clock_size": check_size,
        **dict.fromkeys(("num_technicians", "num_noise"), whole(0)),
        **dict.fromkeys(("order_reward", "down_cost"), real()),
        **dict.fromkeys(_PROBABILITIES, check_probability),
        "discount": check_discount,
        "horizon": check_horizon,
    }

    def __post_init__(self) -> None:
        check_fields(self)
        counts = ("queue_length", "num_technicians", "num_noise")
        counted = sum(getattr(self, name) for name in counts) + 1 + NUM_STATIONS
        check_total("variables", counted, self, *counts)
        check_total("cells", self.rows * self.columns, self, "rows", "columns")


class World(NamedTuple):
    """All that the kernels need of a model."""

    queue_length: int
    num_technicians: int
    clock_size: int
    order_cdf: FloatArray  # (NUM_STATIONS + 1,): of the order that enters the belt
    stall: float
    fail: float
    repair: float
    self_repair: float
    wander: float
    noise_flips: FloatArray  # (num_noise,)
    targets: IntArray  # (cells, actions): where an action leads
    station_at: IntArray  # (cells,): the station in a cell, or -1
    order_reward: float
    down_cost: float
