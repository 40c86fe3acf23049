"""A shop's shelf: promotions, holidays, weekdays, and 15 columns that have nothing to do with it.

What is ordered today is on the shelf tomorrow. Promotions and holidays are planned, so tomorrow's
are known today: a perfect forecast of one day.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from examples import generated
from exo_envs import TraceMDP, Variable
from exo_envs.trace import Columns, Perfect

SHELF = 12
TITLE = "inventory: what a shelf earns in four weeks"
COST_WEIGHT = 0.1
SHOWN = "demand"


def table(*, is_generated: bool, share: float) -> pd.DataFrame:  # noqa: ARG001 - always is
    """Eight years of days, by a stated generator, or the first share of them."""
    days = generated.shop()
    return days[: int(share * len(days))]


def model(days: pd.DataFrame, *, known: int = 1) -> TraceMDP:
    """The shelf; ``known`` is how many days ahead promotions and holidays are known, 0 or more."""

    def step(n: Columns, a: np.ndarray, x: Columns) -> np.ndarray:
        return np.minimum(np.maximum(n.stock - x.demand, 0) + a, SHELF)

    def reward(n: Columns, a: np.ndarray, x: Columns) -> dict[object, np.ndarray]:
        sold = np.minimum(n.stock, x.demand)
        return {"demand": 5.0 * sold - 1.0 * (x.demand - sold), (): -2.0 * a - 0.4 * n.stock}

    return TraceMDP.from_frame(
        days,
        endogenous=[Variable("stock", SHELF + 1)],
        actions=9,
        step=step,
        reward=reward,
        horizon=28,
        discount=0.98,
        initial={"stock": 3},
        calendar=True,
        forecasts={name: Perfect(known) if known else None for name in ("promo", "holiday")},
        test=days.index[int(0.7 * len(days))],
    )


def without_forecasts(days: pd.DataFrame) -> dict[str, TraceMDP]:
    """The same shelf, for somebody who does not know what is planned for tomorrow."""
    return {"knowing tomorrow's promotions and holidays": model(days, known=0)}
