"""Adapted environments against what is known of them: Gymnasium's taxi, and our own grid."""

from inspect import signature

import gymnasium as gym
import numpy as np
import pytest
from frequencies import assert_frequencies
from gymnasium.envs.toy_text.taxi import TaxiEnv
from harbour import (
    adapt,
)

from exo_envs import AdaptedMDP, ExoEnv, State, Variable
from exo_envs.domains.grid import GridMDP
from exo_envs.testing import check_mdp

# --- Gymnasium's taxi -------------------------------------------------------------------------


def split_taxi(observation):
    return (observation // 100, observation // 20 % 5, observation // 4 % 5), (observation % 4,)


def set_taxi(taxi, n, x):
    taxi.s = int(taxi.encode(*n, *x))


rainy = pytest.mark.skipif(
    "is_rainy" not in signature(TaxiEnv).parameters, reason="this Gymnasium knows no rain"
)


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


@rainy
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


@rainy
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
