"""What a model returned, checked and in the one type that everything else computes with."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.lazy import LazyModule
from exo_envs.core.arguments import kind_of
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray, IntArray, State, Variable

kernels = LazyModule("exo_envs.compiled.ranges")

Part = Literal["endogenous", "exogenous"]
INT64, FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)
#: Variables that an error message shows of a state at most.
MAX_SHOWN = 12


class NotFiniteError(ArgumentError):
    """A reward, or a probability, is infinite or no number."""


class Question(NamedTuple):
    """What a model was asked, for error messages; what a method is not given is None."""

    endogenous: IntArray | None = None  # (..., k)
    exogenous: IntArray | None = None  # (..., m)
    action: IntArray | None = None  # (...)

    @classmethod
    def of(cls, state: State, action: IntArray | None = None) -> Question:
        """A whole state, with or without an action."""
        return cls(state.endogenous, state.exogenous, action)

    def show(self, mdp: ExoMDP, lane: int) -> str:
        """What one lane of the batch was asked, by name."""
        shown = [
            f"{symbol} = {_by_name(variables, np.reshape(part, (-1, len(variables)))[lane])}"
            for symbol, part, variables in (
                ("n", self.endogenous, mdp.endogenous_variables),
                ("x", self.exogenous, mdp.exogenous_variables),
            )
            if part is not None and np.shape(part)[-1:] == (len(variables),)
        ]
        if self.action is not None:
            action = np.reshape(self.action, -1)
            shown.append(f"action {action[lane if len(action) > 1 else 0]}")
        return f", for {', '.join(shown)}" if shown else ""


def _by_name(variables: tuple[Variable, ...], values: Any) -> str:
    shown = [f"{v.name}={x}" for v, x in zip(variables, values, strict=True)]
    return f"({', '.join(shown[:MAX_SHOWN])}{', ...' if len(shown) > MAX_SHOWN else ''})"


def is_plain(values: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    """Whether this is an array as kernels take it: of this type and shape, whole and writable."""
    return (
        type(values) is np.ndarray
        and values.dtype == dtype  # not the same object in what Numba returns
        and values.shape == shape
        and values.flags.carray
    )


def for_kernels(values: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in an array as kernels take it: contiguous and writable."""
    return values if values.flags.carray else values.copy()


def check_part(
    mdp: ExoMDP,
    method: str,
    part: Part,
    values: Any,
    batch_shape: tuple[int, ...],
    question: Question,
) -> NDArray[Any]:
    """The values of n or of x that a method returned, shape (*batch_shape, variables).

    They are 64-bit integers, or 64-bit floats if the part has a real variable.

    Raises:
        TypeError: they are no array, or their type is not one of whole numbers.
        ValueError: their shape is wrong, or a value is out of range.
    """
    sizes = mdp.endogenous_sizes if part == "endogenous" else mdp.exogenous_sizes
    shape, ranges = (*batch_shape, len(sizes)), mdp.ranges_of(part)
    if ranges.is_real:
        if not is_plain(values, FLOAT64, shape):
            values = _numbers(method, values)
            _check_shape(mdp, method, part, values, shape)
            values = for_kernels(values)
        limits = ranges.low, ranges.high, ranges.whole
        if not kernels.all_within(values.reshape(-1, len(sizes)), *limits):
            _refuse_value(mdp, method, part, values.reshape(-1, len(sizes)), question)
        return values
    if not is_plain(values, INT64, shape):
        values = _whole_numbers(mdp, method, part, values, shape, question)
    if not len(sizes):
        return values
    rows = for_kernels(values if values.ndim == 2 else values.reshape(-1, len(sizes)))
    if not kernels.all_in_range(rows, sizes):
        _refuse_value(mdp, method, part, rows, question)
    return values


def check_initial(mdp: ExoMDP, state: Any, size: int) -> State:
    """The states that ``sample_initial`` returned; see :func:`check_part`."""
    method = "sample_initial"
    if not isinstance(state, State):
        raise ArgumentTypeError(f"{method} returned {kind_of(state)}, not a State")
    return State(
        check_part(mdp, method, "endogenous", state.endogenous, (size,), Question()),
        check_part(mdp, method, "exogenous", state.exogenous, (size,), Question()),
    )


def _whole_numbers(
    mdp: ExoMDP, method: str, part: Part, values: Any, shape: tuple[int, ...], question: Question
) -> NDArray[np.int64]:
    """The same in the type that is wanted, if that changes nothing."""
    array = _array(method, values)
    if array.dtype.kind not in "iu":
        hint = "states hold whole numbers, as with array.astype(int)"
        if array.dtype.kind == "f" and array.shape == shape:
            wrong = np.argwhere(~np.isfinite(array) | (array != np.floor(array)))
            if len(wrong):
                where = tuple(wrong[0])
                lane = int(np.ravel_multi_index(where[:-1], shape[:-1])) if shape[:-1] else 0
                name = _variables(mdp, part)[where[-1]].name
                raise ArgumentTypeError(
                    f"{method} returned {array[where]} for {name!r}{question.show(mdp, lane)}; "
                    f"{hint}, in the range of their variable"
                )
        raise ArgumentTypeError(f"{method} returned an array of {array.dtype}; {hint}")
    _check_shape(mdp, method, part, array, shape)
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        _refuse_value(mdp, method, part, array.reshape(-1, shape[-1]), question)
    return np.ascontiguousarray(array, dtype=np.int64).reshape(shape)


def _check_shape(
    mdp: ExoMDP, method: str, part: Part, array: NDArray[Any], shape: tuple[int, ...]
) -> None:
    if array.shape != shape:
        names = ", ".join(v.name for v in _variables(mdp, part)[:MAX_SHOWN])
        raise ArgumentError(
            f"{method} returned the shape {array.shape}; it should be {shape}, the last "
            f"dimension for {names or 'nothing'}"
        )


def _refuse_value(
    mdp: ExoMDP, method: str, part: Part, rows: NDArray[Any], question: Question
) -> NoReturn:
    found = mdp.ranges_of(part).misfit(rows)
    assert found is not None
    (lane,), variable, value = found
    raise ArgumentError(
        f"{method} returned {value} for {variable.name!r} "
        f"(values {variable.range}){question.show(mdp, lane)}"
    )


def check_terms(
    mdp: ExoMDP, values: Any, batch_shape: tuple[int, ...], question: Question
) -> FloatArray:
    """The reward terms that a model returned, shape (*batch_shape, scopes of the reward).

    Raises:
        TypeError: they are no array of numbers.
        ValueError: their shape is wrong.
        NotFiniteError: one is not finite.
    """
    method, m = "reward_terms", len(mdp.reward_scopes)
    terms = _numbers(method, values)
    if terms.shape != (*batch_shape, m):
        hint = "one column for each of its reward_scopes"
        if all(len(scope) == 1 for scope in mdp.reward_scopes):
            hint = "one column for each exogenous variable, zeros for those that do not pay"
        if terms.shape == batch_shape:
            hint += "; what depends on none of them goes into endogenous_reward"
        raise ArgumentError(
            f"{method} returned the shape {terms.shape}; it should be {(*batch_shape, m)}, {hint}"
        )
    if not _is_finite(terms):
        lane, i = np.argwhere(~np.isfinite(terms.reshape(-1, m)))[0]
        raise NotFiniteError(
            f"{method} returned {terms.reshape(-1, m)[lane, i]} for {_joined(mdp.reward_scopes[i])}"
            f"{question.show(mdp, int(lane))}; rewards are finite numbers"
        )
    return terms


def check_rewards(
    mdp: ExoMDP, method: str, values: Any, batch_shape: tuple[int, ...], question: Question
) -> FloatArray:
    """Rewards that a model returned, shape ``batch_shape``.

    Raises:
        TypeError: they are no array of numbers.
        ValueError: their shape is wrong.
        NotFiniteError: one is not finite.
    """
    rewards = _numbers(method, values)
    if rewards.shape != batch_shape:
        raise ArgumentError(
            f"{method} returned the shape {rewards.shape}; it should be {batch_shape}, "
            "one number for each state"
        )
    if not _is_finite(rewards):
        lane = int(np.flatnonzero(~np.isfinite(rewards))[0])
        raise NotFiniteError(
            f"{method} returned {rewards.reshape(-1)[lane]}{question.show(mdp, lane)}; "
            "rewards are finite numbers"
        )
    return rewards


def check_flags(method: str, values: Any, batch_shape: tuple[int, ...]) -> BoolArray:
    """Booleans that a model returned, shape ``batch_shape``.

    Raises:
        TypeError: they are no array of booleans.
        ValueError: their shape is wrong.
    """
    flags = _array(method, values)
    if flags.dtype != np.bool_:
        raise ArgumentTypeError(
            f"{method} returned an array of {flags.dtype}; it should hold booleans"
        )
    if flags.shape != batch_shape:
        raise ArgumentError(
            f"{method} returned the shape {flags.shape}; it should be {batch_shape}, "
            "one boolean for each state"
        )
    return flags


def _array(method: str, values: Any) -> NDArray[Any]:
    # A NumPy scalar is what most operations make of an array without dimensions.
    if not isinstance(values, (np.ndarray, np.generic)):
        raise ArgumentTypeError(f"{method} returned {kind_of(values)}, not an array")
    return np.asarray(values)


def _numbers(method: str, values: Any) -> FloatArray:
    if type(values) is np.ndarray and values.dtype is FLOAT64:
        return values
    array = _array(method, values)
    if array.dtype.kind not in "fiu":
        raise ArgumentTypeError(
            f"{method} returned an array of {array.dtype}; it should hold numbers"
        )
    return array.astype(np.float64)


def _is_finite(values: FloatArray) -> bool:
    """Whether all numbers are finite."""
    return bool(kernels.all_finite(for_kernels(values).reshape(-1)))


def _joined(names: tuple[str, ...]) -> str:
    return " and ".join(map(repr, names))


def _variables(mdp: ExoMDP, part: Part) -> tuple[Variable, ...]:
    return mdp.endogenous_variables if part == "endogenous" else mdp.exogenous_variables
