"""Environments that somebody else wrote, as models: `AdaptedMDP` and `as_mdp`."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.toy_text.taxi import TaxiEnv
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

from exo_envs import AdaptedMDP, ExoEnv, State, Variable
from exo_envs.grid import GridMDP
from exo_envs.testing import check_mdp

ERROR_PROBABILITY = 1e-6  # of one statistical comparison below, were its seed not fixed


def assert_frequencies(samples, probabilities):
    """Samples (N,) of a distribution (values,), by Hoeffding's inequality."""
    bound = np.sqrt(np.log(2 * len(probabilities) / ERROR_PROBABILITY) / (2 * len(samples)))
    found = np.bincount(samples, minlength=len(probabilities)) / len(samples)
    assert np.abs(found - probabilities).max() < bound


# --- Gymnasium's taxi -------------------------------------------------------------------------


def split_taxi(observation):
    return (observation // 100, observation // 20 % 5, observation // 4 % 5), (observation % 4,)


def set_taxi(taxi, n, x):
    taxi.s = int(taxi.encode(*n, *x))


def adapt_taxi(**kwargs):
    return AdaptedMDP(
        TaxiEnv(**kwargs),
        split=split_taxi,
        set_state=set_taxi,
        endogenous_variables=[Variable("row", 5), Variable("column", 5), Variable("rider", 5)],
        exogenous_variables=[Variable("destination", 4)],
        horizon=200,
    )


def taxi_states(observations):
    (row, column, rider), (destination,) = split_taxi(observations)
    done = np.zeros_like(row)
    return State(np.stack([row, column, rider, done], axis=-1), destination[..., None])


def test_taxi_is_its_own_table():
    mdp, rng = adapt_taxi(), np.random.default_rng(0)
    starts, actions = rng.integers(500, size=900), rng.integers(6, size=900)
    drop_offs = np.array([16, 97, 418, 479])  # the rider aboard, at the destination
    starts, actions = np.append(starts, drop_offs), np.append(actions, [5] * 4)
    states = taxi_states(starts)
    following, reward, _ = mdp.transition(states, actions, rng)
    rows = [mdp.env.P[s][a][0] for s, a in zip(starts.tolist(), actions.tolist(), strict=True)]
    _, targets, pay, ended = (np.array(entries) for entries in zip(*rows, strict=True))
    expected = taxi_states(targets)
    assert ended[-4:].all()
    np.testing.assert_array_equal(following.endogenous[:, :3], expected.endogenous[:, :3])
    np.testing.assert_array_equal(following.exogenous, expected.exogenous)
    np.testing.assert_array_equal(mdp.is_terminal(following), ended)
    np.testing.assert_array_equal(reward, pay)


def test_taxi_in_the_rain_has_the_probabilities_of_its_table():
    mdp, rng = adapt_taxi(is_rainy=True), np.random.default_rng(0)
    for start in rng.integers(500, size=6):
        action = int(rng.integers(4))
        probabilities = np.zeros(500)
        for probability, target, *_ in mdp.env.P[start][action]:
            probabilities[target] += probability
        states = taxi_states(np.full(300, start))
        following = mdp.sample_next(states, np.full(300, action), rng)
        reached = mdp.env.encode(*following.endogenous[:, :3].T, following.exogenous[:, 0])
        assert_frequencies(reached, probabilities)
        assert (probabilities[reached] > 0).all()


def test_taxi_keeps_the_contract():
    check_mdp(adapt_taxi(is_rainy=True), num_samples=100)


# --- our own environment, as if it were not -----------------------------------------------------


class WithoutTerms(gym.Wrapper):
    def step(self, action):
        return *super().step(action)[:4], {}


@pytest.fixture
def grid():
    """A model, states and actions of it, and the same states as the adapter has them."""
    mdp, rng = GridMDP(), np.random.default_rng(0)
    states, actions = mdp.sample_uniform(300, rng), rng.integers(mdp.num_actions, size=300)
    alive = ~mdp.is_terminal(states)
    states, actions = State(states.endogenous[alive], states.exogenous[alive]), actions[alive]
    done = np.zeros((len(actions), 1), dtype=np.int64)
    return mdp, states, actions, State(np.hstack([states.endogenous, done]), states.exogenous)


def test_grid_tells_its_reward_terms(grid):
    mdp, states, actions, adapted_states = grid
    adapted = adapt(ExoEnv(mdp))
    assert adapted.tells_reward_terms
    np.testing.assert_array_equal(
        adapted.reward(adapted_states, actions), mdp.reward(states, actions)
    )
    np.testing.assert_array_equal(
        adapted.reward_terms(adapted_states, actions), mdp.reward_terms(states, actions)
    )
    np.testing.assert_array_equal(
        adapted.endogenous_reward(adapted_states.endogenous, actions),
        mdp.endogenous_reward(states.endogenous, actions),
    )


def test_grid_has_its_reward_terms_recovered(grid):
    mdp, states, actions, adapted_states = grid
    adapted = adapt(WithoutTerms(ExoEnv(mdp)))
    assert not adapted.tells_reward_terms
    np.testing.assert_array_equal(
        adapted.reward(adapted_states, actions), mdp.reward(states, actions)
    )
    reference = np.tile(adapted.reference.exogenous, (len(actions), 1))
    origin = mdp.reward_terms(State(states.endogenous, reference), actions)
    np.testing.assert_array_equal(
        adapted.reward_terms(adapted_states, actions), mdp.reward_terms(states, actions) - origin
    )


def test_grid_has_the_distribution_of_its_model(grid):
    mdp, states, actions, adapted_states = grid
    adapted, rng = adapt(ExoEnv(mdp)), np.random.default_rng(1)

    def draw(model, state, lane, size):
        lanes = State(*(np.tile(part[lane], (size, 1)) for part in state))
        following = model.sample_next(lanes, np.full(size, actions[lane]), rng)
        return (
            following.endogenous[:, 0],
            np.ravel_multi_index(following.exogenous.T, mdp.exogenous_sizes),
        )

    for lane in range(4):
        exact = draw(mdp, states, lane, 200_000)  # its own error is far below the bound
        sampled = draw(adapted, adapted_states, lane, 300)
        for model_values, values, size in zip(exact, sampled, (13, 48), strict=True):
            assert_frequencies(values, np.bincount(model_values, minlength=size) / 200_000)


def test_an_environment_around_an_adapted_one_shares_exogenous_trajectories():
    env = ExoEnv(adapt())
    longest = 0
    for seed in range(10):
        trajectories = []
        for action in (0, 1):
            observation, _ = env.reset(seed=seed)
            trajectory = [observation["exogenous"].tolist()]
            for _ in range(15):
                observation, _, terminated, _, _ = env.step(action)
                if terminated:
                    break
                trajectory.append(observation["exogenous"].tolist())
            trajectories.append(trajectory)
        shorter = min(map(len, trajectories))
        assert trajectories[0][:shorter] == trajectories[1][:shorter]
        longest = max(longest, shorter)
    assert longest > 3


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
