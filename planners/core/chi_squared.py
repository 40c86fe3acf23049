"""The chi-squared distribution: its tail and its quantiles."""

from __future__ import annotations

import math
from statistics import NormalDist

#: Degrees of freedom from which on Wilson and Hilferty's approximation is as good as exact.
LARGE = 1e5
#: Steps of a bisection: each halves the interval, so the result is precise to all digits.
HALVINGS = 80


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


def chi_squared_quantile(freedom: float, log_p: float) -> float:
    """The value that a chi-squared variable exceeds with a probability given by its logarithm.

    >>> round(chi_squared_quantile(1, math.log(0.05)), 6)
    3.841459
    """
    if freedom > LARGE:
        z, part = -NormalDist().inv_cdf(max(math.exp(log_p), 1e-300)), 2.0 / (9.0 * freedom)
        return freedom * (1.0 - part + z * math.sqrt(part)) ** 3
    low, high = 0.0, freedom + 1.0
    while chi_squared_log_tail(high, freedom) > log_p:
        low, high = high, 2.0 * high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if chi_squared_log_tail(middle, freedom) > log_p:
            low = middle
        else:
            high = middle
    return high
