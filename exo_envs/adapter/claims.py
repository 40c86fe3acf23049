"""What a model claims that a policy earns, and what it earns in the environment itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from exo_envs.adapter.mdp import AdaptedMDP
from exo_envs.inputs import check_level
from exo_envs.mdp import FloatArray, State


@dataclass(frozen=True)
class Agreement:
    """Mean returns of one policy, in the model and in the environment that it was made of."""

    claimed: float  # by the model
    claimed_error: float  # the standard error
    played: float  # in episodes of the environment itself
    played_error: float
    error_probability: float  # that two equal means are said to differ (normal approximation)

    @property
    def agrees(self) -> bool:
        """Whether the difference may well be chance."""
        error = math.hypot(self.claimed_error, self.played_error)
        limit = NormalDist().inv_cdf(1 - self.error_probability / 2) * error
        rounding = 1e-9 * (1 + abs(self.claimed) + abs(self.played))
        return abs(self.claimed - self.played) <= limit + rounding

    def __str__(self) -> str:
        """Both means, with halves of their 95 % intervals."""
        half = NormalDist().inv_cdf(0.975)
        return (
            f"the model claims {self.claimed:.1f} ± {half * self.claimed_error:.1f} where the "
            f"environment itself pays {self.played:.1f} ± {half * self.played_error:.1f}"
        )


def compare_with_play(
    mdp: AdaptedMDP,
    policy: Callable[[State], Any],
    returns: FloatArray,
    *,
    episodes: int = 200,
    seed: int = 0,
    error_probability: float = 1e-6,
) -> Agreement:
    """Compare what a policy is claimed to earn with what it earns when it is played.

    Args:
        mdp: the adapted environment.
        policy: maps a :class:`State` to an action.
        returns: of the policy in the model, as :func:`planners.evaluate` gives them.
        episodes: how many are played (:meth:`AdaptedMDP.play`).
        seed: of these episodes.
        error_probability: that two equal means are said to differ.
    """
    level = check_level("error_probability", error_probability)
    returns = np.asarray(returns, dtype=np.float64)
    if returns.ndim != 1 or len(returns) < 2 or episodes < 2:
        raise ValueError("two returns are needed at least, in the model and in the environment")
    played = mdp.play(policy, episodes, seed)
    (claimed, claimed_error), (paid, paid_error) = map(_mean, (returns, played))
    return Agreement(claimed, claimed_error, paid, paid_error, level)


def _mean(values: FloatArray) -> tuple[float, float]:
    """The mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
