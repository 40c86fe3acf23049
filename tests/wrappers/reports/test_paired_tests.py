"""Tests of two samples from the same states."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wrappers.reports.paired_tests import PairedTest, Votes
from wrappers.reports.paired_tests import paired_tests as run

#: Of all tests in this file that need chance, one fails by it with this probability at most.
CHANCE = 1e-6


def draws_of(y, z, kinds=None, decreases=None):
    """Draws of one target, from arrays (2, N)."""
    number = y.shape[1]
    kinds = np.zeros(number, int) if kinds is None else kinds
    decreases = np.zeros(number, bool) if decreases is None else decreases
    return y[:, :, None], z[:, :, None], kinds, decreases


def coins(rng, chance):
    return (rng.random((2, len(chance))) < chance).astype(int)


@pytest.mark.parametrize("size", [2, 12])
def test_false_alarms_are_as_rare_as_stated(size):
    """1,000 tests at level 0.05 with 0.05 to be expected: more than 80 has a chance of 2e-5."""
    rng = np.random.default_rng(0)
    number, alarms = 600, 0
    for _ in range(1_000):
        chances = rng.dirichlet(np.ones(size), size=number).cumsum(axis=1)
        y, z = ((rng.random((2, number, 1)) > chances).sum(axis=-1) for _ in range(2))
        kinds, decreases = rng.integers(3, size=number), rng.random(number) < 0.5
        (test,) = run(
            *draws_of(np.minimum(y, size - 1), np.minimum(z, size - 1), kinds, decreases), [size]
        )
        alarms += test.log_p < math.log(0.05)
    assert alarms <= 80


def test_an_effect_in_one_direction_has_its_size():
    rng = np.random.default_rng(0)
    number = 60_000
    base = rng.uniform(0.2, 0.6, size=number)
    (test,) = run(*draws_of(coins(rng, base), coins(rng, base + 0.3)), [2])
    error = math.sqrt(0.5 / test.pairs)
    assert abs(test.effect - 0.3) < 5 * error  # 6e-7
    assert test.log_p < math.log(CHANCE)


def test_a_change_to_smaller_values_speaks_for_the_same_direction():
    """A variable that pushes up looks the same, whichever way it is changed."""
    rng = np.random.default_rng(1)
    number = 20_000
    was_high = rng.random(number) < 0.5
    y, z = coins(rng, 0.4 + 0.1 * was_high), coins(rng, 0.4 + 0.1 * ~was_high)
    (test,) = run(*draws_of(y, z, decreases=was_high), [2])
    assert abs(test.effect - 0.1) < 5 * math.sqrt(0.5 / test.pairs)
    (blind,) = run(*draws_of(y, z), [2])  # without that, the two halves cancel out
    assert blind.steady.log_p > math.log(CHANCE)


def test_an_effect_whose_direction_depends_on_something_else_is_found():
    rng = np.random.default_rng(2)
    sign = rng.choice([-1, 1], size=20_000)
    (test,) = run(*draws_of(coins(rng, 0.5 + 0.2 * sign), coins(rng, 0.5 - 0.2 * sign)), [2])
    assert test.steady.log_p > math.log(CHANCE)
    assert test.log_p < math.log(CHANCE)
    assert test.effect == pytest.approx(0.4, abs=0.03)


def test_a_certain_effect_in_few_states_is_found():
    """Nothing is left to chance but for 60 of 20,000 states."""
    y = np.zeros((2, 20_000), int)
    z = y.copy()
    z[:, ::333] = 1
    (test,) = run(*draws_of(y, z), [2])
    assert test.log_p < math.log(CHANCE)
    (nothing,) = run(*draws_of(y, y), [2])
    assert (nothing.log_p, nothing.effect) == (0.0, 0.0)


@settings(max_examples=60)
@given(
    st.integers(50, 10**6),
    st.floats(0.0, 0.6),
    st.floats(1e-6, 0.1),
    st.sampled_from([2, 5, 64]),
)
def test_more_states_see_smaller_effects(states, unequal, level, values):
    def made(number):
        none = Votes(0, 0)
        return PairedTest(
            2 * (number - number // 3), none, none, unequal, 0.0, unequal * number, number, values
        )

    few, many = made(states), made(10 * states)
    for kind in ("detectable", "detectable_mixed"):
        larger, smaller = (getattr(test, kind)(level, 0.9) for test in (few, many))
        assert 0 < smaller <= larger <= 1
        assert getattr(many, kind)(level, 0.99) >= smaller
        assert getattr(many, kind)(level / 10, 0.9) >= smaller


@pytest.mark.parametrize("mixed", [False, True])
def test_stated_power_is_real(mixed):
    """300 runs at the stated threshold: 0.86 or less has a chance of 1e-3 at a power of 0.92."""
    rng = np.random.default_rng(3)
    number, level = 4_000, 1e-3
    half = np.full(number, 0.5)
    (null,) = run(*draws_of(coins(rng, half), coins(rng, half)), [2])
    effect = null.detectable_mixed(level, 0.9) if mixed else null.detectable(level, 0.9)
    found = 0
    for _ in range(300):
        sign = rng.choice([-1, 1], size=number) if mixed else np.ones(number)
        y, z = (coins(rng, 0.5 + turn * sign * effect / 2) for turn in (-1, 1))
        (test,) = run(*draws_of(y, z), [2])
        found += test.log_p < math.log(level)
    assert 0.86 < found / 300 < 0.99
