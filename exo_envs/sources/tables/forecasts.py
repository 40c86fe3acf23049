"""Columns made of columns: lags, the calendar, and forecasts by handlers as in Grid2Op's chronics.

What is a forecast worth? A handler makes columns such as ``price_forecast_6``: what is said now
about the price six rows later. Planning with :class:`Perfect`, :class:`Noisy` and
:class:`Persistence` forecasts, or with those of a file (:class:`FromColumns`), and comparing the
backtests says what each is worth.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exo_envs.core.arguments import MAX_HORIZON, as_array, check_real, check_whole, optional, shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import BoolArray
from exo_envs.sources.tables.frames import Column, TimedTable, as_column

#: What the calendar adds, with the smallest and the largest value; Monday is 0.
CALENDAR = {"hour": (0, 23), "weekday": (0, 6), "month": (1, 12)}
Made = tuple[dict[str, Column], BoolArray]  # columns, and the rows in which all are known


def with_calendar(table: TimedTable) -> tuple[TimedTable, dict[str, tuple[int, int]]]:
    """The table with those of hour, weekday and month that change in it, and their ranges."""
    if not table.has_dates:
        raise ArgumentError(
            "calendar=True needs dates: a pandas DatetimeIndex, or time= with the name of a column "
            "that holds dates"
        )
    found = {"hour": table.time.hour, "weekday": table.time.day_of_week, "month": table.time.month}
    parts = {name: np.asarray(values, dtype=np.int64) for name, values in found.items()}
    parts = {name: values for name, values in parts.items() if (values != values[0]).any()}
    return table.adding(parts), {name: CALENDAR[name] for name in parts}


def with_lags_and_forecasts(
    table: TimedTable,
    lags: Mapping[str, int | Sequence[int]] | None,
    forecasts: Mapping[str, Forecast | None] | None,
) -> tuple[TimedTable, int]:
    """The rows that have all lags and forecasts, with them; and how many rows they span."""
    columns: dict[str, Column] = {}
    known: BoolArray = np.ones(len(table), dtype=bool)
    used: set[str] = set()
    longest = ahead = 0
    for name, given in _settings("lags", lags).items():
        steps = _steps(f"the lags of {name!r}", given)
        made, here = shifted(table, name, {f"{name}_lag_{step}": step for step in steps})
        columns |= made
        known &= here
        longest = max(longest, *steps)
    table = table.adding(columns)
    columns = {}
    for name, handler in _settings("forecasts", forecasts).items():
        table.column(name)
        if handler is None:
            continue
        if not isinstance(handler, Forecast):
            raise ArgumentTypeError(
                f"the forecast of {name!r} is Perfect, Noisy, Persistence, FromColumns or None, "
                f"not {shown(handler)}"
            )
        made, here = handler.columns(table, name)
        for key, values in made.items():
            columns[key] = as_column(key, np.asarray(values))
            if len(columns[key]) != len(table):
                raise ArgumentError(
                    f"{type(handler).__name__} made {key!r} with {len(columns[key])} values for "
                    f"{len(table)} rows"
                )
        known &= here
        used |= set(handler.used)
        ahead = max(ahead, handler.ahead)
    kept = {name: values for name, values in table.columns.items() if name not in used}
    if not known.any():
        raise ArgumentError(
            f"no row has all lags (up to {longest}) and forecasts (up to {ahead} rows "
            "ahead): the parts of the table are too short"
        )
    return replace(table, columns=kept).adding(columns).take(known), longest + ahead


def shifted(table: TimedTable, name: str, earlier: Mapping[str, int]) -> Made:
    """New columns with the values of so many rows earlier (later, if negative)."""
    values, row = table.column(name), np.arange(len(table))
    columns: dict[str, Column] = {}
    known: BoolArray = np.ones(len(table), dtype=bool)
    for key, steps in earlier.items():
        source = np.clip(row - steps, 0, len(table) - 1)
        columns[key] = values[source]
        known &= (source == row - steps) & (table.segment[source] == table.segment)
    return columns, known


class Forecast(ABC):
    """A handler: which columns say what about the future of a column."""

    #: Columns of the table that are no longer columns of their own.
    used: tuple[str, ...] = ()
    #: Rows that the columns look ahead in the record: later rows are kept apart by as many.
    ahead: int = 0

    @abstractmethod
    def columns(self, table: TimedTable, name: str) -> Made:
        """New columns, and the rows in which all of them are known."""


@dataclass(frozen=True)
class Perfect(Forecast):
    """What will be: the value ``steps`` rows later. It is the most that any forecast is worth."""

    steps: int | Sequence[int] = 1

    @property
    def ahead(self) -> int:  # type: ignore[override]
        return max(_steps("the steps of a forecast", self.steps))

    def columns(self, table: TimedTable, name: str) -> Made:
        return shifted(table, name, {key: -step for step, key in _keys(name, self.steps).items()})


@dataclass(frozen=True)
class Noisy(Perfect):
    """What will be, plus normal noise.

    Args:
        steps: rows ahead.
        sigma: standard deviation of the noise in units of the column: one number, or one for each
            of the steps.
        seed: of the noise, which is independent in all rows and steps.
    """

    sigma: float | Sequence[float] = 1.0
    seed: int = 0

    def columns(self, table: TimedTable, name: str) -> Made:
        found, known = super().columns(table, name)
        given = as_array("sigma", self.sigma)
        sigmas = [self.sigma] * len(found) if not given.ndim else [*given]
        if len(sigmas) != len(found):
            raise ArgumentError(
                f"sigma is one number, or one for each of {len(found)} steps, not "
                f"{shown(self.sigma)}"
            )
        if table.column(name).dtype.kind == "O":
            raise ArgumentTypeError(
                f"column {name!r} holds strings, which noise cannot be added to"
            )
        # Of the name as well: the noise of one column must not depend on which others have some.
        rng = np.random.default_rng([check_whole("seed", self.seed, 0), zlib.crc32(name.encode())])
        for key, sigma in zip(found, sigmas, strict=True):
            scale = check_real("sigma", sigma, 0.0)
            found[key] = found[key] + scale * rng.standard_normal(len(table))
        return found, known


@dataclass(frozen=True)
class Persistence(Forecast):
    """What was: the value now, or that of the last season, such as the same hour of yesterday.

    Args:
        steps: rows ahead.
        season: rows of a season, at least as many as the longest step; by default none, and the
            forecast of every step is the value now.
    """

    steps: int | Sequence[int] = 1
    season: int | None = None

    def columns(self, table: TimedTable, name: str) -> Made:
        season, keys = self.season, _keys(name, self.steps)
        season = optional(check_whole)("season", season, 1, MAX_HORIZON)
        if season is not None and max(keys) > season:
            raise ArgumentError(
                f"season={season} is not known {max(keys)} rows ahead; it is at least {max(keys)}"
            )
        back = {key: 0 if season is None else season - step for step, key in keys.items()}
        return shifted(table, name, back)


@dataclass(frozen=True)
class FromColumns(Forecast):
    """Forecasts of a file, which are columns of the table: ``FromColumns({6: "said at noon"})``.

    Join the file to the table first: ``table.join(pandas.read_csv("forecasts.csv", ...))``. In each
    row it has what was known then about a later one. The columns are renamed, so that models with
    other forecasts have the same names.
    """

    names: Mapping[int, str]

    @property
    def used(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(_settings("FromColumns", self.names).values())

    def columns(self, table: TimedTable, name: str) -> Made:
        names = _settings("FromColumns", self.names)
        out = {key: table.column(names[step]) for step, key in _keys(name, list(names)).items()}
        return out, np.ones(len(table), dtype=bool)


def _settings(name: str, settings: Any) -> Mapping[Any, Any]:
    """Settings of single columns: a mapping from their names, or None if there are none."""
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise ArgumentTypeError(
            f"{name} is a mapping from names of columns, or None, not {shown(settings)}"
        )
    return settings


def _steps(name: str, steps: Any) -> list[int]:
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


def _keys(name: str, steps: Any) -> dict[int, str]:
    """The names of the columns of a forecast, by its steps."""
    whole = _steps(f"the steps of the forecast of {name!r}", steps)
    return {step: f"{name}_forecast_{step}" for step in whole}
