"""State variables: what they are called, and which values they have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import check_size, shown
from exo_envs.core.errors import ArgumentError

#: The size of a real variable: as many values as 64-bit floats tell apart, more than any table has.
REAL_SIZE = 2**53


@dataclass(frozen=True, slots=True)
class Variable:
    """A state variable with the values ``0 ... size - 1``, or with real ones.

    >>> Variable("stock", 12)
    Variable(name='stock', size=12)
    >>> Variable("price", low=0.0, high=500.0)
    Variable(name='price', low=0.0, high=500.0)

    Args:
        name: what masks call it.
        size: how many values it has, if they are whole numbers. (That of a real variable is
            ``REAL_SIZE``.)
        low: the smallest value of a real variable; may be -inf.
        high: the largest one; may be inf.
    """

    name: str
    size: int = 0
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        """Refuse a variable that has no name or no value."""
        if not isinstance(self.name, str) or not self.name:
            raise ArgumentError(f"a variable's name is a non-empty string, not {self.name!r}")
        if self.low is None and self.high is None:
            size = check_size(f"the size of {self.name!r}", self.size)
            object.__setattr__(self, "size", size)
            return
        if self.size not in (0, REAL_SIZE):
            raise ArgumentError(
                f"{self.name!r} has a size, which makes its values whole numbers, or low and high, "
                "which make them real; not both"
            )
        low, high = (_bound(self.name, name, getattr(self, name)) for name in ("low", "high"))
        if not low < high:
            raise ArgumentError(f"{self.name!r} needs low < high, not {low:g} and {high:g}")
        for attribute, value in (("size", REAL_SIZE), ("low", low), ("high", high)):
            object.__setattr__(self, attribute, value)

    @property
    def is_real(self) -> bool:
        """Whether the values are real numbers from ``low`` to ``high``."""
        return self.low is not None

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        if self.low is None or self.high is None:
            return 0, self.size - 1
        return self.low, self.high

    @property
    def range(self) -> str:
        """The same for people.

        >>> Variable("stock", 12).range, Variable("price", low=0, high=9.5).range
        ('0 ... 11', '0 to 9.5')
        """
        low, high = self.bounds
        return f"{low:g} to {high:g}" if self.is_real else f"{low} ... {high}"

    def __repr__(self) -> str:
        """With the values it has."""
        values = f"low={self.low}, high={self.high}" if self.is_real else f"size={self.size}"
        return f"Variable(name={self.name!r}, {values})"


class Ranges:
    """The values that the variables of one part of a state may have, as arrays.

    Attributes:
        variables: of the part.
        is_real: whether one of them is real. Then the part is an array of floats, with whole ones
            for the variables that are not.
    """

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = tuple(variables)
        self.is_real = any(variable.is_real for variable in variables)
        self.dtype: np.dtype[Any] = np.dtype(np.float64 if self.is_real else np.int64)

    @cached_property
    def low(self) -> NDArray[Any]:
        """The smallest values, shape (variables,)."""
        return np.array([v.bounds[0] for v in self.variables], dtype=self.dtype)

    @cached_property
    def high(self) -> NDArray[Any]:
        """The largest values, shape (variables,)."""
        return np.array([v.bounds[1] for v in self.variables], dtype=self.dtype)

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """Which variables have whole values only, shape (variables,)."""
        return np.array([not v.is_real for v in self.variables], dtype=np.bool_)

    def misfits(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which values, in an array (..., variables), their variables cannot have."""
        wrong = ~((values >= self.low) & (values <= self.high))  # so that NaN is wrong too
        if self.is_real:
            wrong |= self.whole & (values != np.floor(values))
        return np.asarray(wrong)

    def misfit(self, values: NDArray[Any]) -> Misfit | None:
        """The first value that its variable cannot have, in an array (..., variables)."""
        wrong = self.misfits(values)
        if not wrong.any():
            return None
        where = tuple(int(place) for place in np.argwhere(wrong)[0])
        return Misfit(where[:-1], self.variables[where[-1]], values[where])

    @cached_property
    def unbounded(self) -> NDArray[np.bool_]:
        """Which variables have no smallest or no largest value, shape (variables,)."""
        return ~np.isfinite(self.high) | ~np.isfinite(self.low)

    def draw(self, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Values that are drawn uniformly, shape (size, variables); 0 of what is unbounded."""
        shape = (size, len(self.variables))
        if not self.is_real:
            return rng.integers(self.high + 1, size=shape)
        low, high = (np.where(self.unbounded, 0.0, bound) for bound in (self.low, self.high))
        values = low + (high - low + self.whole) * rng.random(shape)
        return np.minimum(np.where(self.whole, np.floor(values), values), high)


class Misfit(NamedTuple):
    """A value that its variable cannot have."""

    lane: tuple[int, ...]
    variable: Variable
    value: Any


def _bound(name: str, which: str, value: Any) -> float:
    number = isinstance(value, (int, float, np.integer, np.floating))
    if not number or isinstance(value, bool) or math.isnan(value):
        raise ArgumentError(
            f"{which} of {name!r} is a number (-inf and inf too), not {shown(value)}"
        )
    return float(value)
