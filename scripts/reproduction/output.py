"""The files that a folder of results gets in the end: tables.md, and a plot for each."""

from __future__ import annotations

from pathlib import Path

from planners.core.files import replacing
from reproduction.plots import all_plots
from reproduction.results import read_results, read_settings
from reproduction.settings import describe_quick
from reproduction.tables import goal_tables, large_tables, reading_tables, small_tables


def write_tables(folder: Path) -> list[Path]:
    """Write tables.md and the plots into a results folder."""
    records = read_results(folder)
    parts = (small_tables, large_tables, goal_tables, reading_tables)
    tables = [table for make in parts for table in make(records)]
    markdown = folder / "tables.md"
    banner = describe_quick(read_settings(folder)["parameters"])
    parts = [f"**{banner}**\n"] if banner else []
    files = {markdown: "\n".join([*parts, *(table.to_markdown() for table in tables)]).encode()}
    files |= {folder / f"{name}.svg": image for name, image in all_plots(records, "svg").items()}
    for file, content in files.items():
        with replacing(file) as part:
            part.write_bytes(content)
    return [*files]
