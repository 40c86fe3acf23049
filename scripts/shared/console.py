"""What scripts show: tables that fit the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from wrappers.cli.console import INTERRUPTED, table_lines, write

__all__ = ["INTERRUPTED", "print_table"]


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> None:
    """Columns as wide as they need to be and can be; ``align`` has ``<`` or ``>`` for each."""
    write(*table_lines(header, rows, align))
