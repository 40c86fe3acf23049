"""Columns as variables: few different values are counted one by one, other numbers stay real."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import Variable
from exo_envs.sources.tables.frames import Column

#: Different values that whole numbers have at most to be counted one by one, unless told otherwise.
MAX_LEVELS = 64
#: The same for numbers with fractions, such as the three prices of a tariff.
MAX_FRACTIONS = 16
#: Different strings that a column has at most.
MAX_STRINGS = 256
#: The largest whole number below which 64-bit floats leave none out.
EXACT = 2**53


@dataclass(frozen=True, eq=False)
class Coding:
    """A column as a variable.

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

    @cached_property
    def variable(self) -> Variable:
        """The variable of a model."""
        if self.levels is not None:
            return Variable(self.name, len(self.levels))
        return Variable(self.name, low=self.low, high=self.high)

    def encode(self, values: Column) -> NDArray[Any]:
        """Values of the column as a model has them: numbers of levels, or floats."""
        if self.levels is None:
            return values
        return np.searchsorted(self.levels, values.astype(self.levels.dtype))

    def decode(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the column, given values of a model that have been checked."""
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
    for name, own in columns.items():
        values = own if more is None else np.concatenate([own, more[name]])
        if more is not None and (more[name].dtype.kind == "O") != (own.dtype.kind == "O"):
            raise ArgumentTypeError(
                f"column {name!r} holds strings in one table and numbers in another"
            )
        if name in ranges:
            low, high = ranges[name]
            found.append(Coding(name, np.arange(low, high + 1)))
        else:
            found.append(Coding.of(name, values, max_levels))
    return tuple(found)
