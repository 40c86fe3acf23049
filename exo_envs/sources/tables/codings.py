"""Columns as variables: few different values are counted one by one, other numbers stay real."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import as_array, check_whole, shown
from exo_envs.core.batches import as_values
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import FloatArray, Variable
from exo_envs.sources.tables.tables import Column, as_column, missing_values

#: Different values that whole numbers have at most to be counted one by one, unless told otherwise.
MAX_LEVELS = 64
#: The same for numbers with fractions, such as the three prices of a tariff.
MAX_FRACTIONS = 16
#: Different strings that a column has at most.
MAX_STRINGS = 256
#: Values of a range that is declared beforehand, at most.
MAX_RANGE = 1_000_000
#: The largest whole number below which 64-bit floats leave none out.
EXACT = 2**53


@dataclass(frozen=True, eq=False)
class Coding:
    """What a column is as a variable.

    Attributes:
        name: of the column and of the variable.
        levels: the different values, in order, that a whole variable stands for; None if real.
        low: the smallest value of a real variable.
        high: the largest one.
    """

    name: str
    levels: NDArray[Any] | None
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def of(cls, name: str, values: Column, max_levels: int = MAX_LEVELS) -> Coding:
        """The coding of all values that a column ever has, those of the later part among them.

        That much is declared and not learned: nothing is counted in the later part.
        """
        values = as_column(name, values)
        max_levels = check_whole("max_levels", max_levels, 1)
        if not len(values) or missing_values(values).any():
            raise ArgumentError(f"column {name!r} has no values, or some are missing")
        if values.dtype.kind == "O":
            levels = np.unique(values.astype(str))
            if len(levels) > MAX_STRINGS:
                raise ArgumentError(
                    f"column {name!r} has {len(levels)} different strings, {shown(str(levels[0]))} "
                    f"... {shown(str(levels[-1]))}; at most {MAX_STRINGS} are told apart. Join "
                    "those that act alike, or drop the column"
                )
            return cls(name, levels)
        levels = np.unique(values)
        is_whole = values.dtype.kind != "f" or bool((levels == np.floor(levels)).all())
        if len(levels) <= (max_levels if is_whole else min(max_levels, MAX_FRACTIONS)):
            if is_whole and values.dtype.kind == "f" and np.abs(levels).max() <= EXACT:
                levels = levels.astype(np.int64)
            return cls(name, levels)
        return cls(name, None, float(levels[0]), float(levels[-1]))

    @classmethod
    def range_of(cls, name: str, first: int, last: int) -> Coding:
        """The whole numbers from ``first`` to ``last``, whether they occur or not."""
        first = check_whole("first", first, -EXACT, EXACT)
        last = check_whole("last", last, first, first + MAX_RANGE)
        return cls(name, np.arange(first, last + 1))

    @cached_property
    def variable(self) -> Variable:
        """The variable of a model."""
        if self.levels is not None:
            return Variable(self.name, len(self.levels))
        return Variable(self.name, low=self.low, high=self.high)

    @property
    def is_real(self) -> bool:
        """Whether the values are numbers as they are."""
        return self.levels is None

    def encode(self, values: Column) -> NDArray[Any]:
        """Values as a model has them: numbers of levels, or floats; others are refused."""
        values = as_column(self.name, values)
        wants_strings = self.levels is not None and self.levels.dtype.kind == "U"
        if wants_strings != (values.dtype.kind == "O"):
            raise ArgumentTypeError(
                f"column {self.name!r} holds {'strings' if wants_strings else 'numbers'}, not "
                f"{shown(values[:1].tolist())}"
            )
        if self.levels is None:
            return as_values("exogenous", values[:, None], (self.variable,))[:, 0]
        asked = values.astype(str) if wants_strings else values
        found = np.minimum(np.searchsorted(self.levels, asked), len(self.levels) - 1)
        unknown = self.levels[found] != asked
        if unknown.any():
            raise ArgumentError(
                f"column {self.name!r} is never {shown(asked[unknown].tolist()[0])}; its values "
                f"are {shown(self.levels.tolist())}"
            )
        return found

    def decode(self, values: NDArray[Any]) -> NDArray[Any]:
        """What the table says, given what a model has; what no model has is refused."""
        array = as_array(f"values of {self.name!r}", values)[..., None]
        return self.look_up(as_values("exogenous", array, (self.variable,))[..., 0])

    def look_up(self, values: NDArray[Any]) -> NDArray[Any]:
        """What the table says, given values of a model that have been checked."""
        if self.levels is None:
            return values
        return self.levels[values.astype(np.int64, copy=False)]


def codings_of(
    columns: Mapping[str, Column],
    more: Mapping[str, Column] | None,
    ranges: Mapping[str, tuple[int, int]],
    max_levels: int,
) -> tuple[Coding, ...]:
    """A coding for each column, of its values in both tables.

    Args:
        columns: of the table.
        more: the same columns of a second table, if there is one.
        ranges: columns whose values are known beforehand, such as the hours of a day.
        max_levels: see :data:`MAX_LEVELS`.
    """
    found = []
    for name, values in columns.items():
        everything = values
        if more is not None:
            other = more[name]
            if (other.dtype.kind == "O") != (values.dtype.kind == "O"):
                raise ArgumentTypeError(
                    f"column {name!r} holds strings in one table and numbers in another"
                )
            everything = np.concatenate([values, other])
        if name in ranges:
            found.append(Coding.range_of(name, *ranges[name]))
        else:
            found.append(Coding.of(name, everything, max_levels))
    return tuple(found)


def encoded(columns: Mapping[str, Column], codings: tuple[Coding, ...]) -> NDArray[Any]:
    """All columns as the rows of a model, (rows, columns): int64, or float64 if one is real."""
    parts = [coding.encode(columns[coding.name]) for coding in codings]
    dtype = np.float64 if any(coding.is_real for coding in codings) else np.int64
    rows: FloatArray = np.stack(parts, axis=1).astype(dtype)
    return np.ascontiguousarray(rows)
