"""Wrappers, agents and the adapter say what is wrong with what they are given."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from harbour import Harbour
from models import CoinMDP
from stable_baselines3.common.vec_env import VecEnv

from exo_envs import AdaptedMDP, ExoEnv, ExoVectorEnv
from planners.reduced.ignored_rewards import check_ignored_rewards
from planners.reduced.rewards import check_reward
from planners.worth import cost_function
from wrappers import AgentPolicy, FlatObservation, LearnedMask, MaskedObservation
from wrappers.observation.flat import Encoding
from wrappers.sb3 import GatedExtractor, SB3VecEnv


@pytest.mark.parametrize("dtype", ["x", 3, "complex64", "U3"])
def test_a_dtype_is_one_of_numbers(dtype):
    with pytest.raises((TypeError, ValueError), match=r"dtype|a flat observation has"):
        FlatObservation(ExoEnv(CoinMDP()), dtype=dtype)


@pytest.mark.parametrize("kind", [None, [], 3, "onehot", np.zeros(2)])
def test_encodings_are_named(kind):
    space = spaces.Dict(exogenous=spaces.MultiDiscrete([2]))
    with pytest.raises(ValueError, match="unknown encoding"):
        Encoding.of(space, kind)


@pytest.mark.parametrize("odd", [None, 3, {}, {"endogenous": [0]}])
def test_a_mask_takes_observations(odd):
    with pytest.raises(TypeError, match="an observation is a mapping with an 'exogenous' part"):
        MaskedObservation(ExoEnv(CoinMDP()), [0]).observation(odd)


@pytest.mark.parametrize("exogenous", [3, [0], [0, 0, 0]])
def test_a_mask_takes_whole_observations(exogenous):
    with pytest.raises(ValueError, match="exogenous part of the observation has shape"):
        MaskedObservation(ExoEnv(CoinMDP()), [0]).observation({"exogenous": exogenous})


def test_a_learned_mask_wraps_an_environment_and_takes_a_learner():
    with pytest.raises(TypeError, match="wraps a gymnasium Env, not"):
        LearnedMask(CoinMDP())
    with pytest.raises(TypeError, match="a learner is a MaskLearner"):
        LearnedMask(ExoEnv(CoinMDP()), "calibrated")


def test_an_agent_needs_an_environment():
    with pytest.raises(TypeError, match="None has no model"):
        AgentPolicy(lambda flat: 0, None)


@pytest.mark.parametrize("given", [np.zeros(2), [], {}, 3, None, "x"])
def test_choices_are_named_whatever_is_given(given):
    for check, word in ((cost_function, "cost"), (check_reward, "kind of reward")):
        with pytest.raises(ValueError, match=f"unknown {word}"):
            check(given)
    with pytest.raises(ValueError, match="unknown rule for ignored_rewards"):
        check_ignored_rewards(given)


def lanes() -> VecEnv:
    return SB3VecEnv(ExoVectorEnv(CoinMDP(), 2, autoreset_mode="SameStep"))


@pytest.mark.parametrize("options", [3, [3, 4], "x", {1, 2}])
def test_options_of_lanes_are_dictionaries(options):
    with pytest.raises(TypeError, match="options is a dictionary, or a list"):
        lanes().set_options(options)


@pytest.mark.parametrize("indices", [[5], [1.5], "x", slice(2), object()])
def test_indices_are_lanes(indices):
    with pytest.raises(IndexError, match=r"indices are lanes, 0 \.\.\. 1"):
        lanes().get_attr("mdp", indices)


def test_a_network_has_whole_numbers_of_columns():
    with pytest.raises(ValueError, match="n cannot take 2 columns"):
        GatedExtractor(None, 2)
    with pytest.raises(ValueError, match="width is a whole number"):
        GatedExtractor(spaces.Box(0, 1, (6,)), 2, 0.5)


def test_the_adapter_names_its_arguments():
    for name in ("split", "get_state", "set_state"):
        with pytest.raises(TypeError, match=f"{name} is a function or None, not 3"):
            AdaptedMDP(Harbour(), horizon=5, **{name: 3})
    with pytest.raises(TypeError, match="endogenous_variables is a sequence"):
        AdaptedMDP(Harbour(), horizon=5, endogenous_variables=3)
    with pytest.raises(TypeError, match="exogenous_variables is a sequence of Variable"):
        AdaptedMDP(
            Harbour(), horizon=5, split=lambda o: o, endogenous_variables=[], exogenous_variables=3
        )


@pytest.mark.parametrize("mode", [3, [], "x"])
def test_render_modes_are_named(mode):
    with pytest.raises(ValueError, match="unknown render mode"):
        ExoEnv(CoinMDP(), mode)
    with pytest.raises((ValueError, gym.error.Error)):
        ExoVectorEnv(CoinMDP(), 2, render_mode=mode)
