"""The model behind what a user has."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv

from exo_envs.adapter.mdp import AdaptedMDP
from exo_envs.mdp import ExoMDP
from exo_envs.spaces import NEEDED_SPACE


def as_mdp(mdp_or_env: Any) -> ExoMDP:
    """The model behind what a user has.

    Args:
        mdp_or_env: an :class:`ExoMDP`, which is returned as it is; an environment made of one
            (single or vector, wrapped or not), which gives that model whatever its wrappers do;
            or any other ``gymnasium.Env`` that :class:`AdaptedMDP` takes without further
            arguments.

    Raises:
        TypeError: if it is none of these.
    """
    if isinstance(mdp_or_env, ExoMDP):
        return mdp_or_env
    if isinstance(mdp_or_env, (gym.Env, VectorEnv)):
        mdp = getattr(mdp_or_env.unwrapped, "mdp", None)
        if isinstance(mdp, ExoMDP):
            return mdp
    if isinstance(mdp_or_env, gym.Env):
        return AdaptedMDP(mdp_or_env)
    hint = "; of a vector environment, give one of its lanes"
    raise TypeError(
        "needed: an ExoMDP, an environment made of one, or a gymnasium.Env with the observation "
        f'{NEEDED_SPACE} and reset(options={{"state": ...}}), not {mdp_or_env!r}'
        f"{hint if isinstance(mdp_or_env, VectorEnv) else ''}"
    )
