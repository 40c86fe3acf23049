"""The parts of an observation, and their columns in a flat array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from exo_envs.compiled.functions import njit
from exo_envs.core.arguments import as_array, as_integers
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import IntArray
from exo_envs.core.spaces import NEEDED_SPACE

Flat: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class WholePart:
    """One entry of the observation, and where it goes."""

    key: str
    sizes: tuple[int, ...]
    starts: tuple[int, ...]
    columns: tuple[int, ...]  # the first one of each variable
    scalar: bool  # a Discrete: a number, not an array of one

    def width(self, one_hot: bool) -> int:
        """The number of its columns."""
        return sum(self.sizes) if one_hot else len(self.sizes)

    @cached_property
    def tables(self) -> tuple[NDArray[np.int64], ...]:
        """What the kernel needs to know."""
        tables = (self.sizes, self.starts, self.columns)
        return tuple(np.array(table, dtype=np.int64) for table in tables)

    def values(self, observation: Mapping[str, Any]) -> IntArray:
        """The numbers of this part, (..., m)."""
        values = as_integers(_what(self.key), _given(observation, self.key))
        if self.scalar:
            return values[..., None]
        _check_width(self.key, values, len(self.sizes))
        return values

    def write(self, values: IntArray, flat: Flat, *, one_hot: bool) -> None:
        """Write the numbers, (..., m), into their columns of zeros, (lanes, D).

        Raises:
            ValueError: if a number is out of range.
        """
        numbers = np.ascontiguousarray(values, dtype=np.int64).reshape(len(flat), len(self.sizes))
        wrong = _write(numbers, *self.tables, flat, one_hot)
        if wrong >= 0:
            raise self.out_of_range(values, wrong)

    def out_of_range(self, values: IntArray, entry: int) -> ValueError:
        """The error for one number, at an index into the flattened ``values``."""
        i = entry % len(self.sizes)
        first = self.starts[i]
        return ArgumentError(
            f"variable {i} in {_what(self.key)} cannot be "
            f"{values.flat[entry]}; its values are {first} ... {first + self.sizes[i] - 1}"
        )


@dataclass(frozen=True)
class RealPart:
    """An entry of real numbers: one column each."""

    key: str
    low: tuple[float, ...]
    high: tuple[float, ...]
    columns: tuple[int, ...]

    def width(self, one_hot: bool) -> int:
        """The number of its columns, whatever the encoding of other parts."""
        return len(self.low)

    @cached_property
    def scale(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What is 0, and what is 1 above that; numbers without bounds stay as they are."""
        low, high = np.array(self.low), np.array(self.high)
        bounded = np.isfinite(low) & np.isfinite(high)
        zero = np.where(bounded, low, 0.0)
        return zero, np.where(bounded & (high > low), high - zero, 1.0)

    def values(self, observation: Mapping[str, Any]) -> NDArray[np.float64]:
        """The numbers of this part, (..., m)."""
        values = _given(observation, self.key)
        if values.dtype.kind not in "iuf":
            raise ArgumentTypeError(
                f"{_what(self.key)} has dtype {values.dtype}; it should hold numbers"
            )
        values = values.astype(np.float64)
        _check_width(self.key, values, len(self.low))
        wrong = ~((values >= self.low) & (values <= self.high))
        if wrong.any():
            where = tuple(np.argwhere(wrong)[0].tolist())
            low, high = self.low[where[-1]], self.high[where[-1]]
            raise ArgumentError(
                f"variable {where[-1]} in {_what(self.key)} cannot be {values[where]}; its values "
                f"are {low:g} to {high:g}"
            )
        return values

    def write(self, values: NDArray[Any], flat: Flat, *, one_hot: bool) -> None:
        """Write the numbers, (..., m), into their columns, whatever the encoding of other parts."""
        zero, unit = self.scale
        flat[:, self.columns] = (values.reshape(len(flat), len(self.low)) - zero) / unit


def _what(key: str) -> str:
    return f"the {key} part of the observation"


def _given(observation: Mapping[str, Any], key: str) -> NDArray[Any]:
    if key not in observation:
        given = ", ".join(map(repr, observation)) or "nothing"
        raise ArgumentError(f"{_what(key)} is missing; there is {given}")
    return as_array(_what(key), observation[key])


def _check_width(key: str, values: NDArray[Any], width: int) -> None:
    if values.shape[-1:] != (width,):
        raise ArgumentError(f"{_what(key)} has shape {values.shape}; it should be (..., {width})")


Part: TypeAlias = WholePart | RealPart


def parts_of(space: Any, *, wide: bool) -> list[Part]:
    """What the observation consists of; a variable has one column, or a wide one for each value."""
    entries: Mapping[str, Any] = space.spaces if isinstance(space, spaces.Dict) else {}
    parts: list[Part] = []
    column = 0
    for key, entry in entries.items():
        if isinstance(entry, spaces.Box) and len(entry.shape) == 1:
            places = tuple(range(column, column + entry.shape[0]))
            parts.append(RealPart(key, tuple(entry.low), tuple(entry.high), places))
            column += len(places)
            continue
        scalar = isinstance(entry, spaces.Discrete)
        if not scalar and not (isinstance(entry, spaces.MultiDiscrete) and entry.nvec.ndim == 1):
            break
        sizes = np.atleast_1d(entry.n if scalar else entry.nvec).tolist()
        starts = np.atleast_1d(entry.start).tolist()
        columns = []
        for size in sizes:
            columns.append(column)
            column += size if wide else 1
        parts.append(WholePart(key, tuple(sizes), tuple(starts), tuple(columns), scalar))
    if not parts or len(parts) < len(entries):
        raise ArgumentTypeError(
            f"the observation space is {space}, not {NEEDED_SPACE}; only one-dimensional "
            "MultiDiscrete, Box and Discrete parts can be encoded, and there has to be one"
        )
    return parts


@njit(cache=True)
def _write(values: Any, sizes: Any, starts: Any, columns: Any, flat: Any, one_hot: Any) -> Any:
    """Write a part into zeros; the index of an entry that is out of range, or -1."""
    for lane in range(values.shape[0]):
        for i in range(len(sizes)):
            offset = values[lane, i] - starts[i]
            if offset < 0 or offset >= sizes[i]:
                return lane * len(sizes) + i
            if one_hot:
                flat[lane, columns[i] + offset] = 1
            else:
                flat[lane, columns[i]] = offset / max(sizes[i] - 1, 1)
    return -1
