"""What came of a call: a result, a clear error, or something that should not have happened.

An error is clear if one of our files raises it on purpose (the last line of the traceback is a
``raise``), if it is of a kind that users expect, and if it does not read like one of NumPy's or
Numba's own. What the user's code raises comes out unchanged, and is fine.
"""

from __future__ import annotations

import ast
import re
import traceback
from enum import IntEnum
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import gymnasium as gym

from exo_envs.core.clock import OutOfTimeError
from reliability.odd import Odd, UserError, Wrong

ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(str(ROOT / name) + "/" for name in ("exo_envs", "planners", "wrappers"))
#: Files whose functions play the user's code.
USERS = (str(ROOT / "scripts" / "reliability" / "user_models.py"),)
EXPECTED = (
    *(ValueError, TypeError, LookupError, OSError, ImportError, NotImplementedError),
    *(gym.error.Error, OutOfTimeError),
    MemoryError,  # of ours: something would be too large; NumPy's own is no deliberate one
)
#: Where Gymnasium is: what it refuses by itself is its own affair.
GYMNASIUM = str(Path(gym.__file__).parent) + "/"
#: Words of NumPy, Numba and Python that tell a user nothing about what was wrong.
INTERNAL = re.compile(
    r"could not broadcast|out of bounds|cannot reshape|unhashable|has no attribute|ufunc|"
    r"not aligned|truth value of an array|only integer scalar|only length-1|inhomogeneous|"
    r"Cannot cast|setting an array element|not subscriptable|not iterable|unpack|"
    r"unsupported operand|not supported between|numba|operands|object arrays|takes from|"
    r"cannot be interpreted as an integer|must be real number|NoneType|mismatch in its core",
    re.IGNORECASE,
)
#: Errors of Python and of the system that name the argument, or the file, by themselves.
NAMED = re.compile(
    r"unexpected keyword argument|required (positional|keyword-only) argument|missing \d+ required|"
    r"positional arguments? but|takes exactly \w+ arguments?|"
    r"os\.PathLike|Can't instantiate abstract class|takes no arguments"
)


class Kind(IntEnum):
    """What a case can come to; the number fits a byte."""

    NONE = 0  # not tried yet
    RESULT = 1
    CLEAR = 2
    INTERNAL = 3
    WRONG = 4
    CRASH = 5
    HANG = 6


class Verdict(NamedTuple):
    """What came of one case."""

    kind: Kind
    message: str = ""
    where: str = ""  # file:line:function of the last frame in our packages


RESULT = Verdict(Kind.RESULT)


def judge(error: BaseException) -> Verdict:
    """What an exception means."""
    message = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    where = place(error.__traceback__)
    if isinstance(error, UserError):
        return Verdict(Kind.CLEAR, message, where)
    if isinstance(error, Wrong):
        cause = error.__cause__
        return Verdict(
            Kind.WRONG, str(error), where if cause is None else place(cause.__traceback__)
        )
    return Verdict(Kind.CLEAR if _is_clear(error, frames) else Kind.INTERNAL, message, where)


def _is_clear(error: BaseException, frames: traceback.StackSummary) -> bool:
    last, words = frames[-1], str(error)
    known = [frame.filename for frame in frames if frame.filename.startswith((*OURS, *USERS))]
    if known and known[-1] in USERS:
        return isinstance(error, Exception)  # it passes through
    if not isinstance(error, EXPECTED):
        return False
    names_a_file = isinstance(error, OSError) and error.filename is not None
    if isinstance(error, OutOfTimeError) or names_a_file or NAMED.search(words):
        return True
    deliberate = (last.lineno or 0) in _raise_lines(last.filename)
    if last.filename.startswith(GYMNASIUM):
        return deliberate or isinstance(error, gym.error.Error)
    ours = deliberate and last.filename.startswith(OURS)
    said = words.partition(": ")[0]  # what follows may be quoted, after our own words
    return ours and len(words.split()) > 2 and not INTERNAL.search(said)


@cache
def _raise_lines(filename: str) -> frozenset[int]:
    """The lines of a file that belong to a ``raise``."""
    if not Path(filename).is_file():  # compiled, or made on the way
        return frozenset()
    tree = ast.parse(Path(filename).read_text(encoding="utf-8"))
    return frozenset(
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    )


def place(trace: TracebackType | None) -> str:
    """The last line of our packages that a traceback goes through; else its last line."""
    frames = traceback.extract_tb(trace)
    if not frames:
        return ""
    ours = [frame for frame in frames if frame.filename.startswith(OURS)]
    last = ours[-1] if ours else frames[-1]
    path = Path(last.filename)
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name
    return f"{shown}:{last.lineno}:{last.name}"


def describe(odd: Odd, verdict: Verdict) -> str:
    """One line on a failure."""
    return f"{verdict.message} [{verdict.where}] {odd.story()}"
