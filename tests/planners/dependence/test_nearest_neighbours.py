"""Information by nearest neighbours: against closed forms, and what a permutation test promises."""

import numpy as np
import pytest
from scipy.stats import binom

from planners.dependence.cross_check import (
    exchange,
    neighbour_information,
    neighbour_test,
    normal_scores,
)


def gaussian(rho, size, rng):
    x = rng.standard_normal(size)
    return x, rho * x + np.sqrt(1 - rho**2) * rng.standard_normal(size)


def closed_form(rho):
    return -0.5 * np.log(1 - rho**2)


# --- the estimate -------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.0, 0.3, -0.6, 0.9])
def test_two_normal_variables(rho):
    """The mean of 20 estimates: within 4 of its standard errors and a bias of 0.01."""
    found = [
        neighbour_information(*gaussian(rho, 1000, np.random.default_rng(i))) for i in range(20)
    ]
    error = 4 * np.std(found, ddof=1) / np.sqrt(len(found))
    assert abs(np.mean(found) - closed_form(rho)) < error + 0.01
    assert np.std(found) < 0.06


def test_normal_variables_given_others():
    """y = z + 0.8 x + noise, x = z + noise: the rest of x explains 0.8^2 / (1 + 0.8^2)."""
    found = []
    for i in range(20):
        rng = np.random.default_rng(i)
        z, noise, more = rng.standard_normal((3, 1000))
        x = z + noise
        found.append(neighbour_information(x, z + 0.8 * x + more, z))
    rho = 0.8 / np.sqrt(1 + 0.8**2)
    error = 4 * np.std(found, ddof=1) / np.sqrt(len(found))
    assert abs(np.mean(found) - closed_form(rho)) < error + 0.02


def test_what_is_known_already_tells_nothing():
    rng = np.random.default_rng(0)
    z = rng.standard_normal(2000)
    x, y = z + 0.5 * rng.standard_normal((2, 2000))
    assert neighbour_information(x, y) > 0.3
    assert abs(neighbour_information(x, y, z)) < 0.06


def test_several_variables_at_once():
    """Two independent pairs: their information adds up."""
    rng = np.random.default_rng(0)
    first, second = gaussian(0.6, 4000, rng), gaussian(0.8, 4000, rng)
    x, y = np.stack([first[0], second[0]], 1), np.stack([first[1], second[1]], 1)
    expected = closed_form(0.6) + closed_form(0.8)
    assert abs(neighbour_information(x, y) - expected) < 0.08


def test_increasing_functions_change_nothing():
    x, y = gaussian(0.7, 800, np.random.default_rng(0))
    assert neighbour_information(x, y) == neighbour_information(np.exp(3 * x), 7 * y**3 - 4)


def test_whole_variables():
    """A bit that is passed on with an error of 0.1: within 0.06 of the information in nats."""
    rng = np.random.default_rng(0)
    bit = rng.integers(2, size=2000)
    copy = np.where(rng.random(2000) < 0.9, bit, 1 - bit)
    exact = np.log(2) + 0.9 * np.log(0.9) + 0.1 * np.log(0.1)
    assert abs(neighbour_information(bit, copy) - exact) < 0.06


def test_signs_tell_only_together():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 1500))
    y = np.where(a * b > 0, 1, -1) * np.abs(rng.standard_normal(1500))
    assert abs(neighbour_information(a, y)) < 0.08
    assert neighbour_information(a, y, b) > 0.4
    assert neighbour_test(a, y, b, num_permutations=99).p_value == 0.01


def test_equal_values_are_ranked_by_chance():
    rng = np.random.default_rng(0)
    values = np.array([[3.0], [1.0], [3.0], [2.0], [3.0]])
    scores = np.array([normal_scores(values, rng)[:, 0] for _ in range(200)])
    assert (np.sort(scores, axis=1) == np.sort(scores[0])).all()
    assert (scores[:, 1] < scores[:, 3]).all()
    assert (scores[:, [3]] < scores[:, [0, 2, 4]]).all()
    assert len(np.unique(scores[:, 0])) == 3


# --- the test -----------------------------------------------------------------------------


def p_values(draw, count=100):
    found = []
    for i in range(count):
        rng = np.random.default_rng([i, 7])
        test = neighbour_test(*draw(rng), num_permutations=99, rng=rng)
        found.append(test.p_value)
    return np.array(found)


def independent(rng):
    return rng.standard_normal(200), rng.integers(4, size=200)


def confounded(rng):
    z = rng.standard_normal(200)
    x, y = z + rng.standard_normal((2, 200))
    return x, y, z


@pytest.mark.parametrize("draw", [independent, confounded])
def test_the_level_is_kept_where_there_is_nothing_to_find(draw):
    """Rejections in 100 tests at 0.05, 0.1 and 0.2: more has a probability below 1e-4 each.

    Given z the test is only nearly exact, so that its level counts as 1.5 times as large.
    """
    found = p_values(draw)
    factor = 1.5 if draw is confounded else 1.0
    for level in (0.05, 0.1, 0.2):
        assert (found <= level).sum() <= binom.isf(1e-4, len(found), factor * level)
    assert found.max() > 0.5


def test_weak_effects_are_found():
    def draw(rng):
        z = rng.standard_normal(500)
        x = z + rng.standard_normal(500)
        return x, z + 0.4 * x + rng.standard_normal(500), z

    assert (p_values(draw, 10) <= 0.05).all()


def test_few_permutations_say_that_there_is_nothing():
    x, y = gaussian(0.0, 300, np.random.default_rng(5))
    test = neighbour_test(x, y, num_permutations=5000)
    assert test.num_permutations < 200
    assert test.p_value == 5 / test.num_permutations


def test_a_seed_replays_exactly():
    rng = np.random.default_rng(0)
    x, y, z = rng.standard_normal((3, 300))
    runs = [neighbour_test(x, y, z, num_permutations=50, rng=3) for _ in range(2)]
    assert runs[0] == runs[1]
    assert neighbour_information(x, y, rng=3) == neighbour_information(x, y, rng=3)


def test_what_is_given_is_exchanged_among_neighbours_and_mostly_once():
    rng = np.random.default_rng(0)
    near = (np.arange(200)[:, None] + np.arange(5)) % 200
    source = np.array(exchange(near, rng))
    assert ((source - np.arange(200)) % 200 < 5).all()
    assert len(np.unique(source)) > 150


# --- errors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.zeros(30), np.zeros(29), "the same samples, not of 30, 29"),
        (np.full(30, np.nan), np.zeros(30), "x has values that are not finite"),
        (np.zeros(30), np.array(["a"] * 30), "y is an array of numbers"),
        (np.zeros((30, 1, 1)), np.zeros(30), "x is an array of numbers"),
        (np.zeros(4), np.zeros(4), "neighbours take more than"),
    ],
    ids=str,
)
def test_what_cannot_be_counted_is_refused(x, y, message):
    with pytest.raises(ValueError, match=message):
        neighbour_information(x, y)
