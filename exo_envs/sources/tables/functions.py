"""What a user writes about the agent: small functions of named columns, many states at a time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import as_array, check_choice, check_function, check_whole, shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, hint_at, unknown_name
from exo_envs.core.mdp import BoolArray, FloatArray, Variable
from exo_envs.sources.tables.record import Coding

#: How far n' may be out of the range of a real variable, as a share of it: rounding, and no more.
ROUNDING_SHARE = 1e-9
#: Actions that a model has at most: each is a value in memory.
MAX_ACTIONS = 1_000_000
Scope = tuple[str, ...]


class NamedColumns:
    """One part of a batch of states by name: ``x.price`` or ``x["price"]``, shape (B,).

    Values are those of the table: strings where it has strings. ``np.asarray(x)`` is the part as
    the model has it, shape (B, variables).

    >>> n = NamedColumns(np.array([[3, 1], [4, 0]]), ("stock", "is_open"))
    >>> n.stock, n["is_open"], np.asarray(n).shape
    (array([3, 4]), array([1, 0]), (2, 2))
    """

    __slots__ = ("_decoders", "_names", "_values")

    def __init__(
        self,
        values: NDArray[Any],
        names: Sequence[str],
        decoders: Sequence[Callable[[NDArray[Any]], NDArray[Any]]] | None = None,
    ) -> None:
        self._values = values
        self._names = names
        self._decoders = decoders

    def __getitem__(self, name: str) -> NDArray[Any]:
        try:
            j = self._names.index(name)
        except ValueError:
            raise unknown_name("column", name, self._names) from None
        values = self._values[:, j]
        return values if self._decoders is None else self._decoders[j](values)

    def __getattr__(self, name: str) -> NDArray[Any]:
        """One column, for names that are identifiers."""
        if name.startswith("__") or name not in self._names:
            raise AttributeError(f"there is no column {name!r}; {hint_at(name, self._names)}")
        return self[name]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """The columns in order, so that ``charge, heat = n`` takes them apart."""
        return (self[name] for name in self._names)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        out = self._values if dtype is None else self._values.astype(dtype, copy=False)
        return out.copy() if copy else out

    def __dir__(self) -> list[str]:
        return list(self._names)


class Interface:
    """Calls the functions given to :meth:`TraceMDP.from_frame` and checks what they return."""

    def __init__(
        self,
        endogenous: tuple[Variable, ...],
        codings: tuple[Coding, ...],
        actions: int | Sequence[Any],
        step: Callable[..., Any],
        reward: Callable[..., Any],
        terminal: Callable[[NamedColumns], Any] | None = None,
    ) -> None:
        check_function("step", step)
        check_function("reward", reward)
        check_function("terminal", terminal, optional=True)
        self.endogenous = endogenous
        self.codings = codings
        self.actions = _as_actions(actions)
        self.takes_noise = _num_arguments(step) >= 4
        self._step, self._reward, self._terminal = step, reward, terminal
        self._endogenous_names = tuple(v.name for v in endogenous)
        self.exogenous_names = tuple(coding.name for coding in codings)
        self._decoders = tuple(coding.decode for coding in codings)
        self._dtype: Any = np.float64 if any(v.is_real for v in endogenous) else np.int64

    def views(
        self, n: NDArray[Any], a: NDArray[Any], x: NDArray[Any]
    ) -> tuple[NamedColumns, NDArray[Any], NamedColumns]:
        """What functions see of states and actions, which are in range; nobody writes to them."""
        return (
            NamedColumns(_read_only(n), self._endogenous_names),
            self.actions[a],
            NamedColumns(_read_only(x), self.exogenous_names, self._decoders),
        )

    def next_endogenous(
        self, n: NDArray[Any], a: NDArray[Any], x: NDArray[Any], rng: np.random.Generator
    ) -> NDArray[Any]:
        """N' as the user's function has it, shape (B, k)."""
        found = self._step(*self.views(n, a, x), *((rng,) if self.takes_noise else ()))
        if isinstance(found, Mapping):
            for name in found:
                check_choice("endogenous variable", name, self._endogenous_names)
            # A variable that is not named stays.
            parts = [found.get(v.name, n[:, i]) for i, v in enumerate(self.endogenous)]
        elif isinstance(found, (tuple, list, NamedColumns)) and len([*found]) == len(
            self.endogenous
        ):
            parts = [*found]
        else:
            array = as_array("what step returned", found)
            is_one_column = array.ndim < 2 and len(self.endogenous) == 1
            if array.shape != n.shape and not is_one_column:
                raise ArgumentError(
                    f"step returned an array of shape {array.shape} for {len(n)} states; n' is a "
                    f"mapping or a tuple of {len(self.endogenous)} arrays, or an array of shape "
                    f"{n.shape}"
                )
            parts = [array] if is_one_column else [*array.T]
        out = np.empty(n.shape, dtype=self._dtype)
        for i, (variable, values) in enumerate(zip(self.endogenous, parts, strict=True)):
            out[:, i] = fitting("step", variable, values, len(n))
        return out

    def ended(self, n: NDArray[Any]) -> BoolArray:
        if self._terminal is None:
            return np.zeros(len(n), dtype=np.bool_)
        found = self._terminal(NamedColumns(_read_only(n), self._endogenous_names))
        return _as_answers("terminal", found, len(n), "b", "booleans").copy()

    def paid(
        self, n: NDArray[Any], a: NDArray[Any], x: NDArray[Any]
    ) -> dict[Scope | None, FloatArray]:
        """What is paid, by scope; a single array has the scope None."""
        found = self._reward(*self.views(n, a, x))
        is_named = isinstance(found, Mapping)
        parts = found.items() if is_named else [(None, found)]
        out: dict[Scope | None, FloatArray] = {}
        for key, part in parts:
            scope = _as_scope(key, self.exogenous_names) if is_named else None
            if scope in out:
                raise ArgumentError(f"reward returned two terms of the same columns: {list(found)}")
            what = "reward" if scope is None else f"reward[{scope}]"
            out[scope] = _as_answers(what, part, len(n)).astype(np.float64)
        return out


def fitting(what: str, variable: Variable, values: Any, size: int) -> NDArray[Any]:
    """Values of an endogenous variable, shape (size,), of which rounding errors are taken away.

    A function, ``what``, returned one number, or one for each state. Whether they are in range is
    looked at where they enter.
    """
    name = variable.name
    column = _as_answers(f"{what}, for {name!r},", values, size)
    if variable.is_real:
        low, high = variable.bounds
        dust = ROUNDING_SHARE * max(1.0, high - low)
        near = (column > low - dust) & (column < high + dust)
        return np.where(near, np.clip(column, low, high), column)
    if column.dtype.kind not in "uf":
        return column
    whole = np.rint(column)
    magnitude = np.abs(whole)
    is_near = np.abs(column - whole) <= ROUNDING_SHARE * np.maximum(1.0, magnitude)
    fits = is_near & (magnitude < 2.0**63)
    if not fits.all():  # NaN does not fit, either
        raise ArgumentError(
            f"{what} returned {name!r} = {shown(float(column[~fits][0]))}; its values are whole, "
            f"{variable.range}. Round it, or declare a real variable: "
            f"Variable({name!r}, low=..., high=...)"
        )
    return whole


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    """The same values; who writes to them gets an error, and the state stays as it is."""
    view = values.view()
    view.flags.writeable = False
    return view


def as_scopes(scopes: Any, names: Sequence[str]) -> tuple[Scope, ...]:
    """One scope, or several: ``("price", "load")`` or ``[("price",), ("price", "load")]``."""
    given = list(scopes) if isinstance(scopes, (tuple, list)) else [scopes]
    if given and all(isinstance(entry, str) for entry in given):
        given = [tuple(given)]
    return tuple(_as_scope(scope, names) for scope in given)


def _as_scope(scope: Any, names: Sequence[str]) -> Scope:
    """Names of columns: one, or several different ones."""
    given = (scope,) if isinstance(scope, str) else scope
    if not isinstance(given, (tuple, list, frozenset)):
        raise ArgumentTypeError(f"a scope is a tuple of names of columns, not {shown(scope)}")
    for name in given:
        check_choice("column in a scope of the reward", name, names)
    if len(set(given)) != len(given):
        raise ArgumentError(f"the scope {shown(scope)} names a column more than once")
    return tuple(sorted(given, key=list(names).index))


def _as_answers(
    what: str, values: Any, size: int, kinds: str = "biuf", wanted: str = "numbers"
) -> NDArray[Any]:
    """What a function returned for so many states, shape (size,): one value, or one for each."""
    array = as_array(f"what {what} returned", values)
    if array.dtype.kind not in kinds:
        raise ArgumentTypeError(f"{what} returned {array.dtype}, not {wanted}")
    if array.shape not in ((), (1,), (size,)):
        raise ArgumentError(f"{what} returned shape {array.shape} for {size} states")
    return np.broadcast_to(array, (size,))


def _as_actions(actions: Any) -> NDArray[Any]:
    """What each action is to the functions: its number, or what the user calls it."""
    named = as_array("the list of actions", actions)
    if not named.ndim and not isinstance(actions, (str, bytes)):
        why = "each is kept in memory"
        return np.arange(check_whole("actions", actions, 1, MAX_ACTIONS, why=why))
    if named.ndim != 1 or not len(named) or named.dtype.kind not in "biufU":
        raise ArgumentTypeError(
            f"actions are a number, or a list of names or numbers, not {shown(actions)}"
        )
    if named.dtype.kind == "f" and not np.isfinite(named).all():
        raise ArgumentError(f"actions are names or finite numbers, not {shown(actions)}")
    if len(np.unique(named)) != len(named):
        raise ArgumentError(f"actions are all different, not {shown(actions)}")
    return named


def _num_arguments(function: Callable[..., Any]) -> int:
    """How many positional arguments a function takes; 3 if nobody knows."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 3
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in kinds for parameter in parameters)
