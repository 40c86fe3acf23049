"""Text and tables as wide as the terminal, in letters that it has; and how a command ends.

Without a terminal lines have 80 columns, or as many as the variable ``COLUMNS`` says.
"""

from __future__ import annotations

import codecs
import io
import os
import shutil
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from exo_envs.core.errors import ExoError

#: What a shell is told of a command that failed, was refused its arguments, ended by Ctrl-C, or
#: whose reader went away.
FAILED, REFUSED, INTERRUPTED, UNREAD = 1, 2, 130, 141
#: How letters are written where the encoding of the terminal lacks them.
PLAIN_LETTERS = {"λ": "lambda", "±": "+/-", "γ": "gamma", "·": "*", "–": "-", "′": "'"}
#: The handler of encoding errors that does so.
PLAIN_HANDLER = "exo_envs.plain"
#: Columns that a text, or a column of a table, has at least, however narrow the terminal is.
MIN_COLUMNS = 8


class CommandError(ExoError):
    """Something on the command line cannot be."""


def run(body: Callable[[], int]) -> int:
    """Run a command; the number for the shell.

    An error that is written for users becomes one line, and any other, which comes from a user's
    own model or is a mistake of ours, a traceback.
    """
    set_up_streams()
    code, words = FAILED, ""
    try:
        return body()
    except BrokenPipeError:
        _leave_quietly()
        return UNREAD
    except KeyboardInterrupt:
        code, words = INTERRUPTED, "\ninterrupted"
    except ExoError as error:
        code, words = REFUSED, f"error: {' '.join(str(error).split())}"
    except Exception:  # noqa: BLE001 whatever a model raises
        words = (
            f"{traceback.format_exc()}error: this should not happen; if none of the lines above is "
            "of your own model, please report it"
        )
    with suppress(BrokenPipeError):
        write(words, stream=sys.stderr)
    return code


def _leave_quietly() -> None:
    """Nobody reads any more: unwritten output must not complain at exit either."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:  # noqa: PERF203 there are two
            os.dup2(nowhere, stream.fileno())


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(PLAIN_LETTERS.get(letter, "?") for letter in missing), error.end


codecs.register_error(PLAIN_HANDLER, _plain)


def set_up_streams() -> None:
    """Let no letter that a terminal lacks end a command with an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN_HANDLER)


def columns() -> int:
    return shutil.get_terminal_size().columns


def wrap(text: str, *, indent: int = 0, hanging: int = 0) -> list[str]:
    """Lines of a text that fit the terminal; those after the first are ``hanging`` further in."""
    return textwrap.wrap(
        " ".join(_written(text).split()),
        max(columns(), indent + hanging + MIN_COLUMNS),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hanging),
        break_on_hyphens=False,
    )


def say(text: str = "", *, indent: int = 0, stream: TextIO | None = None) -> None:
    """Write a text at once, in lines that fit; an empty one is an empty line."""
    write(*(wrap(text, indent=indent) or [""]), stream=stream)


def write(*lines: str, stream: TextIO | None = None) -> None:
    """Write lines at once and as they are."""
    stream = sys.stdout if stream is None else stream
    stream.write("".join(f"{line}\n" for line in lines))
    stream.flush()


def table_lines(header: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> list[str]:
    """Lines as wide as the terminal at most; ``align`` has ``<`` or ``>`` for each column.

    Columns are as wide as they need to be. If that is too wide, text gives way before names and
    numbers do: columns on the left are wrapped, the widest first, down to their longest word, and
    after that all. A column that is empty in all rows is left out.
    """
    kept = [k for k in range(len(header)) if any(str(row[k]) for row in rows)]
    cells = [[_written(str(row[k])) for k in kept] for row in (header, *rows)]
    room = columns() - 2 * len(kept)
    in_columns = list(zip(*cells, strict=True))
    widths = [max(map(len, column)) for column in in_columns]
    least = [
        width if align[k] == ">" else max(len(word) for cell in column for word in cell.split())
        for k, width, column in zip(kept, widths, in_columns, strict=True)
    ]
    while sum(widths) > room and max(widths) > MIN_COLUMNS:
        spare = [k for k, width in enumerate(widths) if width > least[k]]
        widths[max(spare or range(len(widths)), key=widths.__getitem__)] -= 1
    grid = Table.grid(padding=(0, 2, 0, 0))
    for k, width in zip(kept, widths, strict=True):
        grid.add_column(
            justify="right" if align[k] == ">" else "left", width=width, overflow="fold"
        )
    for row in cells:
        grid.add_row(*map(Text, row))
    lines = io.StringIO()
    Console(file=lines, width=room + 2 * len(kept) - 2).print(grid)
    return [f"  {line}".rstrip() for line in lines.getvalue().splitlines()]


def _written(text: str) -> str:
    """The text as the terminal can write it: its length is what counts."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, PLAIN_HANDLER).decode(encoding)
