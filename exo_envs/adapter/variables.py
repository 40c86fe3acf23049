"""The variables of an environment that somebody else wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from exo_envs.inputs import PARTS
from exo_envs.mdp import Variable

NEEDED_SPACE = "Dict(endogenous=MultiDiscrete, exogenous=MultiDiscrete)"

Variables: TypeAlias = tuple[Variable, ...]
Wanted: TypeAlias = Sequence[Variable | str] | None


def observed_variables(space: spaces.Space[Any], part: str, wanted: Wanted) -> Variables:
    """The variables in one part of the observation dict, named as the user wants."""
    sizes = _sizes(space, part)
    given = [f"{part}_{i}" for i in range(len(sizes))] if wanted is None else list(wanted)
    if len(given) != len(sizes):
        raise ValueError(
            f"{part}_variables has {len(given)} entries, but the environment's {part} part has "
            f"{len(sizes)}"
        )
    variables = tuple(
        entry if isinstance(entry, Variable) else Variable(entry, size)
        for entry, size in zip(given, sizes, strict=True)
    )
    for variable, size in zip(variables, sizes, strict=True):
        if variable.size != size:
            raise ValueError(
                f"{part} variable {variable.name!r} has {size} values in the environment's "
                f"observation space, not {variable.size}"
            )
    return variables


def _sizes(space: spaces.Space[Any], part: str) -> list[int]:
    parts = _parts(space)
    if not parts:
        raise TypeError(
            f"the observation space is {space}, not {NEEDED_SPACE} with values from 0; give "
            "split (or get_state), endogenous_variables and exogenous_variables"
        )
    return parts.get(part, [])  # an empty part is left out of an observation


def _parts(space: spaces.Space[Any]) -> dict[str, list[int]]:
    """The sizes of the variables in each part of a space; nothing if it is not what is needed."""
    parts = space.spaces if isinstance(space, spaces.Dict) else {}
    sizes = {
        part: values.nvec.tolist()
        for part, values in parts.items()
        if part in PARTS
        and isinstance(values, spaces.MultiDiscrete)
        and values.nvec.ndim == 1
        and not np.any(values.start)
    }
    return sizes if len(sizes) == len(parts) else {}


def num_shown(env: gym.Env[Any, Any]) -> int:
    """How many variables the observations of an environment show; 0 if they are not dicts of n, x.

    >>> from exo_envs import ExoEnv
    >>> from exo_envs.grid import GridMDP
    >>> num_shown(ExoEnv(GridMDP()))
    6
    """
    return sum(map(len, _parts(env.observation_space).values()))


def check_all_shown(env: gym.Env[Any, Any]) -> None:
    """Refuse observations without some variables of the state that ``reset`` is to be given.

    An observation wrapper changes what is shown and nothing else, so the state is what the
    environment underneath shows.
    """
    layer = env
    while isinstance(layer, gym.Wrapper):
        shown, all_of_them = num_shown(layer), num_shown(layer.env)
        if isinstance(layer, gym.ObservationWrapper) and shown < all_of_them:
            raise ValueError(
                f"{layer} shows {shown} of {all_of_them} variables, so the state cannot be read; "
                f"give the environment underneath, {layer.env}"
            )
        layer = layer.env


def declared_variables(part: str, wanted: Wanted) -> Variables:
    """The variables in one part of what split or get_state return, as the user says."""
    variables = tuple(entry for entry in wanted or () if isinstance(entry, Variable))
    if wanted is None or len(variables) < len(wanted):
        raise TypeError(
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
            raise ValueError(f"there are two variables named {name!r}{hint}")
