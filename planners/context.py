"""Choosing what a forecast looks at: few variables now that tell most about one variable later.

Greedy forward selection by conditional mutual information, summed over a few lags, with the bias
of the plug-in estimate taken off and a G-test at a stated level, divided among the candidates.
Windows do not overlap, so that the samples of a lag are independent given the present.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.mdp import IntArray
from planners.counting import Rows, chi_squared_log_tail, conditional_information
from planners.forecast import MAX_CONTEXTS, Rollouts

Ints = NDArray[np.int64]

LAGS = (1, 2, 5, 12)
MAX_SAMPLES = 8_000  # per lag
MIN_SAMPLES_PER_CONTEXT = 8


class _Lag(NamedTuple):
    """All variables now and some steps later, one contiguous array each, (samples,)."""

    now: list[IntArray]
    later: list[IntArray]

    @classmethod
    def of(cls, rollouts: Rollouts, lag: int) -> _Lag:
        times = np.arange(0, rollouts.shape[1] - lag, lag)
        enough = -(-MAX_SAMPLES // len(times))
        now, later = (
            np.ascontiguousarray(rollouts[:enough, at].reshape(-1, rollouts.shape[2]).T)
            for at in (times, times + lag)
        )
        return cls(list(now), list(later))


def choose_contexts(
    rollouts: Rollouts,
    sizes: Ints,
    targets: Sequence[int],
    *,
    level: float = 1e-3,
    max_parents: int = 4,
    keep_going: Callable[[], bool] = lambda: True,
) -> dict[int, tuple[int, ...]]:
    """For each target the variables, besides itself, that its forecast should look at.

    Args:
        rollouts: exogenous trajectories, (rollouts, steps + 1, m).
        sizes: of the m variables.
        targets: the variables to forecast.
        level: of the test that a variable has to pass, over all candidates of a target.
        max_parents: how many it may choose for a target.
        keep_going: asked before each target; once it says no, the rest look at themselves only.
    """
    if not len(targets):
        return {}
    lags = [_Lag.of(rollouts, lag) for lag in LAGS if lag < rollouts.shape[1]]
    total = rollouts.shape[0] * (rollouts.shape[1] - 1)
    return {
        i: _choose(lags, sizes, i, level, max_parents, total) if keep_going() else ()
        for i in targets
    }


def _choose(
    lags: list[_Lag], sizes: Ints, i: int, level: float, max_parents: int, total: int
) -> tuple[int, ...]:
    rows = [Rows.of(len(lag.now[i])).split(lag.now[i], int(sizes[i])) for lag in lags]
    num_contexts = int(sizes[i])
    candidates = [j for j in range(len(sizes)) if j != i]
    log_level = math.log(level / max(1, len(candidates) * len(lags)))
    chosen: list[int] = []
    while candidates and len(chosen) < max_parents:
        scores = {
            j: score
            for j in candidates
            if sizes[j] * num_contexts <= MAX_CONTEXTS
            and (score := _score(lags, rows, sizes, i, j, log_level)) > 0
        }
        if not scores:
            break
        best = max(scores, key=lambda j: scores[j])
        candidates = [j for j in scores if j != best]
        finer = [
            row.split(lag.now[best], int(sizes[best])) for row, lag in zip(rows, lags, strict=True)
        ]
        if max(row.count for row in finer) * MIN_SAMPLES_PER_CONTEXT > total:
            continue
        rows, num_contexts = finer, num_contexts * int(sizes[best])
        chosen.append(best)
    return tuple(chosen)


def _score(
    lags: list[_Lag], rows: list[Rows], sizes: Ints, i: int, j: int, log_level: float
) -> float:
    """What j tells about i given the rows, in nats over all lags; 0 unless some test is passed."""
    score, passed = 0.0, False
    for lag, row in zip(lags, rows, strict=True):
        told = conditional_information(row, lag.later[i], int(sizes[i]), lag.now[j], int(sizes[j]))
        if told.freedom <= 0:
            continue
        passed |= chi_squared_log_tail(told.statistic, told.freedom) < log_level
        score += max(0.0, told.statistic - told.freedom) / (2 * len(row.row))
    return score if passed else 0.0
