"""Tables by stated generators: what drives what is known.

`shop` is the data of the inventory example; `dutch_like` and `city_like` have columns as those of
`recorded`, for machines without these packages; `driven` is for `benchmark.py trace`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

#: The columns of :func:`driven` that matter to who buys and sells at its price.
DRIVERS = ("price", "wind", "load", "temp", "front")


def _slow(
    rows: int, stays: float, rng: np.random.Generator, scale: float = 1.0
) -> NDArray[np.float64]:
    """A series that keeps this share of its value from row to row."""
    noise = rng.standard_normal(rows) * scale * np.sqrt(1 - stays**2)
    out = np.zeros(rows)
    for t in range(1, rows):
        out[t] = stays * out[t - 1] + noise[t]
    return out


def shop(days: int = 3000, seed: int = 0) -> pd.DataFrame:
    """Daily demand for one article, 0 to 9.

    Its mean is 2, twice that on Fridays and Saturdays, times 2.2 in a promotion (6 days, about
    every five weeks), times 1.6 on the day before a holiday. Beside that: temperature, rain, a
    rival's promotions, sales of eight other articles and four indices of the market, which have no
    part in it (other articles have promotions of their own, and the same weekdays).
    """
    rng = np.random.default_rng(seed)
    index = pd.date_range("2016-01-01", periods=days, freq="D")
    weekend = np.isin(index.day_of_week, (4, 5))
    holiday = ((index.month == 12) & (index.day == 25)) | ((index.month == 1) & (index.day == 1))
    holiday |= np.isin(index.strftime("%m-%d"), ("04-27", "05-01", "08-15", "11-01"))

    def promotions() -> NDArray[np.bool_]:
        starts = np.cumsum(rng.integers(25, 46, size=days // 25))
        return np.isin(np.arange(days), (starts[:, None] + np.arange(6)).ravel())

    promo = promotions()
    before = np.append(holiday[1:], False)
    mean = (2.0 + 2.0 * weekend) * np.where(promo, 2.2, 1.0) * np.where(before, 1.6, 1.0)
    table = {"demand": np.minimum(rng.poisson(mean), 9), "promo": promo, "holiday": holiday}
    season = 10 - 9 * np.cos(2 * np.pi * index.day_of_year.to_numpy() / 365)
    table["temperature"] = season + _slow(days, 0.8, rng, 4.0)
    table["rain"] = np.maximum(_slow(days, 0.5, rng), 0.0)
    table["rival_promo"] = promotions()
    for k in range(8):
        table[f"article_{k}"] = np.minimum(rng.poisson((2.0 + weekend) * (1 + promotions())), 9)
    for k in range(4):
        table[f"index_{k}"] = _slow(days, 0.99, rng)
    return pd.DataFrame(table, index=index)


def dutch_like(days: int = 365, seed: int = 0) -> pd.DataFrame:
    """Hourly prices by the hour of the day, the load of the market and the wind; 25 homes."""
    rng = np.random.default_rng(seed)
    hours = 24 * days
    index = pd.date_range("2019-01-01", periods=hours, freq="h")
    hour = index.hour.to_numpy()
    height = np.maximum(0, np.sin((hour - 6) * np.pi / 12))
    daily = 8 * np.exp(-(((hour - 8) / 2.5) ** 2)) + 12 * np.exp(-(((hour - 18) / 2.5) ** 2))
    price = 38 + daily - 6 * (hour < 5) + _slow(hours, 0.97, rng, 6.0) + rng.normal(0, 1.5, hours)
    homes = {
        f"home_{k}": np.maximum(0, 0.3 + daily / 30 + _slow(hours, 0.8, rng, 0.2))
        for k in range(25)
    }
    solar = height * np.clip(0.5 + _slow(hours, 0.9, rng, 0.3), 0, 1)
    return pd.DataFrame({"price": price.round(2), "solar": solar.round(3), **homes}, index=index)


def city_like(days: int = 1460, seed: int = 0) -> pd.DataFrame:
    """Hourly weather, carbon intensity and the loads of nine buildings, without dates."""
    rng = np.random.default_rng(seed)
    hours = 24 * days
    hour = np.arange(hours) % 24
    year = np.cos(2 * np.pi * np.arange(hours) / (24 * 365))
    temperature = 21 - 7 * year + 5 * np.sin((hour - 9) * np.pi / 12) + _slow(hours, 0.98, rng, 2.5)
    sun = np.maximum(0, np.sin((hour - 6) * np.pi / 12)) * np.clip(
        0.7 + _slow(hours, 0.9, rng, 0.3), 0, 1
    )
    table = {
        "temperature": temperature.round(2),
        "direct_solar_radiation": (900 * sun).round(1),
        "relative_humidity": 70 + _slow(hours, 0.95, rng, 10.0),
        "carbon": 0.5 + 0.08 * np.sin((hour - 16) * np.pi / 12) + _slow(hours, 0.97, rng, 0.05),
        "hour": hour + 1,
        "month": np.arange(hours) // (24 * 31) % 12 + 1,
    }
    for k in range(1, 10):
        table[f"equipment_electric_power_{k}"] = 10 + 4 * (hour > 7) + _slow(hours, 0.9, rng, 2.0)
        table[f"dhw_heating_{k}"] = np.maximum(0, _slow(hours, 0.7, rng, 2.0))
    return pd.DataFrame(table)


def driven(
    rows: int = 20_000, num_columns: int = 60, seed: int = 0
) -> dict[str, NDArray[np.int64]]:
    """Whole numbers: the price follows load and wind, load follows temp, wind follows front.

    Of the other columns a third copies a driver with a delay (and so is told by it, and tells
    nothing), a third walks about by itself, and a third is noise.
    """
    rng = np.random.default_rng(seed)
    shocks = rng.integers(-1, 2, size=(rows, 5))
    fronts, stays = rng.integers(3, size=rows), rng.random(rows) < 0.85
    out = np.zeros((rows, 5), dtype=np.int64)
    for t in range(1, rows):
        _, wind, load, temp, front = out[t - 1]
        out[t] = (
            np.clip(2 + load - wind + shocks[t, 0], 0, 5),
            np.clip(wind + front - 1 + shocks[t, 1], 0, 4),
            np.clip(load + (temp > 2) - (temp < 2) + shocks[t, 2], 0, 4),
            np.clip(temp + shocks[t, 3], 0, 4),
            front if stays[t] else fronts[t],
        )
    table = dict(zip(DRIVERS, out.T, strict=True))
    for k in range(num_columns - len(DRIVERS)):
        size = int(rng.integers(2, 7))
        if k % 3 == 0:
            copied = np.append(0, table[DRIVERS[k % 5]][:-1])
            table[f"column_{k}"] = np.where(
                rng.random(rows) < 0.5, copied, rng.integers(6, size=rows)
            )
        elif k % 3 == 1:
            table[f"column_{k}"] = np.cumsum(rng.integers(-1, 2, size=rows)) % size
        else:
            table[f"column_{k}"] = rng.integers(size, size=rows)
    return table
