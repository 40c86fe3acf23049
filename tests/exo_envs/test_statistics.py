"""Distributions and tests against scipy.stats, far out in their tails too."""

import math

import numpy as np
import pytest
from scipy import stats

from exo_envs.core.statistics import (
    chi_squared_log_tail,
    chi_squared_noncentrality,
    chi_squared_quantile,
    fair_coins_log_tail,
    g_test,
    g_tests,
    hoeffding_margin,
    normal_quantile,
)

FREEDOMS = (0.3, 1, 2, 3, 7, 30, 500, 20_000)
RATIOS = (0.01, 0.3, 0.8, 0.999, 1.0, 1.001, 1.3, 3.0, 20.0)
TAILS = (0.975, 0.5, 0.025, 1e-6, 1e-12, 1e-100)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_the_tail_of_chi_squared(freedom):
    statistics = np.array(RATIOS) * freedom
    found = chi_squared_log_tail(statistics, np.full(len(RATIOS), float(freedom)))
    for log_tail, statistic in zip(found, statistics, strict=True):
        assert log_tail == chi_squared_log_tail(float(statistic), freedom)
        expected = stats.chi2.logsf(statistic, freedom)
        if expected > -600:  # below that SciPy rounds to 0
            assert log_tail == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("statistic", "freedom", "expected"),
    [
        # The tail with two degrees of freedom is exp(-statistic / 2), with four that times
        # 1 + statistic / 2, with one it is erfc(sqrt(statistic / 2)), here by its series.
        (5000.0, 2, -2500.0),
        (1e7, 2, -5e6),
        (5000.0, 4, -2500.0 + math.log(2501.0)),
        (5000.0, 1, -2500.0 - 0.5 * math.log(math.pi * 2500.0) + math.log1p(-1 / 5000)),
    ],
)
def test_the_tail_where_floats_underflow(statistic, freedom, expected):
    assert chi_squared_log_tail(statistic, freedom) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("freedom", [1, 40, 3e3, 1e5, 3e6])
def test_the_tail_is_smooth_where_its_formula_changes(freedom):
    limit = chi_squared_quantile(freedom, 1e-280)
    near = np.linspace(0.999, 1.001, 41) * limit
    slopes = np.diff(chi_squared_log_tail(near, np.full(41, freedom))) / np.diff(near)
    np.testing.assert_allclose(slopes[1:], slopes[:-1], rtol=1e-2)
    assert (np.diff(slopes) <= 1e-9 * abs(slopes[0])).all() or freedom == 1


def test_nothing_is_surprising_where_nothing_can_vary():
    assert chi_squared_log_tail(0.0, 5) == 0.0
    assert chi_squared_log_tail(3.0, 0) == 0.0
    np.testing.assert_array_equal(chi_squared_log_tail(np.zeros(2), np.zeros(2)), [0.0, 0.0])


@pytest.mark.parametrize("tail", TAILS)
def test_quantiles(tail):
    for freedom in (0.3, 1.0, 2.0, 7.5, 40.0, 3e3, 3e5, 3e6):
        expected = stats.chi2.isf(tail, freedom)
        assert chi_squared_quantile(freedom, tail) == pytest.approx(expected, rel=1e-9)
    assert normal_quantile(tail) == pytest.approx(stats.norm.ppf(tail), rel=1e-12)


@pytest.mark.parametrize("freedom", [1, 7, 300, 60_000])
@pytest.mark.parametrize("power", [0.5, 0.9, 0.99])
def test_the_noncentrality_with_a_power(freedom, power):
    threshold = stats.chi2.isf(1e-6, freedom)
    found = chi_squared_noncentrality(threshold, freedom, power)
    assert stats.ncx2.sf(threshold, freedom, found) == pytest.approx(power, rel=1e-6)
    assert chi_squared_noncentrality(0.5 * freedom, freedom, 0.1) == 0.0


@pytest.mark.parametrize("coins", [1, 10, 301, 4_000, 100_000])
def test_fair_coins(coins):
    for heads in {1, coins // 2, (6 * coins + 9) // 10, coins}:
        expected = stats.binom.logsf(heads - 1, coins, 0.5)
        if expected > -600:
            assert fair_coins_log_tail(heads, coins) == pytest.approx(expected, rel=1e-9)
    assert fair_coins_log_tail(coins, coins) == pytest.approx(-coins * math.log(2))
    assert fair_coins_log_tail(0, coins) == fair_coins_log_tail(0, 0) == 0.0


def test_the_tail_of_many_coins_is_that_of_the_next_term_smaller():
    """P(at least k) - P(at least k + 1) is the probability of k, also where both underflow."""
    tails = [fair_coins_log_tail(heads, 5_000) for heads in (4_000, 4_001)]
    one = stats.binom.logpmf(4_000, 5_000, 0.5)
    assert math.exp(tails[1] - tails[0]) == pytest.approx(1 - math.exp(one - tails[0]), rel=1e-6)


def test_two_samples_are_compared_as_scipy_does():
    rng = np.random.default_rng(0)
    first, second = (rng.multinomial(60, [0.5, 0.3, 0.2, 0.0], size=(2, 3)) for _ in range(2))
    statistic, freedom = g_tests(first, second)
    assert statistic.shape == freedom.shape == (2, 3)
    for place in np.ndindex(2, 3):
        table = np.stack([first[place], second[place]])
        table = table[:, table.any(axis=0)]
        expected = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood")
        assert statistic[place] == pytest.approx(expected.statistic)
        assert freedom[place] == expected.dof
        found = g_test(first[place], second[place])
        assert np.exp(found.log_p) == pytest.approx(expected.pvalue)
        assert found.gain == pytest.approx(expected.statistic - 2 * expected.dof)
    together = g_test(first, second)
    assert together == (pytest.approx(statistic.sum()), freedom.sum())


def test_a_mean_is_rarely_farther_away_than_hoeffding_says():
    assert hoeffding_margin(0.05, 100) == pytest.approx(math.sqrt(math.log(20) / 200))
    assert hoeffding_margin(0.05, 100, 100, width=2) == pytest.approx(
        2 * math.sqrt(math.log(20) / 100)
    )
