"""Whether a difference is more than chance: G-tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exo_envs.core.mdp import FloatArray
from planners.core.arrays import Ints
from planners.core.chi_squared import chi_squared_log_tail

#: Where nothing is to be found, a mean of G / freedom as large as this counts as inflated.
NOTICEABLE = 1.25


class Information(NamedTuple):
    """What a test of conditional independence needs."""

    statistic: float  # G, twice the samples times the plug-in conditional mutual information
    freedom: float  # its degrees of freedom: of the values that occur, row by row

    @property
    def gain(self) -> float:
        """Expected gain in the log-likelihood of as many new samples, doubled (Akaike)."""
        return self.statistic - 2.0 * self.freedom

    @property
    def log_p(self) -> float:
        """The logarithm of the p-value of the G-test."""
        return chi_squared_log_tail(self.statistic, self.freedom)


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

    def log_p(self, found: Information) -> float:
        """The logarithm of the probability of a G as large as this (Satterthwaite)."""
        if self.freedom is None:
            return chi_squared_log_tail(found.statistic / self.mean, found.freedom)
        freedom = min(self.freedom, found.freedom)
        scale = self.mean * found.freedom / freedom
        return chi_squared_log_tail(found.statistic / scale, freedom)

    def gain(self, found: Information) -> float:
        """What the gain is if G is deflated."""
        return Information(found.statistic / self.mean, found.freedom).gain


def compare_histograms(first: Ints, second: Ints) -> tuple[FloatArray, Ints]:
    """G of two samples of the same size, and its degrees of freedom, both of shape (...).

    The samples are given by how often each value occurs in them, shape (..., values).
    """
    both = first + second
    statistic: FloatArray = np.zeros(both.shape[:-1])
    for counts in (first, second):
        ratio = np.where(counts > 0, 2.0 * counts / np.maximum(both, 1), 1.0)
        statistic += 2.0 * (counts * np.log(ratio)).sum(axis=-1)
    return statistic, np.count_nonzero(both, axis=-1) - 1
