"""Time zones: rows follow each other by UTC; days and hours are those of the clock on the wall.

A clock on the wall is set back in autumn, and an hour comes twice. So the rows of a table with a
time zone are ordered and counted in UTC, and the calendar and dates that a user gives are local.
"""

from __future__ import annotations

from datetime import datetime, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import shown
from exo_envs.core.errors import ArgumentError

#: Seconds of a day, and of the spans within which no clock is set.
DAY, HALF_HOUR = 86_400, 1_800


def zone_of(times: Any) -> tzinfo | None:
    """The time zone of an index or a column of pandas or polars, if it has one."""
    kind = getattr(times, "dtype", None)
    zone = getattr(kind, "tz", None)
    if isinstance(zone, tzinfo):
        return zone
    name = getattr(kind, "time_zone", None)
    return ZoneInfo(name) if isinstance(name, str) else None


def wall_time(time: NDArray[Any], zone: tzinfo | None) -> NDArray[Any]:
    """What the clock on the wall says at some times, given in UTC as datetime64, shape (rows,)."""
    if zone is None:
        return time
    seconds = time.astype("datetime64[s]").astype(np.int64)
    days, of_row = np.unique(seconds // DAY, return_inverse=True)
    before, after = (_offsets((days + k) * DAY, zone) for k in (0, 1))
    offsets = before[of_row]
    changing = (before != after)[of_row]  # clocks are set on this day
    if changing.any():
        spans, of_span = np.unique(seconds[changing] // HALF_HOUR, return_inverse=True)
        offsets[changing] = _offsets(spans * HALF_HOUR, zone)[of_span]
    return time + offsets.astype("timedelta64[s]")


def _offsets(seconds: NDArray[np.int64], zone: tzinfo) -> NDArray[np.int64]:
    """How far the clock on the wall is ahead of UTC, in seconds."""
    try:
        local = [datetime.fromtimestamp(second, tz=zone) for second in seconds.tolist()]
    except (OverflowError, OSError, ValueError):
        raise ArgumentError(f"times in the zone {zone} are between the years 1 and 9999") from None
    found = [when.utcoffset() for when in local]
    return np.array([0 if own is None else own.total_seconds() for own in found], dtype=np.int64)


def as_utc(when: Any) -> np.datetime64 | None:
    """A date with a time zone in UTC; None if it has none, or is no date."""
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when)
        except ValueError:
            return None
    if not isinstance(when, datetime) or when.tzinfo is None:
        return None
    return np.datetime64(when.astimezone(timezone.utc).replace(tzinfo=None))


def refuse_zone(when: Any) -> ValueError:
    """An error for a date with a time zone, where the table has none."""
    return ArgumentError(
        f"{shown(when)} has a time zone, and the times of the table have none; give both one, or "
        "none"
    )
