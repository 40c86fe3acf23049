"""States, actions and masks that come in, checked; batches as compiled kernels take them.

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
from collections.abc import Mapping, Set
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import as_array, as_integers, check_lanes, kind_of, shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, hint_at, unknown_name
from exo_envs.core.mdp import ExoMDP, State, as_pair
from exo_envs.core.model import Ranges, kernels

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
    return State(*(_as_part(part, given, mdp.ranges_of(part), batch_shape) for part in PARTS))


def _as_part(part: str, given: dict[str, Any], ranges: Ranges, batch_shape: Shape) -> NDArray[Any]:
    if part not in given:
        if ranges.variables:
            raise ArgumentError(f"the state has no {part!r} part; it needs both of {PARTS}")
        return np.zeros((*batch_shape, 0), dtype=np.int64)
    shape = (*batch_shape, len(ranges.variables))
    values = _as_numbers(part, given[part], ranges)
    if values.shape not in (shape, shape[-1:]):
        wanted = f"{shape[-1:]}" + ("" if batch_shape == (1,) else f" or {shape}")
        raise ArgumentError(
            f"the {part} part of the state has shape {values.shape}; it should be {wanted}"
        )
    # One state for all lanes would be laid out lane by lane in each column: slow to step.
    return np.array(np.broadcast_to(as_values(part, values, ranges), shape), order="C")


def as_values(part: str, values: Any, ranges: Ranges, *, check: bool = True) -> NDArray[Any]:
    """Check one part of a batch of states: numbers of shape (..., variables), in range.

    An array (B, variables) in the type of the part is looked at in a compiled pass.

    Args:
        part: "endogenous" or "exogenous".
        values: what was given.
        ranges: the values of the variables of the part.
        check: whether to look at the values themselves.
    """
    width = len(ranges.variables)
    if (
        type(values) is np.ndarray
        and values.dtype == ranges.dtype
        and values.shape[-1:] == (width,)
        and (not check or (values.ndim == 2 and values.flags.carray and ranges.fit(values)))
    ):
        return values
    array = _as_numbers(part, values, ranges)
    if not array.ndim or array.shape[-1] != width:
        raise ArgumentError(
            f"the {part} part of the state has shape {array.shape}; it should be "
            f"(..., {width}), one value for each of its variables"
        )
    found = ranges.misfit(array) if check else None
    if found is not None:
        raise ArgumentError(
            f"{part} variable {found.variable.name!r} cannot be {found.value}; "
            f"its values are {found.variable.range}"
        )
    return array


def _as_numbers(part: str, values: Any, ranges: Ranges) -> NDArray[Any]:
    """One part of a state in its type: 64-bit integers, or floats if a variable is real."""
    what = f"the {part} part of the state"
    if ranges.is_real:
        array = as_array(what, values)
        if array.dtype.kind not in "iuf":
            raise ArgumentTypeError(f"{what} has dtype {array.dtype}; it should hold numbers")
        return array.astype(np.float64, copy=False)
    return as_integers(what, values)


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
    try:
        index = operator.index(action)
    except TypeError:
        raise ArgumentTypeError(f"an action is a whole number, not {action!r}") from None
    if not 0 <= index < mdp.num_actions:
        raise _unknown_action(mdp, index)
    return index


def as_actions(mdp: ExoMDP, actions: Any, batch_shape: tuple[int, ...]) -> NDArray[np.int64]:
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
    """States and actions with one batch dimension, contiguous, in the types of the model."""

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
    n, x = state if type(state) is State else as_pair(state)
    ready = _ready(mdp, n, x, action, mdp.exogenous_sizes, check_exogenous)
    if ready is not None:
        return ready
    parts = (
        as_values("endogenous", n, mdp.endogenous_ranges),
        as_values("exogenous", x, mdp.exogenous_ranges, check=check_exogenous),
    )
    shape, (n_lanes, x_lanes), actions = flatten(mdp, parts, action)
    return shape, Lanes(n_lanes, x_lanes, actions)


def as_pairs(mdp: ExoMDP, endogenous: Any, action: Any) -> tuple[Shape, Ints, Ints]:
    """The same for pairs of n and an action: the shape of the batch, n (B, k) and actions (B,)."""
    ready = _ready(mdp, endogenous, endogenous, action, mdp.endogenous_sizes, False)
    if ready is not None:
        return ready[0], ready[1].endogenous, ready[1].action
    n = as_values("endogenous", endogenous, mdp.endogenous_ranges)
    shape, (n,), actions = flatten(mdp, (n,), action)
    return shape, n, actions


def exogenous_lanes(mdp: ExoMDP, exogenous: Any, *, check: bool = True) -> tuple[Shape, Ints]:
    """The shape (..., m) of x and its lanes (B, m); with ``check`` their values are looked at."""
    x = as_values("exogenous", exogenous, mdp.exogenous_ranges, check=check)
    return x.shape, flat_rows(x)


def endogenous_lanes(mdp: ExoMDP, endogenous: Any) -> tuple[Shape, Ints]:
    """The shape (..., k) of n and its lanes (B, k)."""
    n = as_values("endogenous", endogenous, mdp.endogenous_ranges)
    return n.shape, flat_rows(n)


def endogenous_column(mdp: ExoMDP, state: Any, i: int) -> Ints:
    """One variable of n, shape (...), to compare with something: values are not looked at."""
    n = state.endogenous if type(state) is State else as_pair(state).endogenous
    return as_values("endogenous", n, mdp.endogenous_ranges, check=False)[..., i]


def _ready(
    mdp: ExoMDP, n: Any, x: Any, action: Any, x_sizes: Ints, look: bool
) -> tuple[Shape, Lanes] | None:
    """The shape of a batch and its lanes, or None if there is more to be done than to reshape it.

    Numba takes up to a millisecond to refuse an array. So a single state, which has no batch
    dimension, is made a batch of one before it is shown to a kernel, and columns that were picked
    from a state are put in order.
    """
    shape, a = getattr(action, "shape", ()), action
    if (
        len(shape) != 1
        or not type(n) is type(x) is np.ndarray
        or not n.dtype == x.dtype == INT64
        or not x.flags.c_contiguous
    ):
        a = action if shape else np.atleast_1d(action) if isinstance(action, SCALARS) else None
        if (
            a is None
            or not type(n) is type(x) is np.ndarray
            or not n.ndim == x.ndim == len(shape) + 1
            or not n.shape[:-1] == x.shape[:-1] == shape
            or not n.dtype == x.dtype == a.dtype == INT64
        ):
            return None
        lanes = math.prod(shape)
        n, x = (np.ascontiguousarray(part).reshape(lanes, part.shape[-1]) for part in (n, x))
        a = a.reshape(lanes)
    try:
        if kernels.is_batch(n, x, a, mdp.endogenous_sizes, x_sizes, mdp.num_actions, look):
            return shape, Lanes(n, x, a)
    except kernels.UNKNOWN_TO_KERNELS:
        pass
    return None


# --- masks ---------------------------------------------------------------------------------


def as_mask(mdp: ExoMDP, mask: Any) -> tuple[str, ...]:
    """Check a mask over the exogenous variables of ``mdp``.

    A mask is any collection of names (``["object", "guard"]``), of patterns as in file names
    (``["occupancy_*", "object_?"]``), or of both; or of indices; or of booleans, one for each
    variable; or a mapping from names to booleans, in which those that are not named are left out.
    A name that a variable has is no pattern, and is given once; patterns may overlap with anything.

    >>> from exo_envs.domains.grid import GridMDP
    >>> as_mask(GridMDP(), ["guard*", "object"])
    ('object', 'guard', 'guard_intent')
    >>> as_mask(GridMDP(), {"object": True, "weather": False})
    ('object',)

    Returns:
        The names of the variables that the mask keeps, in the order of the model.

    Raises:
        TypeError: if it is something else, or a mixture.
        ValueError: if a variable does not exist, or is given twice.
    """
    names = mdp.exogenous_names
    if isinstance(mask, Mapping):
        wrong = [value for value in mask.values() if not isinstance(value, (bool, np.bool_))]
        if wrong:
            raise ArgumentTypeError(
                f"a mapping as a mask has True or False for a name, not {wrong[0]!r}"
            )
        mdp.exogenous_indices(list(mask))
        return tuple(name for name in names if mask.get(name, False))
    entries = _entries(mask)
    kinds = {_kind(entry) for entry in entries}
    if len(kinds) > 1:
        raise ArgumentTypeError(
            f"a mask has names, indices or booleans, not {' and '.join(sorted(kinds))}"
        )
    if kinds == {"booleans"}:
        if isinstance(mask, Set):
            raise ArgumentTypeError(f"a set of booleans is no mask: it has no order, {mask!r}")
        if len(entries) != len(names):
            raise ArgumentError(f"a boolean mask has {len(names)} entries, not {len(entries)}")
        return tuple(name for name, kept in zip(names, entries, strict=True) if kept)
    if kinds == {"indices"}:
        indices = [operator.index(entry) for entry in entries]
        wrong = [index for index in indices if not 0 <= index < len(names)]
        if wrong:
            raise ArgumentError(
                f"there is no variable {wrong[0]}; indices are 0 ... {len(names) - 1}"
            )
        given = [names[index] for index in indices]
        matched: set[str] = set()
    else:
        known = frozenset(names)
        patterns = {entry for entry in entries if entry not in known and set(entry) & set("*?[")}
        given = [str(entry) for entry in entries if entry not in patterns]
        mdp.exogenous_indices(given)
        matched = {name for pattern in sorted(patterns) for name in _matching(names, pattern)}
    if len(set(given)) != len(given):
        raise _given_twice(given, entries, names)
    kept = matched.union(given)
    return tuple(name for name in names if name in kept)


def _given_twice(given: list[str], entries: list[Any], names: tuple[str, ...]) -> ValueError:
    """What is wrong if a name is there twice; flags that are no booleans look like that."""
    twice = next(name for name in given if given.count(name) > 1)
    hint = ""
    if len(entries) == len(names) and all(entry in (0, 1) for entry in entries):
        flags = ", ".join(str(bool(entry)) for entry in entries[:3])
        hint = f": these are indices; if they are flags, give booleans, [{flags}, ...]"
    return ArgumentError(f"the mask names {twice!r} more than once{hint}")


def _entries(mask: Any) -> list[Any]:
    if isinstance(mask, (str, bytes, bytearray, memoryview)):
        what = "bytes in memory" if isinstance(mask, memoryview) else f"the string {mask!r}"
        raise ArgumentTypeError(f"a mask is a sequence of names, not {what}")
    try:
        return list(mask)
    except TypeError:
        raise ArgumentTypeError(f"a mask is a sequence of names, not {shown(mask)}") from None


def _kind(entry: Any) -> str:
    if isinstance(entry, str):
        return "names"
    if isinstance(entry, (bool, np.bool_)):
        return "booleans"
    if isinstance(entry, (int, np.integer)):
        return "indices"
    raise ArgumentTypeError(f"a mask has names, indices or booleans, not {shown(entry)}")


def _matching(names: tuple[str, ...], pattern: str) -> list[str]:
    """The names that a pattern matches, at least one."""
    found = [name for name in names if fnmatchcase(name, pattern)]
    if not found:
        raise ArgumentError(f"no exogenous variable matches {pattern!r}; {hint_at(pattern, names)}")
    return found
