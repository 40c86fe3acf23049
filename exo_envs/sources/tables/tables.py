"""Tables of what nobody controls, from pandas, polars or NumPy: named columns, time by rows."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import as_array, as_list, check_choice, kind_of, shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import BoolArray
from exo_envs.sources.tables.zones import wall_time, zone_of

#: One column, shape (rows,): numbers, or an array of objects that holds strings and None.
Column = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of one length, and which rows follow each other."""

    columns: dict[str, Column]
    time: NDArray[Any] | None  # (rows,) datetime64 or numbers, if the table says when
    segment: NDArray[np.int64]  # (rows,): rows of one segment follow each other, and no others do
    row: NDArray[np.int64]  # (rows,): where each row was in the table that was given
    zone: tzinfo | None = None  # of the clock on the wall; the times are in UTC then

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
            self.zone,
        )

    @property
    def wall_time(self) -> NDArray[Any] | None:
        """The times by the clock on the wall, where the table says in which time zone that is."""
        return None if self.time is None else wall_time(self.time, self.zone)

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


def read_table(
    frame: Any,
    *,
    columns: Sequence[str] | None = None,
    time: str | None = None,
    episode: str | None = None,
) -> Table:
    """Read a table; what is no table is refused.

    Args:
        frame: a pandas or polars DataFrame, a structured NumPy array, a 2-D NumPy array (with
            ``columns``), or a mapping from names to arrays.
        columns: the names of the columns of a 2-D array; of any other table, those to read
            (``time`` and ``episode`` need not be among them).
        time: the column that says when. By default a DatetimeIndex of pandas, or the only column
            that holds dates. If it has a time zone, days and hours are those of that zone.
        episode: the column that says to which episode a row belongs. Rows of an episode stand
            together.
    """
    names = None if columns is None else as_list("the names in columns", columns)
    given = _named_arrays(frame, names)
    length = _common_length(given)
    for name in (time, episode):
        if name is not None:
            check_choice("column", name, given)
    for name in names or ():
        check_choice("column", name, given)
    index = _datetime_index(frame)
    if time is None and index is None:
        dates = [name for name, values in given.items() if values.dtype.kind == "M"]
        time = dates[0] if len(dates) == 1 else None
    when = index if time is None else given[time]
    wanted = [name for name in given if name not in (time, episode)]
    if names is not None and not _is_plain(frame):
        wanted = [name for name in names if name not in (time, episode)]
    if not wanted:
        raise ArgumentError("the table has no columns besides those of time and episode")
    segment = np.zeros(length, dtype=np.int64)
    if episode is not None:
        segment = _episodes(episode, given[episode])
    return Table(
        {name: as_column(name, given[name]) for name in wanted},
        None if when is None else _as_time(time or "the index", when),
        segment,
        np.arange(length),
        None if when is None else zone_of(frame.index if time is None else _column(frame, time)),
    )


def _column(frame: Any, name: str) -> Any:
    """A column as it was given; None of a 2-D array."""
    return None if _is_plain(frame) else frame[name]


def _common_length(columns: Mapping[str, NDArray[Any]]) -> int:
    """The number of rows, which all columns have; there is at least one."""
    for name, values in columns.items():
        check_axes(name, values)
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise ArgumentError(f"the columns have different lengths: {sorted(lengths)}")
    if not sum(lengths):
        raise ArgumentError("the table has no rows")
    return lengths.pop()


def _is_plain(frame: Any) -> bool:
    """Whether it is a 2-D array, whose columns have no names of their own."""
    return isinstance(frame, np.ndarray) and frame.dtype.names is None


def _named_arrays(frame: Any, columns: list[Any] | None) -> dict[str, NDArray[Any]]:
    if isinstance(frame, np.ndarray):
        if frame.dtype.names is not None:
            return {name: np.asarray(frame[name]) for name in frame.dtype.names}
        if frame.ndim != 2:
            raise ArgumentError(f"an array has two axes, time and columns, not shape {frame.shape}")
        if columns is None or len(columns) != frame.shape[1]:
            raise ArgumentError(
                f"an array of {frame.shape[1]} columns needs as many names: columns=[...], not "
                f"{shown(columns)}"
            )
        _check_different(columns)
        return {str(name): frame[:, j] for j, name in enumerate(columns)}
    if isinstance(frame, Mapping):
        _check_different(list(frame))
        return {
            str(name): as_array(f"column {str(name)!r}", values) for name, values in frame.items()
        }
    if hasattr(frame, "collect") and not hasattr(frame, "to_numpy"):
        raise ArgumentTypeError(
            f"{kind_of(frame)} is read when it is needed: give it with .collect()"
        )
    names = getattr(frame, "columns", None)
    if names is None or not hasattr(frame, "__getitem__"):
        raise ArgumentTypeError(
            "a table is a pandas or polars DataFrame, a NumPy array or a mapping of columns, not "
            f"{kind_of(frame)}"
        )
    names = as_list("the names of the table's columns", names)
    _check_different(names)
    return {str(name): _to_numpy(frame[name]) for name in names}


def _check_different(names: list[Any]) -> None:
    """Refuse names of columns that are the same as text."""
    texts = [str(name) for name in names]
    if len(set(texts)) != len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise ArgumentError(f"the table has more than one column {twice!r}")


def _to_numpy(series: Any) -> NDArray[Any]:
    """A column of a DataFrame; categories become what they stand for, times lose their zone."""
    if hasattr(series, "dt") and getattr(series.dtype, "tz", None) is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    values = np.asarray(series.to_numpy() if hasattr(series, "to_numpy") else series)
    return values if values.ndim == 1 else np.asarray(list(values), dtype=object)


def _datetime_index(frame: Any) -> NDArray[Any] | None:
    """The index of a pandas DataFrame, if it is made of dates."""
    index = getattr(frame, "index", None)
    if callable(index) or index is None or not hasattr(index, "to_numpy"):
        return None
    if getattr(index, "tz", None) is not None:
        index = index.tz_convert("UTC").tz_localize(None)
    values = np.asarray(index.to_numpy())
    return values if values.dtype.kind == "M" else None


def _as_time(name: str, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind in "OUT":
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # a time zone, which would be lost
                values = values.astype("datetime64[ns]")
        except (UserWarning, DeprecationWarning):  # the latter is that of older releases
            raise ArgumentError(
                f"the times in {name!r} have a time zone each: {shown(values[0])}; give them as a "
                "pandas or polars column with one time zone, or without"
            ) from None
        except (TypeError, ValueError, OverflowError):
            raise ArgumentError(
                f"the times in {name!r} are no dates that NumPy reads (such as "
                f"'2024-01-31T12:00'): {shown(values[0])}"
            ) from None
    if values.dtype.kind not in "Miuf":
        raise ArgumentTypeError(f"the times in {name!r} are dates or numbers, not {values.dtype}")
    missing = np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values)
    if missing.any():
        raise ArgumentError(
            f"{int(missing.sum())} times in {name!r} are missing, the first in row "
            f"{int(np.argmax(missing))}"
        )
    if values.dtype.kind == "M":
        return values
    is_whole = values.dtype.kind != "f" and int(values.max()) < 2**63
    return values.astype(np.int64 if is_whole else np.float64)


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


def check_axes(name: str, values: NDArray[Any]) -> None:
    """Refuse a column that is a single value, or a table."""
    if values.ndim != 1:
        raise ArgumentError(
            f"column {name!r} has one axis, a value for each row, not shape {values.shape}"
        )


def as_column(name: str, values: Any) -> Column:
    """Numbers as they are; strings and what is missing among them as objects."""
    values = as_array(f"column {name!r}", values)
    check_axes(name, values)
    if values.dtype.kind in "mM":
        raise ArgumentError(
            f"column {name!r} holds dates or durations; give time={name!r}, or drop it"
        )
    if values.dtype.kind == "S":
        try:
            values = values.astype(str)
        except UnicodeDecodeError:
            raise ArgumentError(
                f"column {name!r} holds bytes that are no text; decode them first"
            ) from None
    if values.dtype.kind in "OUT":
        values = _as_text_or_numbers(name, values.astype(object))
    if values.dtype.kind not in "biufO":
        raise ArgumentTypeError(f"column {name!r} holds numbers or strings, not {values.dtype}")
    if values.dtype.kind == "f" and np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise ArgumentError(f"column {name!r} holds {values[row]} in row {row}")
    return values


def _as_text_or_numbers(name: str, values: NDArray[Any]) -> Column:
    """Objects that are strings or missing as they are, and other numbers as floats."""
    if {type(value) for value in values} <= {str, type(None)}:
        return values
    missing = np.array([_is_missing(value) for value in values], dtype=bool)
    present = values[~missing]
    if all(isinstance(value, str) for value in present):
        out = values.copy()
        out[missing] = None
        return out
    odd = next((value for value in present if not _is_number(value)), None)
    if odd is not None:
        raise ArgumentTypeError(
            f"column {name!r} holds numbers or strings, not both or something else: {shown(odd)}"
        )
    out = np.full(len(values), np.nan)
    try:
        out[~missing] = present.astype(np.float64)
    except (ValueError, OverflowError):
        raise ArgumentError(f"column {name!r} holds a number that no 64-bit float is") from None
    return out


def _is_number(value: Any) -> bool:
    """Whether it is a number, or a truth; not a complex one."""
    return isinstance(value, (numbers.Real, Decimal, np.bool_))


def _is_missing(value: Any) -> bool:
    """None, NaN, or what pandas has for either."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def missing_values(values: Column) -> BoolArray:
    """Where a column has no value, shape (rows,)."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        return np.array([value is None for value in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)
