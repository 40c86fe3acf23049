"""Tables of what nobody controls: named columns, time by rows.

DataFrames are read through narwhals, and times are pandas' (extra ``data``). NumPy arrays and
mappings of arrays need neither, as long as they have no dates and no rows to fill in. Rows follow
each other in UTC; days and hours are those of the clock on the wall of the table's time zone.
"""

from __future__ import annotations

import importlib
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import as_array, as_list, check_choice, kind_of, shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import BoolArray

#: One column, shape (rows,): numbers, or an array of objects that holds strings and None.
Column = NDArray[Any]


def require(module: str) -> Any:
    """A module of the extra ``data``, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"DataFrames, dates and filling need {module.partition('.')[0]}: "
            'pip install "exo-envs[data]"'
        ) from error


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of one length, and which rows follow each other."""

    columns: dict[str, Column]
    time: Any  # (rows,) numbers, or a DatetimeIndex of pandas; None if the table does not say when
    segment: NDArray[np.int64]  # (rows,): rows of one segment follow each other, and no others do
    row: NDArray[np.int64]  # (rows,): where each row was in the table that was given

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.segment)

    def take(self, rows: Any) -> Table:
        """Some of the rows: a mask of them, or their numbers."""
        return Table(
            {name: values[rows] for name, values in self.columns.items()},
            None if self.time is None else self.time[rows],
            self.segment[rows],
            self.row[rows],
        )

    @property
    def has_dates(self) -> bool:
        """Whether the times are dates, and not numbers."""
        return self.time is not None and not isinstance(self.time, np.ndarray)

    @property
    def wall_time(self) -> NDArray[Any] | None:
        """The times as an array, by the clock on the wall if the table has a time zone."""
        time = self.time.tz_localize(None).to_numpy() if self.has_dates else self.time
        return None if time is None else np.asarray(time)

    def adding(self, columns: Mapping[str, Column]) -> Table:
        """The same table with more columns; a name that is taken is refused."""
        for name in columns:
            if name in self.columns:
                raise ArgumentError(f"the table has a column {name!r} already; rename or drop it")
        return replace(self, columns={**self.columns, **columns})

    def column(self, name: str) -> Column:
        """One column by its name."""
        check_choice("column", name, self.columns)
        return self.columns[name]

    def where(self, index: int) -> str:
        """A row for an error message: its number, and its time if it has one."""
        time = self.take([index]).wall_time
        when = "" if time is None else f" (time {time[0]})"
        return f"row {int(self.row[index])}{when}"


# --- reading --------------------------------------------------------------------------------------


def read_table(
    frame: Any,
    *,
    columns: Sequence[str] | None = None,
    time: str | None = None,
    episode: str | None = None,
) -> Table:
    """Read a table; what is no table is refused.

    Args:
        frame: a DataFrame that narwhals knows (pandas, polars, pyarrow, ...), a structured NumPy
            array, a 2-D NumPy array (with ``columns``), or a mapping from names to arrays.
        columns: the names of the columns of a 2-D array; of any other table, those to read
            (``time`` and ``episode`` need not be among them).
        time: the column that says when. By default a DatetimeIndex of pandas, or the only column
            that holds dates. If it has a time zone, days and hours are those of that zone.
        episode: the column that says to which episode a row belongs. Rows of an episode stand
            together.
    """
    names = None if columns is None else as_list("the names in columns", columns)
    given, index = _read_columns(frame, names)
    length = _common_length(given)
    for name in (*(n for n in (time, episode) if n is not None), *(names or ())):
        check_choice("column", name, given)
    if time is None and index is None:
        dates = [name for name, values in given.items() if values.dtype.kind == "M"]
        time = dates[0] if len(dates) == 1 else None
    when = index if time is None else given[time]
    wanted = [name for name in names or given if name not in (time, episode)]
    if not wanted:
        raise ArgumentError("the table has no columns besides those of time and episode")
    segment = np.zeros(length, dtype=np.int64)
    if episode is not None:
        segment = _episodes(episode, np.asarray(given[episode]))
    return Table(
        {name: as_column(name, given[name]) for name in wanted},
        None if when is None else _as_time(time or "the index", when),
        segment,
        np.arange(length),
    )


def _read_columns(frame: Any, names: list[Any] | None) -> tuple[dict[str, Any], Any]:
    """The columns by name, and the index if it is one of dates."""
    if isinstance(frame, np.ndarray) and frame.dtype.names is not None:
        return {name: frame[name] for name in frame.dtype.names}, None
    if isinstance(frame, np.ndarray):
        if frame.ndim != 2:
            raise ArgumentError(f"an array has two axes, time and columns, not shape {frame.shape}")
        if names is None or len(names) != frame.shape[1]:
            raise ArgumentError(
                f"an array of {frame.shape[1]} columns needs as many names: columns=[...], not "
                f"{shown(names)}"
            )
        return _by_name(names, [*frame.T]), None
    if isinstance(frame, Mapping):
        arrays = [as_array(f"column {str(name)!r}", values) for name, values in frame.items()]
        return _by_name([*frame], arrays), None
    if not hasattr(type(frame), "columns"):
        raise _no_table(frame)
    return _read_frame(frame)


def _read_frame(frame: Any) -> tuple[dict[str, Any], Any]:
    """The same of a DataFrame."""
    narwhals = require("narwhals.stable.v1")
    try:
        table = narwhals.from_native(frame)
    except TypeError:
        raise _no_table(frame) from None
    except ValueError:  # that names come twice
        _by_name(list(frame.columns), list(frame.columns))
        raise
    if isinstance(table, narwhals.LazyFrame):
        raise ArgumentTypeError(
            f"{kind_of(frame)} is read when it is needed: give it with .collect()"
        )
    index = narwhals.maybe_get_index(table)
    series = [table.get_column(name) for name in table.columns]
    return (
        _by_name(table.columns, [_values_of(column) for column in series]),
        index if getattr(getattr(index, "dtype", None), "kind", None) == "M" else None,
    )


def _values_of(series: Any) -> Any:
    """A column of narwhals as an array, or a DatetimeIndex if it has a time zone."""
    zone = getattr(series.dtype, "time_zone", None)
    if zone is None:
        values = np.asarray(series.to_numpy())
        return values if values.ndim == 1 else np.asarray(list(values), dtype=object)
    pandas, native = require("pandas"), series.to_native()
    if isinstance(native, pandas.Series):
        return pandas.DatetimeIndex(native)
    return pandas.DatetimeIndex(series.to_numpy(), tz="UTC").tz_convert(zone)


def _by_name(names: list[Any], columns: list[Any]) -> dict[str, Any]:
    """Columns by their names, which are different as text."""
    texts = [str(name) for name in names]
    for text in texts:
        if texts.count(text) > 1:
            raise ArgumentError(f"the table has more than one column {text!r}")
    return dict(zip(texts, columns, strict=True))


def _no_table(frame: Any) -> TypeError:
    return ArgumentTypeError(
        "a table is a pandas or polars DataFrame, a NumPy array or a mapping of columns, not "
        f"{kind_of(frame)}"
    )


def _common_length(columns: Mapping[str, Any]) -> int:
    """The number of rows, which all columns have; there is at least one."""
    for name, values in columns.items():
        _check_axes(name, values)
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise ArgumentError(f"the columns have different lengths: {sorted(lengths)}")
    if not sum(lengths):
        raise ArgumentError("the table has no rows")
    return lengths.pop()


def _check_axes(name: str, values: Any) -> None:
    if values.ndim != 1:
        raise ArgumentError(
            f"column {name!r} has one axis, a value for each row, not shape {values.shape}"
        )


def _as_time(name: str, values: Any) -> Any:
    """Times as a DatetimeIndex, or as numbers of 64 bits; none is missing."""
    kind = values.dtype.kind
    if kind in "OUTM":
        time = _as_dates(name, values)
        missing = np.asarray(time.isna())
    elif kind in "iuf":
        is_whole = kind != "f" and int(values.max()) < 2**63
        time = values.astype(np.int64 if is_whole else np.float64)
        missing = ~np.isfinite(time)
    else:
        raise ArgumentTypeError(f"the times in {name!r} are dates or numbers, not {values.dtype}")
    if missing.any():
        raise ArgumentError(
            f"{int(missing.sum())} times in {name!r} are missing, the first in row "
            f"{int(np.argmax(missing))}"
        )
    return time


def _as_dates(name: str, values: Any) -> Any:
    pandas = require("pandas")
    if values.dtype.kind == "M":
        return pandas.DatetimeIndex(values)
    try:
        dates = pandas.to_datetime(values.astype(object), format="ISO8601")
        time = pandas.DatetimeIndex(dates)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(
            f"the times in {name!r} are no dates that pandas reads (such as "
            f"'2024-01-31T12:00'): {shown(values[0])}"
        ) from None
    if time.tz is not None:
        raise ArgumentError(
            f"the times in {name!r} have a time zone each: {shown(values[0])}; give them as a "
            "pandas or polars column with one time zone, or without"
        )
    return time


def _episodes(name: str, values: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers of the episodes, in the order in which they begin."""
    listed = values.tolist()
    if any(_is_missing(value) for value in listed):
        raise ArgumentError(f"some rows have no episode: {name!r} lacks values")
    try:
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


def as_column(name: str, values: Any) -> Column:
    """Numbers as they are; strings and what is missing among them as objects."""
    if getattr(getattr(values, "dtype", None), "kind", None) not in ("m", "M"):
        values = as_array(f"column {name!r}", values)
    _check_axes(name, values)
    kind = values.dtype.kind
    if kind in "mM":
        raise ArgumentError(
            f"column {name!r} holds dates or durations; give time={name!r}, or drop it"
        )
    if kind == "S":
        try:
            values = values.astype(str)
        except UnicodeDecodeError:
            raise ArgumentError(
                f"column {name!r} holds bytes that are no text; decode them first"
            ) from None
    if kind in "OUTS":
        values = _as_text_or_numbers(name, values.astype(object))
    elif kind not in "biuf":
        raise ArgumentTypeError(f"column {name!r} holds numbers or strings, not {values.dtype}")
    if values.dtype.kind == "f" and np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise ArgumentError(f"column {name!r} holds {values[row]} in row {row}")
    return np.asarray(values)


def _as_text_or_numbers(name: str, values: NDArray[Any]) -> Column:
    """Objects that are strings or missing as they are, and other numbers as floats."""
    missing = np.array([_is_missing(value) for value in values], dtype=bool)
    present = values[~missing]
    if all(isinstance(value, str) for value in present):
        out = values.copy()
        out[missing] = None
        return out
    for value in present:
        if not isinstance(value, (numbers.Real, Decimal, np.bool_)):
            raise ArgumentTypeError(
                f"column {name!r} holds numbers or strings, not both or something else: "
                f"{shown(value)}"
            )
    out = np.full(len(values), np.nan)
    try:
        out[~missing] = present.astype(np.float64)
    except (ValueError, OverflowError):
        raise ArgumentError(f"column {name!r} holds a number that no 64-bit float is") from None
    return out


def _is_missing(value: Any) -> bool:
    """None, NaN, or what pandas has for either."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def missing_values(values: Column) -> BoolArray:
    """Where a column has no value, shape (rows,)."""
    if values.dtype.kind == "O":
        return np.array([not isinstance(value, str) for value in values], dtype=bool)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
