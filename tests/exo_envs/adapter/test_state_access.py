"""Ways in which environments are put into a state, and what they say of their episodes."""

import copy

import gymnasium as gym
import numpy as np
import pytest
from airline import Airline
from gymnasium import spaces
from gymnasium.envs.classic_control import MountainCarEnv
from gymnasium.envs.toy_text.taxi import TaxiEnv
from walks import Springs, Walk, Words

from exo_envs import AdaptedMDP, State
from exo_envs.sources.access.found import Copies, find_attributes
from exo_envs.sources.simulators.discovery import horizon_of

WAYS = {
    "env.s": (TaxiEnv, ("dest_idx",)),
    "env.state": (MountainCarEnv, ()),
    "set_state(qpos, qvel)": (Springs, ("qpos_1", "qvel_1")),
    "attributes": (Words, ("observation_2",)),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_way_is_found_and_is_what_is_played(way):
    make, exogenous = WAYS[way]
    mdp = AdaptedMDP.from_env(make(), horizon=20)
    assert mdp.found.way == way
    assert mdp.exogenous_names == exogenous
    mdp.check_claims()


def test_attributes_are_set_apart_by_what_they_follow_from():
    """500 states: each place and each weather is met, and not every pair of them has to be."""
    env = Words()
    access = find_attributes(env, np.random.default_rng(0))
    found = {copies.names: copies.columns for copies in access.copies}
    assert found == {("place",): (0, 1), ("weather",): (2,)}
    for row in np.ndindex(10, 10, 5):
        env.reset(seed=0)
        access.write(env, np.array(row, dtype=float))
        assert (*env.place, env.weathers.index(env.weather)) == row


@pytest.mark.parametrize("error", [copy.Error, AttributeError, TypeError, RecursionError])
def test_attributes_that_cannot_be_copied_are_left_out(error):
    class Stubborn:
        def __deepcopy__(self, memo):
            raise error

    class Holder:
        def __init__(self):
            self.place, self.handle = 3, Stubborn()

    copies = Copies((0,), ("place", "handle"))
    copies.learn(np.array([1.0]), Holder())
    assert copies.at(np.array([1.0])) == {}
    assert copies.at(np.array([2.0])) is None


def test_steps_from_all_states_of_copies_are_the_environments_own():
    mdp = AdaptedMDP.from_env(Words(), horizon=20)
    rng = np.random.default_rng(0)
    state = mdp.sample_uniform(200, rng)
    state = State(state.endogenous * [1, 1, 0], state.exogenous)
    following, reward = mdp.observed_step(state, np.zeros(200, dtype=np.int64), rng)
    row, column = state.endogenous[:, 0], state.endogenous[:, 1]
    paid = 1.0 * ((row == 9) & (column == 9)) - 0.1 * state.exogenous[:, 0] * (row > 5)
    np.testing.assert_allclose(reward, paid)
    np.testing.assert_array_equal(following.endogenous[:, 1], np.minimum(column + 1, 9))


def test_what_no_episode_met_is_refused_by_name():
    class Rare(Words):
        """Never beyond the first half."""

        def step(self, action):
            observation, *rest = super().step(action)
            self.place = tuple(min(part, 4) for part in self.place)
            observation[:2] = self.place
            return observation, *rest

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.place = (0, 0)
            return self.observe(), {}

    env = Rare()
    access = find_attributes(env, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"no episode met .*'observation_0': 9.*'place'"):
        access.write(env, np.array([9.0, 9.0, 0.0]))


def test_no_way_is_said_with_what_was_tried():
    class Opaque(gym.Env):
        observation_space = spaces.Discrete(4)
        action_space = spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self._own = iter(self.np_random.integers(4, size=99).tolist())
            return next(self._own), {}

        def step(self, action):
            return next(self._own), 0.0, False, False, {}

    with pytest.raises(ValueError, match=r"env.s: there is none.*attributes: .*give set_state"):
        AdaptedMDP.from_env(Opaque(), horizon=5)


class Limited(Walk):
    """As Minigrid does it: the environment knows its own limit."""

    max_steps = 13


@pytest.mark.parametrize(
    ("make", "horizon"),
    [
        (lambda: gym.wrappers.TimeLimit(Airline(), 20), 20),
        (lambda: gym.wrappers.TimeLimit(gym.wrappers.TimeLimit(Airline(), 9), 20), 9),
        (lambda: gym.wrappers.TimeLimit(gym.make("FrozenLake-v1"), 30), 30),
        (lambda: gym.make("FrozenLake-v1"), 100),
        (Limited, 13),
    ],
)
def test_the_horizon_is_what_the_environment_says(make, horizon):
    assert horizon_of(make(), None) == horizon
    assert horizon_of(make(), 5) == 5


def test_no_horizon_is_said():
    with pytest.raises(ValueError, match="give horizon"):
        horizon_of(Airline(), None)
