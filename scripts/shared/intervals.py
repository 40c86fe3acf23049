"""Means over seeds, with what chance can do to them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy import stats


class Interval(NamedTuple):
    """A mean and half of its 95 % interval (Student's t); the half is nan for a single value."""

    mean: float
    half_width: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Interval:
        """The mean of some values."""
        sample = np.array(list(values), dtype=float)
        count = len(sample)
        if count < 2:
            return cls(float(sample.mean()) if count else math.nan, math.nan, count)
        error = float(sample.std(ddof=1)) / math.sqrt(count)
        return cls(float(sample.mean()), float(stats.t.ppf(0.975, count - 1)) * error, count)

    @property
    def low(self) -> float:
        """The lower end."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """The upper end."""
        return self.mean + self.half_width

    def __str__(self) -> str:
        return format(self, ".2f" if abs(self.mean) < 10 else ".1f")

    def __format__(self, spec: str) -> str:
        """``f"{interval:.1f}"``: the mean, plus or minus half of the interval if it is known."""
        mean = format(self.mean, spec)
        known = not math.isnan(self.half_width)
        return f"{mean} ± {format(self.half_width, spec)}" if known else mean
