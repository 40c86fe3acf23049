"""Pieces of different lengths in one array: how tables of very many small parts reach kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import exact, exact_starts
from planners.core.arrays import Ints, join, starts_of


class Ragged(NamedTuple):
    """Pieces one after another: piece k is ``values[starts[k] : starts[k + 1]]``.

    Kernels take it as it is. Other arrays may run beside ``values``, with a number for each of
    them.

    >>> Ragged.of([[4, 5], [], [6]])
    Ragged(values=array([4, 5, 6]), starts=array([0, 2, 2, 3]))
    """

    values: NDArray[Any]
    starts: Ints  # (pieces + 1,)

    @classmethod
    def of(cls, pieces: Sequence[Any], dtype: Any = np.int64) -> Ragged:
        """Lay out these pieces."""
        return cls(join(pieces, dtype), starts_of(pieces))

    def piece(self, k: int) -> NDArray[Any]:
        """One of the pieces, not a copy."""
        return self.values[self.starts[k] : self.starts[k + 1]]

    def pieces(self) -> list[NDArray[Any]]:
        """All of them."""
        return np.split(self.values, self.starts[1:-1]) if len(self.starts) > 1 else []

    @property
    def lengths(self) -> Ints:
        """The number of values of each piece."""
        lengths: Ints = np.diff(self.starts)
        return lengths

    def check(
        self, name: str, pieces: int, least: int = 0, below: int | None = None, at_least: int = 0
    ) -> Ragged:
        """Refuse arrays that do not belong together, such as those of a damaged file.

        Args:
            name: of what this is, for the error.
            pieces: how many there should be.
            least: no value is less.
            below: every value is less.
            at_least: the number of values that each piece should have.
        """
        count = len(exact(name, self.values, least, below))
        exact_starts(f"the starts of {name}", self.starts, pieces, count, at_least=at_least)
        return self
