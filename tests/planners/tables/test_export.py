"""Tables for other people's solvers."""

import sys

import numpy as np
import pytest
from factored import random_mdp, state_at, state_index, to_arrays
from hypothesis import given
from hypothesis import strategies as st

from planners import to_discrete_dp
from planners.tables.indexing import TooLargeError


@given(seed=st.integers(0, 2**32))
def test_arrays_are_the_models_probabilities_and_rewards(seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, sizes=(2, 3), endogenous=(2, 2), num_terminal=int(rng.integers(2)))
    transitions, rewards = to_arrays(mdp)
    states, actions = mdp.num_states, mdp.num_actions
    assert transitions.shape == (actions, states, states)
    np.testing.assert_allclose(transitions.sum(axis=2), 1.0)
    state = state_at(mdp, np.arange(states))
    np.testing.assert_array_equal(state_index(mdp, state), np.arange(states))
    for a in range(actions):
        action = np.full(states, a)
        np.testing.assert_allclose(rewards[:, a], mdp.reward(state, action))
        ended = mdp.is_terminal(state)
        np.testing.assert_allclose(transitions[a, ended], np.eye(states)[ended], atol=1e-12)


def test_sampled_frequencies_are_the_arrays_probabilities():
    """Each within Hoeffding's bound at an error probability of 1e-9."""
    rng = np.random.default_rng(0)
    mdp = random_mdp(rng, sizes=(2, 3), endogenous=(3,))
    transitions, _ = to_arrays(mdp)
    draws = 40_000
    bound = np.sqrt(np.log(2 / 1e-9) / (2 * draws))
    for index, a in ((0, 0), (7, 1), (17, 2)):
        state = state_at(mdp, np.full(draws, index))
        following = state_index(mdp, mdp.sample_next(state, np.full(draws, a), rng))
        frequency = np.bincount(following, minlength=mdp.num_states) / draws
        np.testing.assert_allclose(frequency, transitions[a, index], atol=bound)


def test_quantecon_gets_the_discount():
    mdp = random_mdp(np.random.default_rng(1), sizes=(2, 2), num_terminal=1)
    assert to_discrete_dp(mdp).beta == mdp.discount


def test_large_models_are_refused():
    mdp = random_mdp(np.random.default_rng(1), sizes=(9,) * 5, endogenous=(9,), max_parents=1)
    with pytest.raises(TooLargeError, match="bytes"):
        to_discrete_dp(mdp, memory_limit=1e6)


def test_without_quantecon_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "quantecon", None)
    monkeypatch.setitem(sys.modules, "quantecon.markov", None)
    with pytest.raises(ImportError, match="quantecon"):
        to_discrete_dp(random_mdp(np.random.default_rng(1)))
