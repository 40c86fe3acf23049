"""Tables of what nobody controls: named columns, time by rows, read from whatever holds them.

DataFrames other than pandas' are read through narwhals; dates, missing strings and filling are
pandas' (extra ``data``). NumPy arrays and mappings of numbers or strings need neither. Rows follow
each other in UTC; days and hours are those of the clock on the wall of the table's time zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import as_array, as_list, check_choice, kind_of, shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, require
from exo_envs.core.mdp import BoolArray

#: One column, shape (rows,): numbers, or an array of objects that holds strings and None.
Column = NDArray[Any]


def data_module(module: str) -> Any:
    """A module of the extra ``data``, or an error that says how to get it."""
    package = module.partition(".")[0]
    what = "DataFrames, dates, missing strings and filling"
    return require(module, f'{what} need {package}: pip install "exo-envs[data]"')


@dataclass(frozen=True, eq=False)
class TimedTable:
    """Columns of one length, and which rows follow each other."""

    columns: dict[str, Column]
    time: Any  # (rows,) numbers, or a DatetimeIndex of pandas; None if the table does not say when
    segment: NDArray[np.int64]  # (rows,): rows of one segment follow each other, and no others do
    row: NDArray[np.int64]  # (rows,): where each row was in the table that was given

    def __len__(self) -> int:
        return len(self.segment)

    def take(self, rows: Any) -> TimedTable:
        """Some of the rows: a mask of them, or their numbers."""
        return TimedTable(
            {name: values[rows] for name, values in self.columns.items()},
            None if self.time is None else self.time[rows],
            self.segment[rows],
            self.row[rows],
        )

    @property
    def has_dates(self) -> bool:
        return self.time is not None and not isinstance(self.time, np.ndarray)

    @property
    def wall_time(self) -> NDArray[Any] | None:
        """The times as an array, by the clock on the wall if the table has a time zone."""
        time = self.time.tz_localize(None).to_numpy() if self.has_dates else self.time
        return None if time is None else np.asarray(time)

    def adding(self, columns: Mapping[str, Column]) -> TimedTable:
        """The same table with more columns; a name that is taken is refused."""
        for name in columns:
            if name in self.columns:
                raise ArgumentError(f"the table has a column {name!r} already; rename or drop it")
        return replace(self, columns={**self.columns, **columns})

    def column(self, name: str) -> Column:
        check_choice("column", name, self.columns)
        return self.columns[name]

    def where(self, index: int) -> str:
        """A row for an error message: its number, and its time if it has one."""
        time = self.take([index]).wall_time
        when = "" if time is None else f" (time {time[0]})"
        return f"row {int(self.row[index])}{when}"


def read_table(
    frame: Any,
    *,
    columns: Sequence[str] | None = None,
    time: str | None = None,
    episode: str | None = None,
) -> TimedTable:
    """Read a table; what is no table is refused. The arguments are those of ``from_frame``."""
    names = None if columns is None else as_list("the names in columns", columns)
    pairs, index = _read_pairs(frame, names)
    given = _by_name(pairs)
    for name in (*(n for n in (time, episode) if n is not None), *(names or ())):
        check_choice("column", name, given)
    if time is None and index is None:
        dates = [name for name, values in given.items() if values.dtype.kind == "M"]
        time = dates[0] if len(dates) == 1 else None
    when = index if time is None else given[time]
    wanted = [name for name in names or given if name not in (time, episode)]
    if not wanted:
        raise ArgumentError("the table has no columns besides those of time and episode")
    row = np.arange(len(next(iter(given.values()))))
    segment = np.zeros_like(row)
    if episode is not None:
        segment = _episodes(episode, np.asarray(given[episode]))
    return TimedTable(
        {name: as_column(name, given[name]) for name in wanted},
        None if when is None else _as_time(time or "the index", when),
        segment,
        row,
    )


def _read_pairs(frame: Any, names: list[Any] | None) -> tuple[Iterable[tuple[Any, Any]], Any]:
    """Names and columns as arrays (a DatetimeIndex if they have a time zone); an index of dates."""
    if isinstance(frame, Mapping):
        pairs = ((name, as_array(f"column {str(name)!r}", v)) for name, v in frame.items())
        return pairs, None
    if isinstance(frame, np.ndarray):
        if frame.dtype.names is not None:
            return ((name, frame[name]) for name in frame.dtype.names), None
        if frame.ndim != 2:
            raise ArgumentError(f"an array has two axes, time and columns, not shape {frame.shape}")
        if names is None or len(names) != frame.shape[1]:
            raise ArgumentError(
                f"an array of {frame.shape[1]} columns needs as many names: columns=[...], not "
                f"{shown(names)}"
            )
        return zip(names, frame.T, strict=True), None
    if not hasattr(type(frame), "columns"):
        raise _no_table(frame)
    pandas = data_module("pandas")
    if not isinstance(frame, pandas.DataFrame):
        return _read_others(frame), None
    index = frame.index if isinstance(frame.index, pandas.DatetimeIndex) else None
    zoned = pandas.DatetimeTZDtype
    return (
        (name, pandas.DatetimeIndex(v) if isinstance(v.dtype, zoned) else v.to_numpy())
        for name, v in frame.items()
    ), index


def _read_others(frame: Any) -> Iterator[tuple[str, Any]]:
    """The columns of a DataFrame of another library."""
    narwhals, pandas = data_module("narwhals.stable.v1"), data_module("pandas")
    try:
        table = narwhals.from_native(frame)
    except TypeError:
        raise _no_table(frame) from None
    if isinstance(table, narwhals.LazyFrame):
        raise ArgumentTypeError(
            f"{kind_of(frame)} is read when it is needed: give it with .collect()"
        )
    for name in table.columns:
        series = table.get_column(name)
        zone, values = getattr(series.dtype, "time_zone", None), series.to_numpy()
        if zone is not None:
            values = pandas.DatetimeIndex(values, tz="UTC").tz_convert(zone)
        elif values.ndim > 1:
            values = pandas.Series([*values], dtype=object).to_numpy()
        yield name, values


def _no_table(frame: Any) -> ArgumentTypeError:
    return ArgumentTypeError(
        "a table is a pandas or polars DataFrame, a NumPy array or a mapping of columns, not "
        f"{kind_of(frame)}"
    )


def _by_name(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Columns by names that are different as text, all with as many rows, of which there is one."""
    found: dict[str, Any] = {}
    for name, values in pairs:
        if str(name) in found:
            raise ArgumentError(f"the table has more than one column {str(name)!r}")
        if values.ndim != 1:
            raise ArgumentError(
                f"column {str(name)!r} has one axis, a value for each row, not shape {values.shape}"
            )
        found[str(name)] = values
    lengths = {len(values) for values in found.values()}
    if len(lengths) > 1:
        raise ArgumentError(f"the columns have different lengths: {sorted(lengths)}")
    if not sum(lengths):
        raise ArgumentError("the table has no rows")
    return found


# --- times and episodes ---------------------------------------------------------------------------


def _as_time(name: str, values: Any) -> Any:
    """Times as a DatetimeIndex, or as numbers of 64 bits; none is missing."""
    kind = values.dtype.kind
    if kind not in "OUTMiuf":
        raise ArgumentTypeError(f"the times in {name!r} are dates or numbers, not {values.dtype}")
    if kind in "iuf":
        is_whole = kind != "f" and int(values.max()) < 2**63
        time = values.astype(np.int64 if is_whole else np.float64)
        missing = ~np.isfinite(time)
    else:
        pandas, dates = data_module("pandas"), values
        try:
            if kind != "M":
                dates = pandas.to_datetime(values.astype(object), format="ISO8601")
            time = pandas.DatetimeIndex(dates)
        except (TypeError, ValueError, OverflowError):
            raise ArgumentError(
                f"the times in {name!r} are no dates that pandas reads (such as "
                f"'2024-01-31T12:00'): {shown(values[0])}"
            ) from None
        if kind != "M" and time.tz is not None:
            raise ArgumentError(
                f"the times in {name!r} have a time zone each: {shown(values[0])}; give them as a "
                "pandas or polars column with one time zone, or without"
            )
        missing = np.asarray(time.isna())
    if missing.any():
        raise ArgumentError(
            f"{int(missing.sum())} times in {name!r} are missing, the first in row "
            f"{int(np.argmax(missing))}"
        )
    return time


def _episodes(name: str, values: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers of the episodes, in the order in which they begin."""
    listed = values.tolist()
    try:
        if any(value is None or value != value for value in listed):  # noqa: PLR0124
            raise ArgumentError(f"some rows have no episode: {name!r} lacks values")
        number = {value: k for k, value in enumerate(dict.fromkeys(listed))}
    except TypeError:
        raise ArgumentTypeError(
            f"the episodes in {name!r} are numbers, strings or dates, not {shown(listed[0])}"
        ) from None
    segment = np.array([number[value] for value in listed], dtype=np.int64)
    if (np.diff(segment) < 0).any():
        twice = listed[int(np.argmax(np.diff(segment) < 0)) + 1]
        raise ArgumentError(
            f"the rows of an episode stand together, but {name!r} = {shown(twice)} comes back "
            "after others; sort the table"
        )
    return segment


# --- values ---------------------------------------------------------------------------------------


def as_column(name: str, values: Any) -> Column:
    """Numbers as they are; strings and what is missing among them as objects."""
    kind = values.dtype.kind
    if kind in "mM":
        raise ArgumentError(
            f"column {name!r} holds dates or durations; give time={name!r}, or drop it"
        )
    if kind == "S":
        try:
            return np.char.decode(values).astype(object)
        except UnicodeDecodeError:
            raise ArgumentError(
                f"column {name!r} holds bytes that are no text; decode them first"
            ) from None
    if kind == "U":
        return np.asarray(values.astype(object))
    if kind in "OT":
        values = values.astype(object)
        missing = np.asarray(data_module("pandas").isna(values))
        if all(isinstance(value, str) for value in values[~missing]):
            values[missing] = None
            return np.asarray(values)
        numbers = np.full(len(values), np.nan)
        numbers[~missing] = [_as_float(name, value) for value in values[~missing]]
        values = numbers
    elif kind not in "biuf":
        raise ArgumentTypeError(f"column {name!r} holds numbers or strings, not {values.dtype}")
    if values.dtype.kind == "f" and np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise ArgumentError(f"column {name!r} holds {values[row]} in row {row}")
    return np.asarray(values)


def _as_float(name: str, value: Any) -> float:
    if not isinstance(value, (Real, Decimal, np.bool_)):
        raise ArgumentTypeError(
            f"column {name!r} holds numbers or strings, not both or something else: {shown(value)}"
        )
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise ArgumentError(f"column {name!r} holds a number that no 64-bit float is") from None


def missing_values(values: Column) -> BoolArray:
    """Where a column has no value, shape (rows,)."""
    if values.dtype.kind == "O":
        return np.array([value is None for value in values], dtype=bool)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)


# --- earlier and later ----------------------------------------------------------------------------


def is_table(test: Any) -> bool:
    """Whether ``test`` is a second table, and not a share, a row or a time."""
    if isinstance(test, np.ndarray):
        return test.ndim > 0 or test.dtype.names is not None
    is_frame = hasattr(test, "collect") or hasattr(test, "columns")
    return is_frame or isinstance(test, (Mapping, list, tuple))


def split(
    table: TimedTable, test: Any, *, gap: int, by_segment: bool
) -> tuple[TimedTable, TimedTable]:
    """The rows to learn from, and those that are held out; see ``test`` of ``from_frame``.

    Nothing is learned from ``gap`` rows before those held out, unless these are whole episodes
    (``by_segment``).
    """
    first, gap = _first_row(table, test, by_segment), 0 if by_segment else gap
    if by_segment and first < len(table):
        first = int(np.searchsorted(table.segment, table.segment[first]))  # of its episode
    num_training, num_later = max(0, first - gap), len(table) - first
    if not num_training or not num_later:
        raise ArgumentError(
            f"test={shown(test)} leaves {num_training} of {len(table)} rows to learn from "
            f"and {num_later} to be judged on, with {gap} left out between them; both "
            "need some"
        )
    return table.take(slice(num_training)), table.take(slice(first, None))


def _first_row(table: TimedTable, test: Any, by_segment: bool) -> int:
    """The first row that is held out, as a position in the table."""
    if isinstance(test, (float, np.floating)):
        if not 0 < test < 1:
            raise ArgumentError(f"a share of the rows is between 0 and 1, not test={shown(test)}")
        begins = np.unique(table.segment, return_index=True)[1] if by_segment else table.row
        later = round(len(begins) * (1 - float(test)))
        return int(begins[min(len(begins) - 1, later)]) if by_segment else later
    if isinstance(test, (int, np.integer)) and not isinstance(test, bool):
        return int(np.count_nonzero(table.row < test))  # whatever the size of the number
    if not table.has_dates:
        raise ArgumentError(
            f"test={shown(test)} is no share (0.3), no row (5000) and no second table; a date "
            "needs a table with dates: a DatetimeIndex, or time='...'"
        )
    try:
        when = data_module("pandas").to_datetime(test, format="ISO8601")
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
