"""Batches of any shape as the flat ones that compiled kernels take, checked on the way.

The kernels are plain Numba functions with a loop over lanes. (Numba's generalised ufuncs would
broadcast by themselves, but two processes that compile them at the same time can leave a cache
behind that crashes the next one.)

**Checked borders, unchecked kernels.** A kernel trusts what it is given, so that an index out of
range would read or write somebody else's memory. Here is where states and actions come in: their
shapes, kinds and values are looked at once for each batch, in a compiled pass, and only if
something is wrong is it looked for.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.lazy import LazyModule
from exo_envs.core.inputs import as_batch, as_values, flat_rows, flatten
from exo_envs.core.mdp import ExoMDP, State, as_pair

ranges = LazyModule("exo_envs.compiled.ranges")

Ints = NDArray[np.int64]
Shape = tuple[int, ...]
INT64 = np.dtype(np.int64)
SCALARS = (int, np.integer, np.ndarray)


class Lanes(NamedTuple):
    """States and actions with one batch dimension, contiguous, in one integer type."""

    endogenous: Ints  # (B, k)
    exogenous: Ints  # (B, m)
    action: Ints  # (B,)


def as_lanes(
    mdp: ExoMDP, state: State, action: Any, *, check_exogenous: bool = True
) -> tuple[Shape, Lanes]:
    """The shape of a batch and its lanes; parts of different batch shapes are broadcast.

    Args:
        mdp: the model that is asked.
        state: a state or a batch of them.
        action: as many actions.
        check_exogenous: whether the values of x are looked at. A kernel that only compares them
            with something need not have that done, which would be most of its time.

    Raises:
        TypeError: if n, x or the actions are not whole numbers.
        ValueError: if a shape or a value is wrong; it names the variable and its values.
    """
    n: Any
    x: Any
    n, x = state if type(state) is State else as_pair(state)
    shape, a = getattr(action, "shape", ()), action
    if len(shape) != 1 or type(x) is not np.ndarray or not x.flags.c_contiguous:
        n, x, a = _flat(shape, n, x, action)
    k, m, num_actions = mdp.endogenous_sizes, mdp.exogenous_sizes, mdp.num_actions
    try:
        fits = n is not None and ranges.is_batch(n, x, a, k, m, num_actions, check_exogenous)
    except ranges.UNKNOWN_TO_KERNELS:
        fits = False
    if fits:
        return shape, Lanes(n, x, a)
    shape, *flat = as_batch(mdp, state, action, check_exogenous=check_exogenous)
    return shape, Lanes(*flat)


def as_pairs(mdp: ExoMDP, endogenous: Any, action: Any) -> tuple[Shape, Ints, Ints]:
    """The same for pairs of n and an action: the shape of the batch, n (B, k) and actions (B,)."""
    shape, n, a = getattr(action, "shape", ()), endogenous, action
    if len(shape) != 1:
        n, _, a = _flat(shape, n, n, action)
    sizes = mdp.endogenous_sizes
    try:
        fits = n is not None and ranges.is_batch(n, n, a, sizes, sizes, mdp.num_actions, False)
    except ranges.UNKNOWN_TO_KERNELS:
        fits = False
    if fits:
        return shape, n, a
    n = as_values("endogenous", endogenous, mdp.endogenous_variables)
    shape, (n,), actions = flatten(mdp, (n,), action)
    return shape, n, actions


def exogenous_lanes(mdp: ExoMDP, exogenous: Any, *, check: bool = True) -> tuple[Shape, Ints]:
    """The shape (..., m) of x and its lanes (B, m); with ``check`` their values are looked at."""
    try:
        plain = exogenous.ndim == 2 and exogenous.flags.c_contiguous
        fits = plain and ranges.are_values(exogenous, mdp.exogenous_sizes, check)
    except (AttributeError, *ranges.UNKNOWN_TO_KERNELS):
        fits = False
    if fits:
        return exogenous.shape, exogenous
    x = as_values("exogenous", exogenous, mdp.exogenous_variables, in_range=check)
    return x.shape, flat_rows(x)


def endogenous_lanes(mdp: ExoMDP, endogenous: Any) -> tuple[Shape, Ints]:
    """The shape (..., k) of n and its lanes (B, k)."""
    try:
        fits = endogenous.ndim == 2 and ranges.are_values(endogenous, mdp.endogenous_sizes, True)
    except (AttributeError, *ranges.UNKNOWN_TO_KERNELS):
        fits = False
    if fits:
        return endogenous.shape, endogenous
    n = as_values("endogenous", endogenous, mdp.endogenous_variables)
    return n.shape, flat_rows(n)


def endogenous_column(mdp: ExoMDP, state: Any, i: int) -> Ints:
    """One variable of n, shape (...), to compare with something: values are not looked at."""
    endogenous: Any = state.endogenous if type(state) is State else as_pair(state).endogenous
    if (
        type(endogenous) is np.ndarray
        and endogenous.dtype == INT64
        and endogenous.shape[-1:] == mdp.endogenous_sizes.shape
    ):
        return endogenous[..., i]
    return as_values("endogenous", endogenous, mdp.endogenous_variables)[..., i]


def _flat(shape: Shape, n: Any, x: Any, action: Any) -> tuple[Any, Any, Any]:
    """A batch with one dimension and in one piece, or None if there is more to be done than that.

    Numba takes up to a millisecond to refuse an array. So a single state, which has no batch
    dimension, is made a batch of one before it is shown to a kernel, and columns that were picked
    from a state are put in order.
    """
    a = action if shape else np.atleast_1d(action) if isinstance(action, SCALARS) else None
    if (
        a is None
        or not type(n) is type(x) is np.ndarray
        or not n.ndim == x.ndim == len(shape) + 1
        or not n.shape[:-1] == x.shape[:-1] == shape
        or not n.dtype == x.dtype == a.dtype == INT64
    ):
        return None, None, None
    lanes = math.prod(shape)
    n, x = (np.ascontiguousarray(part).reshape(lanes, part.shape[-1]) for part in (n, x))
    return n, x, a.reshape(lanes)
