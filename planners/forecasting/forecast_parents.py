"""Choosing what a forecast looks at: few variables now that tell most about one variable later.

Greedy forward selection by conditional mutual information, summed over a few lags, with the bias
of the plug-in estimate taken off and a G-test at a stated level, divided among the candidates.
Windows do not overlap, so that the samples of a lag are independent given the present.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
from numba import njit

from exo_envs.mdp import FloatArray
from planners.arrays import Ints
from planners.forecasting.forecasts import MAX_CONTEXTS, Rollouts
from planners.information.contingency import Rows, chi_squared_log_tail, joint_codes
from planners.information.pairwise import Cases, Columns
from planners.information.rollouts import Memo

LAGS = (1, 2, 5, 12)
MAX_SAMPLES = 8_000  # per lag
MIN_SAMPLES_PER_CONTEXT = 8

_log_tail = njit(cache=True)(chi_squared_log_tail)


def choose_contexts(
    rollouts: Rollouts,
    sizes: Ints,
    targets: Sequence[int],
    *,
    level: float = 1e-3,
    max_parents: int = 4,
    keep_going: Callable[[], bool] = lambda: True,
    memo: Memo | None = None,
) -> dict[int, tuple[int, ...]]:
    """For each target the variables, besides itself, that its forecast should look at.

    Args:
        rollouts: exogenous trajectories, (rollouts, steps + 1, m).
        sizes: of the m variables.
        targets: the variables to forecast.
        level: of the test that a variable has to pass, over all candidates of a target.
        max_parents: how many it may choose for a target.
        keep_going: asked before each target; once it says no, the rest look at themselves only.
        memo: what was counted in these rollouts before.
    """
    search = _Search(rollouts, sizes, Memo.empty(len(sizes)) if memo is None else memo)
    return {i: _choose(search, i, level, max_parents) if keep_going() else () for i in targets}


def _choose(search: _Search, i: int, level: float, max_parents: int) -> tuple[int, ...]:
    sizes = search.sizes
    candidates = np.flatnonzero(np.arange(len(sizes)) != i)
    log_level = math.log(level / max(1, len(candidates) * len(search.lags)))
    given: tuple[int, ...] = (i,)
    while len(candidates) and len(given) <= max_parents:
        largest = MAX_CONTEXTS // math.prod(int(sizes[j]) for j in given)
        candidates = candidates[sizes[candidates] <= largest]
        score, log_p = search.scores(given, candidates)
        passed = (score > 0) & (log_p < log_level)
        if not passed.any():
            break
        best = int(candidates[passed][score[passed].argmax()])
        candidates = candidates[passed & (candidates != best)]
        if search.num_rows((*given, best)) * MIN_SAMPLES_PER_CONTEXT <= search.total:
            given = (*given, best)
    return given[1:]


class _Lag:
    """All variables now, and some steps later."""

    def __init__(self, rollouts: Rollouts, sizes: Ints, lag: int) -> None:
        steps, variables = rollouts.shape[1:]
        times = np.arange(0, steps - lag, lag)
        enough = min(len(rollouts), -(-MAX_SAMPLES // len(times)))
        values = np.ascontiguousarray(rollouts).reshape(-1, variables)
        states = (np.arange(enough)[:, None] * steps + times).reshape(-1)
        self.samples = len(states)
        self.columns = Columns(values, states.astype(np.uint64), sizes)
        self.now = cache(lambda j: values[states, j])
        self.later = cache(lambda i: values[states + lag, i])


class _Search:
    """How much variables tell about one of them later; what the memo does not know is counted."""

    def __init__(self, rollouts: Rollouts, sizes: Ints, memo: Memo) -> None:
        self.rollouts = rollouts
        self.total = rollouts.shape[0] * (rollouts.shape[1] - 1)  # transitions
        self.sizes = sizes
        self.memo = memo
        self._rows: dict[tuple[int, ...], list[Rows]] = {}

    @cached_property
    def lags(self) -> list[_Lag]:
        """The samples of each lag that the rollouts are long enough for."""
        return [
            _Lag(self.rollouts, self.sizes, lag) for lag in LAGS if lag < self.rollouts.shape[1]
        ]

    def scores(self, given: tuple[int, ...], candidates: Ints) -> FloatArray:
        """What candidates tell about the first of some variables, given all of them now.

        Returns:
            Their scores, in nats over all lags, and the logarithms of the smallest p-values of
            their tests, shape (2, candidates).
        """
        (told,) = self.memo.get("told", given, lambda: (np.full((2, self.memo.total), np.nan),))
        places = self.memo.places[candidates]
        unknown = np.isnan(told[0, places])
        if unknown.any():
            told[:, places[unknown]] = self._count(given, candidates[unknown])
        scores: FloatArray = told[:, places]
        return scores

    def num_rows(self, given: tuple[int, ...]) -> int:
        """How many joint values of some variables occur, or may, if that is few."""
        (count,) = self.memo.get("rows", given, lambda: (np.array(self._occurring(given)),))
        return int(count)

    def _occurring(self, given: tuple[int, ...]) -> int:
        shape = [int(self.sizes[j]) for j in given]
        if math.prod(shape) * MIN_SAMPLES_PER_CONTEXT <= self.total:
            return math.prod(shape)  # there are samples enough for all of them
        occurs = np.zeros(math.prod(shape), dtype=np.bool_)
        values = [self.rollouts[:, :-1, j].reshape(-1) for j in given]
        occurs[joint_codes(values, shape, len(values[0]))] = True
        return int(np.count_nonzero(occurs))

    def rows(self, given: tuple[int, ...]) -> list[Rows]:
        """The samples of each lag by the joint value of some variables."""
        if given not in self._rows:
            if len(given) == 1:
                self._rows.clear()  # the next target
            if len(given) > 1:
                coarser = self.rows(given[:-1])
            else:
                coarser = [Rows.of(lag.samples) for lag in self.lags]
            self._rows[given] = [
                rows.split(lag.now(given[-1]), int(self.sizes[given[-1]]))
                for rows, lag in zip(coarser, self.lags, strict=True)
            ]
        return self._rows[given]

    def _count(self, given: tuple[int, ...], candidates: Ints) -> Any:
        told = []
        for rows, lag in zip(self.rows(given), self.lags, strict=True):
            cases = Cases(rows, lag.later(given[0]), int(self.sizes[given[0]]))
            told.append(lag.columns.information(cases, candidates))
        return _add_up(np.array(told), np.array([lag.samples for lag in self.lags]))


@njit(cache=True)
def _add_up(told: Any, samples: Any) -> Any:
    """The scores and the smallest log p-values from tests (lags, G and freedom, candidates)."""
    out = np.zeros((2, told.shape[2]))
    for j in range(told.shape[2]):
        for lag in range(len(samples)):
            statistic, freedom = told[lag, 0, j], told[lag, 1, j]
            out[0, j] += max(0.0, statistic - freedom) / (2 * samples[lag])
            out[1, j] = min(out[1, j], _log_tail(statistic, freedom))
    return out
