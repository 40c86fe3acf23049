"""Small helpers for arrays that every module of the package needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.floating[Any]]

#: Values of x, and states, that one call of a model gets at most.
CALL_VALUES = 4_000_000
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
