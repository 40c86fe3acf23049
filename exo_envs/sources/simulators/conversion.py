"""The model behind what a user has, and wrappers whose effect is lost when it is taken out."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
from gymnasium import wrappers
from gymnasium.vector import (
    VectorActionWrapper,
    VectorEnv,
    VectorObservationWrapper,
    VectorRewardWrapper,
    VectorWrapper,
)

from exo_envs.core.errors import ArgumentTypeError
from exo_envs.core.mdp import ExoMDP
from exo_envs.core.spaces import NEEDED_SPACE, num_shown
from exo_envs.sources.simulators.mdp import AdaptedMDP

#: Packages whose own methods ``step`` look on only, but for those of :data:`_EFFECTIVE`.
_ONLOOKERS = ("exo_envs.", "wrappers.", "gymnasium.", "stable_baselines3.")
#: Wrappers that change what an agent does or gets.
_EFFECTIVE = (
    gym.ActionWrapper,
    gym.RewardWrapper,
    VectorActionWrapper,
    VectorRewardWrapper,
    wrappers.AtariPreprocessing,
    wrappers.MaxAndSkipObservation,
    wrappers.NormalizeReward,
    wrappers.vector.NormalizeReward,
)


def as_mdp(mdp_or_env: Any) -> ExoMDP:
    """The model behind what a user has.

    Args:
        mdp_or_env: an :class:`ExoMDP`, which is returned as it is; an environment made of one
            (single or vector, wrapped or not), which gives that model whatever its wrappers do;
            or any other ``gymnasium.Env`` that :class:`AdaptedMDP` takes without further
            arguments. Of that one, observation wrappers on the outside that hide variables, such
            as masks, are left out.

    Raises:
        TypeError: if it is none of these.
        ValueError: if :class:`AdaptedMDP` does not take the environment.
    """
    if isinstance(mdp_or_env, ExoMDP):
        return mdp_or_env
    if isinstance(mdp_or_env, (gym.Env, VectorEnv)):
        mdp = getattr(mdp_or_env.unwrapped, "mdp", None)
        if isinstance(mdp, ExoMDP):
            return mdp
    if isinstance(mdp_or_env, gym.Env):
        return AdaptedMDP(_that_shows_most(mdp_or_env))
    hint = "; of a vector environment, give one of its lanes"
    raise ArgumentTypeError(
        "needed: an ExoMDP, an environment made of one, or a gymnasium.Env with the observation "
        f'{NEEDED_SPACE} and reset(options={{"state": ...}}), not {mdp_or_env!r}'
        f"{hint if isinstance(mdp_or_env, VectorEnv) else ''}"
    )


def _that_shows_most(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """The environment, or what is under the observation wrappers outside that hide variables."""
    layers = [env]
    while isinstance(layers[-1], gym.ObservationWrapper):
        layers.append(layers[-1].env)
    return max(layers, key=num_shown)  # of equals, the outermost


# --- wrappers that are ignored -------------------------------------------------------------------


class IgnoredWrapperWarning(UserWarning):
    """A wrapper changes rewards, actions or the length of episodes; learning does not see it."""


def warn_of_ignored_wrappers(mdp_or_env: Any, mdp: ExoMDP) -> None:
    """Warn if wrappers around an environment change what its model ``mdp`` does not know about.

    :func:`as_mdp` takes the model out of an environment of this suite. So a wrapper that changes
    rewards, actions or the length of episodes has no effect on what is learned and planned.
    """
    own = getattr(getattr(mdp_or_env, "unwrapped", None), "mdp", None)
    if not isinstance(own, ExoMDP):
        return  # a model, or an environment of somebody else, whose wrappers stay in effect
    ignored, layer = [], mdp_or_env
    while isinstance(layer, (gym.Wrapper, VectorWrapper)):
        if _has_effect(layer, mdp):
            ignored.append(_describe(layer))
        layer = layer.env
    if ignored:
        warnings.warn(
            f"what {' and '.join(ignored)} changes is ignored: the model is taken from the "
            "environment underneath. Rewards and the horizon are arguments of the model",
            IgnoredWrapperWarning,
            stacklevel=4,
        )


def _limit(layer: Any) -> int:
    return int(vars(layer)["_max_episode_steps"])  # Gymnasium has no public name for it


def _describe(layer: Any) -> str:
    is_limit = isinstance(layer, wrappers.TimeLimit)
    return f"{type(layer).__name__}{f'(max_episode_steps={_limit(layer)})' if is_limit else ''}"


def _has_effect(layer: Any, mdp: ExoMDP) -> bool:
    if isinstance(layer, wrappers.TimeLimit):
        return _limit(layer) < mdp.horizon
    if isinstance(layer, (gym.ObservationWrapper, VectorObservationWrapper)):
        return False
    return isinstance(layer, _EFFECTIVE) or any(
        "step" in vars(own) and not own.__module__.startswith(_ONLOOKERS)
        for own in type(layer).__mro__
    )
