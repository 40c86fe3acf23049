"""Forecasts as columns, by handlers as in Grid2Op's chronics: what is a forecast worth?

A handler makes columns such as ``price_forecast_6``: what is said now about the price six rows
later. Planning with :class:`Perfect`, :class:`Noisy` and :class:`Persistence` forecasts, or with
those of a file (:class:`FromColumns`), and comparing the backtests says what each is worth.
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
from exo_envs.sources.tables.features import check_settings, check_steps, shifted
from exo_envs.sources.tables.tables import Column, Table, as_column


class Forecast(ABC):
    """A handler: which columns say what about the future of a column."""

    @abstractmethod
    def columns(self, table: Table, name: str) -> tuple[dict[str, Column], BoolArray]:
        """New columns, and the rows in which all of them are known."""

    @property
    @abstractmethod
    def ahead(self) -> int:
        """Rows that the columns look ahead in the record: later rows are kept apart by as many."""

    @property
    def used(self) -> tuple[str, ...]:
        """Columns of the table that are no longer columns of their own."""
        return ()


@dataclass(frozen=True)
class Perfect(Forecast):
    """What will be: the value ``steps`` rows later. It is the most that any forecast is worth."""

    steps: int | Sequence[int] = 1

    def columns(self, table: Table, name: str) -> tuple[dict[str, Column], BoolArray]:
        """The values of later rows."""
        out, known = {}, np.ones(len(table), dtype=bool)
        for step in check_steps(f"the steps of the forecast of {name!r}", self.steps):
            out[_named(name, step)], here = shifted(table, table.column(name), -step)
            known &= here
        return out, known

    @property
    def ahead(self) -> int:
        """The longest step."""
        return max(check_steps("the steps of a forecast", self.steps))


@dataclass(frozen=True)
class Noisy(Forecast):
    """What will be, plus normal noise.

    Args:
        steps: rows ahead.
        sigma: standard deviation of the noise in units of the column: one number, or one for each
            of the steps.
        seed: of the noise, which is independent in all rows and steps.
    """

    steps: int | Sequence[int] = 1
    sigma: float | Sequence[float] = 1.0
    seed: int = 0

    def columns(self, table: Table, name: str) -> tuple[dict[str, Column], BoolArray]:
        """The values of later rows, with noise."""
        found, known = Perfect(self.steps).columns(table, name)
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
        out = {}
        for (key, values), sigma in zip(found.items(), sigmas, strict=True):
            scale = check_real("sigma", sigma, 0.0)
            out[key] = values + scale * rng.standard_normal(len(values))
        return out, known

    @property
    def ahead(self) -> int:
        """The longest step."""
        return Perfect(self.steps).ahead


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

    def columns(self, table: Table, name: str) -> tuple[dict[str, Column], BoolArray]:
        """The values of this row, or of earlier ones."""
        out, known = {}, np.ones(len(table), dtype=bool)
        season = optional(check_whole)("season", self.season, 1, MAX_HORIZON)
        for step in check_steps(f"the steps of the forecast of {name!r}", self.steps):
            if season is not None and step > season:
                raise ArgumentError(
                    f"season={season} is not known {step} rows ahead; it is at least {step}"
                )
            back = 0 if season is None else season - step
            out[_named(name, step)], here = shifted(table, table.column(name), back)
            known &= here
        return out, known

    @property
    def ahead(self) -> int:
        """None: only the past is looked at."""
        return 0


@dataclass(frozen=True)
class FromColumns(Forecast):
    """Forecasts of a file, which are columns of the table: ``FromColumns({6: "said at noon"})``.

    Join the file to the table first: ``table.join(pandas.read_csv("forecasts.csv", ...))``. In each
    row it has what was known then about a later one. The columns are renamed, so that models with
    other forecasts have the same names.
    """

    names: Mapping[int, str]

    def columns(self, table: Table, name: str) -> tuple[dict[str, Column], BoolArray]:
        """The columns under their new names."""
        names = check_settings("FromColumns", self.names)
        steps = check_steps(f"the steps of the forecast of {name!r}", list(names))
        out = {_named(name, step): table.column(names[step]) for step in steps}
        return out, np.ones(len(table), dtype=bool)

    @property
    def ahead(self) -> int:
        """None: what was forecast is known."""
        return 0

    @property
    def used(self) -> tuple[str, ...]:
        """The columns under their old names."""
        return tuple(check_settings("FromColumns", self.names).values())


def _named(name: str, step: int) -> str:
    return f"{name}_forecast_{step}"


def _as_made(table: Table, handler: Forecast, name: str, values: Any) -> Column:
    """A column that a handler made, with a value for each row of the table."""
    column = as_column(name, values)
    if len(column) != len(table):
        raise ArgumentError(
            f"{type(handler).__name__} made {name!r} with {len(column)} values for {len(table)} "
            "rows"
        )
    return column


def with_forecasts(
    table: Table, forecasts: Mapping[str, Forecast | None] | None
) -> tuple[Table, BoolArray, int]:
    """The table with forecasts; where all are known; and how many rows they look ahead."""
    known: BoolArray = np.ones(len(table), dtype=bool)
    columns: dict[str, Column] = {}
    used: set[str] = set()
    ahead = 0
    for name, handler in check_settings("forecasts", forecasts).items():
        table.column(name)
        if handler is None:
            continue
        if not isinstance(handler, Forecast):
            raise ArgumentTypeError(
                f"the forecast of {name!r} is Perfect, Noisy, Persistence, FromColumns or None, "
                f"not {shown(handler)}"
            )
        made, here = handler.columns(table, name)
        columns |= {key: _as_made(table, handler, key, values) for key, values in made.items()}
        known &= here
        used |= set(handler.used)
        ahead = max(ahead, handler.ahead)
    kept = {name: values for name, values in table.columns.items() if name not in used}
    return replace(table, columns=kept).adding(columns), known, ahead
