"""Gaps: missing rows and missing values are named, and filled only as the user says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import check_choice, check_real, shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import BoolArray
from exo_envs.sources.tables.tables import Column, Table, missing_values

#: How whole tables, and how single columns are filled.
FILLS, COLUMN_FILLS = ("forward", "linear", "split"), ("forward", "linear")
#: How far apart two equal steps of time may be, as a share of a step: times may be rounded.
TOLERANCE = 1e-6
#: Rows that filling adds at most: a time that was mistyped would take all memory.
MAX_ADDED = 10_000_000

Fill = str | Mapping[str, Any] | None


def without_gaps(table: Table, fill: Fill) -> Table:
    """A table in which each segment has a row for every step of time, and every value.

    Args:
        table: what was read.
        fill: None refuses missing rows and values, and names them. "forward" repeats the last
            value before, "linear" draws a line between the values around (which looks ahead), and
            "split" leaves rows out and never lets a window run across. A mapping says "forward",
            "linear" or a value for single columns.
    """
    _check_fill(table, fill)
    missing = _missing_steps(table)
    number = float(missing.sum())
    if number and fill is None:
        raise ArgumentError(
            f"{number:.15g} rows are missing in {np.count_nonzero(missing)} gaps of time, the "
            f"first after {table.where(int(np.argmax(missing > 0)))}; {_HELP}"
        )
    if fill == "split":
        return _split(table, missing)
    if number > MAX_ADDED:
        raise ArgumentError(
            f"fill={shown(fill)} would add {number:.15g} rows, more than {MAX_ADDED:,}; most of "
            f"them after {table.where(int(np.argmax(missing)))}. Is that time right? If so, "
            "fill='split' leaves the gap out"
        )
    if number:
        table = _with_rows(table, missing.astype(np.int64))
    filled = {name: _filled(table, name, values, fill) for name, values in table.columns.items()}
    return replace(table, columns=filled)


_HELP = (
    "fill='forward' repeats the last value, fill='linear' draws a line, fill='split' leaves gaps "
    "out and plays no window across them, and fill={'column': ...} says so for single columns"
)


def _check_fill(table: Table, fill: Fill) -> None:
    if isinstance(fill, Mapping):
        for name, how in fill.items():
            is_text = table.column(name).dtype.kind == "O"
            if isinstance(how, str) and not is_text:
                check_choice("way to fill a column", how, COLUMN_FILLS)
            elif is_text and how is not None and not isinstance(how, str):
                raise ArgumentTypeError(
                    f"column {name!r} holds strings; fill it with one, not {how!r}"
                )
            elif how is not None and not is_text:
                check_real(f"what column {name!r} is filled with", how)
    elif fill is not None:
        check_choice("way to fill gaps", fill, FILLS)


def _missing_steps(table: Table) -> NDArray[np.float64]:
    """How many rows are missing after each row, shape (rows,); times that go back are refused."""
    missing = np.zeros(len(table))
    inside = np.diff(table.segment) == 0
    if table.time is None or not inside.any():
        return missing
    wrong = inside & (table.time[1:] <= table.time[:-1])
    if wrong.any():
        row = int(np.argmax(wrong)) + 1
        raise ArgumentError(
            f"times increase, but {table.where(row)} is not after the row before it"
        )
    steps = np.where(inside, _differences(table.time), 0.0)
    step = float(np.median(steps[inside]))
    with np.errstate(invalid="ignore"):
        ratio = steps / step
        whole = np.rint(ratio)
        even = (np.abs(ratio - whole) <= TOLERANCE * whole) & (whole >= 1)  # not if it is infinite
    odd = inside & ~even
    if odd.any():
        if _are_months(table.time):
            return missing
        row = int(np.argmax(odd)) + 1
        raise ArgumentError(
            f"times are evenly spaced, but {table.where(row)} is {ratio[row - 1]:.3g} steps after "
            "the row before it; resample the table, or drop the times to take rows as they are"
        )
    missing[:-1][inside] = whole[inside] - 1
    return missing


def _differences(time: NDArray[Any]) -> NDArray[np.float64]:
    """From each time to the next, shape (rows - 1,), in whatever unit; right if they increase."""
    if time.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.diff(time)
    # Without a sign no difference is too large.
    return np.diff(time.astype(np.int64).view(np.uint64)).astype(np.float64)


def _are_months(time: NDArray[Any]) -> bool:
    """Whether the times are single days of successive months or years, however long these are."""
    if time.dtype.kind != "M":
        return False
    days = np.diff(time.astype("datetime64[D]").astype(np.int64))
    return bool(days.min() >= 28 and days.max() <= 366)


def _split(table: Table, missing: NDArray[np.float64]) -> Table:
    """Without the rows that lack a value; segments end before gaps."""
    bad: BoolArray = np.zeros(len(table), dtype=bool)
    for values in table.columns.values():
        bad |= missing_values(values)
    if bad.all():
        raise ArgumentError("every row of the table lacks a value")
    begins = np.ones(len(table), dtype=bool)
    begins[1:] = (np.diff(table.segment) != 0) | (missing[:-1] > 0) | bad[:-1]
    segment = np.cumsum(begins) - 1
    return replace(table, segment=segment).take(~bad)


def _with_rows(table: Table, missing: NDArray[np.int64]) -> Table:
    """The table with a row of missing values for every step that it lacks."""
    place = np.arange(len(table)) + np.concatenate([[0], np.cumsum(missing)[:-1]])
    length = len(table) + int(missing.sum())
    is_given = np.zeros(length, dtype=bool)
    is_given[place] = True
    last = np.maximum.accumulate(np.where(is_given, np.arange(length), 0))
    source = np.cumsum(is_given) - 1  # the last row that was given
    columns = {}
    for name, values in table.columns.items():
        wide = values if values.dtype.kind in "fO" else values.astype(np.float64)
        column = wide[source]
        column[~is_given] = None if wide.dtype.kind == "O" else np.nan
        columns[name] = column
    time = table.time
    if time is not None:
        inside = np.diff(table.segment) == 0
        step = np.diff(time)[inside].min()
        time = time[source] + step * (np.arange(length) - last)
    return Table(columns, time, table.segment[source], table.row[source], table.zone)


def _filled(table: Table, name: str, values: Column, fill: Fill) -> Column:
    missing = missing_values(values)
    if not missing.any():
        return values
    how = fill.get(name) if isinstance(fill, Mapping) else fill
    if how is None:
        raise ArgumentError(
            f"column {name!r} has no value in {int(missing.sum())} of {len(table)} rows, the first "
            f"is {table.where(int(np.argmax(missing)))}; {_HELP}"
        )
    if how == "forward":
        return _forward(table, name, values, missing)
    if how == "linear":
        return _linear(table, name, values, missing)
    out = values.copy()
    out[missing] = how
    return out


def _forward(table: Table, name: str, values: Column, missing: BoolArray) -> Column:
    source = np.maximum.accumulate(np.where(missing, -1, np.arange(len(values))))
    lost = (source < 0) | (table.segment[source] != table.segment)
    if lost.any():
        raise ArgumentError(
            f"column {name!r} has no value before {table.where(int(np.argmax(lost)))} to repeat "
            "(fill='forward'); begin the table later, or give the value: "
            f"fill={{{name!r}: 0.0}}"
        )
    return values[source]


def _linear(table: Table, name: str, values: Column, missing: BoolArray) -> Column:
    if values.dtype.kind == "O":
        raise ArgumentError(
            f"column {name!r} holds strings, which 'linear' cannot fill; say for each column how "
            f"it is filled: fill={{{name!r}: 'forward', ...: 'linear'}}"
        )
    out = values.copy()
    for number in np.unique(table.segment[missing]).tolist():
        rows = np.flatnonzero(table.segment == number)
        known = rows[~missing[rows]]
        if not len(known) or missing[rows[0]] or missing[rows[-1]]:
            raise ArgumentError(
                f"column {name!r} begins or ends without a value around "
                f"{table.where(int(rows[np.argmax(missing[rows])]))}, where fill='linear' has "
                "nothing to draw a line from"
            )
        out[rows] = np.interp(rows, known, values[known])
    return out
