"""Value iteration, against QuantEcon, its own bounds, its limits of time and memory."""

import time
import tracemalloc

import numpy as np
import pytest
from factored import independent_moves, random_mdp, state_at
from hypothesis import given, settings
from hypothesis import strategies as st
from models import CoinMDP

from exo_envs.domains.crowd import CrowdMDP
from exo_envs.domains.grid import GridMDP
from planners import ValueIteration, to_discrete_dp
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.factors import Factor
from planners.tables.indexing import TooLargeError
from planners.value_iteration.tabular_policy import TabularPolicy


def any_mdp(seed):
    """Variables with cross parents, dense or sparse, lists of rules, terminal states in some."""
    rng = np.random.default_rng(seed)
    return random_mdp(
        rng,
        sizes=tuple(int(s) for s in rng.integers(1, 4, size=rng.integers(1, 5))),
        endogenous=(*(int(s) for s in rng.integers(1, 4, size=rng.integers(1, 3))), 2),
        num_actions=int(rng.integers(1, 4)),
        discount=float(rng.uniform(0.5, 0.99)),
        max_parents=3,
        sparse=float(rng.choice([0.0, 0.5])),
        num_rules=3,
        num_terminal=int(rng.integers(3)) // 2,
    )


def quantecon_values(mdp):
    result = to_discrete_dp(mdp).solve(method="policy_iteration")
    return np.asarray(result.v).reshape(-1, mdp.num_endogenous_states)


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32))
def test_values_and_policies_are_quantecons(seed):
    mdp = any_mdp(seed)
    expected = quantecon_values(mdp)
    plan = ValueIteration(tolerance=1e-7).plan(mdp)
    assert plan.converged
    np.testing.assert_allclose(plan.values, expected, atol=1e-6)
    problem = to_discrete_dp(mdp)
    actions = plan.policy(state_at(mdp, np.arange(mdp.num_states)))
    # QuantEcon's pairs are sorted by state, then action.
    sigma = np.asarray(actions)
    achieved = np.asarray(problem.evaluate_policy(sigma))
    np.testing.assert_allclose(achieved, expected.reshape(-1), atol=1e-6)


@given(seed=st.integers(0, 2**32), sweeps=st.integers(1, 40))
def test_the_bound_on_the_loss_holds_wherever_it_stops(seed, sweeps):
    mdp = any_mdp(seed)
    planner = ValueIteration(tolerance=1e-9, max_iterations=sweeps, inner_sweeps=sweeps % 4)
    plan = planner.plan(mdp)
    assert plan.iterations <= sweeps
    actions = np.asarray(plan.policy(state_at(mdp, np.arange(mdp.num_states))))
    achieved = np.asarray(to_discrete_dp(mdp).evaluate_policy(actions))
    loss = quantecon_values(mdp).reshape(-1) - achieved
    assert loss.max() <= plan.loss_bound + 1e-9
    if plan.converged:
        assert plan.loss_bound <= 1e-9


@given(seed=st.integers(0, 2**32))
def test_float32_is_as_good_as_it_says(seed):
    mdp = any_mdp(seed)
    planner = ValueIteration(tolerance=1e-7, dtype=np.float32)
    plan = planner.plan(mdp)
    actions = np.asarray(plan.policy(state_at(mdp, np.arange(mdp.num_states))))
    achieved = np.asarray(to_discrete_dp(mdp).evaluate_policy(actions))
    loss = quantecon_values(mdp).reshape(-1) - achieved
    assert loss.max() <= plan.loss_bound + 1e-9
    tolerance = planner.attainable_tolerance(mdp)
    assert ValueIteration(tolerance=tolerance, dtype=np.float32).plan(mdp).converged


def large_mdp(num_variables, size, num_states=50):
    """A product of independent variables, all of which pay."""
    rng = np.random.default_rng(0)
    moves = rng.dirichlet(np.full(num_states, 0.05), size=(num_states, 4))
    sizes = (size,) * num_variables
    base = random_mdp(rng, sizes=(2,), endogenous=(num_states,), num_actions=4)
    return FactoredMDP(
        endogenous_variables=base.endogenous_variables,
        exogenous_variables=tuple(
            type(base.exogenous_variables[0])(f"x{i}", size) for i in range(num_variables)
        ),
        num_actions=4,
        discount=0.999,
        horizon=10,
        factors=[
            Factor.from_table((i,), rng.dirichlet(np.ones(size), size=size))
            for i in range(num_variables)
        ],
        decision_lists=independent_moves(moves, sizes),
        base_reward=base.base_reward,
        terms={i: rng.normal(size=(size, num_states, 4)) for i in range(num_variables)},
        terminal=base.terminal,
        initial=type(base.initial)(
            np.zeros((1, 1), dtype=int), np.zeros((1, num_variables), dtype=int)
        ),
    )


def test_what_does_not_fit_is_refused_before_anything_is_allocated():
    mdp = large_mdp(8, 10)
    tracemalloc.start()
    with pytest.raises(TooLargeError, match=r"X = .* times N = .* bytes.*ForecastPlanner"):
        ValueIteration(memory_limit=1e9).plan(mdp)
    assert tracemalloc.get_traced_memory()[1] < 1e7
    tracemalloc.stop()
    assert issubclass(TooLargeError, MemoryError)


def test_sizes_beyond_any_machine_are_just_numbers():
    needed = ValueIteration().bytes_needed(CrowdMDP())
    assert needed > 10**80
    with pytest.raises(TooLargeError):
        ValueIteration().plan(CrowdMDP())


@pytest.mark.parametrize("generosity", [1.0, 2.0, 20.0])
def test_memory_stays_within_the_limit(generosity):
    mdp = large_mdp(4, 8)
    ValueIteration(max_iterations=5).plan(large_mdp(4, 2))  # compilation
    limit = generosity * ValueIteration().bytes_needed(mdp)
    tracemalloc.start()
    ValueIteration(max_iterations=5, memory_limit=limit).plan(mdp)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.05 * limit + 1e6


def test_the_time_limit_is_kept_and_the_plan_says_so():
    """A problem that takes far longer than the limit, which is kept within a tenth."""
    mdp = large_mdp(5, 10)
    planner = ValueIteration(tolerance=1e-9)
    planner.plan(large_mdp(2, 3))  # compilation
    limit = 2.0
    start = time.perf_counter()
    plan = planner.plan(mdp, time_limit=limit)
    elapsed = time.perf_counter() - start
    assert elapsed < 1.1 * limit + 0.3  # what a busy machine may add
    assert plan.seconds == pytest.approx(elapsed, abs=0.2)
    assert not plan.converged
    assert plan.loss_bound > 1e-9
    assert plan.policy(mdp.sample_uniform(5, np.random.default_rng(0))).shape == (5,)


def test_a_limit_too_short_for_a_sweep_still_gives_a_policy():
    mdp = large_mdp(4, 8)
    plan = ValueIteration().plan(mdp, time_limit=1e-6)
    assert not plan.converged
    assert plan.policy(mdp.sample_uniform(5, np.random.default_rng(0))).shape == (5,)


def test_models_without_tables_are_estimated_first():
    plan = ValueIteration().plan(GridMDP(), rng=np.random.default_rng(0))
    assert plan.converged
    assert plan.policy.mask == GridMDP().exogenous_names


def test_a_discount_of_one_is_refused():
    with pytest.raises(ValueError, match="discount below 1"):
        ValueIteration().plan(CoinMDP())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tolerance": 0.0}, "tolerance"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"memory_limit": 0}, "memory_limit"),
        ({"dtype": np.int64}, "float64 or float32, not int64"),
        ({"inner_sweeps": -1}, "inner_sweeps"),
        ({"max_iterations": 0}, "max_iterations"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ValueIteration(**arguments)


def test_policies_are_saved_and_loaded(tmp_path):
    mdp, path = any_mdp(3), tmp_path / "policy"
    policy = ValueIteration().plan(mdp).policy
    policy.save(path)
    again = TabularPolicy.load(path)
    states = state_at(mdp, np.arange(mdp.num_states))
    np.testing.assert_array_equal(again(states), policy(states))
    assert (again.mask, again.full) == (policy.mask, policy.full)
    whole = path.read_bytes()
    for damaged in (whole[:-40], whole[: len(whole) // 2], b"", b"something else"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"policy'"):
            TabularPolicy.load(path)
    with pytest.raises(FileNotFoundError):
        TabularPolicy.load(tmp_path / "nowhere")


def test_values_that_cannot_be_get_an_answer():
    mdp = any_mdp(3)
    policy = ValueIteration().plan(mdp).policy
    k, m = len(mdp.endogenous_variables), len(mdp.exogenous_variables)
    observation = {"endogenous": np.full(k, 99), "exogenous": np.full(m, -7)}
    assert policy(observation) in range(mdp.num_actions)
