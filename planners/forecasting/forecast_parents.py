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

from exo_envs.mdp import FloatArray, IntArray
from planners.arrays import Ints
from planners.forecasting.forecasts import MAX_JOINT_VALUES, Rollouts
from planners.information import (
    Cases,
    Columns,
    Rows,
    chi_squared_log_tail,
    joint_codes,
    select_forward,
)
from planners.memory import MaskMemory

#: Steps ahead at which it is tested whether a variable tells about another one.
LAGS = (1, 2, 5, 12)
#: Samples that are looked at for each lag.
MAX_SAMPLES = 8_000
#: Samples that each joint value of the forecast parents needs on average.
MIN_SAMPLES_PER_ROW = 8

_log_tail = njit(cache=True)(chi_squared_log_tail)


def choose_forecast_parents(
    rollouts: Rollouts,
    sizes: Ints,
    targets: Sequence[int],
    *,
    level: float = 1e-3,
    max_parents: int = 4,
    keep_going: Callable[[], bool] = lambda: True,
    memory: MaskMemory | None = None,
) -> dict[int, tuple[int, ...]]:
    """For each target the variables, besides itself, that its forecast should look at.

    Args:
        rollouts: exogenous trajectories, (rollouts, steps + 1, m).
        sizes: of the m variables.
        targets: the variables to forecast.
        level: of the test that a variable has to pass, over all candidates of a target.
        max_parents: how many it may choose for a target.
        keep_going: asked before each target; once it says no, the rest look at themselves only.
        memory: of these rollouts, to share with other masks; by default a new one.
    """
    memory = MaskMemory.fresh(len(sizes)) if memory is None else memory
    search = _Search(rollouts, sizes, memory)
    return {i: _choose(search, i, level, max_parents) if keep_going() else () for i in targets}


def _choose(search: _Search, i: int, level: float, max_parents: int) -> tuple[int, ...]:
    sizes = search.sizes
    candidates = np.flatnonzero(np.arange(len(sizes)) != i)
    log_level = math.log(level / max(1, len(candidates) * len(search.lags)))

    def rank(chosen: list[int], live: IntArray) -> tuple[IntArray, list[int]]:
        given = (i, *chosen)
        live = live[sizes[live] <= MAX_JOINT_VALUES // math.prod(int(sizes[j]) for j in given)]
        score, log_p = search.scores(given, live)
        passed = (score > 0) & (log_p < log_level)
        live = live[passed]
        return live, live[np.argsort(-score[passed], kind="stable")].tolist()

    def passes(chosen: list[int], j: int) -> bool:
        return search.num_rows((i, *chosen, j)) * MIN_SAMPLES_PER_ROW <= search.total

    return tuple(select_forward(candidates, max_parents, rank=rank, passes=passes))


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
    """How much variables tell about one of them later; what is not remembered is counted."""

    def __init__(self, rollouts: Rollouts, sizes: Ints, memory: MaskMemory) -> None:
        self.rollouts = rollouts
        self.total = rollouts.shape[0] * (rollouts.shape[1] - 1)  # transitions
        self.sizes = sizes
        self.memory = memory
        self._rows: dict[tuple[int, ...], list[Rows]] = {}

    @cached_property
    def lags(self) -> list[_Lag]:
        """The samples of each lag that the rollouts are long enough for."""
        return [
            _Lag(self.rollouts, self.sizes, lag) for lag in LAGS if lag < self.rollouts.shape[1]
        ]

    def scores(self, given: tuple[int, ...], candidates: IntArray) -> FloatArray:
        """What candidates tell about the first of some variables, given all of them now.

        Returns:
            Their scores, in nats over all lags, and the logarithms of the smallest p-values of
            their tests, shape (2, candidates).
        """
        known = self.memory.memory.forecast_scores.get(
            self.memory.key(given), lambda: np.full((2, self.memory.total), np.nan)
        )
        places = self.memory.columns[candidates]
        unknown = np.isnan(known[0, places])
        if unknown.any():
            known[:, places[unknown]] = self._count(given, candidates[unknown])
        scores: FloatArray = known[:, places]
        return scores

    def num_rows(self, given: tuple[int, ...]) -> int:
        """How many joint values of some variables occur, or may, if that is few."""
        return self.memory.memory.forecast_rows.get(
            self.memory.key(given), lambda: self._occurring(given)
        )

    def _occurring(self, given: tuple[int, ...]) -> int:
        shape = [int(self.sizes[j]) for j in given]
        if math.prod(shape) * MIN_SAMPLES_PER_ROW <= self.total:
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

    def _count(self, given: tuple[int, ...], candidates: IntArray) -> Any:
        tests = []
        for rows, lag in zip(self.rows(given), self.lags, strict=True):
            cases = Cases(rows, lag.later(given[0]), int(self.sizes[given[0]]))
            tests.append(lag.columns.information(cases, candidates))
        return _add_up(np.array(tests), np.array([lag.samples for lag in self.lags]))


@njit(cache=True)
def _add_up(tests: Any, samples: Any) -> Any:
    """The scores and the smallest log p-values from tests (lags, G and freedom, candidates)."""
    out = np.zeros((2, tests.shape[2]))
    for j in range(tests.shape[2]):
        for lag in range(len(samples)):
            statistic, freedom = tests[lag, 0, j], tests[lag, 1, j]
            out[0, j] += max(0.0, statistic - freedom) / (2 * samples[lag])
            out[1, j] = min(out[1, j], _log_tail(statistic, freedom))
    return out
