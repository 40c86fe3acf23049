"""Tables with a time zone: rows follow each other in UTC, days and hours are local."""

from datetime import datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pytest
from battery import battery, price_table

#: Over the nights in which clocks are set forward and back.
STARTS = {
    "spring": "2024-03-30 00:00",
    "autumn": "2024-10-26 00:00",
    "year": "2023-12-31 00:00",
}
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC")


def frame_of(start, zone):
    index = pd.date_range(start, periods=600, freq="h", tz=zone)
    return pd.DataFrame(price_table(), index=index)


def in_polars(frame):
    columns = {name: frame[name].to_numpy() for name in frame}
    when = pl.Series("when", frame.index.tz_convert("UTC").tz_localize(None).to_numpy())
    local = when.dt.replace_time_zone("UTC").dt.convert_time_zone(str(frame.index.tz))
    return pl.DataFrame({"when": local, **columns})


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
@pytest.mark.parametrize("make", [lambda frame: frame, in_polars], ids=["pandas", "polars"])
def test_the_calendar_is_that_of_the_clock_on_the_wall(zone, start, make):
    frame = frame_of(start, zone)
    mdp = battery(make(frame), calendar=True)
    columns = mdp.decoded(mdp.record.rows)
    assert len(mdp.record) == 600
    np.testing.assert_array_equal(columns["hour"], frame.index.hour)
    np.testing.assert_array_equal(columns["weekday"], frame.index.day_of_week)
    np.testing.assert_array_equal(columns["month"], frame.index.month)
    local = frame.index.tz_localize(None).to_numpy()
    np.testing.assert_array_equal(mdp.record.labels, local)


def test_a_clock_that_is_set_leaves_no_gap_and_no_row_twice():
    frame = frame_of(STARTS["autumn"], "Europe/Berlin")
    labels = battery(frame).record.labels
    assert len(np.unique(labels)) == 599  # an hour comes twice
    missing = frame.drop(frame.index[[30, 31]])
    with pytest.raises(ValueError, match=r"2 rows are missing .* row 29 \(time 2024-10-27T04:00"):
        battery(missing)
    filled = battery(missing, fill="forward", calendar=True)
    hours = filled.decoded(filled.record.rows)["hour"]
    np.testing.assert_array_equal(hours, frame.index.hour)


@pytest.mark.parametrize(
    "test",
    [
        "2024-01-15",
        pd.Timestamp("2024-01-15"),
        np.datetime64("2024-01-15"),
        pd.Timestamp("2024-01-15", tz="Asia/Kolkata"),
        pd.Timestamp("2024-01-14 18:30", tz="UTC"),
        datetime(2024, 1, 15, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        "2024-01-15T00:00+05:30",
    ],
    ids=str,
)
def test_dates_to_hold_out_from_are_local_unless_they_say_otherwise(test):
    frame = frame_of("2024-01-01", "Asia/Kolkata")
    later = battery(frame, test=test).held_out
    assert later.record.labels[0] == np.datetime64("2024-01-15T00:00")
    assert len(later.record) == 600 - 14 * 24


def test_a_date_with_a_zone_needs_a_table_with_one():
    frame = pd.DataFrame(price_table(), index=pd.date_range("2024-01-01", periods=600, freq="h"))
    with pytest.raises(ValueError, match="has a time zone, and the times of the table have none"):
        battery(frame, test=pd.Timestamp("2024-01-15", tz="UTC"))
    assert battery(frame, test="2024-01-15").held_out is not None


def test_times_that_have_a_zone_each_are_refused():
    when = [f"2024-01-{1 + hour // 24:02}T{hour % 24:02}:00+01:00" for hour in range(600)]
    with pytest.raises(
        ValueError, match=r"'when' have a time zone each: '2024-01-01T00:00\+01:00'"
    ):
        battery({"when": np.array(when, dtype=object), **price_table()}, time="when")
