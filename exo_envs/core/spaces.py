"""Observation spaces: the one this suite uses, and its variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import State, Variable

NEEDED_SPACE = "Dict(endogenous=MultiDiscrete, exogenous=MultiDiscrete)"

Variables: TypeAlias = tuple[Variable, ...]
Wanted: TypeAlias = Sequence[Variable | str] | None


def observed_variables(space: spaces.Space[Any], part: str, wanted: Wanted) -> Variables:
    """The variables in one part of the observation dict, named as the user wants."""
    parts = _parts(space)
    if not parts:
        raise ArgumentTypeError(
            f"the observation space is {space}, not {NEEDED_SPACE} with values from 0; give "
            "split (or get_state), endogenous_variables and exogenous_variables"
        )
    shown = parts.get(part, ())  # an empty part is left out of an observation
    if wanted is not None and (isinstance(wanted, str) or not isinstance(wanted, Sequence)):
        raise ArgumentTypeError(
            f"{part}_variables is a sequence of names or Variables, not {wanted!r}"
        )
    given = [variable.name for variable in shown] if wanted is None else list(wanted)
    if len(given) != len(shown):
        raise ArgumentError(
            f"{part}_variables has {len(given)} entries, but the environment's {part} part has "
            f"{len(shown)}"
        )
    variables = tuple(
        entry if isinstance(entry, Variable) else replace(variable, name=entry)
        for entry, variable in zip(given, shown, strict=True)
    )
    for variable, own in zip(variables, shown, strict=True):
        if not own.is_real and variable.size != own.size:
            raise ArgumentError(
                f"{part} variable {variable.name!r} has {own.size} values in the environment's "
                f"observation space, not {variable.size}"
            )
    return variables


def _parts(space: spaces.Space[Any]) -> dict[str, Variables]:
    """The variables in each part of a space; nothing if it is not what is needed."""
    parts = space.spaces if isinstance(space, spaces.Dict) else {}
    found = {
        part: _variables(part, values) for part, values in parts.items() if part in State._fields
    }
    known = {part: variables for part, variables in found.items() if variables}
    return known if len(known) == len(parts) else {}


def _variables(part: str, space: spaces.Space[Any]) -> Variables:
    """The variables that a space of one dimension has; none if it is none."""
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1 and not np.any(space.start):
        return tuple(Variable(f"{part}_{i}", size) for i, size in enumerate(space.nvec.tolist()))
    if isinstance(space, spaces.Box) and len(space.shape) == 1 and (space.low < space.high).all():
        bounds = zip(space.low.tolist(), space.high.tolist(), strict=True)
        return tuple(Variable(f"{part}_{i}", low=a, high=b) for i, (a, b) in enumerate(bounds))
    return ()


def num_shown(env: gym.Env[Any, Any]) -> int:
    """How many variables the observations of an environment show; 0 if they are not dicts of n, x.

    >>> from exo_envs import ExoEnv
    >>> from exo_envs.domains.grid import GridMDP
    >>> num_shown(ExoEnv(GridMDP()))
    6
    """
    return sum(map(len, _parts(env.observation_space).values()))
