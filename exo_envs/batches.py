"""Batches of any shape as the flat ones that compiled kernels take.

The kernels are plain Numba functions with a loop over lanes. (Numba's generalised ufuncs would
broadcast by themselves, but two processes that compile them at the same time can leave a cache
behind that crashes the next one.)
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from exo_envs.mdp import IntArray, State

Ints = NDArray[np.int64]
INT64 = np.dtype(np.int64)


class Lanes(NamedTuple):
    """States and actions with one batch dimension, contiguous, in one integer type."""

    endogenous: Ints  # (B, k)
    exogenous: Ints  # (B, m)
    action: Ints  # (B,)


def lanes(values: IntArray) -> Ints:
    """All batch dimensions of one part of a state as one: (..., m) to (B, m)."""
    if values.ndim == 2 and values.dtype is INT64 and values.flags.c_contiguous:
        return cast("Ints", values)  # nothing to do, which a single lane is glad of
    flat = np.ascontiguousarray(values, dtype=np.int64)
    return flat if flat.ndim == 2 else flat.reshape(-1, flat.shape[-1])


def as_lanes(state: State, action: IntArray) -> tuple[tuple[int, ...], Lanes]:
    """The shape of a batch and its lanes; parts of different batch shapes are broadcast."""
    n, x = state
    a = np.asarray(action, dtype=np.int64)
    shape = a.shape
    if len(shape) == 1 and len(n) == len(x) == len(a) and n.ndim == x.ndim == 2:
        return shape, Lanes(lanes(n), lanes(x), np.ascontiguousarray(a))
    if not n.shape[:-1] == x.shape[:-1] == shape:
        shape = np.broadcast_shapes(n.shape[:-1], x.shape[:-1], shape)
        n = np.broadcast_to(n, (*shape, n.shape[-1]))
        x = np.broadcast_to(x, (*shape, x.shape[-1]))
        a = np.broadcast_to(a, shape)
    return shape, Lanes(lanes(n), lanes(x), np.ascontiguousarray(a).reshape(-1))
