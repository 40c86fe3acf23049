"""Tables of what several variables pay together."""

import pickle

import numpy as np
import pytest
from factored import random_mdp, state_at, to_arrays
from hypothesis import given
from hypothesis import strategies as st
from joint import any_joint_mdp, full_rewards

from exo_envs.testing import check_mdp
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.indexing import TooLargeError, along, in_order, refuse_large_scope, scope_rows


@given(seed=st.integers(0, 2**32))
def test_rewards_are_those_of_the_tables(seed):
    """Those of the model and of its dense arrays, against one joint value at a time."""
    mdp = any_joint_mdp(seed)
    expected = full_rewards(mdp).reshape(-1, mdp.num_actions)
    np.testing.assert_allclose(to_arrays(mdp)[1], expected, atol=1e-12)
    states = state_at(mdp, np.arange(mdp.num_states))
    for a in range(mdp.num_actions):
        actions = np.full(mdp.num_states, a)
        np.testing.assert_allclose(mdp.reward(states, actions), expected[:, a], atol=1e-12)
    columns = len(mdp.exogenous_names) + len(mdp.joint_terms)
    assert mdp.reward_terms(states, actions).shape == (mdp.num_states, columns)
    assert [len(scope) for scope in mdp.reward_scopes[: len(mdp.exogenous_names)]] == [1] * len(
        mdp.exogenous_names
    )
    assert mdp.scope_indices[len(mdp.exogenous_names) :] == tuple(mdp.joint_terms)


def test_it_keeps_the_contract():
    mdp = random_mdp(np.random.default_rng(0), sizes=(2, 3, 2), joint=((0, 2), (0, 1, 2)))
    check_mdp(mdp, num_samples=200)
    copy = pickle.loads(pickle.dumps(mdp))
    assert copy.reward_scopes == mdp.reward_scopes
    assert copy.reward_scopes[3:] == (("x0", "x1", "x2"), ("x0", "x2"))


def test_without_joint_terms_it_is_the_papers():
    mdp = random_mdp(np.random.default_rng(0))
    assert mdp.joint_terms == {}
    assert mdp.reward_scopes == (("x0",), ("x1",))


def test_terms_are_in_the_order_of_their_last_variables():
    terms, joint = {3: "d", 0: "a", 1: "b"}, {(0, 3): "ad", (0, 1): "ab", (1, 2): "bc"}
    assert list(in_order({(i,): own for i, own in terms.items()} | joint)) == [
        (0,),
        (0, 1),
        (1,),
        (1, 2),
        (0, 3),
        (3,),
    ]


def test_tables_along_a_variable():
    sizes = np.array([2, 3, 4])
    table = np.arange(24.0).reshape(24, 1, 1)
    x = np.indices((2, 3, 4)).reshape(3, -1).T
    assert scope_rows((0, 1, 2), x, sizes).tolist() == list(range(24))
    assert scope_rows((0, 2), x, sizes).tolist() == (x[:, 0] * 4 + x[:, 2]).tolist()
    middle = along(table, (0, 1, 2), sizes, 1)[..., 0, 0]
    assert middle.shape == (3, 8)
    for value in range(3):
        assert sorted(middle[value]) == np.flatnonzero(x[:, 1] == value).tolist()


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        ((1, 0), r"two or more positions, increasing, not \(1, 0\)"),
        ((0, 0), "two or more positions"),
        ((0,), "what one variable pays belongs to terms"),
        ((0, 2), "joint_terms"),
        ("ab", "joint_terms"),
    ],
)
def test_wrong_scopes_are_refused(scope, message):
    mdp = random_mdp(np.random.default_rng(0))
    given = {name: getattr(mdp, name) for name in GIVEN}
    with pytest.raises((ValueError, TypeError), match=message):
        FactoredMDP(**given, joint_terms={scope: np.zeros((6, 4, 3))})


def test_wrong_tables_are_refused():
    mdp = random_mdp(np.random.default_rng(0))
    given = {name: getattr(mdp, name) for name in GIVEN}
    with pytest.raises(ValueError, match=r"joint_terms\[\(0, 1\)\]"):
        FactoredMDP(**given, joint_terms={(0, 1): np.zeros((5, 4, 3))})
    with pytest.raises(ValueError, match=r"joint_terms\[\(0, 1\)\]"):
        FactoredMDP(**given, joint_terms={(0, 1): np.full((6, 4, 3), np.nan)})


GIVEN = (
    *("endogenous_variables", "exogenous_variables", "num_actions", "discount", "horizon"),
    *("factors", "decision_lists", "base_reward", "terms", "terminal", "initial"),
)


def test_tables_that_are_too_large_are_refused_by_name():
    sizes = np.array([300, 400, 2])
    refuse_large_scope((0, 2), ("price", "load", "day"), sizes, 100)
    message = r"'price' \(300\), 'load' \(400\): 120,000 joint values .* coarser bins, or split"
    with pytest.raises(TooLargeError, match=message):
        refuse_large_scope((0, 1), ("price", "load", "day"), sizes, 1)
    with pytest.raises(TooLargeError, match="10,000,000 pairs"):
        refuse_large_scope((0, 2), ("price", "load", "day"), sizes, 10**7)
