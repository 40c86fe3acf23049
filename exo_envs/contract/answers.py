"""What a model says, checked: what it declares, and its answers in the one type to compute with."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import check_discount, kind_of, whole
from exo_envs.core.batches import flat_rows
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, ContractError, unknown_name
from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray, IntArray, State, Successors, Variable
from exo_envs.core.model import batch_shape, kernels

Part = Literal["endogenous", "exogenous"]
FLOAT64, BOOL = np.dtype(np.float64), np.dtype(np.bool_)
#: Variables that an error message shows of a state at most.
MAX_SHOWN = 12
#: How far the probabilities of all n' may be from 1 in all.
TOLERANCE = 1e-9
#: The methods that answer about states, and what each is given.
METHODS = {
    "sample_exogenous": ("exogenous", "rng"),
    "sample_endogenous": ("state", "action", "rng"),
    "reward_terms": ("state", "action"),
    "endogenous_reward": ("endogenous", "action"),
    "is_terminal": ("state",),
}
#: Those that draw, and the part of the state that they draw.
DRAWN: dict[str, Part] = {"sample_exogenous": "exogenous", "sample_endogenous": "endogenous"}
#: The methods in the order in which an episode asks.
EPISODE = ("is_terminal", "reward_terms", "endogenous_reward", *DRAWN)


class NotFiniteError(ArgumentError):
    """A reward, or a probability, is infinite or no number."""


class Question(NamedTuple):
    """What a model was asked, for error messages; what a method is not given is None."""

    endogenous: IntArray | None = None  # (..., k)
    exogenous: IntArray | None = None  # (..., m)
    action: IntArray | None = None  # (...)

    @classmethod
    def to(cls, method: str, state: State, action: IntArray) -> Question:
        """What one of the :data:`METHODS` is given of a state and an action."""
        if method == "sample_exogenous":
            return cls(None, state.exogenous)
        if method == "endogenous_reward":
            return cls(state.endogenous, None, action)
        return cls(*state, action)

    @property
    def shape(self) -> tuple[int, ...]:
        return batch_shape(self.exogenous if self.endogenous is None else self.endogenous)

    def show(self, mdp: ExoMDP, lane: int) -> str:
        """What one lane of the batch was asked, by name."""
        shown = [
            f"{symbol} = ({by_name(variables, np.reshape(part, (-1, len(variables)))[lane])})"
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


def by_name(variables: tuple[Variable, ...], values: Any, most: int = MAX_SHOWN) -> str:
    shown = [f"{v.name}={x}" for v, x in zip(variables, values, strict=True)]
    return ", ".join(shown[:most]) + (", ..." if len(shown) > most else "")


def is_plain(values: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    """Whether this is an array as kernels take it: of this type and shape, whole and writable."""
    return (
        type(values) is np.ndarray
        and values.dtype == dtype  # not the same object in what Numba returns
        and values.shape == shape
        and values.flags.carray
    )


def check_answer(mdp: ExoMDP, method: str, values: Any, asked: Question) -> Any:
    """What a method returned to a question, in the type of its part of a state, float64 or bool.

    Raises:
        TypeError: it is no array, or one of another kind.
        ValueError: its shape is wrong, or a value is out of range.
        NotFiniteError: a reward or a probability is not finite.
    """
    if method in DRAWN:
        return check_part(mdp, method, DRAWN[method], values, asked.shape, asked)
    if method == "is_terminal":
        return check_flags(method, values, asked.shape)
    return check_numbers(mdp, method, values, asked.shape, asked)


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
    """
    ranges = mdp.ranges_of(part)
    shape = (*batch_shape, len(ranges.variables))
    if not is_plain(values, ranges.dtype, shape):
        if ranges.is_real:
            values = _numbers(method, values)
            _check_shape(mdp, method, part, values, shape)
        else:
            values = _whole_numbers(mdp, method, part, values, shape, question)
    rows = flat_rows(values)
    if not ranges.fit(rows):
        _refuse_value(mdp, method, part, rows, question)
    return rows if rows.shape == shape else rows.reshape(shape)


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
                name = mdp.ranges_of(part).variables[where[-1]].name
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
        names = ", ".join(v.name for v in mdp.ranges_of(part).variables[:MAX_SHOWN])
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


def check_numbers(
    mdp: ExoMDP, method: str, values: Any, shape: tuple[int, ...], question: Question
) -> FloatArray:
    """Rewards or probabilities of shape ``shape``, or the terms of such rewards."""
    scopes = mdp.reward_scopes if method == "reward_terms" else None
    numbers, wanted = _numbers(method, values), shape
    if scopes is not None:
        wanted = (*shape, len(scopes))
    if numbers.shape != wanted:
        hint = "one number for each state"
        if scopes is not None:
            hint = "one column for each of its reward_scopes"
            if all(len(scope) == 1 for scope in scopes):
                hint = "one column for each exogenous variable, zeros for those that do not pay"
            if numbers.shape == shape:
                hint += "; what depends on none of them goes into endogenous_reward"
        raise ArgumentError(
            f"{method} returned the shape {numbers.shape}; it should be {wanted}, {hint}"
        )
    flat = numbers if numbers.flags.carray else numbers.copy()
    if not kernels.all_finite(flat.reshape(-1)):
        found = int(np.flatnonzero(~np.isfinite(flat))[0])
        lane, column = divmod(found, 1 if scopes is None else len(scopes))
        of = "" if scopes is None else f" for {' and '.join(map(repr, scopes[column]))}"
        raise NotFiniteError(
            f"{method} returned {flat.reshape(-1)[found]}{of}{question.show(mdp, lane)}; "
            "rewards are finite numbers"
        )
    return numbers


def check_successors(mdp: ExoMDP, values: Successors, asked: Question) -> Successors:
    """All n' that a model says may follow; whether their probabilities are some is looked at."""
    method = "endogenous_distribution"
    shape = (*asked.shape, *np.shape(values.probabilities)[-1:])
    chances = check_numbers(mdp, method, values.probabilities, shape, Question())
    state = (np.asarray(part) for part in (asked.endogenous, asked.exogenous))
    each = Question(*(np.repeat(part[..., None, :], shape[-1], axis=-2) for part in state))
    n = check_part(mdp, method, "endogenous", values.endogenous, shape, each)
    return Successors(n, chances)


def are_distributions(probabilities: FloatArray) -> bool:
    """Whether none is negative, and those of each row add up to 1."""
    off = np.abs(probabilities.sum(axis=-1) - 1.0)
    return bool((probabilities >= 0).all() and (off <= TOLERANCE).all())


def check_flags(method: str, values: Any, batch_shape: tuple[int, ...]) -> BoolArray:
    """Booleans that a model returned, shape ``batch_shape``."""
    if is_plain(values, BOOL, batch_shape):
        return values
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


# --- declarations -----------------------------------------------------------------------------

#: The methods that follow from others, and where what they would say belongs.
COMPOSED = {
    "reward": "put it into reward_terms, in a column for each of its reward_scopes "
    '(variables that pay only together share one: reward_scopes = (("price", "load"), ...)), '
    "and what depends on no exogenous variable into endogenous_reward",
    "sample_next": "put it into sample_endogenous and sample_exogenous",
    "transition": "put it into sample_endogenous, sample_exogenous and reward_terms",
}


def check_declaration(mdp: Any) -> None:
    """Rule ``declaration`` of the contract.

    Raises:
        TypeError: it is no model.
        ContractError: an attribute is missing or makes no sense.
    """
    if not isinstance(mdp, ExoMDP):
        what = f"the class {mdp.__name__}" if isinstance(mdp, type) else type(mdp).__name__
        raise ArgumentTypeError(f"needed: an ExoMDP, not {what}")
    # Nobody would ask a method of its own there: learners and planners compose it themselves.
    for name, advice in COMPOSED.items():
        if getattr(getattr(mdp, name), "__func__", None) is not getattr(ExoMDP, name):
            _fail(
                f"{type(mdp).__name__} has a method {name!r} of its own, which would be ignored: "
                f"ExoMDP.{name} follows from other methods; {advice}"
            )
    for attribute in ("endogenous_variables", "exogenous_variables"):
        variables = getattr(mdp, attribute, None)
        if not isinstance(variables, tuple) or not all(isinstance(v, Variable) for v in variables):
            _fail(f"{attribute} should be a tuple of Variable, not {variables!r}")
    names = [v.name for v in mdp.endogenous_variables + mdp.exogenous_variables]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        _fail(f"two variables are called {twice!r}")
    _check_scopes(mdp)
    for attribute, check, wanted in (
        ("num_actions", whole(1), "a whole number, at least 1"),
        ("horizon", whole(1), "a whole number, at least 1"),
        ("discount", check_discount, "in (0, 1]"),
    ):
        value = getattr(mdp, attribute, None)
        try:
            check(attribute, value)
        except ArgumentError:
            _fail(f"{attribute} should be {wanted}, not {value!r}")


def _check_scopes(mdp: ExoMDP) -> None:
    known, scopes = {v.name for v in mdp.exogenous_variables}, mdp.reward_scopes
    if not isinstance(scopes, tuple) or not all(isinstance(scope, tuple) for scope in scopes):
        _fail(f"reward_scopes should be a tuple of tuples of names, not {scopes!r}")
    for scope in scopes:
        if not scope or len(set(scope)) < len(scope):
            _fail(f"a scope of the reward has one name at least, and none twice, not {scope!r}")
        for name in scope:
            if name not in known:
                _fail(f"reward_scopes: {unknown_name('exogenous variable', name, sorted(known))}")


def _fail(message: str) -> None:
    raise ContractError("declaration", message)
