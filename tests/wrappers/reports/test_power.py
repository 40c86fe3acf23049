"""How small an effect the tests find: against scipy, and in simulated tests and searches."""

import math

import numpy as np
import pytest
from scipy import stats

from exo_envs.core.statistics import detectable_information, needed_samples
from planners.dependence.parents import ParentSearch
from planners.samples.rollouts import ExogenousData
from wrappers.reports.doubts import NOTABLE_NATS


@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 10, 63, 300, 4_000, 60_000])
@pytest.mark.parametrize("power", [0.5, 0.9, 0.99])
def test_it_agrees_with_scipy(freedom, power):
    for level in (0.05, 1e-3, 1e-6, 1e-12):
        asked = max(stats.chi2.isf(level, freedom), 2.0 * freedom)
        found = detectable_information(5_000, freedom, 1, level, power)
        assert stats.ncx2.sf(asked, freedom, 2 * 5_000 * found) == pytest.approx(power, abs=1e-6)


def test_so_many_samples_find_what_is_asked_for_and_one_less_do_not():
    for freedom in (1, 40, 5_000):
        count = needed_samples(NOTABLE_NATS, freedom, 400, 0.05)
        assert detectable_information(count, freedom, 400, 0.05) <= NOTABLE_NATS
        assert detectable_information(count - 1, freedom, 400, 0.05) > NOTABLE_NATS


def test_more_tests_larger_tables_and_less_data_find_less():
    assert detectable_information(1_000, 1, 10) > detectable_information(1_000, 1, 1)
    assert detectable_information(1_000, 9, 1) > detectable_information(1_000, 1, 1)
    assert detectable_information(500, 1, 1) == 2 * detectable_information(1_000, 1, 1)


def binary_information(bias):
    """I(x; y) in nats of a fair coin y that is 0.5 + bias or 0.5 - bias, as fair x says."""
    p, q = 0.5 + bias, 0.5 - bias
    return math.log(2) + p * math.log(p) + q * math.log(q)


def bias_of(information):
    """The other way round, by bisection."""
    low, high = 0.0, 0.5 - 1e-12
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if binary_information(middle) < information else (low, middle)
    return high


def test_an_effect_of_that_size_is_found_as_often_as_is_said():
    """20,000 simulated tables: 0.9 within 0.012, which chance exceeds less than once in 1e7."""
    samples, tests, level = 2_000, 25, 0.05
    bias = bias_of(detectable_information(samples, 1, tests, level))
    cells = np.array([0.5 + bias, 0.5 - bias, 0.5 - bias, 0.5 + bias]) / 2
    rng = np.random.default_rng(0)
    counts = rng.multinomial(samples, cells, size=20_000).reshape(-1, 2, 2)
    expected = counts.sum(1, keepdims=True) * counts.sum(2, keepdims=True) / samples
    statistic = 2 * (counts * np.log(counts / expected)).sum((1, 2))
    assert np.mean(statistic > stats.chi2.isf(level / tests, 1)) == pytest.approx(0.9, abs=0.012)


def test_a_search_for_parents_finds_an_effect_of_that_size():
    """200 searches: 0.9 of them within 0.075, which chance exceeds less than once in 1,000."""
    rollouts, steps, level = 40, 50, 0.05
    names = ("coin", "tide")
    transitions = 35 * steps  # one rollout in eight is held out
    bias = bias_of(detectable_information(transitions, 1, len(names) ** 2, level))
    rng, found = np.random.default_rng(1), 0
    for seed in range(200):
        values = rng.integers(2, size=(rollouts, steps + 1, 2))
        chance = 0.5 + bias * (2 * values[:, :-1, 1] - 1)
        values[:, 1:, 0] = rng.random(chance.shape) < chance
        data = ExogenousData(names, np.array([2, 2]), values, np.zeros((rollouts, 0), int), seed)
        search = ParentSearch(data, level=level / len(names))
        found += 1 in search.parents(0, range(2))
    assert found / 200 == pytest.approx(0.9, abs=0.075)
