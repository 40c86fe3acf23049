"""What arrays of a record have to be before kernels may follow the indices in them.

Records check themselves when they are made, whoever makes them: a file, a user, a planner. Each
function returns the array as kernels take it, or raises a ValueError that names the array, the
offending value and what it should be.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import njit
from exo_envs.core.errors import ArgumentError, ArgumentTypeError

Ints = NDArray[np.int64]

#: Types of whole numbers that kernels take: adding an int64 to any of them gives one, too.
KERNEL_TYPES = tuple(np.dtype(kind) for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8"))
#: How far the probabilities of a row may be from a sum of one.
ROUNDING = 1e-5


def check_kind(name: str, value: object, kind: type, *, optional: bool = False) -> None:
    """Refuse what is of another kind."""
    if not isinstance(value, kind) and not (optional and value is None):
        choices = " or None" if optional else ""
        found = "None" if value is None else type(value).__name__
        raise ArgumentTypeError(f"{name} is a {kind.__name__}{choices}, not {found}")


def as_array(name: str, values: Any, ndmin: int = 0) -> NDArray[Any]:
    """An array of what was given; rows of different lengths are refused."""
    if isinstance(values, np.ndarray):
        return values
    try:
        return np.array(values, ndmin=ndmin)
    except ValueError:
        raise ArgumentError(f"{name} is no array: its rows have different lengths") from None


def check_shape(name: str, array: NDArray[Any], shape: Sequence[int]) -> None:
    """Refuse an array of another shape."""
    if array.shape != tuple(shape):
        raise ArgumentError(f"{name} has shape {array.shape}, not {tuple(map(int, shape))}")


def whole_numbers(
    name: str,
    values: Any,
    least: int,
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


def exact(
    name: str,
    values: Any,
    least: int = 0,
    below: int | None = None,
    *,
    length: int | None = None,
    dtype: Any = np.int64,
) -> NDArray[Any]:
    """The same, of an array that has to be of that type already: kernels are compiled for it."""
    _check_type(name, values, dtype)
    return whole_numbers(name, values, least, below, length=length, dtype=dtype)


def exact_reals(
    name: str,
    values: Any,
    shape: Sequence[int] | None = None,
    *,
    low: float = -np.inf,
    high: float = np.inf,
) -> NDArray[np.float32]:
    """Finite numbers from ``low`` to ``high``, of an array in single precision."""
    _check_type(name, values, np.float32)
    return real_numbers(name, values, shape, low=low, high=high, dtype=np.float32)


def _check_type(name: str, values: Any, dtype: Any) -> None:
    if not isinstance(values, np.ndarray) or values.dtype != dtype:
        found = values.dtype if isinstance(values, np.ndarray) else type(values).__name__
        raise ArgumentError(f"{name} is an array of {np.dtype(dtype).name}, not {found}")
    if not values.flags.c_contiguous:
        raise ArgumentError(f"{name} is a contiguous array")


def exact_starts(name: str, values: Any, pieces: int, total: int, *, at_least: int = 0) -> Ints:
    """As :func:`check_starts`, of an array that has to be of the right type already."""
    _check_type(name, values, np.int64)
    return check_starts(name, values, pieces, total, at_least=at_least)


def check_starts(name: str, values: Any, pieces: int, total: int, *, at_least: int = 0) -> Ints:
    """Where each of some pieces begins, and where the last one ends.

    Args:
        name: of the array.
        values: the array.
        pieces: how many there are.
        total: how long they are together.
        at_least: how long each of them is at least.
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


def check_names(name: str, names: Any, among: Iterable[str] | None = None) -> tuple[str, ...]:
    """Different names, of those that there are."""
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


@njit(cache=True)
def wrong_row(starts: Any, probabilities: Any, decide: Any) -> int:
    """The first row of a sparse table that is no distribution, or -1.

    If ``decide`` is False, rows may have a sum of less than one.
    """
    for row in range(len(starts) - 1):
        total = 0.0
        least = 0.0
        for entry in range(starts[row], starts[row + 1]):
            total += probabilities[entry]
            least = min(least, probabilities[entry])
        # Written so that not a number is wrong, too.
        if not (least >= 0.0 and total <= 1.0 + ROUNDING):
            return row
        if decide and not total >= 1.0 - ROUNDING:
            return row
    return -1
