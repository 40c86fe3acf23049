"""What users hand in, checked and turned into our own: numbers, names, arrays, generators.

Every function takes the name of an argument and its value, and returns the value in the one form
that is computed with, or raises an error that names the argument, the value and the choices. Go on
with what a check returns: ``3 * np.int8(100)`` agents would be 44.

Constraints of the fields of a record are data: a class attribute that says what each field must be,
which :func:`check_fields` looks at when a record is made.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.errors import ArgumentError, ArgumentTypeError, unknown_name

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Ints = NDArray[np.int64]
P = ParamSpec("P")
T = TypeVar("T")

#: Values of a variable, at most: sums and differences of two of them are still 64-bit integers.
MAX_SIZE = 2**62
#: Variables of a model of the suite, or cells of a floor, at most: each is an object of Python.
MAX_VARIABLES = 1_000_000
#: Steps of an episode, at most: rollouts are kept whole.
MAX_HORIZON = 1_000_000_000
#: The smallest level of a test: a share of it for each of many tests is still no 0.
MIN_LEVEL = 1e-100
#: Values of single variables in one batch of states, at most: 8 GiB.
MAX_VALUES = 2**30
#: Types of whole numbers that kernels take: adding an int64 to any of them gives one, too.
KERNEL_TYPES = tuple(np.dtype(kind) for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8"))


# --- constraints of fields --------------------------------------------------------------------

Constraint: TypeAlias = Callable[[str, Any], Any]
#: The class attribute ``constraints`` of a record: what each field must be.
Constraints: TypeAlias = Mapping[str, Constraint]


def whole(least: int, most: int | None = None) -> Constraint:
    return partial(check_whole, least=least, most=most)


def real(least: float = -math.inf) -> Constraint:
    """A field is a finite number, ``least`` or more."""
    return partial(check_real, least=least)


def optional(
    check: Callable[Concatenate[str, Any, P], T],
) -> Callable[Concatenate[str, Any, P], T | None]:
    """The same check of what may also be None, and stays so."""

    def check_unless_none(name: str, value: Any, /, *args: P.args, **kwargs: P.kwargs) -> T | None:
        return None if value is None else check(name, value, *args, **kwargs)

    return check_unless_none


def check_fields(record: object) -> None:
    """Replace the fields of a record, even a frozen one, by what their constraints make of them.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Ferry:
    ...     seats: int = 4
    ...     constraints = {"seats": whole(1)}
    ...
    ...     def __post_init__(self):
    ...         check_fields(self)
    >>> Ferry(seats=np.uint8(200))
    Ferry(seats=200)
    """
    for cls in reversed(type(record).__mro__):
        for name, check in vars(cls).get("constraints", {}).items():
            object.__setattr__(record, name, check(name, getattr(record, name)))


# --- numbers ----------------------------------------------------------------------------------


def check_whole(
    name: str, number: Any, least: int, most: int | None = None, *, why: str = ""
) -> int:
    """A parameter as a Python integer; one that is not whole or out of range is refused.

    True and False are no numbers. ``why`` says what sets the largest value, if that is so large
    that a message about other mistakes would only confuse with it.
    """
    try:
        whole = None if isinstance(number, (bool, np.bool_)) else operator.index(number)
    except TypeError:
        whole = None
    if whole is None or whole < least or (most is not None and whole > most):
        choices = f"at least {least}" if most is None or why else f"from {least} to {most}"
        if why and whole is not None and whole > least:
            choices = f"at most {most:,} ({why})"
        raise ArgumentError(f"{name} is a whole number, {choices}, not {shown(number)}")
    return whole


def check_real(name: str, number: Any, least: float = -math.inf) -> float:
    """A parameter as a Python float; one that is not finite or below ``least`` is refused."""
    real = math.nan
    if not isinstance(number, bool) and isinstance(number, numbers.Real):
        try:
            real = float(number)
        except OverflowError:
            real = math.inf
    if not math.isfinite(real) or real < least:
        choices = "" if least == -math.inf else f", at least {least:g}"
        raise ArgumentError(f"{name} is a finite number{choices}, not {shown(number)}")
    return real


def _check_that(name: str, number: Any, fits: Callable[[float], bool], wanted: str) -> float:
    """A parameter as a Python float; one that does not fit is refused."""
    real = check_real(name, number)
    if not fits(real):
        raise ArgumentError(f"{name} is {wanted}, not {shown(number)}")
    return real


def check_positive(name: str, number: Any, unit: str = "") -> float:
    of = f" of {unit}" if unit else ""
    return _check_that(name, number, lambda x: x > 0, f"a positive number{of}")


def check_probability(name: str, number: Any) -> float:
    return _check_that(name, number, lambda p: 0 <= p <= 1, "a probability, 0 ... 1")


def check_level(name: str, number: Any) -> float:
    _check_that(name, number, lambda p: 0 < p < 1, "a probability between 0 and 1")
    wanted = f"a probability of at least {MIN_LEVEL:g}"
    return _check_that(name, number, lambda p: p >= MIN_LEVEL, wanted)


def check_discount(name: str, number: Any) -> float:
    return _check_that(name, number, lambda gamma: 0 < gamma <= 1, "in (0, 1]")


def check_flag(name: str, number: Any) -> bool:
    """A parameter as a Python boolean; anything else is refused: "no" would count as True."""
    if not isinstance(number, (bool, np.bool_)):
        raise ArgumentTypeError(f"{name} is True or False, not {shown(number)}")
    return bool(number)


def check_horizon(name: str, number: Any) -> int:
    return check_whole(name, number, 1, MAX_HORIZON, why="whole episodes are kept in memory")


def check_size(name: str, number: Any) -> int:
    return check_whole(name, number, 1, MAX_SIZE, why="values are 64-bit integers")


def check_lanes(name: str, number: Any, num_variables: int, least: int = 0) -> int:
    """A number of states as a Python integer; more than fit into memory are refused."""
    most = MAX_VALUES // max(1, num_variables)
    if type(number) is int and least <= number <= most:
        return number  # resets are frequent
    why = f"states of {num_variables} variables, {MAX_VALUES:,} values in all"
    return check_whole(name, number, least, most, why=why)


def check_rollouts(name: str, number: Any, num_steps: int, num_variables: int) -> int:
    """A number of rollouts as a Python integer; more than can be kept whole are refused."""
    number, values = check_whole(name, number, 1), num_steps * max(1, num_variables)
    if number * values > MAX_VALUES:
        fewer = "fewer, or " if values <= MAX_VALUES else ""
        raise ArgumentError(
            f"{name}={shown(number)}: rollouts of {num_steps:,} steps of {num_variables} "
            f"variable{'' if num_variables == 1 else 's'} are kept whole in memory, at most "
            f"{MAX_VALUES:,} values in all; take {fewer}a shorter horizon"
        )
    return number


def check_total(
    what: str, count: int, parameters: DataclassInstance, *names: str, most: int = MAX_VARIABLES
) -> None:
    """Refuse a model of more than ``most`` parts, before any memory is taken.

    The fields of the parameters with these names say how many parts there are.
    """
    if count > most:
        given = " and ".join(f"{name}={shown(getattr(parameters, name))}" for name in names)
        raise ArgumentError(
            f"{given} make a model of {shown(count)} {what}; at most {most:,} fit into memory"
        )


# --- kinds, names, generators -----------------------------------------------------------------


def check_kind(name: str, value: object, kind: type, *, optional: bool = False) -> None:
    if not isinstance(value, kind) and not (optional and value is None):
        choices = " or None" if optional else ""
        raise ArgumentTypeError(f"{name} is a {kind.__name__}{choices}, not {kind_of(value)}")


def check_function(name: str, function: Any, *, optional: bool = False) -> None:
    if not callable(function) and not (optional and function is None):
        choices = "a function or None" if optional else "a function"
        raise ArgumentTypeError(f"{name} is {choices}, not {shown(function)}")


def check_choice(kind: str, name: object, choices: Collection[str]) -> str:
    """A name; what is none of the choices, whatever it is, is refused.

    >>> check_choice("cost", "sise", ["size", "time"])
    Traceback (most recent call last):
    exo_envs.core.errors.ArgumentError: unknown cost 'sise'; did you mean 'size'?
    """
    if not isinstance(name, str) or name not in choices:
        raise unknown_name(kind, name, choices)
    return name


def as_list(what: str, values: Any) -> list[Any]:
    """Several things as a list; a single string is refused, since its letters would be taken."""
    is_scalar = isinstance(values, (str, bytes)) or getattr(values, "shape", None) == ()
    if is_scalar or not isinstance(values, Iterable):
        raise ArgumentTypeError(f"{what} are a collection of them, not {shown(values)}")
    return list(values)


def check_names(name: str, names: Any, among: Iterable[str] | None = None) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ArgumentError(f"{name} is a sequence of names, not {names!r}")
    found = tuple(names)
    for one in found:
        if not isinstance(one, str) or not one:
            raise ArgumentError(f"{name} holds {one!r}, which is no name")
    if len(set(found)) < len(found):
        twice = next(one for one in found if found.count(one) > 1)
        raise ArgumentError(f"{name} holds {twice!r} more than once")
    for one in set(found).difference(found if among is None else among):
        raise ArgumentError(f"{name} holds {one!r}, which is none of the variables")
    return found


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


# --- arrays -----------------------------------------------------------------------------------


def as_array(name: str, values: Any, ndmin: int = 0) -> NDArray[Any]:
    """Nested numbers as an array; rows of different lengths make none."""
    if isinstance(values, np.ndarray):
        return values
    try:
        return np.array(values, ndmin=ndmin)
    except ValueError:
        raise ArgumentError(f"{name} is no array: its rows have different lengths") from None


def as_integers(what: str, values: Any) -> Ints:
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


def check_shape(name: str, array: NDArray[Any], shape: Sequence[int]) -> None:
    if array.shape != tuple(shape):
        raise ArgumentError(f"{name} has shape {array.shape}, not {tuple(map(int, shape))}")


def whole_numbers(
    name: str,
    values: Any,
    least: int = 0,
    below: int | None = None,
    *,
    length: int | None = None,
    dtype: Any = np.int64,
) -> NDArray[Any]:
    """A vector of whole numbers, ``least`` or more and less than ``below``."""
    array = as_array(name, values, ndmin=1)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ArgumentError(
            f"{name} is a vector of whole numbers, not {array.dtype} of shape {array.shape}"
        )
    if length is not None:
        check_shape(name, array, (length,))
    most = (np.iinfo(dtype).max + 1 if below is None else below) - 1
    if array.size and (array.min() < least or array.max() > most):
        at = int(np.flatnonzero((array < least) | (array > most))[0])
        choices = f"{least} or more" if below is None else f"{least} ... {most}"
        raise ArgumentError(f"{name}[{at}] is {array[at]}; it should be {choices}")
    return np.ascontiguousarray(array, dtype=dtype)


def real_numbers(
    name: str,
    values: Any,
    shape: Sequence[int] | None = None,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    dtype: Any = np.float64,
    finite: bool = True,
) -> NDArray[Any]:
    """Finite real numbers, from ``low`` to ``high``; a vector if no shape is given."""
    array = as_array(name, values)
    if array.dtype.kind not in "iuf" and array.size:
        raise ArgumentError(f"{name} holds real numbers, not {array.dtype}")
    if shape is None and array.ndim != 1:
        raise ArgumentError(f"{name} is a vector, and not of shape {array.shape}")
    if shape is not None:
        check_shape(name, array, shape)
    if finite and array.size:
        least, most = array.min(), array.max()  # not a number, if one of them is none
        if not (low <= least and most <= high and np.isfinite(least) and np.isfinite(most)):
            wrong = ~((array >= low) & (array <= high) & np.isfinite(array))
            choices = "finite" if low == -np.inf else f"from {low:g} to {high:g}"
            raise ArgumentError(f"{name} holds {array[wrong][0]}; its numbers are {choices}")
    return np.ascontiguousarray(array, dtype=dtype).reshape(array.shape)


def sampled_values(name: str, values: Any, size: int, samples: int) -> NDArray[np.integer[Any]]:
    """The values of a variable in some samples, 0 ... size - 1, as bytes if they fit.

    Kernels are then compiled for few types, and read less.
    """
    array = np.asarray(values)
    own = array.dtype if array.dtype in KERNEL_TYPES else np.dtype(np.int64)
    own = np.dtype(np.uint8) if size <= 2**8 else own
    return whole_numbers(name, array, 0, size, length=samples, dtype=own)


def as_positions(name: str, given: Any, count: int) -> Ints:
    """Positions that somebody asks for, from 0 to ``count - 1``; None stands for all."""
    try:
        given = range(count) if given is None else given
        positions = [operator.index(p) for p in given]
    except TypeError:
        raise ArgumentTypeError(f"{name} are positions, whole numbers, not {given!r}") from None
    for position in positions:
        if not 0 <= position < count:
            raise IndexError(f"{name} are positions from 0 to {count - 1}, not {position}")
    return np.array(positions, dtype=np.int64)


def check_starts(name: str, values: Any, pieces: int, total: int, *, at_least: int = 0) -> Ints:
    """Where each of some pieces begins, and where the last one ends, at ``total``.

    Each piece has the length ``at_least`` or more.
    """
    array: Ints = whole_numbers(name, values, 0, total + 1, length=pieces + 1)
    if array[0] != 0 or array[-1] != total:
        raise ArgumentError(f"{name} goes from {array[0]} to {array[-1]}, not from 0 to {total}")
    short = np.flatnonzero(np.diff(array) < at_least)
    if len(short):
        at = int(short[0])
        raise ArgumentError(
            f"{name} goes from {array[at]} to {array[at + 1]} at {at}; "
            f"each step should be {at_least} or more"
        )
    return array


def _exactly(
    check: Callable[Concatenate[str, Any, P], T], dtype: Any
) -> Callable[Concatenate[str, Any, P], T]:
    """The same check of an array that a kernel can take as it is, of this type or a given one."""

    def check_as_it_is(name: str, values: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        wanted: Any = kwargs.get("dtype", dtype)
        if not isinstance(values, np.ndarray) or values.dtype != wanted:
            found = values.dtype if isinstance(values, np.ndarray) else kind_of(values)
            raise ArgumentError(f"{name} is an array of {np.dtype(wanted).name}, not {found}")
        if not values.flags.c_contiguous:
            raise ArgumentError(f"{name} is a contiguous array")
        return check(name, values, *args, **kwargs)

    return check_as_it_is


exact = _exactly(whole_numbers, np.int64)
exact_reals = _exactly(partial(real_numbers, dtype=np.float32), np.float32)
exact_starts = _exactly(check_starts, np.int64)


# --- values in error messages -----------------------------------------------------------------


def kind_of(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def shown(value: Any) -> str:
    """A value for an error message, however long it is.

    >>> shown(10**5000), shown("a" * 1000) == repr("a" * 1000)
    ('about 10^5000', False)
    """
    if isinstance(value, int) and abs(value) >= 10**30:
        return f"about {'-' if value < 0 else ''}10^{math.log10(abs(value)):.0f}"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:150]} ... ({type(value).__name__})"
