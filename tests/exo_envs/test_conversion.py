"""Wrappers around environments that are adapted, and the model behind what a user has."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.toy_text.taxi import TaxiEnv
from harbour import Harbour, adapt, harbour_states

from exo_envs import AdaptedMDP, ExoEnv, ExoVectorEnv, as_mdp
from exo_envs.domains.grid import GridMDP


def test_wrappers_stay_in_effect():
    env = gym.wrappers.TransformReward(gym.wrappers.TimeLimit(Harbour(), 3), lambda r: 10 * r)
    states, actions = harbour_states()
    rewards = adapt(env).reward(states, actions)
    np.testing.assert_array_equal(rewards, 10 * adapt().reward(states, actions))


def test_the_horizon_is_the_environments_time_limit():
    gym.register("Harbour-v0", entry_point=Harbour, max_episode_steps=7)
    try:
        assert AdaptedMDP(gym.make("Harbour-v0")).horizon == 7
        assert AdaptedMDP(gym.make("Harbour-v0"), horizon=9).horizon == 9
    finally:
        gym.registry.pop("Harbour-v0")


def test_as_mdp_finds_the_model():
    mdp = GridMDP()
    assert as_mdp(mdp) is mdp
    assert as_mdp(ExoEnv(mdp)) is mdp
    assert as_mdp(gym.wrappers.TimeLimit(ExoEnv(mdp), 5)) is mdp
    assert as_mdp(ExoVectorEnv(mdp, 2)) is mdp
    wrapped = gym.wrappers.vector.RecordEpisodeStatistics(ExoVectorEnv(mdp, 2))
    assert as_mdp(wrapped) is mdp


def test_as_mdp_adapts_another_environment():
    env = Harbour()
    env.spec = gym.envs.registration.EnvSpec("Harbour-v0", max_episode_steps=7)
    mdp = as_mdp(env)
    assert isinstance(mdp, AdaptedMDP)
    assert (mdp.env, mdp.horizon) == (env, 7)


class Hiding(gym.ObservationWrapper):
    """Shows only some of the exogenous variables, or none."""

    def __init__(self, env, columns):
        super().__init__(env)
        self.columns = columns
        self.observation_space = spaces.Dict(
            {k: v for k, v in env.observation_space.items() if k != "exogenous" or columns}
        )
        if columns:
            nvec = env.observation_space["exogenous"].nvec[columns]
            self.observation_space["exogenous"] = spaces.MultiDiscrete(nvec)

    def observation(self, observation):
        kept = {**observation, "exogenous": observation["exogenous"][self.columns]}
        return kept if self.columns else {"endogenous": observation["endogenous"]}


@pytest.mark.parametrize("columns", [[0], [1], []])
def test_as_mdp_looks_under_what_hides_variables(columns):
    env = gym.make(gym.envs.registration.EnvSpec("H-v0", entry_point=Harbour, max_episode_steps=7))
    mdp = as_mdp(Hiding(env, columns))
    assert (mdp.env, mdp.horizon) == (env, 7)
    assert mdp.exogenous_names == ("exogenous_0", "exogenous_1")
    if columns:  # the wrapper around it hides nothing more
        assert as_mdp(Hiding(Hiding(env, columns), [0])).env is env
    state = mdp.sample_initial(5, np.random.default_rng(0))
    mdp.transition(state, np.zeros(5, dtype=np.int64), np.random.default_rng(1))


@pytest.mark.parametrize("columns", [[0], [1], []])
def test_hidden_variables_are_reported_where_wrappers_must_stay(columns):
    """A wrapper around the one that hides may do anything, so neither is left out."""
    env = gym.make(gym.envs.registration.EnvSpec("H-v0", entry_point=Harbour, max_episode_steps=7))
    doubled = gym.wrappers.TransformReward(Hiding(env, columns), lambda reward: 2 * reward)
    message = rf"<Hiding.* shows {1 + len(columns)} of 3 variables, .* give the env.* underneath"
    for make in (as_mdp, AdaptedMDP):
        with pytest.raises(ValueError, match=message):
            make(doubled)


def test_as_mdp_says_what_it_needs():
    with pytest.raises(TypeError, match=r"an ExoMDP, an environment .* not 'ExoGrid-v0'"):
        as_mdp("ExoGrid-v0")
    with pytest.raises(TypeError, match=r"the observation space is Discrete\(500\)"):
        as_mdp(TaxiEnv())
    with pytest.raises(TypeError, match="give one of its lanes"):
        as_mdp(gym.vector.SyncVectorEnv([Harbour]))
