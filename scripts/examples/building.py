"""Cooling a house: comfort against the carbon of its electricity, with the weather as it was.

The temperature of the house is a real number; the sun and the air outside move it, and the carbon
intensity is paid for. The other columns (46 of 49: humidity, forecasts of the weather, the loads of
nine buildings ...) may or may not help to know what comes.
"""

from pathlib import Path
from typing import Any

import numpy as np

from examples.report import report
from exo_envs import TraceMDP, Variable
from planners import backtest, estimate_objective
from wrappers import CalibratedMaskLearner


def model(hours: Any) -> TraceMDP:
    """The house: 10 % of the difference to the outside comes in each hour, and some sun."""

    def step(n: Any, a: Any, x: Any) -> Any:
        warmer = 0.1 * (x.temperature - n.inside) + 0.0015 * x.direct_solar_radiation
        return np.clip(n.inside + warmer - 1.5 * a, 16, 32)

    return TraceMDP.from_frame(
        hours,
        endogenous=[Variable("inside", low=16, high=32)],
        actions=[0.0, 0.5, 1.0, 2.0],
        step=step,
        reward=lambda n, a, x: {"carbon": -2 * x.carbon * a, (): -0.2 * (n.inside - 23) ** 2},
        horizon=24,
        discount=0.97,
        initial={"inside": 24},
        test=0.3,
    )


def main(hours: Any, folder: Path, seed: int = 0) -> None:
    """Learn what to look at, play that in later time beside a plan with all columns, and draw."""
    mdp = model(hours)
    learner = CalibratedMaskLearner(cost_weight=0.02).fit(mdp, rng=seed)  # λ: points in a day
    plan = estimate_objective(mdp, mdp.exogenous_names, rng=seed).plan
    policies = {"learned": learner.policy_, "all columns": plan.policy}
    earned = {k: backtest(p, mdp, continued=True, discount=1.0) for k, p in policies.items()}
    report(folder / "building", mdp, learner, earned, shown="temperature")
