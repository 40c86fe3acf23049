"""What users hand in: parameters, states, actions and masks, checked and turned into our own."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.lazy import LazyModule
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, unknown_name
from exo_envs.core.masks import as_mask
from exo_envs.core.mdp import ExoMDP, State, Variable, as_pair
from exo_envs.core.numbers import (
    MAX_VALUES,
    as_array,
    check_discount,
    check_flag,
    check_horizon,
    check_lanes,
    check_level,
    check_positive,
    check_probability,
    check_real,
    check_rollouts,
    check_size,
    check_total,
    check_whole,
    convert,
    kind_of,
    shown,
)
from exo_envs.core.variable import Ranges

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "MAX_VALUES",
    "PARTS",
    "as_action",
    "as_actions",
    "as_array",
    "as_batch",
    "as_generator",
    "as_integers",
    "as_mask",
    "as_parameters",
    "as_part",
    "as_size",
    "as_state",
    "as_values",
    "check_discount",
    "check_flag",
    "check_function",
    "check_horizon",
    "check_lanes",
    "check_level",
    "check_positive",
    "check_probability",
    "check_real",
    "check_rollouts",
    "check_size",
    "check_total",
    "check_whole",
    "convert",
    "flat_rows",
    "flatten",
    "kind_of",
    "shown",
]

kernels = LazyModule("exo_envs.compiled.ranges")

P = TypeVar("P", bound="DataclassInstance")
PARTS = State._fields


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


def as_part(mdp: ExoMDP, part: str, values: Any) -> NDArray[Any]:
    """Check one part of a batch of states of ``mdp``: numbers of shape (..., variables), in range.

    A part of shape (B, variables) in the type of the model is looked at in a compiled pass.
    """
    ranges = mdp.ranges_of(part)
    if (
        type(values) is np.ndarray
        and values.dtype == ranges.dtype
        and values.ndim == 2
        and values.shape[1] == len(ranges.variables)
        and values.flags.c_contiguous
    ):
        if ranges.is_real:
            fits = kernels.all_within(values, ranges.low, ranges.high, ranges.whole)
        else:
            sizes = mdp.endogenous_sizes if part == "endogenous" else mdp.exogenous_sizes
            fits = kernels.all_in_range(values, sizes)
        if fits:
            return values
    return as_values(part, values, ranges.variables)


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
    parts = (
        as_values("endogenous", state.endogenous, mdp.endogenous_variables),
        as_values("exogenous", state.exogenous, mdp.exogenous_variables, in_range=check_exogenous),
    )
    shape, (n, x), actions = flatten(mdp, parts, action)
    return shape, n, x, actions


def flatten(
    mdp: ExoMDP, parts: tuple[NDArray[Any], ...], action: Any
) -> tuple[tuple[int, ...], tuple[NDArray[Any], ...], NDArray[np.int64]]:
    """Parts of states and actions of one batch: its shape, and each with one batch dimension."""
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
    # Not -1: without variables the number of rows does not follow from the size.
    rows = math.prod(values.shape[:-1])
    return np.require(values, requirements=["C", "W"]).reshape(rows, values.shape[-1])


def as_parameters(cls: type[P], given: Mapping[str, Any]) -> P:
    """Build a domain's parameters from keyword arguments, with a helpful error for a wrong one."""
    names = [field.name for field in dataclasses.fields(cls)]
    for name in given:
        if name not in names:
            raise unknown_name(f"parameter of {cls.__name__}", name, names)
    return cls(**given)


def as_generator(name: str, rng: Any, default: int | None = None) -> np.random.Generator:
    """A generator, or one made from a seed.

    Args:
        name: of the argument.
        rng: a generator, or what NumPy makes one from: a whole number, or several.
        default: the seed that None stands for; without one, None is refused.
    """
    seed = default if rng is None else rng
    if isinstance(seed, np.random.Generator):
        return seed
    wanted = f"{name} is a generator or a seed, a whole number of at least 0, not {shown(rng)}"
    if seed is None:
        raise ArgumentTypeError(wanted)
    try:
        return np.random.default_rng(seed)
    except TypeError:
        raise ArgumentTypeError(wanted) from None
    except ValueError:
        raise ArgumentError(wanted) from None


def check_function(name: str, function: Any, *, optional: bool = False) -> None:
    """Refuse what cannot be called."""
    if not callable(function) and not (optional and function is None):
        choices = "a function or None" if optional else "a function"
        raise ArgumentTypeError(f"{name} is {choices}, not {shown(function)}")


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


def as_integers(what: str, values: Any) -> NDArray[np.int64]:
    """Turn ``values`` into an array of 64-bit integers; whole floats pass, fractions do not."""
    array = as_array(what, values)
    if array.dtype.kind == "i":
        return array.astype(np.int64, copy=False)
    if array.dtype.kind not in "uf":
        raise ArgumentTypeError(f"{what} has dtype {array.dtype}; it should hold whole numbers")
    wrong = ~(np.abs(array) < np.float64(2**63))  # so that NaN is wrong too
    if array.dtype.kind == "f":
        wrong |= array != np.floor(array)
    if wrong.any():
        number = array[wrong][0]
        problem = "not a whole number" if number != np.floor(number) else "too large"
        raise ArgumentError(f"{what} holds {number}, which is {problem}")
    return array.astype(np.int64)
