"""Whether a difference is more than chance: G-tests and the chi-squared distribution."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from exo_envs.mdp import FloatArray
from planners.arrays import Ints

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


def chi_squared_log_tail(statistic: float, freedom: float) -> float:
    """The logarithm of P(chi-squared with ``freedom`` degrees > ``statistic``).

    The regularised incomplete gamma function: its series below the mean, its continued fraction
    (by Lentz) above. Logarithms, because p-values of strong effects underflow.

    >>> round(math.exp(chi_squared_log_tail(3.841459, 1)), 6)
    0.05
    """
    if freedom <= 0 or statistic <= 0:
        return 0.0
    a, x = freedom / 2.0, statistic / 2.0
    log_front = a * math.log(x) - x - math.lgamma(a)
    if x < a + 1.0:
        term = total = 1.0 / a
        n = a
        while term > total * 1e-16:
            n += 1.0
            term *= x / n
            total += term
        below = math.exp(log_front + math.log(total))
        return math.log1p(-below) if below < 1.0 else -math.inf
    b = x + 1.0 - a
    c, d = 1e300, 1.0 / b
    fraction, n = d, 0.0
    change = 2.0
    while abs(change - 1.0) > 1e-15:
        n += 1.0
        factor = -n * (n - a)
        b += 2.0
        d = 1.0 / (factor * d + b)
        c = b + factor / c
        change = c * d
        fraction *= change
    return log_front + math.log(fraction)
