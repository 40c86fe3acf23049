"""What of V depends on x alone: sums over x against linear equations, and plans that need them."""

import numpy as np
import pytest
from factored import random_mdp
from hypothesis import given
from hypothesis import strategies as st

from exo_envs.core.clock import Clock, OutOfTimeError
from planners import ValueIteration, to_discrete_dp
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.factors import Factor
from planners.value_iteration.convergence import extrapolate, most_ahead, sum_ahead
from planners.value_iteration.expectation import Expectation


def slow_factor(rng, size, parents=(0,)):
    """A variable that mostly stays as it is."""
    table = 0.02 * rng.dirichlet(np.ones(size), size=size) + 0.98 * np.eye(size)
    return Factor.from_table(parents, table)


def chains(seed, dtype):
    """Two slow variables, P as sweeps use it, and the joint matrix."""
    rng = np.random.default_rng(seed)
    sizes = (4, 3)
    factors = [slow_factor(rng, 4), slow_factor(rng, 3, (1,))]
    matrix = np.kron(factors[0].to_table(4), factors[1].to_table(3))
    return rng, Expectation(sizes, factors, 7, np.dtype(dtype)), matrix


@given(seed=st.integers(0, 2**32), discount=st.floats(0.5, 0.995), roomy=st.booleans())
def test_sums_solve_the_linear_equations(seed, discount, roomy):
    rng, expectation, matrix = chains(seed, np.float64)
    function = rng.normal(size=12)
    found = sum_ahead(function, expectation, discount, 1e-7, roomy=roomy)
    moved = discount * matrix
    expected = np.linalg.solve(np.eye(12) - moved, moved @ function)
    np.testing.assert_allclose(found, expected, atol=1.1e-7)


def test_sums_are_in_double_precision_for_plans_in_single_precision():
    rng, expectation, matrix = chains(0, np.float32)
    function = rng.normal(size=12)
    found = sum_ahead(function, expectation, 0.9, 1e-9)
    assert found.dtype == np.float64
    expected = np.linalg.solve(np.eye(12) - 0.9 * matrix, 0.9 * matrix @ function)
    np.testing.assert_allclose(found, expected, atol=1e-5)  # P is rounded, the sum is not


@given(seed=st.integers(0, 2**32), discount=st.floats(0.5, 0.995))
def test_bounds_hold_and_are_no_larger_than_the_widest_range_allows(seed, discount):
    rng, expectation, matrix = chains(seed, np.float64)
    widths = rng.exponential(size=12)
    moved = discount * matrix
    exact = np.linalg.solve(np.eye(12) - moved, moved @ widths).max()
    bound = most_ahead(widths, expectation, discount, 0.0)
    assert exact <= bound <= discount / (1.0 - discount) * widths.max() * (1.0 + 1e-8)
    assert most_ahead(widths, expectation, discount, np.inf) >= bound


def test_clocks_stop_a_sum():
    _, expectation, _ = chains(0, np.float64)
    with pytest.raises(OutOfTimeError), Clock(0.0).above():
        sum_ahead(np.ones(12), expectation, 0.9, 1e-9)


def slow_mdp(discount):
    """What pays depends on a variable that hardly ever changes."""
    rng = np.random.default_rng(1)
    mdp = random_mdp(rng, sizes=(4,), discount=discount)
    return FactoredMDP(
        endogenous_variables=mdp.endogenous_variables,
        exogenous_variables=mdp.exogenous_variables,
        num_actions=mdp.num_actions,
        discount=discount,
        horizon=mdp.horizon,
        factors=[slow_factor(rng, 4)],
        decision_lists=mdp.decision_lists,
        base_reward=mdp.base_reward,
        terms={
            0: rng.normal(size=(4, *mdp.base_reward.shape)) + 10.0 * np.arange(4)[:, None, None]
        },
        terminal=mdp.terminal,
        initial=mdp.initial,
    )


def test_slow_exogenous_variables_cost_no_sweeps():
    mdp = slow_mdp(0.999)
    plan = ValueIteration(tolerance=1e-6, inner_sweeps=0).plan(mdp)
    assert plan.converged
    assert plan.iterations < 100  # 0.999 * 0.98 would have to shrink to 1e-9
    exact = np.asarray(to_discrete_dp(mdp).solve(method="policy_iteration").v)
    np.testing.assert_allclose(plan.values.reshape(-1), exact, atol=0.5e-6)


def test_extrapolation_ignores_functions_of_x():
    """Changes that shrink at one rate, beside others that are the same for all n."""
    rng = np.random.default_rng(0)
    limit, start = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    iterates = [limit + 0.9**k * (start - limit) for k in range(5)]
    changes = np.diff(iterates, axis=0)
    disturbed = changes + rng.normal(size=(4, 5, 1))
    values = iterates[-1].copy()
    extrapolate(values, disturbed, up_to_functions_of_x=True)
    error = values - limit
    np.testing.assert_allclose(error - error.mean(axis=1, keepdims=True), 0.0, atol=1e-5)
