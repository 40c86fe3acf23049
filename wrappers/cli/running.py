"""How a command ends: one line about what is wrong, and a number for the shell."""

from __future__ import annotations

import dis
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import gymnasium as gym

import exo_envs
import planners
from wrappers.cli.console import set_up_streams, write

#: What a shell is told of a command that failed, was refused its arguments, ended by Ctrl-C, or
#: whose reader went away.
FAILED, REFUSED, INTERRUPTED, UNREAD = 1, 2, 130, 141

#: Where errors are raised that are written for users.
HOMES = (
    Path(__file__).parents[1],
    *(Path(str(module.__file__)).parent for module in (exo_envs, planners, gym)),
)
#: Errors of those places that say what is wrong with an argument or a model.
TOLD = (ValueError, TypeError, LookupError, ImportError, OSError, gym.error.Error)
#: The instruction of the statement ``raise``.
RAISE = dis.opmap["RAISE_VARARGS"]
#: Where code is that users did not write either.
LIBRARIES = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))


class CommandError(SystemExit):
    """Something on the command line cannot be; the message is one line.

    Where nobody catches it, it ends the script with that line.
    """

    def __init__(self, message: object) -> None:
        super().__init__(f"error: {' '.join(str(message).split())}")


def run(body: Callable[[], int]) -> int:
    """Run a command; the number for the shell.

    An error that is written for users becomes one line. Others come from a user's own model: what
    they get is its traceback, without the parts that are not theirs.
    """
    set_up_streams()
    try:
        return body()
    except BrokenPipeError:
        leave_quietly()
        return UNREAD
    except (CommandError, KeyboardInterrupt, Exception) as error:  # noqa: BLE001 whatever a model raises
        code, lines = ending(error, Path(inspect.getfile(body)).parent)
        with suppress(BrokenPipeError):
            write(*lines, stream=sys.stderr)
        return code


def ending(error: BaseException, home: Path) -> tuple[int, list[str]]:
    """The number for the shell and the last words of a command that ends with an error.

    ``home`` is the folder of the command: what is there is not a user's own code.
    """
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, ["", "interrupted"]
    if isinstance(error, CommandError):
        return REFUSED, [str(error)]
    if isinstance(error, MemoryError):
        return FAILED, [f"error: not enough memory. {error}"]
    if is_told(error):
        return REFUSED, [str(CommandError(error))]
    own = theirs(error.__traceback__, home)
    if (
        isinstance(error, OSError) and own is None
    ):  # a folder that is read-only, a disk that is full
        return FAILED, [str(CommandError(error))]
    trace = traceback.format_exception(type(error), error, own or error.__traceback__)
    words = "the model failed, see above" if own else "this should not happen: please report it"
    return FAILED, ["".join(trace).rstrip(), f"error: {words}"]


def leave_quietly() -> None:
    """Nobody reads any more: what is still to be written at exit must not complain either."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:  # noqa: PERF203 there are two
            os.dup2(nowhere, stream.fileno())


def is_told(error: BaseException) -> bool:
    """Whether an error is written for users: raised by this suite or by Gymnasium.

    What Python itself raises there (a wrong argument of a function, say) is a mistake of the suite.
    """
    trace = error.__traceback__
    if trace is None or not isinstance(error, TOLD):
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return _is_ours(code.co_filename) and code.co_code[trace.tb_lasti] == RAISE


def theirs(trace: TracebackType | None, home: Path) -> TracebackType | None:
    """A traceback from the first line of a user's own code on; None if there is none."""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not (_is_ours(name) or name.startswith("<") or _is_in(name, (home, *LIBRARIES))):
            break
        trace = trace.tb_next
    return trace


def _is_ours(filename: str) -> bool:
    return _is_in(filename, HOMES)


def _is_in(filename: str, folders: Iterable[Path]) -> bool:
    return any(Path(filename).is_relative_to(folder) for folder in folders)
