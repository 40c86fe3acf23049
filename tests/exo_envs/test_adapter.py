"""Environments that somebody else wrote, as models: `AdaptedMDP` and `as_mdp`."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from frequencies import ERROR_PROBABILITY, assert_frequencies
from gymnasium import spaces
from harbour import (
    HARBOUR_VARIABLES,
    Harbour,
    Hidden,
    PushedSignal,
    adapt,
    get_hidden,
    harbour_states,
    set_hidden,
)

from exo_envs import State, Variable
from exo_envs.testing import check_mdp

# --- an environment with the interface ----------------------------------------------------------


def test_harbour_is_read_from_its_spaces():
    mdp = adapt()
    assert mdp.endogenous_variables == (Variable("endogenous_0", 4), Variable("done", 2))
    assert mdp.exogenous_variables == (Variable("exogenous_0", 3), Variable("exogenous_1", 2))
    assert (mdp.num_actions, mdp.horizon, mdp.discount) == (2, 20, 0.99)
    named = adapt(
        endogenous_variables=["cell"], exogenous_variables=["signal", Variable("tide", 2)]
    )
    assert named.exogenous_names == ("signal", "tide")
    assert named.endogenous_variables[0] == Variable("cell", 4)


def test_harbour_keeps_the_contract():
    check_mdp(adapt(), num_samples=100, any_state=True)


def test_harbour_rewards_are_those_of_its_tables():
    mdp = adapt()
    states, actions = harbour_states()
    cell, (signal, tide) = states.endogenous[..., 0], np.moveaxis(states.exogenous, -1, 0)
    origin = mdp.reference.exogenous
    terms = np.stack([Harbour.signal_pay[cell, signal], Harbour.tide_pay[cell, tide]], axis=-1)
    at_origin = np.stack(
        [Harbour.signal_pay[cell, origin[0]], Harbour.tide_pay[cell, origin[1]]], axis=-1
    )
    np.testing.assert_array_equal(mdp.reward_terms(states, actions), terms - at_origin)
    np.testing.assert_array_equal(
        mdp.endogenous_reward(states.endogenous, actions), at_origin.sum(axis=-1) - 0.5 * actions
    )


def test_harbour_has_its_probabilities():
    mdp, size = adapt(), 1000
    state = State(np.tile([2, 0], (size, 1)), np.tile([0, 1], (size, 1)))
    following = mdp.sample_next(state, np.ones(size, dtype=np.int64), np.random.default_rng(0))
    assert_frequencies(following.endogenous[:, 0], [0, 0, 0.5, 0.5])
    assert_frequencies(following.exogenous[:, 0], [0.7, 0, 0.3])
    assert_frequencies(following.exogenous[:, 1], [0.1, 0.9])
    np.testing.assert_array_equal(mdp.is_terminal(following), following.endogenous[:, 0] == 3)


def test_results_depend_on_the_seed_alone():
    mdp, other = adapt(), adapt()
    states, actions = harbour_states()
    kept = copy.deepcopy((states, actions))

    def everything(model):
        rng = np.random.default_rng(3)
        return [
            *model.sample_initial(5, rng),
            *model.sample_next(states, actions, rng),
            *model.observed_step(states, actions, rng)[0],
            model.observed_step(states, actions, rng)[1],
            model.reward_terms(states, actions),
            model.endogenous_reward(states.endogenous, actions),
        ]

    first = everything(mdp)
    mdp.env.reset(seed=99)
    mdp.env.step(1)
    for again in (everything(mdp), everything(other)):
        assert [a.tobytes() for a in again] == [a.tobytes() for a in first]
    for given, before in zip((*states, actions), (*kept[0], kept[1]), strict=True):
        np.testing.assert_array_equal(given, before)


def test_what_is_drawn_from_the_generator_depends_on_shapes_alone():
    mdp = adapt()
    states, actions = harbour_states()
    done = State(states.endogenous | [0, 1], states.exogenous)
    after = []
    for start in (states, done):
        rng = np.random.default_rng(0)
        mdp.sample_next(start, actions, rng)
        after.append(rng.bit_generator.state)
    assert after[0] == after[1]


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3)])
def test_any_batch_shape(shape):
    mdp, rng = adapt(), np.random.default_rng(0)
    flat = mdp.sample_uniform(int(np.prod(shape)), rng)
    state = State(flat.endogenous.reshape(*shape, 2), flat.exogenous.reshape(*shape, 2))
    action = np.zeros(shape, dtype=np.int64)
    transition = mdp.transition(state, action, rng)
    assert transition.state.endogenous.shape == (*shape, 2)
    assert transition.state.exogenous.shape == (*shape, 2)
    assert transition.reward_terms.shape == (*shape, 2)
    assert transition.reward.shape == mdp.is_terminal(state).shape == shape
    following, reward = mdp.observed_step(state, action, rng)
    assert (following.endogenous.shape, reward.shape) == ((*shape, 2), shape)


def test_done_is_for_good_and_pays_nothing():
    mdp = adapt()
    states, actions = harbour_states()
    done = State(states.endogenous | [0, 1], states.exogenous)
    before = mdp.env.num_steps
    following, reward = mdp.observed_step(done, actions, np.random.default_rng(0))
    np.testing.assert_array_equal(following.endogenous, done.endogenous)
    np.testing.assert_array_equal(following.exogenous, done.exogenous)
    assert not reward.any()
    assert not mdp.reward_terms(done, actions).any()
    assert not mdp.endogenous_reward(done.endogenous, actions).any()
    assert mdp.is_terminal(done).all()
    assert mdp.env.num_steps == before  # a dead environment is not asked


def test_rewards_are_not_asked_for_twice():
    mdp = adapt()
    n = np.tile([1, 0], (50, 1))
    action = np.zeros(50, dtype=np.int64)

    def steps(exogenous):
        before = mdp.env.num_steps
        mdp.reward_terms(State(n, exogenous), action)
        return mdp.env.num_steps - before

    def shifted(*by):
        return np.tile((mdp.reference.exogenous + by) % [3, 2], (50, 1))

    assert steps(shifted(0, 0)) == 0
    assert steps(shifted(1, 0)) == 2  # one changed variable, and without it
    assert steps(shifted(1, 1)) == 3


def test_the_reference_can_be_chosen():
    for reference in (State(np.array([2]), np.array([1, 1])), ([2], [1, 1])):
        mdp = adapt(reference=reference, reference_action=1)
        assert [part.tolist() for part in mdp.reference] == [[2], [1, 1]]
    mdp = adapt(PushedSignal(), reference={"endogenous": [2], "exogenous": [0, 0]})
    pushed = adapt(PushedSignal(), reference_action=1)
    x = np.zeros((4, 2), dtype=np.int64)
    assert mdp.sample_exogenous(x, np.random.default_rng(0))[:, 0].tolist() == [0] * 4
    assert pushed.sample_exogenous(x, np.random.default_rng(0))[:, 0].tolist() == [1] * 4


def test_rewards_that_depend_on_chance_are_averaged():
    class Lottery(Harbour):
        def pay(self, action):
            return float(self.np_random.random() < 0.25)

    mdp = adapt(Lottery(), reward_samples=2000)
    n, action = np.array([0, 0]), np.array(0)
    bound = np.sqrt(np.log(2 / ERROR_PROBABILITY) / (2 * 2000))
    assert abs(mdp.endogenous_reward(n, action) - 0.25) < bound
    # The same seeds with and without a variable: no noise in the difference.
    assert not mdp.reward_terms(State(n, np.array([2, 1])), action).any()


def test_copies_behave_alike():
    mdp = adapt()
    states, actions = harbour_states()
    draws = [
        model.sample_next(states, actions, np.random.default_rng(0))
        for model in (mdp, copy.deepcopy(mdp), pickle.loads(pickle.dumps(mdp)))
    ]
    for other in draws[1:]:
        np.testing.assert_array_equal(other.endogenous, draws[0].endogenous)
        np.testing.assert_array_equal(other.exogenous, draws[0].exogenous)
    mdp.close()
    assert mdp.env.closed


def test_no_exogenous_variables():
    class Alone(gym.Env):
        observation_space = spaces.Dict(endogenous=spaces.MultiDiscrete([5]))
        action_space = spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.cell = int(options["state"]["endogenous"][0]) if options else 0
            return {"endogenous": np.array([self.cell])}, {}

        def step(self, action):
            self.cell = (self.cell + action) % 5
            return {"endogenous": np.array([self.cell])}, 1.0, False, False, {}

    mdp = adapt(Alone())
    state = mdp.sample_initial(3, np.random.default_rng(0))
    following, reward, terms = mdp.transition(state, np.array([0, 1, 1]), np.random.default_rng(0))
    assert following.endogenous.tolist() == [[0, 0], [1, 0], [1, 0]]
    assert following.exogenous.shape == terms.shape == (3, 0)
    assert reward.tolist() == [1, 1, 1]


# --- functions given by the user ----------------------------------------------------------------


def test_a_hidden_state_is_read_and_written_by_functions():
    hidden = adapt(Hidden(), get_state=get_hidden, set_state=set_hidden, **HARBOUR_VARIABLES)
    open_ = adapt()
    states, actions = harbour_states()
    for model_draws in zip(
        *(m.sample_next(states, actions, np.random.default_rng(0)) for m in (hidden, open_)),
        strict=True,
    ):
        np.testing.assert_array_equal(*model_draws)
    np.testing.assert_array_equal(hidden.reward(states, actions), open_.reward(states, actions))
