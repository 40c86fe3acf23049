"""What a terminal is shown: text and tables as wide as it is, in letters that it has.

Without a terminal lines have 80 columns, or as many as the variable ``COLUMNS`` says.
"""

from __future__ import annotations

import codecs
import io
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TextIO

#: How letters are written where the encoding of the terminal lacks them.
PLAIN = {"λ": "lambda", "±": "+/-", "γ": "gamma", "·": "*", "–": "-", "′": "'"}
#: The handler of encoding errors that does so.
HANDLER = "exo_envs.plain"
#: What a column of a table is not made narrower than, in characters.
NARROWEST = 8


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(PLAIN.get(letter, "?") for letter in missing), error.end


codecs.register_error(HANDLER, _plain)


def set_up_streams() -> None:
    """Let no letter that a terminal lacks end a command with an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


def columns() -> int:
    """How wide the terminal is."""
    return shutil.get_terminal_size().columns


def wrap(text: str, *, indent: int = 0, hanging: int = 0) -> list[str]:
    """Lines of a text that fit the terminal; those after the first are ``hanging`` further in."""
    first, later = " " * indent, " " * (indent + hanging)
    width = max(columns(), indent + hanging + NARROWEST)
    words = " ".join(_shorten(word, width - len(later)) for word in _written(text).split())
    return textwrap.wrap(
        words,
        width,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )


def say(text: str = "", *, indent: int = 0, stream: TextIO | None = None) -> None:
    """Write a text at once, in lines that fit; an empty one is an empty line."""
    lines = wrap(text, indent=indent) or [""]
    write(*lines, stream=stream)


def write(*lines: str, stream: TextIO | None = None) -> None:
    """Write lines at once and as they are."""
    stream = sys.stdout if stream is None else stream
    stream.write("".join(f"{line}\n" for line in lines))
    stream.flush()


class Columns:
    """The columns of a table.

    Args:
        widths: in characters. Cells that are wider are wrapped, and words that are wider shortened.
        align: ``<`` or ``>`` for each.
    """

    def __init__(self, widths: Sequence[int], align: str) -> None:
        self.widths = tuple(widths)
        self.align = align

    def lines(self, cells: Sequence[str]) -> list[str]:
        """One row, of as many lines as its highest cell has."""
        wrapped = [_cell(cell, width) for cell, width in zip(cells, self.widths, strict=True)]
        height = max(map(len, wrapped))
        return [
            "  "
            + "  ".join(
                f"{lines[k] if k < len(lines) else '':{align}{width}}"
                for lines, align, width in zip(wrapped, self.align, self.widths, strict=True)
            ).rstrip()
            for k in range(height)
        ]


def table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> list[str]:
    """Lines of a table that fits the terminal; ``align`` has ``<`` or ``>`` for each column.

    Columns are as wide as they need to be. If that is too wide, text gives way before names and
    numbers do. A column that is empty in all rows is left out.
    """
    kept = [k for k in range(len(header)) if any(row[k] for row in rows)]
    kept_align = "".join(align[k] for k in kept)
    grid = [[_written(row[k]) for k in kept] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    layout = Columns(_narrowed(widths, grid, kept_align), kept_align)
    return [line for row in grid for line in layout.lines(row)]


def _narrowed(widths: list[int], grid: list[list[str]], align: str) -> list[int]:
    """Widths that fit: first of left-aligned columns, down to their longest word, then of all."""
    room = columns() - 2 * len(widths)
    words = [
        max(len(word) for cell in column for word in cell.split() or [""])
        for column in zip(*grid, strict=True)
    ]
    least = [
        word if side == "<" else width
        for word, width, side in zip(words, widths, align, strict=True)
    ]
    for floor in (least, [NARROWEST] * len(widths)):
        while sum(widths) > room:
            spare = [width - most for width, most in zip(widths, floor, strict=True)]
            widest = max(
                (k for k in range(len(widths)) if spare[k] > 0),
                key=widths.__getitem__,
                default=None,
            )
            if widest is None:
                break
            widths[widest] -= 1
    return widths


def _cell(text: str, width: int) -> list[str]:
    words = " ".join(_shorten(word, width) for word in _written(text).split())
    return textwrap.wrap(words, width, break_long_words=False, break_on_hyphens=False) or [""]


def _shorten(word: str, width: int) -> str:
    """A word without its middle, if it is too long: names differ at their ends.

    >>> _shorten("a_very_long_name_12", 11)
    'a_ve...e_12'
    """
    if len(word) <= width or width < NARROWEST:
        return word
    end = (width - 3) // 2
    return f"{word[: width - 3 - end]}...{word[-end:]}"


def _written(text: str) -> str:
    """The text as the terminal can write it: its length is what counts."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, HANDLER).decode(encoding)
