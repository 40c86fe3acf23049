"""A battery against day-ahead prices: which of 34 columns should its controller look at?

Four hours of charge, bought and sold at the price of the hour; a tenth is lost on the way through.
"""

from pathlib import Path
from typing import Any

import numpy as np

from examples.report import report
from exo_envs import TraceMDP, Variable
from planners import backtest, estimate_objective
from wrappers import CalibratedMaskLearner


def model(hours: Any) -> TraceMDP:
    """The battery: how its charge moves by half hours, and what is paid for each."""

    def bought(n: Any, a: Any) -> Any:
        return np.clip(n.charge + a, 0, 8) - n.charge

    return TraceMDP.from_frame(
        hours,
        endogenous=[Variable("charge", 9)],
        actions=[-2, -1, 0, 1, 2],
        step=lambda n, a, x: n.charge + bought(n, a),
        reward=lambda n, a, x: -x.price * np.maximum(bought(n, a) / 1.9, bought(n, a) * 0.475),
        horizon=48,
        discount=0.98,
        initial={"charge": 0},
        calendar=True,
        lags={"price": [1, 2, 3, 24]},
        test=0.3,
    )


def main(hours: Any, folder: Path, seed: int = 0) -> None:
    """Learn what to look at, play that in later time beside a plan with all columns, and draw."""
    mdp = model(hours)
    learner = CalibratedMaskLearner(cost_weight=0.1).fit(mdp, rng=seed)  # λ: euros in two days
    plan = estimate_objective(mdp, mdp.exogenous_names, rng=seed).plan
    policies = {"learned": learner.policy_, "all columns": plan.policy}
    earned = {k: backtest(p, mdp, continued=True, discount=1.0) for k, p in policies.items()}
    report(folder / "battery", mdp, learner, earned, shown="price")
