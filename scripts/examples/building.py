"""Cooling a house: comfort against the carbon of its electricity, with the weather as it was.

The temperature of the house is a real number; the sun and the air outside move it. 55 other columns
(humidity, forecasts, the loads of nine buildings) may or may not help to know what comes.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from examples import generated, recorded
from exo_envs import TraceMDP, Variable
from exo_envs.trace import Columns

TITLE = "building: comfort and carbon of a house in a day"
COST_WEIGHT = 0.02
SHOWN = "temperature"


def table(*, is_generated: bool, share: float) -> pd.DataFrame:
    """Four years of hours, or the first share of them."""
    hours = generated.city_like() if is_generated else recorded.city()
    return hours[: int(share * len(hours))]


def model(hours: pd.DataFrame) -> TraceMDP:
    """The house: 10 % of the difference to the outside comes in each hour, and some sun."""

    def step(n: Columns, a: np.ndarray, x: Columns) -> np.ndarray:
        warmer = 0.1 * (x.temperature - n.inside) + 0.0015 * x.direct_solar_radiation
        return np.clip(n.inside + warmer - 1.5 * a, 16, 32)

    def reward(n: Columns, a: np.ndarray, x: Columns) -> dict[object, np.ndarray]:
        return {"carbon": -2.0 * x.carbon * a, (): -0.2 * (n.inside - 23) ** 2}

    return TraceMDP.from_frame(
        hours,
        endogenous=[Variable("inside", low=16, high=32)],
        actions=[0.0, 0.5, 1.0, 2.0],
        step=step,
        reward=reward,
        horizon=24,
        discount=0.97,
        initial={"inside": 24},
        test=0.3,
    )
