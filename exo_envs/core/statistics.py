"""Distributions and tests that everything else builds on: chi-squared, normal, binomial, G.

Probabilities of strong effects underflow, so tails are given as logarithms. Where a ``level`` is a
probability of errors, it is the probability itself. SciPy is imported on first use.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, overload

import numpy as np

from exo_envs.core.mdp import FloatArray, IntArray

#: Tails below this are computed as logarithms: near it a float has lost digits.
LEAST_TAIL = 1e-280
#: Stakes of a bet: small ones find many small differences, large ones few large ones.
STAKES = np.array([-8.0, -4.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 4.0, 8.0])
#: Decimals, relative to the largest value, to which ranked values are rounded.
RANK_DECIMALS = 8
#: Terms of a continued fraction. Where a tail is below ``LEAST_TAIL`` five are precise.
FRACTION_TERMS = 20
#: Bins in which samples of real numbers are compared.
COMPARED_BINS = 16
#: How often an effect should be found that counts as detectable.
POWER = 0.9


class GTest(NamedTuple):
    statistic: float  # G, twice the samples times the plug-in information
    freedom: float  # degrees of freedom of its chi-squared distribution without an effect

    @property
    def gain(self) -> float:
        """Expected gain in the log-likelihood of as many new samples, doubled (Akaike)."""
        return self.statistic - 2.0 * self.freedom

    @property
    def log_p(self) -> float:
        return chi_squared_log_tail(self.statistic, self.freedom)


def g_tests(first: IntArray, second: IntArray) -> tuple[FloatArray, FloatArray]:
    """G and its degrees of freedom, both of shape (...), of two samples of the same size.

    Args:
        first: how often each value occurs in one sample, shape (..., values).
        second: the same for the other sample.

    >>> statistic, freedom = g_tests(np.array([30, 20, 0]), np.array([20, 30, 0]))
    >>> round(float(statistic), 4), int(freedom)
    (4.0271, 1)
    """
    both = first + second
    statistic: FloatArray = np.zeros(both.shape[:-1])
    for counts in (first, second):
        ratio = np.where(counts > 0, 2.0 * counts / np.maximum(both, 1), 1.0)
        statistic += 2.0 * (counts * np.log(ratio)).sum(axis=-1)
    return statistic, np.count_nonzero(both, axis=-1) - 1.0


def g_test(first: IntArray, second: IntArray) -> GTest:
    """One test of two samples, which may be counted in several tables of shape (..., values).

    >>> round(g_test(np.array([30, 20]), np.array([20, 30])).log_p, 4)
    -3.1061
    """
    statistic, freedom = g_tests(first, second)
    return GTest(float(statistic.sum()), float(freedom.sum()))


@overload
def chi_squared_log_tail(statistic: float, freedom: float) -> float: ...


@overload
def chi_squared_log_tail(statistic: FloatArray, freedom: FloatArray) -> FloatArray: ...


def chi_squared_log_tail(statistic: Any, freedom: Any) -> Any:
    """The logarithm of P(chi-squared with ``freedom`` degrees > ``statistic``).

    It is 0 where there is no freedom. Arrays give arrays.

    >>> round(math.exp(chi_squared_log_tail(3.841459, 1)), 6)
    0.05
    """
    from scipy import special

    a, x = np.asarray(freedom, dtype=float) / 2.0, np.asarray(statistic, dtype=float) / 2.0
    nothing = (a <= 0.0) | (x <= 0.0)
    a, x = np.where(nothing, 1.0, a), np.where(nothing, 0.0, x)
    below, above = special.gammainc(a, x), special.gammaincc(a, x)
    far = np.asarray(above < LEAST_TAIL)
    logarithm = np.where(
        above > 0.5, np.log1p(-np.minimum(below, 0.5)), np.log(np.where(far, 1.0, above))
    )
    if far.any():
        logarithm[far] = _far_log_tail(a[far], x[far])
    return logarithm if logarithm.ndim else float(logarithm)


def _far_log_tail(a: Any, x: Any) -> FloatArray:
    """Log Q(a, x) where x is far above a: Legendre's continued fraction of the gamma function."""
    from scipy import special

    if x.size == 1:  # plain numbers take a tenth of the time
        a, x = a.item(), x.item()
    fraction = 0.0 * x
    for n in range(FRACTION_TERMS, 0, -1):
        fraction = n * (a - n) / (x - a + 2 * n + 1 + fraction)
    log_tail: FloatArray = a * np.log(x) - x - special.gammaln(a) - np.log(x - a + 1 + fraction)
    return log_tail


def chi_squared_quantile(freedom: float, tail: float) -> float:
    """The value that a chi-squared variable exceeds with probability ``tail``.

    >>> round(chi_squared_quantile(1, 0.05), 6)
    3.841459
    """
    from scipy import special

    return float(special.chdtri(freedom, tail))


def chi_squared_noncentrality(threshold: float, freedom: float, power: float) -> float:
    """The noncentrality with which a chi-squared variable exceeds a threshold with some power.

    It is 0 if that needs none.

    >>> round(chi_squared_noncentrality(3.841459, 1, power=0.9), 4)
    10.5074
    """
    from scipy import special

    if special.chdtrc(freedom, threshold) >= power:
        return 0.0
    return float(special.chndtrinc(threshold, freedom, 1.0 - power))


def detectable_information(
    samples: float, freedom: float, tests: float = 1, level: float = 0.05, power: float = POWER
) -> float:
    """The least conditional information, in nats, that a G-test finds with probability ``power``.

    G has, about, a noncentral chi-squared distribution whose noncentrality is twice the samples
    times the information. It is to exceed twice the freedom, too: a parent must be worth its table
    (Akaike's criterion; see :class:`planners.dependence.parents.ParentSearch`).

    Args:
        samples: of the test. If G is inflated by some factor (steps of one rollout depend on each
            other), give them divided by this factor.
        freedom: degrees of freedom: (values of the one variable - 1) times (values of the other
            - 1), for each joint value of what both are given.
        tests: the number of tests that share the level.
        level: the probability of any false alarm, over all tests.
        power: the probability to be found.

    >>> round(detectable_information(10_000, freedom=1), 6)
    0.000525
    """
    threshold = max(chi_squared_quantile(freedom, level / tests), 2.0 * freedom)
    return chi_squared_noncentrality(threshold, freedom, power) / (2.0 * samples)


def needed_samples(
    information: float, freedom: float, tests: float = 1, level: float = 0.05, power: float = POWER
) -> int:
    """The samples with which a G-test finds so many nats; see :func:`detectable_information`.

    >>> needed_samples(0.0823, freedom=1, tests=100)
    138
    """
    return math.ceil(detectable_information(1.0, freedom, tests, level, power) / information)


def normal_quantile(probability: float) -> float:
    """The value that a standard normal variable stays below with some probability.

    >>> round(normal_quantile(0.975), 6)
    1.959964
    """
    from scipy import special

    return float(special.ndtri(probability))


def fair_coins_log_tail(heads: int, coins: int) -> float:
    """The logarithm of P(at least so many of some fair coins fall on heads).

    McNemar's exact test: of the pairs that differ, how many speak for one side.

    >>> round(math.exp(fair_coins_log_tail(8, 10)), 4)
    0.0547
    """
    from scipy import special

    if heads <= 0 or coins <= 0:
        return 0.0
    tail = float(special.betainc(heads, coins - heads + 1, 0.5)) if heads <= coins else 0.0
    if tail > LEAST_TAIL or heads > coins:
        return math.log(tail) if tail else -math.inf
    some = np.arange(heads, coins + 1)
    ways = (
        special.gammaln(coins + 1) - special.gammaln(some + 1) - special.gammaln(coins - some + 1)
    )
    return float(special.logsumexp(ways)) - coins * math.log(2.0)


def hoeffding_margin(error_probability: float, *samples: int, width: float = 1.0) -> float:
    """How far the mean of one sample, or the difference of two means, exceeds the truth by chance.

    Args:
        error_probability: that it exceeds it by more (Hoeffding's inequality).
        *samples: the sizes of the samples.
        width: of the interval that all values lie in.

    >>> round(hoeffding_margin(0.05, 500), 4)
    0.0547
    """
    spread = sum(1.0 / size for size in samples)
    return width * math.sqrt(math.log(1.0 / error_probability) / 2.0 * spread)


class Ranks:
    """Whether what was played could be exchanged for what a model draws, with a stated error.

    In each of N states something was played once and drawn K times. If the model is right, the
    played value is any of the K + 1 with the same probability, whatever these are. So each state is
    a bet at known odds, and a product of bets exceeds 1 / p with a probability of at most p
    (Ville's inequality), also if later states depend on what was played in earlier ones.

    Args:
        played: shape (N,).
        drawn: shape (N, K).

    Attributes:
        places: of each of the K + 1 values among the others, the played one first: shape
            (N, K + 1), from -1 (the smallest) to 1 (the largest).
        alone: whether a value is the only one that differs from the others, shape (N, K + 1).
        certain: whether all drawn values are equal, shape (N,).

    >>> drawn = np.random.default_rng(0).normal(size=(50, 6))
    >>> Ranks(drawn[:, 0] + 2.0, drawn[:, 1:]).evidence() > math.log(1e6)
    True
    """

    def __init__(self, played: Any, drawn: Any) -> None:
        values: FloatArray = np.column_stack([played, drawn]).astype(np.float64)
        scale = np.abs(values).max(initial=0.0) or 1.0
        values = np.asarray(np.round(values / scale, RANK_DECIMALS))
        others = values.shape[1] - 1
        below = (values[:, None, :] < values[:, :, None]).sum(axis=2)
        equal = (values[:, None, :] == values[:, :, None]).sum(axis=2) - 1
        self.places: FloatArray = np.asarray((2.0 * below + equal) / others - 1.0)
        self.alone = (equal == 0) & ((equal == others - 1).sum(axis=1) == others)[:, None]
        self.certain = (values[:, 1:] == values[:, 1:2]).all(axis=1)

    def evidence(self, weights: FloatArray | None = None) -> float:
        """The logarithm of what was won by betting that played values are elsewhere.

        Bets are on larger or smaller values, on extreme ones, and on ones that stand alone.

        Args:
            weights: in which states to bet how much, and in which direction, shape (N,). They may
                depend on the states and on what was played before, by default they are 1.
        """
        bets = (self.places, np.abs(self.places), self.alone.astype(np.float64))
        return _log_mean([log_won(bet, weights) for bet in bets])

    def joint_evidence(self, other: Ranks) -> float:
        """The same for two quantities that the model draws independently of each other."""
        product = self.places[:, :, None] * other.places[:, None, :]
        return log_won(product.reshape(len(product), product.shape[1] * product.shape[2]))


def log_won(bets: FloatArray, weights: FloatArray | None = None) -> float:
    """The logarithm of the mean over stakes of what was won, if all outcomes are equally probable.

    Args:
        bets: the score of each outcome, shape (N, outcomes); the first one happened.
        weights: of the N bets.
    """
    bets = bets[np.ptp(bets, axis=1) > 0] if weights is None else bets * weights[:, None]
    if not len(bets):
        return 0.0
    won = []
    for stake in STAKES:
        staked = stake * bets
        top = staked.max(axis=1)
        expected = top + np.log(np.exp(staked - top[:, None]).mean(axis=1))
        won.append(float((staked[:, 0] - expected).sum()))
    return _log_mean(won)


def _log_mean(logarithms: list[float]) -> float:
    """The logarithm of the mean of numbers with these logarithms."""
    top = max(logarithms)
    return top + math.log(sum(math.exp(value - top) for value in logarithms) / len(logarithms))


class Difference(NamedTuple):
    """A value whose frequency differs between two samples."""

    value: float  # whole, or the least of a bin of real ones
    first: float
    second: float


def find_difference(
    first: IntArray, second: IntArray, error_probability: float
) -> Difference | None:
    """Tell two samples of numbers, shapes (N,) and (M,), apart.

    A third of each sample chooses an event: the values that are more frequent in the first. The
    rest tests it. An event that has the same probability in both samples has a frequency that is
    higher in the first by more than sqrt(log(1 / p) / 2 * (1 / N' + 1 / M')) with a probability of
    at most p (Hoeffding's inequality; N' and M' are what is left). Choosing first finds
    differences that are spread over many values, at the price of a single comparison.

    Returns:
        The value that differs most, or None if the samples may well come from one distribution;
        samples of one distribution give a value with at most ``error_probability``.
    """
    cut, other_cut = len(first) // 3, len(second) // 3
    if not cut or not other_cut:
        return None
    both = np.concatenate([first, second])
    if both.dtype.kind == "f":
        both = _in_bins(both)
    values, codes = np.unique(both, return_inverse=True)
    one, two = codes[: len(first)], codes[len(first) :]

    def frequencies(sample: IntArray) -> FloatArray:
        return np.bincount(sample, minlength=len(values)) / len(sample)

    event = frequencies(one[:cut]) > frequencies(two[:other_cut])
    gap = (frequencies(one[cut:]) - frequencies(two[other_cut:]))[event].sum()
    if gap <= hoeffding_margin(error_probability, len(one) - cut, len(two) - other_cut):
        return None
    in_first, in_second = frequencies(one), frequencies(two)
    most = int(np.abs(in_first - in_second).argmax())
    value = values[most].item()
    return Difference(value, float(in_first[most]), float(in_second[most]))


def _in_bins(values: FloatArray) -> FloatArray:
    """Real numbers by the least of their bin: as many in each, whichever sample they are of."""
    quantiles = np.arange(COMPARED_BINS) / COMPARED_BINS
    starts = np.unique(np.quantile(values, quantiles, method="lower"))
    return starts[np.searchsorted(starts, values, side="right") - 1]
