"""The numbers that an observation shows, whatever its space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from gymnasium import spaces

from exo_envs.core.mdp import FloatArray, Variable

#: A real column that only ever showed whole numbers is whole, if it has at most so many values.
MAX_WHOLE = 1024
#: A column of whole numbers stays whole if it has at most so many values.
MAX_DECLARED = 2**31


@dataclass(frozen=True)
class Column:
    """One number of an observation: a variable whose value 0 is shown as ``start``, if whole."""

    name: str
    low: float = -np.inf
    high: float = np.inf
    is_whole: bool = False

    def as_variable(self) -> Variable:
        """The variable, with values from 0 if they are whole."""
        if self.is_whole:
            return Variable(self.name, int(self.high - self.low) + 1)
        return Variable(self.name, low=self.low, high=self.high)

    @property
    def start(self) -> float:
        """What is shown for 0."""
        return self.low if self.is_whole else 0.0


def columns_of(space: spaces.Space[Any], name: str = "observation") -> list[Column]:
    """The numbers of an observation, in the order of ``flat``.

    Text and other things that are no numbers are left out.

    >>> from gymnasium.spaces import Box, Dict, Discrete
    >>> [c.name for c in columns_of(Dict(stock=Discrete(9), price=Box(0, 1, (2,))))]
    ['price_0', 'price_1', 'stock']
    """
    if isinstance(space, spaces.Dict):
        inner = (columns_of(space[key], key) for key in sorted(space.keys()))
        return [column for columns in inner for column in columns]
    if isinstance(space, spaces.Tuple):
        parts = enumerate(space.spaces)
        return [column for i, inner in parts for column in columns_of(inner, f"{name}_{i}")]
    if isinstance(space, spaces.Box):
        whole = space.dtype is not None and space.dtype.kind in "iub"
        return _numbered(name, space.low, space.high, whole)
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        size = space.n if isinstance(space, spaces.Discrete) else space.nvec
        return _numbered(name, space.start, space.start + size - 1, True)
    if isinstance(space, spaces.MultiBinary):
        return _numbered(name, np.zeros(space.shape), np.ones(space.shape), True)
    return []


def _numbered(name: str, low: Any, high: Any, whole: bool) -> list[Column]:
    bounds = list(zip(np.ravel(low).tolist(), np.ravel(high).tolist(), strict=True))
    names = [name] if len(bounds) == 1 else [f"{name}_{i}" for i in range(len(bounds))]
    return [
        Column(own, float(a), float(b), whole) for own, (a, b) in zip(names, bounds, strict=True)
    ]


def refine(columns: Sequence[Column], shown: FloatArray) -> list[Column]:
    """Columns with what their values (N, columns) say about them.

    Real ones that only showed whole numbers become whole if their bounds are; bounds that are
    missing, or so wide that they are none, become infinite.
    """
    refined = []
    for column, values in zip(columns, shown.T, strict=True):
        low, high = column.low, column.high
        if column.is_whole and high - low < MAX_DECLARED:
            refined.append(column)
            continue
        widest = 1e3 * (1.0 + np.abs(values).max(initial=0.0))
        low, high = (low if low > -widest else -np.inf), (high if high < widest else np.inf)
        whole = high - low < MAX_WHOLE and bool((np.append(values, [low, high]) % 1 == 0).all())
        refined.append(Column(column.name, low, high, whole))
    return refined


def bounded(column: Column, values: FloatArray) -> Column:
    """A real column with finite bounds: where it has none, twice as far as what was shown."""
    spread = float(np.ptp(values)) or 1.0
    low = column.low if np.isfinite(column.low) else float(values.min()) - spread
    high = column.high if np.isfinite(column.high) else float(values.max()) + spread
    return replace(column, low=low, high=high)


def flat(observation: Any) -> FloatArray:
    """All numbers of an observation in one row, by the keys' alphabet; what is none is left out."""
    if isinstance(observation, Mapping):
        observation = tuple(observation[key] for key in sorted(observation))
    if isinstance(observation, tuple):
        return np.concatenate([np.zeros(0), *map(flat, observation)])
    array = np.asarray(observation)
    if array.dtype.kind not in "biuf":
        return np.zeros(0)
    return array.astype(np.float64).reshape(-1)
