"""Numbers that users hand in, checked and turned into Python's own.

What NumPy's small integers would make of a parameter is another problem: ``np.int8(100)`` agents
have ``3 * np.int8(100) = 44`` variables. So whoever checks a number goes on with what the check
returns.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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


@overload
def check_whole(
    name: str,
    number: Any,
    least: int,
    most: int | None = None,
    *,
    optional: Literal[False] = False,
    why: str = "",
) -> int: ...


@overload
def check_whole(
    name: str,
    number: Any,
    least: int,
    most: int | None = None,
    *,
    optional: bool,
    why: str = "",
) -> int | None: ...


def check_whole(
    name: str,
    number: Any,
    least: int,
    most: int | None = None,
    *,
    optional: bool = False,
    why: str = "",
) -> int | None:
    """A parameter as a Python integer; one that is not whole or out of range is refused.

    Args:
        name: of the parameter.
        number: its value; True and False are no numbers.
        least: the smallest value.
        most: the largest one, if there is one.
        optional: whether it may be None, and stays so.
        why: what sets the largest value, if it is so large that a message about other mistakes
            would only confuse with it.
    """
    if optional and number is None:
        return None
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


def check_positive(name: str, number: Any, unit: str = "") -> float:
    """A positive number as a Python float."""
    real = check_real(name, number)
    if not real > 0:
        of = f" of {unit}" if unit else ""
        raise ArgumentError(f"{name} is a positive number{of}, not {shown(number)}")
    return real


def check_flag(name: str, number: Any) -> bool:
    """A parameter as a Python boolean; anything else is refused: "no" would count as True."""
    if not isinstance(number, (bool, np.bool_)):
        raise ArgumentTypeError(f"{name} is True or False, not {shown(number)}")
    return bool(number)


def check_probability(name: str, number: Any) -> float:
    """A parameter as a Python float; one that is not a probability is refused."""
    real = check_real(name, number)
    if not 0 <= real <= 1:
        raise ArgumentError(f"{name} is a probability, 0 ... 1, not {shown(number)}")
    return real


def check_level(name: str, number: Any) -> float:
    """The level of a test or of an interval as a Python float."""
    real = check_real(name, number)
    if not 0 < real < 1:
        raise ArgumentError(f"{name} is a probability between 0 and 1, not {shown(number)}")
    if real < MIN_LEVEL:
        raise ArgumentError(
            f"{name} is a probability of at least {MIN_LEVEL:g}, not {shown(number)}"
        )
    return real


def check_discount(name: str, number: Any) -> float:
    """The paper's gamma as a Python float."""
    real = check_real(name, number)
    if not 0 < real <= 1:
        raise ArgumentError(f"{name} is in (0, 1], not {shown(number)}")
    return real


def check_horizon(name: str, number: Any) -> int:
    """The length of an episode as a Python integer."""
    return check_whole(name, number, 1, MAX_HORIZON, why="whole episodes are kept in memory")


def check_size(name: str, number: Any) -> int:
    """The number of values of a variable as a Python integer."""
    return check_whole(name, number, 1, MAX_SIZE, why="values are 64-bit integers")


def check_lanes(name: str, number: Any, num_variables: int, least: int = 0) -> int:
    """A number of states as a Python integer; more than fit into memory are refused."""
    most = MAX_VALUES // max(1, num_variables)
    if type(number) is int and least <= number <= most:
        return number  # resets are frequent
    why = f"states of {num_variables} variables, {MAX_VALUES:,} values in all"
    return check_whole(name, number, least, most, why=why)


def check_rollouts(name: str, number: Any, num_steps: int, num_variables: int) -> int:
    """A number of rollouts as a Python integer; more than can be kept whole are refused.

    Args:
        name: of the parameter.
        number: its value.
        num_steps: of each rollout.
        num_variables: that each step has.
    """
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
    """Refuse a model that would be too large, before any memory is taken.

    Args:
        what: the parts that are counted.
        count: how many there would be.
        parameters: of the model.
        names: the fields of the parameters that say how many.
        most: how many there may be.
    """
    if count > most:
        given = " and ".join(f"{name}={shown(getattr(parameters, name))}" for name in names)
        raise ArgumentError(
            f"{given} make a model of {shown(count)} {what}; at most {most:,} fit into memory"
        )


def convert(
    parameters: DataclassInstance, check: Callable[..., Any], *names: str, **limits: Any
) -> None:
    """Replace fields of parameters, even frozen ones, by what a check makes of them.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Ferry:
    ...     seats: int = 4
    ...
    ...     def __post_init__(self):
    ...         convert(self, check_whole, "seats", least=1)
    >>> Ferry(seats=np.uint8(200))
    Ferry(seats=200)
    """
    for name in names:
        object.__setattr__(parameters, name, check(name, getattr(parameters, name), **limits))


def as_array(what: str, values: Any) -> NDArray[Any]:
    """Nested numbers as an array; rows of different lengths make none."""
    try:
        return np.asarray(values)
    except ValueError:
        raise ArgumentError(f"{what} is no array: its rows have different lengths") from None


def kind_of(value: Any) -> str:
    """What a value is, for an error message."""
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
