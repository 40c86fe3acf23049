"""The files that a folder of results gets in the end: tables.md, and a plot for each."""

from __future__ import annotations

from pathlib import Path

from reproduction.plots import all_plots
from reproduction.results import read_results
from reproduction.tables import goal_tables, large_tables, reading_tables, small_tables


def write_tables(folder: Path) -> list[Path]:
    """Write tables.md and the plots into a results folder."""
    records = read_results(folder)
    parts = (small_tables, large_tables, goal_tables, reading_tables)
    tables = [table for make in parts for table in make(records)]
    markdown = folder / "tables.md"
    markdown.write_text("\n".join(table.to_markdown() for table in tables), encoding="utf-8")
    written = [markdown]
    for name, image in all_plots(records, "svg").items():
        written.append(folder / f"{name}.svg")
        written[-1].write_bytes(image)
    return written
