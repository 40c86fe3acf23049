"""Hourly data that packages of PyPI ship, read without importing these packages.

`ev2gym` (MIT) has Dutch day-ahead prices of 2015 to 2024, a year of photovoltaics and of the loads
of 25 homes. `citylearn` 2.0.0 (MIT) has four years of weather, carbon intensity and the loads of
nine buildings. Both need much that is of no use here, so they are installed without what they
depend on.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pandas as pd

from shared.script import ScriptError

INSTALL = "pip install --no-deps ev2gym==2.0.0 citylearn==2.0.0"
PRICES = "ev2gym/data/Netherlands_day-ahead-2015-2024.csv"
CITY = "citylearn/data/citylearn_challenge_2021"


def is_installed() -> bool:
    """Whether the data is here."""
    try:
        return file_of(PRICES).exists() and file_of(f"{CITY}/weather.csv").exists()
    except ScriptError:
        return False


def file_of(path: str) -> Path:
    """A file of an installed package."""
    package = path.partition("/")[0]
    try:
        return Path(str(metadata.distribution(package).locate_file(path)))
    except metadata.PackageNotFoundError:
        raise ScriptError(f"{package} is not installed: {INSTALL}; or give --generated.") from None


def prices() -> pd.Series:
    """Dutch day-ahead prices, EUR/MWh, by hour (UTC); from 2023 on dates are written otherwise."""
    table = pd.read_csv(file_of(PRICES))
    times = pd.to_datetime(table["Datetime (UTC)"], format="%Y-%m-%d %H:%M:%S", errors="coerce")
    price = pd.Series(table["Price (EUR/MWhe)"].to_numpy(), index=times, name="price")
    return price[price.index.notna()]


def dutch_year() -> pd.DataFrame:
    """2019: prices, photovoltaics, and the loads of 25 homes (of one year that is not said)."""
    solar = pd.read_csv(
        file_of("ev2gym/data/pv_netherlands.csv"), index_col="time", parse_dates=True
    )
    loads = pd.read_csv(file_of("ev2gym/data/residential_loads.csv"), header=None).to_numpy()
    hourly = loads.reshape(len(solar), 4, -1).mean(axis=1)
    homes = {f"home_{k}": column for k, column in enumerate(hourly.T)}
    year = prices()["2019"]
    return pd.DataFrame({"price": year, "solar": solar["electricity"]}).assign(**homes)


def city() -> pd.DataFrame:
    """Four years of weather, with forecasts, carbon intensity, and the loads of nine buildings.

    Columns that never change are left out.
    """
    weather = pd.read_csv(file_of(f"{CITY}/weather.csv"))
    table = weather.rename(columns=_named)
    table["carbon"] = pd.read_csv(file_of(f"{CITY}/carbon_intensity.csv")).iloc[:, 0]
    for number in range(1, 10):
        building = pd.read_csv(file_of(f"{CITY}/Building_{number}.csv"))
        if number == 1:
            table["hour"], table["month"] = building["Hour"], building["Month"]
            table["day_type"] = building["Day Type"].astype(int)
        for name in ("Equipment Electric Power", "DHW Heating", "Cooling Load", "Solar Generation"):
            column = next(column for column in building if column.startswith(name))
            table[f"{_named(name)}_{number}"] = building[column]
    return table.loc[:, table.nunique() > 1]


def _named(column: str) -> str:
    """A heading such as "6h Prediction Outdoor Drybulb Temperature [C]" as a name."""
    return column.partition(" [")[0].lower().replace(" ", "_").replace("outdoor_drybulb_", "")
