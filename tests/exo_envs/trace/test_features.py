"""Lags, the calendar and forecasts are columns, and look where they say."""

import numpy as np
import pandas as pd
import pytest
from battery import battery, price_table

from exo_envs.sources.tables.forecasts import Forecast, FromColumns, Noisy, Perfect, Persistence

HOURS = pd.date_range("2024-02-27 05:00", periods=600, freq="h")


class TooShort(Forecast):
    """A handler of a user that forgets most rows."""

    ahead = 0

    def columns(self, table, name):
        return {"soon": np.zeros(3)}, np.ones(len(table), dtype=bool)


def columns_of(**settings):
    frame = pd.DataFrame(price_table(), index=HOURS)
    frame["clock"] = np.arange(600.0)
    mdp = battery(frame, **settings)
    return mdp, mdp.decoded(mdp.record.rows)


def test_lags_are_of_earlier_rows():
    _, columns = columns_of(lags={"price": [1, 24], "clock": 2})
    price = price_table()["price"]
    assert columns["price"].tolist() == price[24:].tolist()
    assert columns["price_lag_1"].tolist() == price[23:-1].tolist()
    assert columns["price_lag_24"].tolist() == price[:-24].tolist()
    np.testing.assert_array_equal(columns["clock_lag_2"], columns["clock"] - 2)


def test_lags_stay_within_episodes():
    frame = pd.DataFrame(price_table())
    frame["day"] = np.arange(600) // 30
    mdp = battery(frame, episode="day", lags={"price": [2]})
    assert len(mdp.record) == 20 * 28
    assert mdp.record.segments()[1] == (28, 28)


def test_the_calendar_is_that_of_the_index():
    mdp, columns = columns_of(calendar=True)
    assert columns["hour"].tolist() == HOURS.hour.tolist()
    assert columns["weekday"].tolist() == HOURS.day_of_week.tolist()
    assert columns["month"].tolist() == HOURS.month.tolist()
    sizes = {v.name: v.size for v in mdp.exogenous_variables}
    assert (sizes["hour"], sizes["weekday"], sizes["month"]) == (24, 7, 12)


def test_a_calendar_needs_dates():
    with pytest.raises(ValueError, match="calendar=True needs dates"):
        battery(calendar=True)
    frame = pd.DataFrame(price_table()).assign(hour=1, when=HOURS)
    with pytest.raises(ValueError, match="has a column 'hour' already"):
        battery(frame, calendar=True, time="when")


def test_forecasts_say_what_will_be():
    _, columns = columns_of(forecasts={"clock": Perfect([1, 6])})
    np.testing.assert_array_equal(columns["clock_forecast_1"], columns["clock"] + 1)
    np.testing.assert_array_equal(columns["clock_forecast_6"], columns["clock"] + 6)
    assert len(columns["clock"]) == 594


def test_noisy_forecasts_are_off_by_sigma():
    handler = Noisy([1, 6], sigma=[0.5, 3.0], seed=4)
    _, columns = columns_of(forecasts={"clock": handler})
    for step, sigma in ((1, 0.5), (6, 3.0)):
        errors = columns[f"clock_forecast_{step}"] - columns["clock"] - step
        assert abs(errors.mean()) < 5 * sigma / np.sqrt(len(errors))
        assert errors.std() == pytest.approx(sigma, rel=0.15)
    _, again = columns_of(forecasts={"price": None, "clock": handler})
    np.testing.assert_array_equal(again["clock_forecast_1"], columns["clock_forecast_1"])


def test_persistence_knows_the_past_alone():
    _, columns = columns_of(forecasts={"clock": Persistence([1, 6])})
    np.testing.assert_array_equal(columns["clock_forecast_6"], columns["clock"])
    _, columns = columns_of(forecasts={"clock": Persistence([1, 6], season=24)})
    np.testing.assert_array_equal(columns["clock_forecast_6"], columns["clock"] - 18)
    with pytest.raises(ValueError, match="season=4 is not known 6 rows ahead"):
        columns_of(forecasts={"clock": Persistence(6, season=4)})


def test_forecasts_of_the_table_are_renamed():
    mdp, columns = columns_of(forecasts={"price": FromColumns({3: "temp"})})
    assert "temp" not in mdp.exogenous_names
    assert columns["price_forecast_3"].tolist() == price_table()["temp"].tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lags": {"prise": 1}}, "unknown column 'prise'; did you mean 'price'"),
        ({"lags": {"price": 0}}, "the lags of 'price' is a whole number, at least 1, not 0"),
        ({"lags": {"price": [1, 1]}}, "more than once"),
        ({"lags": {"price": 599}}, "the longest part of the table"),
        (
            {"forecasts": {"price": "perfect"}},
            "is Perfect, Noisy, Persistence, From",
        ),
        ({"forecasts": {"prise": None}}, "unknown column 'prise'"),
        ({"forecasts": {"price": Noisy([1, 2], sigma=[1.0])}}, "one for each of 2 steps"),
        ({"forecasts": {"price": FromColumns({1: "tempo"})}}, "unknown column 'tempo'"),
        ({"lags": 3}, "lags is a mapping from names of columns, or None, not 3"),
        ({"lags": {"price": 10**30}}, "the lags of 'price' is a whole number, at most 1,000"),
        ({"lags": {"price": [[1], [2, 3]]}}, r"the lags of 'price' .* not \[1\]"),
        ({"lags": {3: 1}}, "unknown column 3"),
        ({"forecasts": 3}, "forecasts is a mapping from names of columns, or None, not 3"),
        ({"forecasts": {"price": FromColumns(3)}}, "FromColumns is a mapping"),
        ({"forecasts": {"price": Noisy(1, sigma=[[1.0], [2.0, 3.0]])}}, "sigma is no array"),
        ({"forecasts": {"price": Persistence(1, season=10**30)}}, "season is a whole number"),
        ({"forecasts": {"price": TooShort()}}, "TooShort made 'soon' with 3 values for 600 rows"),
        ({"calendar": "yes"}, "calendar is True or False, not 'yes'"),
    ],
)
def test_what_is_wrong_is_said(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        battery(**settings)
