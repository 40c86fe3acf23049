"""G-tests of samples that depend on each other, such as the steps of one rollout."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exo_envs.core.statistics import GTest, chi_squared_log_tail

#: Where nothing is to be found, a mean of G / freedom as large as this counts as inflated.
NOTICEABLE = 1.25


class Null(NamedTuple):
    """The distribution of G, per degree of freedom, where there is nothing to find."""

    mean: float
    freedom: float | None  # of the chi-squared distribution with this mean and its variance

    @classmethod
    def of(cls, ratios: list[float]) -> Null:
        """From G / freedom of pairs of rollouts that have nothing to do with each other."""
        mean = max(1.0, float(np.mean(ratios))) if ratios else 1.0
        variance = float(np.var(ratios, ddof=1)) if len(ratios) > 1 else 0.0
        if mean < NOTICEABLE or variance == 0.0:
            return cls(mean, None)
        return cls(mean, 2.0 * mean**2 / variance)

    def log_p(self, found: GTest) -> float:
        """The logarithm of the probability of a G as large as this (Satterthwaite)."""
        if self.freedom is None:
            return chi_squared_log_tail(found.statistic / self.mean, found.freedom)
        freedom = min(self.freedom, found.freedom)
        scale = self.mean * found.freedom / freedom
        return chi_squared_log_tail(found.statistic / scale, freedom)

    def gain(self, found: GTest) -> float:
        """What the gain is if G is deflated."""
        return GTest(found.statistic / self.mean, found.freedom).gain
