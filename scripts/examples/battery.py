"""A battery against day-ahead prices: which of 34 columns should its controller look at?

Four hours of charge, bought and sold at the price of the hour; a tenth is lost on the way through.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from examples import generated, recorded
from exo_envs import TraceMDP, Variable
from exo_envs.trace import Columns

CAPACITY = 8
TITLE = "battery: euros a megawatt of power earns in two days"
#: λ: what a column has to earn to be looked at.
COST_WEIGHT = 0.1
SHOWN = "price"


def table(*, is_generated: bool, share: float) -> pd.DataFrame:
    """A year of hours, or the first share of it."""
    hours = generated.dutch_like() if is_generated else recorded.dutch_year()
    return hours[: int(share * len(hours))]


def model(hours: pd.DataFrame) -> TraceMDP:
    """The battery: how charge moves, and what is paid."""

    def step(n: Columns, a: np.ndarray, _: Columns) -> np.ndarray:
        return np.clip(n.charge + a, 0, CAPACITY)

    def reward(n: Columns, a: np.ndarray, x: Columns) -> np.ndarray:
        bought = np.clip(n.charge + a, 0, CAPACITY) - n.charge
        return -0.5 * x.price * bought * np.where(bought > 0, 1 / 0.95, 0.95)

    return TraceMDP.from_frame(
        hours,
        endogenous=[Variable("charge", CAPACITY + 1)],
        actions=[-2, -1, 0, 1, 2],
        step=step,
        reward=reward,
        horizon=48,
        discount=0.98,
        initial={"charge": 0},
        calendar=True,
        lags={"price": [1, 2, 3, 24]},
        test=0.3,
    )
