"""The model behind what a user has."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv

from exo_envs.core.errors import ArgumentTypeError
from exo_envs.core.mdp import ExoMDP
from exo_envs.core.spaces import NEEDED_SPACE, num_shown
from exo_envs.sources.simulators.mdp import AdaptedMDP


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
