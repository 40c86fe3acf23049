"""Tables that a report is shown as: Markdown, HTML, pandas. Numbers and names for people."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, ClassVar

from exo_envs.core.errors import ArgumentTypeError, require


@dataclass(frozen=True)
class ReportTable:
    """Rows of values under the names of their columns."""

    header: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def to_markdown(self) -> str:
        """The table in Markdown, which ends with a line break."""
        written = [self.header, ["---"] * len(self.header), *self.rows]
        cells = (
            (" ".join(str(cell).split()).replace("|", "\\|") for cell in row) for row in written
        )
        return "".join("| " + " | ".join(row) + " |\n" for row in cells)

    def to_html(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.header)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>\n"
            for row in self.rows
        )
        return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n"

    def to_pandas(self, caller: str) -> Any:
        """A ``pandas.DataFrame``; without pandas, an error that says who needs it."""
        pd = require("pandas", f"{caller} needs pandas: pip install pandas")
        return pd.DataFrame([list(row) for row in self.rows], None, list(self.header))


class Tabular(ABC):
    """A report that is a table."""

    #: A user's variable that holds one, for errors.
    noun: ClassVar[str]

    @abstractmethod
    def _table(self) -> ReportTable:
        """Cells for people."""

    @abstractmethod
    def _values(self) -> ReportTable:
        """Values to compute with."""

    def to_markdown(self) -> str:
        return self._table().to_markdown()

    def to_html(self) -> str:
        return self._table().to_html()

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` (needs pandas); intervals are two columns, their ends."""
        return self._values().to_pandas(f"{self.noun}.to_pandas()")

    def _axes(self, ax: Any, width: float, height: float) -> Any:
        """Axes to draw on: those that are given, or new ones of ``matplotlib.pyplot``."""
        if ax is not None:
            if not hasattr(ax, "plot"):
                raise ArgumentTypeError(f"ax is axes of matplotlib, not {type(ax).__name__}")
            return ax
        needed = f"{self.noun}.plot() needs matplotlib: pip install matplotlib"
        plt = require("matplotlib.pyplot", needed)
        return plt.subplots(figsize=(width, height), layout="constrained")[1]


def listed(names: Sequence[str], most: int) -> str:
    """Names, the first ones if there are many.

    >>> listed(["a", "b", "c"], 3), listed(["a", "b", "c", "d"], 2)
    ('a, b and c', 'a, b and 2 more')
    """
    shown = list(names) if len(names) <= most else [*names[:most], f"{len(names) - most} more"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def number(value: float) -> str:
    """A number for people.

    >>> number(222.22), number(0.32853), number(0.0), number(5.7e-05)
    ('222', '0.329', '0', '5.7e-05')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def rounded_up(count: int) -> int:
    """A number with two digits, rounded up.

    >>> rounded_up(387_412), rounded_up(7)
    (390000, 7)
    """
    unit = 10 ** max(0, len(str(count)) - 2)
    return -(-count // unit) * unit


def variables(count: int) -> str:
    return f"{count} variable{'' if count == 1 else 's'}"
