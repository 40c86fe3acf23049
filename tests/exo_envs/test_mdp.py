"""What ExoMDP itself promises."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import CoinMDP, CounterMDP

from exo_envs import State, Variable
from exo_envs.core.batches import as_mask
from exo_envs.domains.grid import GridMDP

BATCH_SHAPES = st.lists(st.integers(1, 3), max_size=3).map(tuple)


def states_of(mdp, batch_shape, rng):
    flat = mdp.sample_uniform(math.prod(batch_shape), rng)
    return State(*(part.reshape(*batch_shape, -1) for part in flat))


@pytest.mark.parametrize("mdp", [CounterMDP(), CoinMDP(), GridMDP()], ids=repr)
@given(seed=st.integers(0, 2**32), batch_shape=BATCH_SHAPES)
def test_reward_is_the_sum_of_its_terms_and_terminal_states_pay_nothing(mdp, seed, batch_shape):
    rng = np.random.default_rng(seed)
    state = states_of(mdp, batch_shape, rng)
    action = rng.integers(mdp.num_actions, size=batch_shape)
    terms = mdp.reward_terms(state, action)
    assert terms.shape == (*batch_shape, len(mdp.exogenous_variables))
    total = terms.sum(axis=-1) + mdp.endogenous_reward(state.endogenous, action)
    expected = np.where(mdp.is_terminal(state), 0.0, total)
    np.testing.assert_array_equal(mdp.reward(state, action), expected)


@pytest.mark.parametrize("mdp", [CounterMDP(), CoinMDP(), GridMDP()], ids=repr)
@given(seed=st.integers(0, 2**32), batch_shape=BATCH_SHAPES)
def test_terminal_states_absorb_and_the_others_take_both_parts(mdp, seed, batch_shape):
    rng = np.random.default_rng(seed)
    state = states_of(mdp, batch_shape, rng)
    action = rng.integers(mdp.num_actions, size=batch_shape)
    following = mdp.sample_next(state, action, np.random.default_rng(seed))
    same_noise = np.random.default_rng(seed)
    exogenous = mdp.sample_exogenous(state.exogenous, same_noise)
    endogenous = mdp.sample_endogenous(state, action, same_noise)
    terminal = mdp.is_terminal(state)[..., None]
    np.testing.assert_array_equal(
        following.endogenous, np.where(terminal, state.endogenous, endogenous)
    )
    np.testing.assert_array_equal(
        following.exogenous, np.where(terminal, state.exogenous, exogenous)
    )


@given(seed=st.integers(0, 2**32))
def test_transition_is_sample_next_and_reward_in_one(seed):
    mdp = GridMDP()
    rng = np.random.default_rng(seed)
    state = mdp.sample_uniform(7, rng)
    action = rng.integers(mdp.num_actions, size=7)
    step = mdp.transition(
        state,
        action,
        np.random.default_rng(seed),
        exogenous_rng=np.random.default_rng(seed + 1),
    )
    following = mdp.sample_next(
        state,
        action,
        np.random.default_rng(seed),
        exogenous_rng=np.random.default_rng(seed + 1),
    )
    np.testing.assert_array_equal(step.state.endogenous, following.endogenous)
    np.testing.assert_array_equal(step.state.exogenous, following.exogenous)
    np.testing.assert_array_equal(step.reward, mdp.reward(state, action))
    np.testing.assert_allclose(
        step.reward, step.reward_terms.sum(-1) + mdp.endogenous_reward(state.endogenous, action)
    )


def test_sizes_and_names():
    mdp = CounterMDP()
    assert mdp.num_states == 6 * 3 * 4 * 6
    assert mdp.exogenous_names == ("clock", "die")
    assert mdp.endogenous_sizes.tolist() == [6, 3]
    assert mdp.exogenous_indices(["die", "clock"]).tolist() == [1, 0]
    assert repr(mdp) == "CounterMDP(2 exogenous variables, 10^2.6 states, 3 actions)"


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [("", 2, "name"), (3, 2, "name"), ("a", 0, "at least 1"), ("a", 1.5, "not 1.5")],
)
def test_a_variable_has_a_name_and_values(name, size, message):
    with pytest.raises(ValueError, match=message):
        Variable(name, size)


@pytest.mark.parametrize("mask", [["die", "clock"], [1, 0], [True, True], np.array([1, 0])])
def test_masks_are_names_in_the_order_of_the_model(mask):
    assert as_mask(CounterMDP(), mask) == ("clock", "die")


def test_an_empty_mask_is_a_mask():
    assert as_mask(CounterMDP(), []) == ()
    assert as_mask(CounterMDP(), [False, False]) == ()


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (["dei"], ValueError, "unknown exogenous variable 'dei'; did you mean 'die'"),
        ([0, 2], ValueError, r"no variable 2; indices are 0 \.\.\. 1"),
        ([-1], ValueError, "no variable -1"),
        ([True], ValueError, "2 entries, not 1"),
        (["die", "die"], ValueError, "'die' more than once"),
        ("die", TypeError, "not the string 'die'"),
    ],
)
def test_bad_masks_are_refused(mask, error, message):
    with pytest.raises(error, match=message):
        as_mask(CounterMDP(), mask)
