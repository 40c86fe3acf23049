"""Observation spaces: the one this suite uses, its variables, and batches of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

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


def batched_space(space: spaces.Dict, num_envs: int) -> spaces.Dict:
    """Gymnasium's batch of the space, with the bounds of one lane shared by all.

    They would otherwise take more memory than a lane's state, and twice that in the making.
    """
    batched = cast("spaces.Dict", batch_space(space, 1))
    for box in cast("list[spaces.Box]", list(batched.values())):
        box._shape = shape = (num_envs, *box.shape[1:])
        for bound in ("low", "high", "bounded_below", "bounded_above"):
            setattr(box, bound, np.broadcast_to(getattr(box, bound), shape))
    return batched
