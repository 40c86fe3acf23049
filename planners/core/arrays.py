"""Arrays: what one call takes, numbers of joint values, and pieces of different lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import njit
from exo_envs.core.arguments import exact, exact_starts
from exo_envs.core.mdp import FloatArray, IntArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.floating[Any]]

#: Values of single variables that one call of a model is given at most.
CALL_VALUES = 4_000_000
#: States that one call of a model is given at most.
CALL_STATES = 100_000


def chunks(count: int, width: int) -> Iterator[slice]:
    """Slices of ``count`` states of ``width`` values that are small enough for one call."""
    length = max(1, min(CALL_STATES, CALL_VALUES // max(1, width)))
    for start in range(0, count, length):
        yield slice(start, min(count, start + length))


def starts_of(pieces: Sequence[Sized]) -> Ints:
    """Where each piece begins if all are laid out one after another, and where the last ends.

    >>> starts_of(["ab", "", "c"])
    array([0, 2, 2, 3])
    """
    return np.cumsum([0, *(len(piece) for piece in pieces)], dtype=np.int64)


def join(pieces: Sequence[Any], dtype: Any) -> NDArray[Any]:
    """The pieces one after another; of no pieces, an empty array."""
    return np.concatenate([*pieces, np.zeros(0, dtype)]).astype(dtype, copy=False)


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
        return [self.values[first:last] for first, last in pairwise(self.starts.tolist())]

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


def joint_index(values: IntArray, sizes: Sequence[int] | IntArray) -> Ints:
    """Number joint values (..., k) of k variables of these sizes, in C order: shape (...).

    >>> joint_index(np.array([[0, 2], [1, 0]]), (2, 3))
    array([2, 3])
    """
    index = np.zeros(values.shape[:-1], dtype=np.int64)
    for k, size in enumerate(sizes):
        index = index * size + values[..., k]
    return index


def joint_values(index: IntArray | int, sizes: Sequence[int] | IntArray) -> Ints:
    """The joint values (..., k) that have these numbers (...): undoes :func:`joint_index`.

    >>> joint_values(5, (2, 3))
    array([1, 2])
    """
    out = np.empty((*np.shape(index), len(sizes)), dtype=np.int64)
    rest: Any = index
    for k in reversed(range(len(sizes))):
        rest, out[..., k] = np.divmod(rest, sizes[k])
    return out


@njit(cache=True)
def subset_index(x: Any, variables: Any, start: int, end: int, sizes: Any) -> Any:
    """In kernels, :func:`joint_index` of the variables ``variables[start:end]`` of one x."""
    index = 0
    for k in range(start, end):
        index = index * sizes[variables[k]] + x[variables[k]]
    return index


@njit(cache=True)
def set_joint_values(index: int, sizes: Any, out: Any) -> None:
    """In kernels, :func:`joint_values` of one index, written to ``out``."""
    for k in range(len(sizes) - 1, -1, -1):
        out[k] = index % sizes[k]
        index //= sizes[k]
