"""Tables whose cells are numbers with their errors: as Markdown, and as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from planners import Estimate


class Percentage(NamedTuple):
    """A share, in percent, with half of its 95 % interval."""

    mean: float
    half_width: float

    @classmethod
    def of(cls, part: Estimate, whole: float) -> Percentage:
        """The part of a whole that is taken to be known."""
        if not whole:
            return cls(math.nan, math.nan)
        low, high = part.interval()
        return cls(100 * part.mean / whole, 50 * (high - low) / abs(whole))

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.half_width:.1f} %"


@dataclass(frozen=True)
class Table:
    """Rows of cells by the names of their columns, all with the same ones."""

    title: str
    rows: list[dict[str, Any]]
    note: str = ""

    def to_markdown(self) -> str:
        """With a heading, and the note below it."""
        columns = list(self.rows[0]) if self.rows else []
        lines = [" | ".join(columns), "|".join(["---"] * len(columns))]
        lines += [" | ".join(cell(row[column]) for column in columns) for row in self.rows]
        body = "\n".join(f"| {line} |" if "---" not in line else f"|{line}|" for line in lines)
        note = f"{self.note}\n\n" if self.note else ""
        return f"### {self.title}\n\n{note}{body}"


def cell(value: Any) -> str:
    """A cell for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if math.isnan(value):
            return "–"
        decimals = 2 if abs(value) < 10 else 1 if abs(value) < 1000 else 0
        return f"{value:,.{decimals}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def encode(value: Any) -> Any:
    """A cell for JSON."""
    if isinstance(value, Estimate):
        return {"mean": value.mean, "standard_error": value.standard_error}
    raise TypeError(f"no cell: {value!r}")
