"""Choosing what a forecast looks at: few variables now that tell most about one variable later.

Greedy forward selection by conditional mutual information, summed over a few lags, with the bias
of the plug-in estimate taken off and a G-test at a stated level, divided among the candidates.
Windows do not overlap, so that the samples of a lag are independent given the present.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.mdp import FloatArray, IntArray
from exo_envs.core.statistics import chi_squared_log_tail
from planners.core.arrays import Ints, joint_index
from planners.core.memory import MORE_BYTES, Key, Memory, Shelf
from planners.dependence.contingency import Cases, Rows
from planners.dependence.pairwise import SampledColumns
from planners.forecasting.forecasts import MAX_JOINT_VALUES, Rollouts

#: Steps ahead at which it is tested whether a variable tells about another one.
LAGS = (1, 2, 5, 12)
#: Samples that are looked at for each lag.
MAX_SAMPLES = 8_000
#: Samples that each joint value of the forecast parents needs on average.
MIN_SAMPLES_PER_ROW = 8


def _of_the_same(scores: FloatArray, same: NDArray[np.bool_]) -> FloatArray:
    return np.where(same, scores, np.nan)


#: given -> score and log p of every candidate for a forecast, (2, m); not a number if unknown.
FORECAST_SCORES = Shelf[Key, FloatArray](
    "forecast_scores", MORE_BYTES, about=list, narrow=_of_the_same
)
#: given -> the number of joint values of some variables that occur.
FORECAST_ROWS = Shelf[Key, int]("forecast_rows", about=list)


@dataclass(eq=False)
class ForecastParentSearch:
    """Looks for the variables, besides a variable itself, that its forecast should look at.

    Args:
        rollouts: exogenous trajectories, (rollouts, steps + 1, m).
        sizes: of the m variables.
        level: of the test that a variable has to pass, over all candidates of a target.
        max_parents: how many it may choose for a target.
        memory: of these rollouts.
    """

    rollouts: Rollouts
    sizes: Ints
    level: float
    max_parents: int
    memory: Memory

    def parents(self, target: int) -> tuple[int, ...]:
        """The forecast parents of one variable, the most informative first."""
        candidates = np.flatnonzero(np.arange(len(self.sizes)) != target)
        log_level = math.log(self.level / max(1, len(candidates) * len(self._lags)))

        @cache
        def split(given: Key) -> list[Cases]:
            """The samples of each lag by the joint value of some variables and the later target."""
            size = int(self.sizes[(target, *given)[-1]])
            if not given:
                return [
                    Cases(Rows.of(len(then)), now.values[then, target], size)
                    for now, then in self._lags
                ]
            lags = zip(split(given[:-1]), self._lags, strict=True)
            return [
                replace(cases, rows=cases.rows.split(now.column(given[-1]), size))
                for cases, (now, _) in lags
            ]

        chosen: list[int] = []
        live: IntArray = candidates
        while len(live) and len(chosen) < self.max_parents:
            given = (target, *chosen)
            live = live[self.sizes[live] <= MAX_JOINT_VALUES // math.prod(self._shape(given))]
            score, log_p = self._scores(given, live, split)
            passed = (score > 0) & (log_p < log_level)
            live = live[passed]
            ranked = live[np.argsort(-score[passed], kind="stable")].tolist()
            enough = (j for j in ranked if self._has_samples((target, *chosen, j)))
            if (best := next(enough, None)) is None:
                break
            chosen.append(best)
            live = live[live != best]
        return tuple(chosen)

    def _has_samples(self, given: Key) -> bool:
        """Whether there are enough samples for each joint value of some variables that occurs."""
        shape, key = self._shape(given), self.memory.key(given)
        transitions = self.rollouts.shape[0] * (self.rollouts.shape[1] - 1)
        if math.prod(shape) * MIN_SAMPLES_PER_ROW <= transitions:
            return True
        if (rows := self.memory.find(FORECAST_ROWS, key)) is None:
            occurs = np.zeros(math.prod(shape), dtype=np.bool_)
            occurs[joint_index(self.rollouts[:, :-1, list(given)], shape)] = True
            rows = self.memory.keep(FORECAST_ROWS, key, int(np.count_nonzero(occurs)))
        return rows * MIN_SAMPLES_PER_ROW <= transitions

    def _shape(self, variables: Sequence[int]) -> list[int]:
        return [int(self.sizes[j]) for j in variables]

    @cached_property
    def _lags(self) -> list[tuple[SampledColumns, Ints]]:
        """For each lag that fits the rollouts: all variables now, and the states it leads to."""
        number, steps, variables = self.rollouts.shape
        values = np.ascontiguousarray(self.rollouts).reshape(-1, variables)
        lags = []
        for lag in (lag for lag in LAGS if lag < steps):
            times = np.arange(0, steps - lag, lag)
            enough = min(number, -(-MAX_SAMPLES // len(times)))
            states = (np.arange(enough)[:, None] * steps + times).reshape(-1)
            lags.append(
                (SampledColumns(values, states.astype(np.uint64), self.sizes), states + lag)
            )
        return lags

    def _scores(
        self, given: Key, candidates: IntArray, split: Callable[[Key], list[Cases]]
    ) -> FloatArray:
        """What candidates tell about the first of some variables, given all of them now.

        Returns:
            Their scores, in nats over all lags, and the logarithms of the smallest p-values of
            their tests, shape (2, candidates).
        """
        key = self.memory.key(given)
        if (known := self.memory.find(FORECAST_SCORES, key)) is None:
            data = self.memory.data  # of more variables than these rollouts, maybe
            total = len(self.sizes) if data is None else len(data.names)
            known = self.memory.keep(FORECAST_SCORES, key, np.full((2, total), np.nan))
        places = self.memory.places(candidates)
        unknown = np.isnan(known[0, places])
        if unknown.any():
            known[:, places[unknown]] = self._count(split(given), candidates[unknown])
        scores: FloatArray = known[:, places]
        return scores

    def _count(self, by_lag: list[Cases], candidates: IntArray) -> FloatArray:
        lags = zip(by_lag, self._lags, strict=True)
        tests = np.array([now.information(cases, candidates) for cases, (now, _) in lags])
        statistic, freedom = tests.swapaxes(0, 1)  # (lags, candidates) each
        samples = np.array([[len(cases.target)] for cases in by_lag])
        score = (np.maximum(0.0, statistic - freedom) / (2 * samples)).sum(axis=0)
        log_p = chi_squared_log_tail(statistic, freedom).min(axis=0, initial=0.0)
        return np.array([score, log_p])
