"""DecisionLists made ready for sweeps, against the decision lists they come from."""

import itertools

import numpy as np
import pytest
from factored import random_mdp
from hypothesis import given
from hypothesis import strategies as st

from planners import ValueIteration, to_discrete_dp
from planners.core.arrays import joint_index
from planners.value_iteration.successors import MAX_JOINT_ROWS, rows_bytes, successor_rows


def distribution(rows, pair, x, sizes, num_states):
    """P(n'|n,a,x) by the rows."""
    current = {}
    groups = rows.groups
    for start, variables, rules in zip(
        groups.row_starts, groups.variables.pieces(), groups.rules.pieces(), strict=True
    ):
        value = joint_index(np.asarray(x)[variables], np.asarray(sizes)[variables])
        place = start + value * len(rules)
        current |= dict(zip(rules.tolist(), groups.rows[place : place + len(rules)], strict=True))
    out, passed = np.zeros(num_states), 1.0
    for rule in range(int(rows.rule_starts[pair]), int(rows.rule_starts[pair + 1])):
        row = int(current[rule])
        entries = slice(int(rows.entry_starts[row]), int(rows.entry_starts[row + 1]))
        np.add.at(out, rows.targets[entries], passed * rows.probabilities[entries])
        passed *= rows.left[row]
    assert passed == 0.0
    return out


@given(seed=st.integers(0, 2**32), num_rules=st.integers(0, 3))
def test_rows_are_the_decision_lists(seed, num_rules):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, sizes=(2, 3, 2), endogenous=(3,), num_rules=num_rules, sparse=0.4)
    rows = successor_rows(mdp.decision_lists, np.float64)
    assert rows.longest_list == 1
    for x in itertools.product(range(2), range(3), range(2)):
        for n, a in itertools.product(range(3), range(mdp.num_actions)):
            one = mdp.decision_lists.distribution(np.array([n]), np.array([a]), np.array([x]))[0]
            found = distribution(rows, n * mdp.num_actions + a, x, (2, 3, 2), 3)
            np.testing.assert_allclose(found, one, atol=1e-12)


def test_the_bytes_are_counted_before_they_are_taken():
    mdp = random_mdp(np.random.default_rng(0), sizes=(4, 5, 3), endogenous=(9,), num_rules=3)
    rows = successor_rows(mdp.decision_lists, np.float64)
    groups = rows.groups
    arrays = [*groups.rules, *groups.variables, groups.row_starts, groups.rows]
    arrays += [part for part in rows if isinstance(part, np.ndarray)]
    taken = sum(array.nbytes for array in arrays)
    assert taken <= rows_bytes(mdp.decision_lists, 8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_lists_that_are_too_long_to_join_are_walked(dtype):
    sizes = (17, 16)
    assert np.prod(sizes) > MAX_JOINT_ROWS
    mdp = random_mdp(
        np.random.default_rng(2), sizes=sizes, endogenous=(3,), num_rules=3, num_terminal=1
    )
    assert successor_rows(mdp.decision_lists, dtype).longest_list > 1
    plan = ValueIteration(tolerance=1e-7, dtype=dtype).plan(mdp)
    best = np.asarray(to_discrete_dp(mdp).solve(method="policy_iteration").v)
    atol = 1e-6 if dtype is np.float64 else 1e-3
    np.testing.assert_allclose(plan.values.reshape(-1), best, atol=atol)
    assert plan.converged == (dtype is np.float64)


@given(seed=st.integers(0, 2**32))
def test_the_least_memory_gives_the_same_values(seed):
    """Nothing kept between sweeps and no extrapolation."""
    mdp = random_mdp(np.random.default_rng(seed), sizes=(3, 2), num_rules=2, num_terminal=seed % 2)
    roomy = ValueIteration(tolerance=1e-8)
    tight = ValueIteration(tolerance=1e-8, memory_limit=roomy.bytes_needed(mdp))
    plans = [planner.plan(mdp) for planner in (roomy, tight)]
    assert all(plan.converged for plan in plans)
    np.testing.assert_allclose(plans[0].values, plans[1].values, atol=1e-8)
