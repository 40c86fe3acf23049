"""Earlier rows to learn from, later ones to be judged on, and a gap between the two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exo_envs.core.arguments import shown
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import BoolArray
from exo_envs.sources.tables.tables import Table
from exo_envs.sources.tables.zones import as_utc, refuse_zone


def is_table(test: Any) -> bool:
    """Whether ``test`` is a second table, and not a share or a time."""
    if (
        hasattr(test, "collect")
        or hasattr(test, "columns")
        or isinstance(test, (Mapping, Sequence))
    ):
        return not isinstance(test, (str, bytes))
    return isinstance(test, np.ndarray) and (test.ndim > 0 or test.dtype.names is not None)


def split(table: Table, test: Any, *, gap: int, by_segment: bool) -> tuple[BoolArray, BoolArray]:
    """Which rows are for training, and which are held out, each of shape (rows,).

    Args:
        table: with rows in the order of time.
        test: the share of the rows that is held out, the last ones; or the number of the first row
            that is; or its time.
        gap: rows before those held out that nothing is learned from, either.
        by_segment: whether whole episodes are held out; these need no gap.
    """
    rows = np.arange(len(table))
    first = _first_row(table, test, by_segment)
    if by_segment and first < len(table):
        first = int(np.searchsorted(table.segment, table.segment[first]))  # of its episode
    held_out = rows >= first
    training = rows < (first if by_segment else first - gap)
    if not training.any() or not held_out.any():
        raise ArgumentError(
            f"test={shown(test)} leaves {int(training.sum())} of {len(table)} rows to learn from "
            f"and {int(held_out.sum())} to be judged on, with {0 if by_segment else gap} left out "
            "between them; both need some"
        )
    return training, held_out


def _first_row(table: Table, test: Any, by_segment: bool) -> int:
    """The first row that is held out, as a position in the table."""
    if isinstance(test, (float, np.floating)):
        if not 0 < test < 1:
            raise ArgumentError(f"a share of the rows is between 0 and 1, not test={shown(test)}")
        if by_segment:
            numbers = np.unique(table.segment)
            later = numbers[min(len(numbers) - 1, round(len(numbers) * (1 - float(test))))]
            return int(np.argmax(table.segment == later))
        return round(len(table) * (1 - float(test)))
    if isinstance(test, (int, np.integer)) and not isinstance(test, bool):
        return int(np.count_nonzero(table.row < test))  # whatever the size of the number
    if table.time is None or table.time.dtype.kind != "M":
        raise ArgumentError(
            f"test={shown(test)} is no share (0.3), no row (5000) and no second table; a date "
            "needs a table with dates: a DatetimeIndex, or time='...'"
        )
    utc = as_utc(test)
    if utc is not None and table.zone is None:
        raise refuse_zone(test)
    times: Any = table.wall_time if utc is None else table.time
    try:
        later = times >= (np.datetime64(test) if utc is None else utc)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(
            "test is a share (0.3), a row (5000), a date ('2024-07-01') or a table, not "
            f"{shown(test)}"
        ) from None
    return int(np.argmax(later)) if later.any() else len(table)
