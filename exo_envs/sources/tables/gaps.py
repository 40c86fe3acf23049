"""Rows that a table lacks, and values: refused by name, or filled as the user says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import check_choice, check_real, shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.sources.tables.frames import Column, TimedTable, data_module, missing_values

Fill = str | Mapping[str, Any] | None

#: How whole tables, and how single columns are filled.
FILLS, COLUMN_FILLS = ("forward", "linear", "split"), ("forward", "linear")
#: How far apart two equal steps of time may be, as a share of a step: times may be rounded.
TOLERANCE = 1e-6
#: Rows that filling adds at most: a time that was mistyped would take all memory.
MAX_ADDED = 10_000_000
_HOW_TO_FILL = (
    "fill='forward' repeats the last value, fill='linear' draws a line, fill='split' leaves gaps "
    "out and plays no window across them, and fill={'column': ...} says so for single columns"
)


def without_gaps(table: TimedTable, fill: Fill) -> TimedTable:
    """A table in which each segment has a row for every step of time, and every value.

    Of ``fill`` see :meth:`TraceMDP.from_frame`: None refuses and names what is missing, "forward"
    repeats, "linear" draws a line (which looks ahead), and "split" leaves rows out and lets no
    window run across.
    """
    _check_fill(table, fill)
    missing = _missing_steps(table)
    number = float(missing.sum())
    if number and fill is None:
        raise ArgumentError(
            f"{number:.15g} rows are missing in {np.count_nonzero(missing)} gaps of time, the "
            f"first after {table.where(int(np.argmax(missing > 0)))}; {_HOW_TO_FILL}"
        )
    if fill == "split":
        lacking = np.any([missing_values(values) for values in table.columns.values()], axis=0)
        if lacking.all():
            raise ArgumentError("every row of the table lacks a value")
        ends = (np.diff(table.segment) != 0) | (missing[:-1] > 0) | lacking[:-1]
        return replace(table, segment=np.append(0, np.cumsum(ends))).take(~lacking)
    if number > MAX_ADDED:
        raise ArgumentError(
            f"fill={shown(fill)} would add {number:.15g} rows, more than {MAX_ADDED:,}; most of "
            f"them after {table.where(int(np.argmax(missing)))}. Is that time right? If so, "
            "fill='split' leaves the gap out"
        )
    if number:
        table = _with_rows(table, missing.astype(np.int64))
    filled = {
        name: _filled(table, name, values, fill.get(name) if isinstance(fill, Mapping) else fill)
        for name, values in table.columns.items()
    }
    return replace(table, columns=filled)


def _check_fill(table: TimedTable, fill: Fill) -> None:
    if not isinstance(fill, Mapping):
        if fill is not None:
            check_choice("way to fill gaps", fill, FILLS)
        return
    for name, how in fill.items():
        is_text = table.column(name).dtype.kind == "O"
        if how is None or (is_text and isinstance(how, str)):
            continue
        if is_text:
            raise ArgumentTypeError(f"column {name!r} holds strings; fill it with one, not {how!r}")
        if isinstance(how, str):
            check_choice("way to fill a column", how, COLUMN_FILLS)
        else:
            check_real(f"what column {name!r} is filled with", how)


def _missing_steps(table: TimedTable) -> NDArray[np.float64]:
    """How many rows are missing after each row, shape (rows,); times that go back are refused."""
    missing, time = np.zeros(len(table)), table.time
    inside = np.diff(table.segment) == 0
    if time is None or not inside.any():
        return missing
    wrong = inside & np.asarray(time[1:] <= time[:-1])
    if wrong.any():
        row = int(np.argmax(wrong)) + 1
        raise ArgumentError(
            f"times increase, but {table.where(row)} is not after the row before it"
        )
    # Differences of times that increase are right without a sign, however far apart these are.
    ticks = time if time.dtype.kind == "f" else np.asarray(time.astype(np.int64)).view(np.uint64)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.where(inside, np.diff(ticks).astype(np.float64), 0.0)
        ratio = steps / float(np.median(steps[inside]))
        whole = np.rint(ratio)
        even = (np.abs(ratio - whole) <= TOLERANCE * whole) & (whole >= 1)  # not if it is infinite
    odd = inside & ~even
    if odd.any():
        if table.has_dates:  # single days of months or years, however long these are
            days = np.diff(np.asarray(table.wall_time).astype("datetime64[D]").astype(np.int64))
            if days.min() >= 28 and days.max() <= 366:
                return missing
        row = int(np.argmax(odd)) + 1
        raise ArgumentError(
            f"times are evenly spaced, but {table.where(row)} is {ratio[row - 1]:.3g} steps after "
            "the row before it; resample the table, or drop the times to take rows as they are"
        )
    missing[:-1][inside] = whole[inside] - 1
    return missing


def _with_rows(table: TimedTable, missing: NDArray[np.int64]) -> TimedTable:
    """The table with a row of missing values for every step that it lacks."""
    place = np.arange(len(table)) + np.append(0, np.cumsum(missing)[:-1])
    everywhere = np.arange(place[-1] + 1)
    last = np.searchsorted(place, everywhere, side="right") - 1  # the row given last before each
    added = everywhere != place[last]

    def spread(values: Column) -> Column:
        wide = values[last] if values.dtype.kind in "fO" else values[last].astype(np.float64)
        wide[added] = None if wide.dtype.kind == "O" else np.nan
        return wide

    step = (table.time[1:] - table.time[:-1])[np.diff(table.segment) == 0].min()
    return TimedTable(
        {name: spread(values) for name, values in table.columns.items()},
        table.time[last] + step * (everywhere - place[last]),
        table.segment[last],
        table.row[last],
    )


def _filled(table: TimedTable, name: str, values: Column, how: Any) -> Column:
    missing = missing_values(values)
    if not missing.any():
        return values
    if how is None:
        raise ArgumentError(
            f"column {name!r} has no value in {int(missing.sum())} of {len(table)} rows, the first "
            f"is {table.where(int(np.argmax(missing)))}; {_HOW_TO_FILL}"
        )
    if how not in COLUMN_FILLS:
        return np.where(missing, how, values).astype(values.dtype)
    if how == "linear" and values.dtype.kind == "O":
        raise ArgumentError(
            f"column {name!r} holds strings, which 'linear' cannot fill; say for each column how "
            f"it is filled: fill={{{name!r}: 'forward', ...: 'linear'}}"
        )
    series = data_module("pandas").Series(values, dtype=values.dtype)
    parts = series.groupby(table.segment)
    filled = parts.ffill()
    if how == "linear":
        filled = series.interpolate().where(filled.notna() & parts.bfill().notna())
    lost = np.asarray(filled.isna())
    if lost.any():
        row = table.where(int(np.argmax(lost)))
        raise ArgumentError(
            f"column {name!r} has no value before {row} to repeat (fill='forward'); begin the "
            f"table later, or give the value: fill={{{name!r}: 0.0}}"
            if how == "forward"
            else f"column {name!r} begins or ends without a value around {row}, where "
            "fill='linear' has nothing to draw a line from"
        )
    return np.asarray(filled.to_numpy())
