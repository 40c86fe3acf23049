"""Rows as a model needs them: none missing, filled only as the user says; later ones held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import check_choice, check_real, shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import BoolArray
from exo_envs.sources.tables.tables import Column, Table, missing_values, require

Fill = str | Mapping[str, Any] | None

#: How whole tables, and how single columns are filled.
FILLS, COLUMN_FILLS = ("forward", "linear", "split"), ("forward", "linear")
#: How far apart two equal steps of time may be, as a share of a step: times may be rounded.
TOLERANCE = 1e-6
#: Rows that filling adds at most: a time that was mistyped would take all memory.
MAX_ADDED = 10_000_000


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
            f"first after {table.where(int(np.argmax(missing > 0)))}; {_HOW_TO_FILL}"
        )
    if fill == "split":
        return _split_at_gaps(table, missing)
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


_HOW_TO_FILL = (
    "fill='forward' repeats the last value, fill='linear' draws a line, fill='split' leaves gaps "
    "out and plays no window across them, and fill={'column': ...} says so for single columns"
)


def _check_fill(table: Table, fill: Fill) -> None:
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


def _missing_steps(table: Table) -> NDArray[np.float64]:
    """How many rows are missing after each row, shape (rows,); times that go back are refused."""
    missing = np.zeros(len(table))
    inside = np.diff(table.segment) == 0
    if table.time is None or not inside.any():
        return missing
    wrong = inside & np.asarray(table.time[1:] <= table.time[:-1])
    if wrong.any():
        row = int(np.argmax(wrong)) + 1
        raise ArgumentError(
            f"times increase, but {table.where(row)} is not after the row before it"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.where(inside, _differences(table.time), 0.0)
        ratio = steps / float(np.median(steps[inside]))
        whole = np.rint(ratio)
        even = (np.abs(ratio - whole) <= TOLERANCE * whole) & (whole >= 1)  # not if it is infinite
    odd = inside & ~even
    if odd.any():
        if _are_months(table):
            return missing
        row = int(np.argmax(odd)) + 1
        raise ArgumentError(
            f"times are evenly spaced, but {table.where(row)} is {ratio[row - 1]:.3g} steps after "
            "the row before it; resample the table, or drop the times to take rows as they are"
        )
    missing[:-1][inside] = whole[inside] - 1
    return missing


def _differences(time: Any) -> NDArray[np.float64]:
    """From each time to the next, shape (rows - 1,), in whatever unit; right if they increase."""
    if time.dtype.kind == "f":
        return np.diff(time)
    # Without a sign no difference is too large.
    return np.diff(np.asarray(time.astype(np.int64)).view(np.uint64)).astype(np.float64)


def _are_months(table: Table) -> bool:
    """Whether the times are single days of successive months or years, however long these are."""
    if not table.has_dates:
        return False
    days = np.diff(np.asarray(table.wall_time).astype("datetime64[D]").astype(np.int64))
    return bool(days.min() >= 28 and days.max() <= 366)


def _split_at_gaps(table: Table, missing: NDArray[np.float64]) -> Table:
    """Without the rows that lack a value; segments end before gaps."""
    lacking = np.any([missing_values(values) for values in table.columns.values()], axis=0)
    if lacking.all():
        raise ArgumentError("every row of the table lacks a value")
    begins = np.ones(len(table), dtype=bool)
    begins[1:] = (np.diff(table.segment) != 0) | (missing[:-1] > 0) | lacking[:-1]
    return replace(table, segment=np.cumsum(begins) - 1).take(~lacking)


def _with_rows(table: Table, missing: NDArray[np.int64]) -> Table:
    """The table with a row of missing values for every step that it lacks."""
    pandas = require("pandas")
    place = np.arange(len(table)) + np.append(0, np.cumsum(missing)[:-1])
    everywhere = np.arange(place[-1] + 1)
    last = np.searchsorted(place, everywhere, side="right") - 1  # the row given last before each

    def spread(values: Column) -> Column:
        wide = values if values.dtype.kind in "fO" else values.astype(np.float64)
        return pandas.Series(wide, index=place, dtype=wide.dtype).reindex(everywhere).to_numpy()

    step = (table.time[1:] - table.time[:-1])[np.diff(table.segment) == 0].min()
    return Table(
        {name: spread(values) for name, values in table.columns.items()},
        table.time[last] + step * (everywhere - place[last]),
        table.segment[last],
        table.row[last],
    )


def _filled(table: Table, name: str, values: Column, fill: Fill) -> Column:
    missing = missing_values(values)
    if not missing.any():
        return values
    how = fill.get(name) if isinstance(fill, Mapping) else fill
    if how is None:
        raise ArgumentError(
            f"column {name!r} has no value in {int(missing.sum())} of {len(table)} rows, the first "
            f"is {table.where(int(np.argmax(missing)))}; {_HOW_TO_FILL}"
        )
    if how not in COLUMN_FILLS:
        out = values.copy()
        out[missing] = how
        return out
    if how == "linear" and values.dtype.kind == "O":
        raise ArgumentError(
            f"column {name!r} holds strings, which 'linear' cannot fill; say for each column how "
            f"it is filled: fill={{{name!r}: 'forward', ...: 'linear'}}"
        )
    series = require("pandas").Series(values, dtype=values.dtype)
    parts = series.groupby(table.segment)
    filled = parts.ffill()
    if how == "linear":
        filled = series.interpolate().where(filled.notna() & parts.bfill().notna())
    lost = missing_values(filled.to_numpy())
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


# --- earlier and later ----------------------------------------------------------------------------


def is_table(test: Any) -> bool:
    """Whether ``test`` is a second table, and not a share or a time."""
    if isinstance(test, np.ndarray):
        return test.ndim > 0 or test.dtype.names is not None
    is_frame = hasattr(test, "collect") or hasattr(test, "columns")
    return is_frame or (
        isinstance(test, (Mapping, Sequence)) and not isinstance(test, (str, bytes))
    )


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
    gap = 0 if by_segment else gap
    training, held_out = rows < first - gap, rows >= first
    if not training.any() or not held_out.any():
        raise ArgumentError(
            f"test={shown(test)} leaves {int(training.sum())} of {len(table)} rows to learn from "
            f"and {int(held_out.sum())} to be judged on, with {gap} left out between them; both "
            "need some"
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
    if not table.has_dates:
        raise ArgumentError(
            f"test={shown(test)} is no share (0.3), no row (5000) and no second table; a date "
            "needs a table with dates: a DatetimeIndex, or time='...'"
        )
    try:
        when = require("pandas").to_datetime(test, format="ISO8601")
        is_local = when.tzinfo is None
    except (TypeError, ValueError, OverflowError, AttributeError):
        raise ArgumentError(
            "test is a share (0.3), a row (5000), a date ('2024-07-01') or a table, not "
            f"{shown(test)}"
        ) from None
    if not is_local and table.time.tz is None:
        raise ArgumentError(
            f"{shown(test)} has a time zone, and the times of the table have none; give both one, "
            "or none"
        )
    later = (table.time.tz_localize(None) if is_local else table.time) >= when
    return int(np.argmax(later)) if np.any(later) else len(table)
