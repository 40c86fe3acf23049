"""What a table is, and how it becomes Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.intervals import Interval

Cell = str | float | int | Interval | None


@dataclass(frozen=True)
class Table:
    """A table; cells are kept as numbers, so that whoever shows it can sort it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def to_markdown(self) -> str:
        """The same for people."""
        lines = [f"### {self.title}", "", *([self.note, ""] if self.note else [])]
        lines.append(_row(self.columns))
        lines.append("|" + "---|" * len(self.columns))
        lines.extend(_row(tuple(show(cell) for cell in row)) for row in self.rows)
        return "\n".join(lines) + "\n"


def show(cell: Cell) -> str:
    """A cell for people."""
    if cell is None:
        return "–"
    return f"{cell:g}" if isinstance(cell, float) else str(cell)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
