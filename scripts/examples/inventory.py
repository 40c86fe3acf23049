"""A shop's shelf: promotions, holidays, weekdays, and 15 columns that have nothing to do with it.

What is ordered today is on the shelf tomorrow. Promotions and holidays are planned, so tomorrow's
are known today: a perfect forecast of one day. What is that forecast worth?
"""

from pathlib import Path
from typing import Any

import numpy as np

from examples.report import report
from exo_envs import TraceMDP, Variable
from exo_envs.sources.tables.forecasts import Perfect
from planners import backtest
from wrappers import CalibratedMaskLearner


def model(days: Any, forecast: Perfect | None) -> TraceMDP:
    """The shelf: what is sold pays 5, who finds it empty costs 1; ordering 2, and keeping 0.4."""
    return TraceMDP.from_frame(
        days,
        endogenous=[Variable("stock", 13)],
        actions=9,
        step=lambda n, a, x: np.minimum(np.maximum(n.stock - x.demand, 0) + a, 12),
        reward=lambda n, a, x: 6 * np.minimum(n.stock, x.demand) - x.demand - 2 * a - 0.4 * n.stock,
        horizon=28,
        discount=0.98,
        initial={"stock": 3},
        calendar=True,
        forecasts={"promo": forecast, "holiday": forecast},
        test=days.index[int(0.7 * len(days))],
    )


def main(days: Any, folder: Path, seed: int = 0) -> None:
    """Learn what to look at without the forecast and with it, play both in later time, draw."""
    earned = {}
    for name, forecast in (("without the forecast", None), ("learned", Perfect(1))):
        mdp = model(days, forecast)
        learner = CalibratedMaskLearner(cost_weight=0.1).fit(mdp, rng=seed)  # λ: in four weeks
        earned[name] = backtest(learner.policy_, mdp, continued=True, discount=1.0)
    report(folder / "inventory", mdp, learner, earned, shown="demand")
