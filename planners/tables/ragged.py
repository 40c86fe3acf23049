"""Pieces of different lengths in one array: how very many small tables reach kernels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import exact, exact_starts
from exo_envs.core.mdp import FloatArray
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
        """Pieces laid out in the order in which they are given."""
        return cls(join(pieces, dtype), starts_of(pieces))

    def piece(self, k: int) -> NDArray[Any]:
        """One of the pieces, not a copy."""
        return self.values[self.starts[k] : self.starts[k + 1]]

    def pieces(self) -> list[NDArray[Any]]:
        """All pieces in order, none of them a copy."""
        return [self.values[first:last] for first, last in pairwise(self.starts.tolist())]

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


class SparseTables(NamedTuple):
    """Many tables of P(value | variables), one after another.

    A table has a row for each joint value of its variables (C order): table k has its first one at
    ``row_starts[k]``, and row r gives the values ``values.piece(r)`` the probabilities beside them.
    """

    variables: Ragged  # of each table
    row_starts: Ints  # (tables + 1,)
    values: Ragged  # of each row
    probabilities: FloatArray  # beside them

    @classmethod
    def of(cls, tables: Sequence[tuple[Any, Any, Any, Any]]) -> SparseTables:
        """Lay out tables: of each its variables, where rows start, values and probabilities."""
        variables, starts, values, probabilities = zip(*tables, strict=True) if tables else [()] * 4
        entries = starts_of(values)
        rows = [own[:-1] + entries[k] for k, own in enumerate(starts)]
        return cls(
            Ragged.of(variables),
            starts_of(rows),
            Ragged(join(values, np.int64), join([*rows, entries[-1:]], np.int64)),
            join(probabilities, np.float64),
        )


def sparse_rows(matrix: FloatArray) -> tuple[Ints, Ints, FloatArray]:
    """Where the rows of a matrix start, the columns that are not zero, and what they hold."""
    row, column = np.nonzero(matrix)
    starts = np.concatenate([[0], np.bincount(row, minlength=len(matrix)).cumsum()])
    return starts, column, matrix[row, column]
