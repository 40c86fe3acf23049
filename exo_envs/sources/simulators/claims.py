"""What a model claims that a policy earns, and what it earns in the environment itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from exo_envs.core.arguments import as_array, check_level
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import FloatArray
from exo_envs.core.statistics import normal_quantile

#: The probability that two equal means are said to differ, by default.
ERROR_PROBABILITY = 1e-3


@dataclass(frozen=True)
class Agreement:
    """Mean returns of one policy, in the model and in the environment that it was made of.

    Attributes:
        claimed: the mean in the model.
        claimed_error: its standard error.
        played: the mean in episodes of the environment itself.
        played_error: its standard error.
        difference_error: the standard error of the difference, if both have one distribution.
        error_probability: that two equal means are said to differ (normal approximation).
    """

    claimed: float
    claimed_error: float
    played: float
    played_error: float
    difference_error: float
    error_probability: float = ERROR_PROBABILITY

    @classmethod
    def of(
        cls,
        claimed: FloatArray,
        played: FloatArray,
        error_probability: float = ERROR_PROBABILITY,
    ) -> Agreement:
        """From returns, of the model and of the environment.

        >>> found = Agreement.of([1.0, 2.0, 3.0, 2.0], [8.0, 9.0, 8.0, 7.0])
        >>> found.agrees
        False
        """
        level = check_level("error_probability", error_probability)
        samples = [_returns("claimed", claimed), _returns("played", played)]
        sums = [((values - values.mean()) ** 2).sum() for values in samples]
        (one, other), degrees = map(len, samples), sum(map(len, samples)) - 2
        pooled = math.sqrt(sum(sums) / degrees * (1 / one + 1 / other))
        (mean, error), (paid, paid_error) = map(_mean, samples)
        return cls(mean, error, paid, paid_error, pooled, level)

    @property
    def agrees(self) -> bool:
        """Whether the difference may well be chance."""
        limit = normal_quantile(1 - self.error_probability / 2) * self.difference_error
        rounding = 1e-9 * (1 + abs(self.claimed) + abs(self.played))
        return abs(self.claimed - self.played) <= limit + rounding

    def __str__(self) -> str:
        """Both means, with halves of their 95 % intervals."""
        half = normal_quantile(0.975)
        return (
            f"the model claims {self.claimed:.4g} ± {half * self.claimed_error:.2g} where the "
            f"environment itself pays {self.played:.4g} ± {half * self.played_error:.2g}"
        )


def _returns(name: str, values: Any) -> FloatArray:
    """Two finite returns at least."""
    array = as_array(name, values)
    if array.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"{name} has dtype {array.dtype}; it should hold returns")
    if array.ndim != 1 or len(array) < 2:
        raise ArgumentError(f"{name} has shape {array.shape}; two returns are needed at least")
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name} has returns that are not finite")
    return array.astype(np.float64)


def _mean(values: FloatArray) -> tuple[float, float]:
    """The mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
