"""Columns made of columns: values of earlier rows, and the calendar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import MAX_HORIZON, check_whole, shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import BoolArray
from exo_envs.sources.tables.tables import Column, Table

#: What the calendar adds, with the smallest and the largest value; Monday is 0.
CALENDAR = {"hour": (0, 23), "weekday": (0, 6), "month": (1, 12)}


def shifted(table: Table, values: Column, steps: int) -> tuple[Column, BoolArray]:
    """The values of ``steps`` rows earlier (later, if negative), and where there are any."""
    source = np.arange(len(table)) - steps
    inside = np.clip(source, 0, len(table) - 1)
    known = (source == inside) & (table.segment[inside] == table.segment)
    return values[inside], known


def check_settings(name: str, settings: Any) -> Mapping[Any, Any]:
    """Settings of single columns: a mapping from their names, or None if there are none."""
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise ArgumentTypeError(
            f"{name} is a mapping from names of columns, or None, not {shown(settings)}"
        )
    return settings


def check_steps(name: str, steps: Any) -> list[int]:
    """Numbers of rows: one, or several different ones."""
    is_list = isinstance(steps, Sequence) and not isinstance(steps, (str, bytes))
    is_list = is_list or (isinstance(steps, np.ndarray) and steps.ndim > 0)
    given = list(steps) if is_list else [steps]
    if not given:
        raise ArgumentError(f"{name} is one or several numbers of rows, not {shown(steps)}")
    why = "more than any table has"
    whole = [check_whole(name, number, 1, MAX_HORIZON, why=why) for number in given]
    if len(set(whole)) != len(whole):
        raise ArgumentError(f"{name} names a number of rows more than once: {shown(steps)}")
    return whole


def with_lags(
    table: Table, lags: Mapping[str, int | Sequence[int]] | None
) -> tuple[Table, BoolArray, int]:
    """The table with ``price_lag_24`` for each lag; where all are known; and the longest."""
    known: BoolArray = np.ones(len(table), dtype=bool)
    columns, longest = {}, 0
    for name, steps in check_settings("lags", lags).items():
        values = table.column(name)
        for step in check_steps(f"the lags of {name!r}", steps):
            columns[f"{name}_lag_{step}"], here = shifted(table, values, step)
            known &= here
            longest = max(longest, step)
    return table.adding(columns), known, longest


def with_calendar(table: Table) -> tuple[Table, dict[str, tuple[int, int]]]:
    """The table with those of hour, weekday and month that change in it, and their ranges.

    They are those of the clock on the wall, if the table has a time zone.
    """
    time = table.wall_time
    if time is None or time.dtype.kind != "M":
        raise ArgumentError(
            "calendar=True needs dates: a pandas DatetimeIndex, or time= with the name of a column "
            "that holds dates"
        )
    parts = calendar_of(time)
    parts = {name: values for name, values in parts.items() if (values != values[0]).any()}
    return table.adding(parts), {name: CALENDAR[name] for name in parts}


def calendar_of(time: NDArray[Any]) -> dict[str, NDArray[np.int64]]:
    """Hour, weekday (Monday is 0) and month (1 to 12) of dates."""
    days = time.astype("datetime64[D]")
    return {
        "hour": (time.astype("datetime64[h]") - days).astype(np.int64),
        "weekday": (days.astype(np.int64) + 3) % 7,  # 1 January 1970 was a Thursday
        "month": time.astype("datetime64[M]").astype(np.int64) % 12 + 1,
    }
