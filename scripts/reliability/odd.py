"""Odd values: numbers, arrays, names, states, masks and generators as nobody should give them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

#: Whole numbers at which types end.
EDGES = (
    0,
    -1,
    1,
    2,
    127,
    128,
    255,
    256,
    2**31 - 1,
    2**31,
    2**63 - 1,
    2**63,
    -(2**63),
    2**64,
    10**30,
)
#: What is no whole number, though some of it looks like one.
NOT_WHOLE = (
    *(0.5, -0.5, 1.5, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, -0.0, 2.0),
    *(None, True, False, "", "3", "x", b"3", (), [], [1], {}, {"a": 1}, set(), 1j, ...),
    *(Fraction(1, 2), Decimal("NaN"), Decimal(3), object, len, range(3)),
)
DTYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "?", "c8", "O", "U3")


class Wrong(Exception):  # noqa: N818 - it is a finding, and not an error of the fuzzer
    """The answer itself is wrong: an odd input was accepted, or a sound one refused."""


class UserError(Exception):
    """Raised by what plays the user's code; it should come out as it is."""


class Odd:
    """A source of odd values, and of sound ones among them.

    Args:
        rng: all of it comes from here.
        number: of the case, for entries that go through a catalogue.
    """

    def __init__(self, rng: np.random.Generator, number: int = 0) -> None:
        self.rng = rng
        self.number = number
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []
        self.remarks: list[str] = []

    # --- what is called -------------------------------------------------------------------

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call, and remember with what."""
        self.calls.append((function, args, kwargs))
        return function(*args, **kwargs)

    def must_work(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call with what is sound: any error is wrong."""
        try:
            return self.call(function, *args, **kwargs)
        except Exception as error:
            raise Wrong(f"refuses sound input: {type(error).__name__}: {error}") from error

    def must_fail(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Call with what is unsound: any answer is wrong."""
        answer = self.call(function, *args, **kwargs)
        raise Wrong(f"answers {short(answer)} to unsound input")

    def remark(self, words: str) -> None:
        """Say what is odd about this case, for its report."""
        self.remarks.append(words)

    def story(self) -> str:
        """What was called with what, the last call first."""
        told = [*self.remarks]
        for function, args, kwargs in reversed(self.calls[-3:]):
            name = getattr(function, "__qualname__", None) or short(function)
            given = [short(value) for value in args]
            given += [f"{key}={short(value)}" for key, value in kwargs.items()]
            told.append(f"{name}({', '.join(given)})")
        return " <- ".join(told)

    # --- chance ---------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        """Whether something happens."""
        return bool(self.rng.random() < probability)

    def pick(self, choices: Any) -> Any:
        """One of some things, as it is (NumPy would convert it)."""
        listed = choices if isinstance(choices, Sequence) else list(choices)
        return listed[int(self.rng.integers(len(listed)))]

    def below(self, end: int) -> int:
        """A whole number from 0 to ``end - 1``."""
        return int(self.rng.integers(end))

    # --- single values --------------------------------------------------------------------

    def number_(self) -> Any:
        """Any odd scalar, whole numbers of every type among them."""
        kind = self.below(4)
        if kind == 0:
            return self.pick(EDGES)
        if kind == 1:
            return self.pick(NOT_WHOLE)
        with np.errstate(all="ignore"):
            value = np.array(self.pick((0, 1, 2, 3, 5, 100))).astype(self.pick(DTYPES))
        return value[()] if kind == 2 else self.pick((value, value[None], value[None, None]))

    def real(self) -> Any:
        """An odd number; it is one, though."""
        if self.chance(0.5):
            return self.pick((*EDGES, 0.5, -0.5, 1.5, 1e308, math.nan, math.inf, -math.inf, 2.0))
        return np.dtype(self.pick(("i1", "u1", "i4", "i8", "u8", "f4", "f8"))).type(self.below(9))

    def sound_or(self, sound: Any, probability: float = 0.5) -> Any:
        """A value that is as it should be, or an odd one."""
        return sound if self.chance(probability) else self.number_()

    def sound_or_real(self, sound: Any, probability: float = 0.5) -> Any:
        """A value that is as it should be, or an odd number: for what strangers do not meet."""
        return sound if self.chance(probability) else self.real()

    def anything(self) -> Any:
        """An odd scalar, text, or thing."""
        kind = self.below(6)
        if kind < 3:
            return self.number_()
        if kind == 3:
            return self.text()
        if kind == 4:
            return self.array(tuple(self.rng.integers(0, 4, size=self.below(4)).tolist()))
        return self.pick(
            (object(), Odd, np.nan, np.random, lambda *_, **__: None, raise_user_error)
        )

    def text(self) -> str:
        """A string that may be no name."""
        return self.pick(
            ("", " ", "x", "object", "guard", "ñ∂", "a" * 300, "0", "None", "%s{}", "\n")
        )

    def generator(self) -> Any:
        """A generator or a seed, or what is neither."""
        return self.pick(
            (np.random.default_rng(0), 0, 7, np.int64(3), *((np.random.default_rng(1),) * 8))
            if self.chance(0.7)
            else (-1, 1.5, "0", None, np.random, np.random.RandomState(0), [1, 2], math.nan, 2**70)
        )

    # --- arrays ---------------------------------------------------------------------------

    def array(self, shape: tuple[int, ...]) -> Any:
        """Odd numbers in some shape, of any dtype."""
        dtype = np.dtype(self.pick(DTYPES))
        with np.errstate(all="ignore"):
            values = self.rng.choice([0, 1, -1, 2, 7, 255, 10**9, -(10**12)], size=shape)
            out = np.asarray(values, dtype=np.int64).astype(dtype)
        if dtype.kind == "f" and out.size and self.chance(0.5):
            out.reshape(-1)[self.below(out.size)] = self.pick((math.nan, math.inf, -math.inf, 0.5))
        return out

    def damaged(self, array: Any, sizes: Any) -> Any:
        """A sound array of values below ``sizes`` (last axis), with one thing wrong about it."""
        return self.pick(DAMAGE)(self, np.asarray(array), np.asarray(sizes))

    def altered(self, array: Any, sizes: Any) -> Any:
        """The same, but still an array of numbers: for what strangers do not meet."""
        damage = [one for one in DAMAGE if one not in (_no_array, _other_dtype)]
        return self.pick(damage)(self, np.asarray(array), np.asarray(sizes))

    def spoil_value(self, array: Any, sizes: Any) -> Any:
        """One value out of its range."""
        if not array.size:
            return array
        out = np.array(array, dtype=np.int64)
        where = self.below(out.size)
        size = int(np.broadcast_to(sizes, out.shape).reshape(-1)[where])
        far = (size, size + 1, -1, -2, -size - 1, 2 * size, 300, 10**6, 2**31, 2**40, -(2**33))
        out.reshape(-1)[where] = self.pick((*far, 2**62, -(2**63), 2**63 - 1))
        return out


def _other_shape(odd: Odd, array: Any, _: Any) -> Any:
    wide = np.concatenate([array, array], axis=-1) if array.ndim else array
    shapes: list[Callable[[], Any]] = [
        lambda: array[..., :-1] if array.ndim else array,
        lambda: array[..., None],
        lambda: array[None, None],
        lambda: array.T,
        lambda: wide,
        lambda: array.reshape(-1),
        lambda: np.zeros((0, *array.shape[1:]), dtype=np.int64),
        lambda: np.zeros((), dtype=np.int64),
        lambda: np.concatenate([array, array]) if array.ndim else array,
    ]
    return odd.pick(shapes)()


def _other_dtype(odd: Odd, array: Any, _: Any) -> Any:
    with np.errstate(all="ignore"):
        return array.astype(odd.pick(DTYPES))


def _not_whole(odd: Odd, array: Any, _: Any) -> Any:
    out = array.astype(np.float64)
    if out.size:
        place = out.reshape(-1) if out.ndim else out
        place[odd.below(out.size) if out.ndim else ()] = odd.pick((math.nan, math.inf, 0.5, 1e300))
    return out


def _no_array(odd: Odd, array: Any, _: Any) -> Any:
    return odd.pick((array.tolist(), None, "state", 3, [], [[1], [2, 3]], object(), {}, (1, 2)))


def _other_memory(odd: Odd, array: Any, _: Any) -> Any:
    """The same values, laid out as kernels may not expect; this is sound."""
    frozen = array.copy()
    frozen.flags.writeable = False
    swapped = array.astype(array.dtype.newbyteorder(">"))
    spaced = np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array
    return odd.pick((np.asfortranarray(array), frozen, swapped, spaced, array.astype("i4")))


DAMAGE: tuple[Callable[[Odd, Any, Any], Any], ...] = (
    *(Odd.spoil_value, Odd.spoil_value, Odd.spoil_value),
    *(_other_shape, _other_dtype, _not_whole, _no_array, _other_memory),
)


def raise_user_error(*_: Any, **__: Any) -> None:
    """Something that the user handed in, and that fails."""
    raise UserError("the user's own code fails")


def short(value: Any, most: int = 160) -> str:
    """A value for a report: one line, whatever it is."""
    try:
        if isinstance(value, np.ndarray):
            shown = np.array2string(value, threshold=8, edgeitems=2).replace("\n", "")
            text = f"array({shown}, {value.dtype}, shape {value.shape})"
        elif isinstance(value, Path):
            text = f"Path({value.name!r})"
        else:
            text = " ".join(repr(value).split())
    except Exception as error:  # noqa: BLE001 - odd values may refuse even this
        text = f"<{type(value).__name__} without a repr: {type(error).__name__}>"
    return text if len(text) <= most else text[: most - 4] + " ..."


def product_of(*choices: Sequence[Any]) -> list[tuple[Any, ...]]:
    """All combinations, as a list."""
    return list(itertools.product(*choices))
