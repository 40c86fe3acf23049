"""From what a user hands in to what a record is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exo_envs.core.arguments import check_flag, check_horizon, shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import Variable
from exo_envs.sources.tables.features import with_calendar, with_lags
from exo_envs.sources.tables.forecasts import Forecast, with_forecasts
from exo_envs.sources.tables.functions import Interface
from exo_envs.sources.tables.gaps import Fill, without_gaps
from exo_envs.sources.tables.record import Record
from exo_envs.sources.tables.rewards import NUM_PROBES, Probes
from exo_envs.sources.tables.tables import Table, read_table


def prepared(
    frame: Any,
    *,
    columns: Sequence[str] | None,
    time: str | None,
    episode: str | None,
    fill: Fill,
    lags: Mapping[str, int | Sequence[int]] | None,
    calendar: bool,
    forecasts: Mapping[str, Forecast | None] | None,
) -> tuple[Table, dict[str, tuple[int, int]], int]:
    """A table with all its columns; known ranges; how many rows its rows look back and ahead."""
    table = without_gaps(read_table(frame, columns=columns, time=time, episode=episode), fill)
    ranges: dict[str, tuple[int, int]] = {}
    if check_flag("calendar", calendar):
        table, ranges = with_calendar(table)
    table, are_known, longest = with_lags(table, lags)
    table, are_forecast, ahead = with_forecasts(table, forecasts)
    kept = are_known & are_forecast
    if not kept.any():
        raise ArgumentError(
            f"no row has all lags (up to {longest}) and forecasts (up to {ahead} rows ahead): the "
            "parts of the table are too short"
        )
    return table.take(kept), ranges, longest + ahead


def horizon_of(table: Table, horizon: int | None, episode: str | None) -> int:
    """The steps of an episode: as given, or as long as the shortest episode of the table."""
    lengths = np.bincount(np.unique(table.segment, return_inverse=True)[1])
    if horizon is None:
        if episode is None:
            raise ArgumentError("one long series needs the steps of an episode: horizon=...")
        return int(lengths.min())
    horizon = check_horizon("horizon", horizon)
    if horizon > lengths.max():
        raise ArgumentError(
            f"horizon={horizon} needs as many rows that follow each other; the longest part of the "
            f"table without a gap has {int(lengths.max())}"
        )
    return horizon


def as_variables(endogenous: Any) -> tuple[Variable, ...]:
    """The variables of n, checked."""
    try:
        given = [endogenous] if isinstance(endogenous, Variable) else list(endogenous)
    except TypeError:
        raise ArgumentTypeError(
            f"endogenous is a sequence of Variable, not {shown(endogenous)}"
        ) from None
    if not given:
        raise ArgumentError("endogenous has one Variable at least: what the agent moves")
    for variable in given:
        if not isinstance(variable, Variable):
            raise ArgumentTypeError(
                f"endogenous is a sequence of Variable, such as [Variable('stock', 12)], not of "
                f"{shown(variable)}"
            )
        low, high = variable.bounds
        if variable.is_real and not math.isfinite(high - low):
            raise ArgumentError(
                f"endogenous variable {variable.name!r} needs finite bounds: low=..., high=..."
            )
    if len({variable.name for variable in given}) != len(given):
        raise ArgumentError("endogenous variables have different names")
    return tuple(given)


def probes_of(interface: Interface, record: Record) -> Probes:
    """States to find out what the reward looks at: rows of the record, any n and action."""
    rng = np.random.default_rng(0)
    rows, others = rng.integers(len(record), size=(2, NUM_PROBES))
    n = np.stack(
        [
            rng.uniform(*v.bounds, NUM_PROBES)
            if v.is_real
            else rng.integers(v.size, size=NUM_PROBES)
            for v in interface.endogenous
        ],
        axis=1,
    )
    a = rng.integers(len(interface.actions), size=NUM_PROBES)
    return Probes(n, a, record.rows[rows], record.rows[others])
