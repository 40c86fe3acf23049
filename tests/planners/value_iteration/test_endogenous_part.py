"""What of the changes of V depends on n alone: what sweeps to come would add, added at once."""

import numpy as np
import pytest
from factored import random_mdp, state_at
from hypothesis import given
from hypothesis import strategies as st

from exo_envs import State, Variable
from planners import ValueIteration, to_discrete_dp
from planners.tables.decision_lists import DecisionLists
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.factors import Factor
from planners.tables.rules import Rule
from planners.value_iteration import run
from planners.value_iteration.endogenous_part import Snapshot, part_ahead
from planners.value_iteration.sweeps import KeptActions


def kept_actions(moves, num_exogenous, discount):
    """Actions that move n by the same matrix at every x."""
    size = len(moves)
    shape = (num_exogenous, size)
    return KeptActions(
        np.float64(discount),
        np.zeros(size, dtype=bool),
        np.zeros(shape),
        np.tile(np.arange(size, dtype=np.uint32), (num_exogenous, 1)),
        np.zeros(shape, np.float32),
        np.arange(size + 1, dtype=np.uint64) * np.uint64(size),
        np.tile(np.arange(size, dtype=np.uint32), size),
        moves.reshape(-1),
    )


@pytest.mark.parametrize("num_exogenous", [3, 1000])
def test_it_is_the_sum_of_what_follows(num_exogenous):
    rng = np.random.default_rng(0)
    moves = 0.1 * rng.dirichlet(np.ones(5), size=5) + 0.9 * np.eye(5)
    change = rng.normal(size=5)
    before = rng.normal(size=(num_exogenous, 5))
    values = before + change + rng.normal(size=(num_exogenous, 1))  # and a function of x
    snapshot = Snapshot.take(before)
    found = part_ahead(snapshot, values, kept_actions(moves, num_exogenous, 0.9))
    expected = np.linalg.solve(np.eye(5) - 0.9 * moves, 0.9 * moves @ change)
    np.testing.assert_allclose(found, expected - expected.mean(), atol=1e-9)


def test_changes_that_depend_on_x_are_left_to_sweeps():
    rng = np.random.default_rng(0)
    before = rng.normal(size=(50, 5))
    kept = kept_actions(np.full((5, 5), 0.2), 50, 0.9)
    snapshot = Snapshot.take(before)
    assert part_ahead(snapshot, before + rng.normal(size=(50, 5)), kept) is None
    assert part_ahead(snapshot, before, kept) is None  # nothing changes any more


def slow_mdp():
    """A place n on a line of thirty that is left with one per cent, and a coin that pays a bit."""
    rng = np.random.default_rng(0)
    size, sizes = 30, (2,)
    rules = {}
    for n in range(size):
        for a, step in enumerate((-1, 1)):
            table = np.zeros((1, size))
            table[0, n] += 0.99
            table[0, min(max(n + step, 0), size - 1)] += 0.01
            rules[n, a] = [Rule.from_table((), table)]
    return FactoredMDP(
        endogenous_variables=(Variable("n", size),),
        exogenous_variables=(Variable("x", 2),),
        num_actions=2,
        discount=0.99,
        horizon=100,
        factors=[Factor.from_table((0,), np.full((2, 2), 0.5))],
        decision_lists=DecisionLists.from_rules(size, 2, sizes, rules),
        base_reward=rng.normal(size=(size, 2)),
        terms={0: 0.1 * rng.normal(size=(2, size, 2))},
        terminal=np.zeros(size, dtype=bool),
        initial=State(np.zeros((1, 1), dtype=int), np.zeros((1, 1), dtype=int)),
    )


def test_it_saves_sweeps_where_n_moves_slowly(monkeypatch):
    mdp, planner = slow_mdp(), ValueIteration(tolerance=1e-6)
    plan = planner.plan(mdp)
    assert plan.converged
    monkeypatch.setattr(run, "MAX_ENDOGENOUS", 0)
    without = planner.plan(mdp)
    assert plan.iterations < without.iterations
    np.testing.assert_allclose(plan.values, without.values, atol=1e-6)
    exact = np.asarray(to_discrete_dp(mdp).solve(method="policy_iteration").v)
    np.testing.assert_allclose(plan.values.reshape(-1), exact, atol=0.5e-6)


@given(seed=st.integers(0, 2**32))
def test_whatever_is_added_bounds_hold(seed):
    mdp = random_mdp(np.random.default_rng(seed), sizes=(3, 2), num_actions=3, discount=0.97)
    exact = np.asarray(to_discrete_dp(mdp).solve(method="policy_iteration").v)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "SLOW", 0.0)
        wrong = np.random.default_rng(seed).normal(size=mdp.num_endogenous_states)
        patch.setattr(run, "part_ahead", lambda *_: wrong)
        patch.setattr(run, "FEW_SWEEPS", ())
        plan = ValueIteration(tolerance=1e-6, max_iterations=200).plan(mdp)
    actions = np.asarray(plan.policy(state_at(mdp, np.arange(mdp.num_states))))
    achieved = np.asarray(to_discrete_dp(mdp).evaluate_policy(actions))
    assert (exact - achieved).max() <= plan.loss_bound + 1e-9
