"""States and actions that come in, checked, and as the flat batches that compiled kernels take.

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
import operator
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.lazy import LazyModule
from exo_envs.core.arguments import as_array, as_integers, check_lanes, kind_of
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, unknown_name
from exo_envs.core.mdp import ExoMDP, State, Variable, as_pair
from exo_envs.core.variable import Ranges

kernels = LazyModule("exo_envs.compiled.ranges")

Ints = NDArray[np.int64]
Shape = tuple[int, ...]
PARTS = State._fields
INT64 = np.dtype(np.int64)
SCALARS = (int, np.integer, np.ndarray)


def as_state(mdp: ExoMDP, state: Any, batch_shape: tuple[int, ...]) -> State:
    """Check a state of ``mdp`` and copy it into arrays of shape (*batch_shape, ...).

    Args:
        mdp: the model whose variables the state has.
        state: a :class:`State`, or a mapping with its two fields (an observation, say); an
            unbatched one is repeated over the batch. A part with no variables may be missing.
        batch_shape: the leading dimensions wanted.

    Raises:
        TypeError: if it is neither, or if its numbers are not whole.
        ValueError: if a field, a shape or a value is wrong.
    """
    if isinstance(state, Mapping):
        for key in state:
            if key not in PARTS:
                raise unknown_name("part of a state", key, PARTS)
        given = dict(state)
    elif isinstance(state, tuple) and len(state) == len(PARTS):
        given = dict(zip(PARTS, state, strict=True))
    else:
        raise ArgumentTypeError(
            f"a state is a State or a mapping with the keys {PARTS}, not {kind_of(state)}"
        )
    return State(
        _as_part("endogenous", given, mdp.endogenous_variables, batch_shape),
        _as_part("exogenous", given, mdp.exogenous_variables, batch_shape),
    )


def _as_part(
    part: str,
    given: dict[str, Any],
    variables: tuple[Variable, ...],
    batch_shape: tuple[int, ...],
) -> NDArray[Any]:
    if part not in given:
        if variables:
            raise ArgumentError(f"the state has no {part!r} part; it needs both of {PARTS}")
        return np.zeros((*batch_shape, 0), dtype=np.int64)
    shape = (*batch_shape, len(variables))
    values = _as_numbers(part, given[part], variables)
    if values.shape not in (shape, shape[-1:]):
        wanted = f"{shape[-1:]}" + ("" if batch_shape == (1,) else f" or {shape}")
        raise ArgumentError(
            f"the {part} part of the state has shape {values.shape}; it should be {wanted}"
        )
    # One state for all lanes would be laid out lane by lane in each column: slow to step.
    return np.array(np.broadcast_to(as_values(part, values, variables), shape), order="C")


def as_values(
    part: str, values: Any, variables: tuple[Variable, ...], *, in_range: bool = True
) -> NDArray[Any]:
    """Check one part of a batch of states: numbers of shape (..., variables), in range.

    Args:
        part: "endogenous" or "exogenous".
        values: what was given.
        variables: those of the part.
        in_range: whether to look at the values themselves.
    """
    array = _as_numbers(part, values, variables)
    if not array.ndim or array.shape[-1] != len(variables):
        raise ArgumentError(
            f"the {part} part of the state has shape {array.shape}; it should be "
            f"(..., {len(variables)}), one value for each of its variables"
        )
    if not in_range:
        return array
    found = Ranges(variables).misfit(array)
    if found is not None:
        raise ArgumentError(
            f"{part} variable {found.variable.name!r} cannot be {found.value}; "
            f"its values are {found.variable.range}"
        )
    return array


def as_part(mdp: ExoMDP, part: str, values: Any, *, check: bool = True) -> NDArray[Any]:
    """Check one part of a batch of states of ``mdp``: numbers of shape (..., variables), in range.

    A part of shape (B, variables) in the type of the model is looked at in a compiled pass. Without
    ``check`` nobody looks at the values.
    """
    ranges = mdp.ranges_of(part)
    if (
        type(values) is np.ndarray
        and values.dtype == ranges.dtype
        and values.ndim == 2
        and values.shape[1] == len(ranges.variables)
        and values.flags.carray
    ):
        if not check:
            return values
        if ranges.is_real:
            fits = kernels.all_within(values, ranges.low, ranges.high, ranges.whole)
        else:
            sizes = mdp.endogenous_sizes if part == "endogenous" else mdp.exogenous_sizes
            fits = kernels.all_in_range(values, sizes)
        if fits:
            return values
    return as_values(part, values, ranges.variables, in_range=check)


def _as_numbers(part: str, values: Any, variables: tuple[Variable, ...]) -> NDArray[Any]:
    """One part of a state in its type: 64-bit integers, or floats if a variable is real."""
    what = f"the {part} part of the state"
    if any(variable.is_real for variable in variables):
        array = as_array(what, values)
        if array.dtype.kind not in "iuf":
            raise ArgumentTypeError(f"{what} has dtype {array.dtype}; it should hold numbers")
        return array.astype(np.float64, copy=False)
    return as_integers(what, values)


def as_batch(
    mdp: ExoMDP, state: State, action: Any, *, check_exogenous: bool = True
) -> tuple[tuple[int, ...], NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """The shape of a batch; n (B, k), x (B, m) and actions (B,), checked and broadcast."""
    state = as_pair(state)
    n = as_part(mdp, "endogenous", state.endogenous)
    x = as_part(mdp, "exogenous", state.exogenous, check=check_exogenous)
    shape, (n, x), actions = flatten(mdp, (n, x), action)
    return shape, n, x, actions


def flatten(
    mdp: ExoMDP, parts: tuple[NDArray[Any], ...], action: Any
) -> tuple[tuple[int, ...], tuple[NDArray[Any], ...], NDArray[np.int64]]:
    """Parts of states and actions of one batch: its shape, and each with one batch dimension."""
    shape = getattr(action, "shape", ())
    if len(shape) == 1 and all(part.shape[:-1] == shape for part in parts):  # one batch already
        return shape, tuple(map(flat_rows, parts)), as_actions(mdp, action, shape)
    actions = as_integers("the batch of actions", action)
    actions = as_actions(mdp, actions, actions.shape)
    shapes = [*(part.shape[:-1] for part in parts), actions.shape]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise ArgumentError(
            "the parts of the state and the actions are of different batches, of shapes "
            f"{', '.join(map(str, shapes))}"
        ) from None
    rows = tuple(flat_rows(np.broadcast_to(part, (*shape, part.shape[-1]))) for part in parts)
    actions = np.require(np.broadcast_to(actions, shape), requirements=["C", "W"])
    return shape, rows, actions.reshape(-1)


def flat_rows(values: NDArray[Any]) -> NDArray[Any]:
    """All batch dimensions as one, (..., m) to (B, m), in the layout that kernels take."""
    if values.ndim == 2 and values.flags.carray:
        return values
    # Not -1: without variables the number of rows does not follow from the size.
    rows = math.prod(values.shape[:-1])
    return np.require(values, requirements=["C", "W"]).reshape(rows, values.shape[-1])


def as_size(mdp: ExoMDP, size: Any) -> int:
    """Check how many states of ``mdp`` are asked for; 0 is a batch too."""
    return check_lanes("size", size, len(mdp.endogenous_sizes) + len(mdp.exogenous_sizes))


def as_action(mdp: ExoMDP, action: Any) -> int:
    """Check one action of ``mdp``."""
    try:
        index = operator.index(action)
    except TypeError:
        raise ArgumentTypeError(f"an action is a whole number, not {action!r}") from None
    if not 0 <= index < mdp.num_actions:
        raise _unknown_action(mdp, index)
    return index


def as_actions(mdp: ExoMDP, actions: Any, batch_shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Check a batch of actions of ``mdp``."""
    array = actions
    if type(array) is not np.ndarray or array.dtype != np.int64:
        array = as_integers("the batch of actions", actions)
    if array.shape != batch_shape:
        raise ArgumentError(f"the actions have shape {array.shape}; they should have {batch_shape}")
    if not array.flags.carray:  # kernels are compiled for each kind of array
        array = array.copy()
    if not kernels.all_below(array if array.ndim == 1 else array.flatten(), mdp.num_actions):
        wrong = (array < 0) | (array >= mdp.num_actions)
        raise _unknown_action(mdp, int(array[wrong][0]))
    return array


def _unknown_action(mdp: ExoMDP, action: int) -> ValueError:
    return ArgumentError(f"there is no action {action}; actions are 0 ... {mdp.num_actions - 1}")


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
        fits = n is not None and kernels.is_batch(n, x, a, k, m, num_actions, check_exogenous)
    except kernels.UNKNOWN_TO_KERNELS:
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
        fits = n is not None and kernels.is_batch(n, n, a, sizes, sizes, mdp.num_actions, False)
    except kernels.UNKNOWN_TO_KERNELS:
        fits = False
    if fits:
        return shape, n, a
    n = as_values("endogenous", endogenous, mdp.endogenous_variables)
    shape, (n,), actions = flatten(mdp, (n,), action)
    return shape, n, actions


def exogenous_lanes(mdp: ExoMDP, exogenous: Any, *, check: bool = True) -> tuple[Shape, Ints]:
    """The shape (..., m) of x and its lanes (B, m); with ``check`` their values are looked at."""
    x = as_part(mdp, "exogenous", exogenous, check=check)
    return x.shape, flat_rows(x)


def endogenous_lanes(mdp: ExoMDP, endogenous: Any) -> tuple[Shape, Ints]:
    """The shape (..., k) of n and its lanes (B, k)."""
    n = as_part(mdp, "endogenous", endogenous)
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
