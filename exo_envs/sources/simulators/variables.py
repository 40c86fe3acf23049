"""The variables of an environment that somebody else wrote."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import gymnasium as gym
import numpy as np

from exo_envs.core.arguments import check_horizon
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import ExoMDP, Variable
from exo_envs.core.spaces import Variables, Wanted, num_shown


def check_all_shown(env: gym.Env[Any, Any]) -> None:
    """Refuse observations without some variables of the state that ``reset`` is to be given.

    An observation wrapper changes what is shown and nothing else, so the state is what the
    environment underneath shows.
    """
    layer = env
    while isinstance(layer, gym.Wrapper):
        shown, all_of_them = num_shown(layer), num_shown(layer.env)
        if isinstance(layer, gym.ObservationWrapper) and shown < all_of_them:
            raise ArgumentError(
                f"{layer} shows {shown} of {all_of_them} variables, so the state cannot be read; "
                f"give the environment underneath, {layer.env}"
            )
        layer = layer.env


def declared_variables(part: str, wanted: Wanted) -> Variables:
    """The variables in one part of what split or get_state return, as the user says."""
    given = wanted if isinstance(wanted, (list, tuple)) else ()
    variables = tuple(entry for entry in given if isinstance(entry, Variable))
    if given is not wanted or len(variables) < len(given):
        raise ArgumentTypeError(
            f"with split or get_state, {part}_variables is a sequence of Variable(name, size) "
            f"that says what they return, not {wanted!r}"
        )
    return variables


def check_names(variables: Variables) -> None:
    """Refuse two variables of one name."""
    names = [variable.name for variable in variables]
    for name in names:
        if names.count(name) > 1:
            hint = " (one of them is the adapter's own)" if name == "done" else ""
            raise ArgumentError(f"there are two variables named {name!r}{hint}")


def check_functions(**functions: Callable[..., Any] | None) -> None:
    """Refuse what cannot be called, and two functions that read the state."""
    if functions["split"] is not None and functions["get_state"] is not None:
        raise ArgumentTypeError("give either split or get_state: both say where n and x are read")
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise ArgumentTypeError(f"{name} is a function, not {function!r}")


def as_scopes(mdp: ExoMDP, given: Any) -> list[frozenset[int]]:
    """Scopes of the reward as positions in x."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Collection):
        raise ArgumentTypeError(
            f"reward_scopes is a collection of collections of names, not {given!r}"
        )
    scopes = [frozenset(mdp.exogenous_indices(scope).tolist()) for scope in given]
    if not all(scopes):
        raise ArgumentError("a scope of the reward has one name at least")
    return scopes


def horizon_of(env: gym.Env[Any, Any], horizon: int | None) -> int:
    """The length of an episode: what is given, or else what the environment says.

    That is the smallest of its time limits: those of its registration and of wrappers, or else
    what it calls ``max_episode_steps`` or ``max_steps`` itself.

    >>> from gymnasium.envs.toy_text.taxi import TaxiEnv
    >>> horizon_of(gym.wrappers.TimeLimit(TaxiEnv(), 50), None)
    50
    """
    if horizon is None:
        horizon = min(_time_limits(env), default=None)
    if horizon is None:
        raise ArgumentError(f"{env} does not say how long an episode is; give horizon")
    return check_horizon("horizon", horizon)


def _time_limits(env: gym.Env[Any, Any]) -> list[int]:
    """All limits to the length of an episode, of the environment and its wrappers."""
    layers = [env]
    while isinstance(layers[-1], gym.Wrapper):
        layers.append(layers[-1].env)
    found = [
        vars(layer)["_max_episode_steps"]  # Gymnasium has no public name for it
        for layer in layers
        if isinstance(layer, gym.wrappers.TimeLimit)
    ]
    if env.spec is not None:
        found.append(env.spec.max_episode_steps)
    limits = [limit for limit in found if limit is not None]
    if not limits:
        own = (getattr(layers[-1], name, None) for name in ("max_episode_steps", "max_steps"))
        limits = [limit for limit in own if isinstance(limit, (int, np.integer)) and limit > 0]
    return [int(limit) for limit in limits]
