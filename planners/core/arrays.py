"""Small helpers for arrays that every module of the package needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import njit
from exo_envs.core.mdp import IntArray

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
