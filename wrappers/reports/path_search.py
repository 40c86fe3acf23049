"""Looks for the masks of a price curve.

All variables that matter are one end of the way, and the empty mask is the other. On the way the
least important variables are dropped, in groups while there are many. Once there are few, several
are tried one by one, and the one without which the agent earns most goes. All masks play the same
trajectories, and what the learner tried before competes, too. If there are few variables all masks
are tried instead.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, combinations

from exo_envs.core.arguments import check_real, check_whole, optional
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from planners.core.evaluation import Estimate
from planners.core.policy import Mask
from planners.worth import cost_function
from wrappers.fitting.history import Progress
from wrappers.fitting.importance import importance as guess_importance
from wrappers.fitting.relevance import Relevance, find_relevance
from wrappers.fitting.session import FittedLearner
from wrappers.reports.path import MaskPath, PathPoint, ScoredMask, variables

#: Masks that are all tried, if there are no more.
ALL_MASKS = 64
#: Variables from which on a group of them is dropped at once.
MANY = 12
#: The part of a large mask that is dropped at once.
GROUP = 4
#: Variables that are tried, of a small mask, for the one to be dropped.
WIDTH = 3


def find_path(
    learner: FittedLearner,
    cost_weights: Sequence[float] | None = None,
    max_size: int | None = None,
) -> MaskPath:
    """The price curve of a fitted learner; see :meth:`MaskLearner.path`."""
    asked = _checked(cost_weights)
    most = optional(check_whole)("max_size", max_size, 0)
    search = _Search(learner, most)
    tried = search.scored()
    hull = envelope(tried)
    fresh = learner.study_.evaluator.fresh_scenarios()

    @cache
    def earned(mask: Mask) -> Estimate:
        search.report(f"playing {variables(len(mask))} on fresh trajectories")
        evaluator = learner.study_.evaluator
        return evaluator.objective(mask, scenarios=fresh, thorough=True).estimate

    def point(own: ScoredMask, low: float, high: float, cost_weight: float) -> PathPoint:
        return PathPoint(cost_weight, low, high, own.mask, own.cost, earned(own.mask))

    if asked is None:
        points = [point(own, low, high, low) for own, low, high in hull]
    else:
        points = []
        for weight in asked:
            own, low, high = next(part for part in reversed(hull) if part[1] <= weight)
            points.append(point(own, low, high, weight))
    return MaskPath(tuple(points), tuple(tried))


def _checked(cost_weights: Sequence[float] | None) -> list[float] | None:
    if cost_weights is None:
        return None
    try:
        given = None if isinstance(cost_weights, (str, bytes)) else list(cost_weights)
    except TypeError:
        given = None
    if given is None:
        raise ArgumentTypeError(f"cost_weights is a sequence of numbers, not {cost_weights!r:.80}")
    weights = [check_real("each of cost_weights", weight, 0.0) for weight in given]
    if not weights:
        raise ArgumentError("cost_weights is a sequence of numbers, and there is none in it")
    return weights


def envelope(tried: Sequence[ScoredMask]) -> list[tuple[ScoredMask, float, float]]:
    """The masks that are best at some λ >= 0, with the range of λ for which each is.

    J of a mask is a line in λ, so these are the lines of the upper envelope. Of masks that are
    equally good the cheapest is best.
    """
    best = min(tried, key=lambda own: (-own.mean_return, own.cost))
    parts: list[tuple[ScoredMask, float, float]] = []
    low = 0.0
    while True:
        cheaper = [own for own in tried if own.cost < best.cost]
        if not cheaper:
            return [*parts, (best, low, math.inf)]

        def crossing(own: ScoredMask, best: ScoredMask = best) -> tuple[float, float]:
            return (best.mean_return - own.mean_return) / (best.cost - own.cost), own.cost

        following = min(cheaper, key=crossing)
        high = max(low, crossing(following)[0])
        if high > low:
            parts.append((best, low, high))
        best, low = following, high


class _Search:
    """Masks that are worth a look, scored on the shared trajectories."""

    def __init__(self, learner: FittedLearner, max_size: int | None) -> None:
        self.learner, self.study = learner, learner.study_
        self.evaluator, self.names = self.study.evaluator, learner.feature_names_in_
        self.max_size = len(self.names) if max_size is None else max_size
        self.start = time.perf_counter()
        self.returns: dict[Mask, float] = {}

    def report(self, stage: str) -> None:
        """Tell the learner's callback what goes on."""
        if self.learner.callback is not None:
            self.learner.callback(Progress(stage, time.perf_counter() - self.start))

    def scored(self) -> list[ScoredMask]:
        """All masks that were tried, none larger than asked for."""
        relevance = find_relevance(self.study)
        relevant = self._in_order(relevance.findings)
        known = [*self.evaluator.trials, self.learner.mask_]
        if 2 ** len(self.names) <= ALL_MASKS:
            known += _subsets(self.names)
        elif 2 ** len(relevant) <= ALL_MASKS:
            known += _subsets(relevant)
        else:
            self._walk(relevance, relevant)
        for mask in ((), *known):
            if len(mask) <= self.max_size:
                self._return_of(mask)
        return [
            ScoredMask(mask, self._cost(mask), earned)
            for mask, earned in self.returns.items()
            if len(mask) <= self.max_size
        ]

    def _cost(self, mask: Mask) -> float:
        price = cost_function(self.learner.cost)
        return check_real("what cost returns", price(mask, self.evaluator.plan(mask).plan))

    def _return_of(self, mask: Mask) -> float:
        if mask not in self.returns:
            self.report(f"planning with {variables(len(mask))}")
            self.returns[mask] = self.evaluator.objective(mask).mean_return
        return self.returns[mask]

    def _walk(self, relevance: Relevance, mask: Mask) -> None:
        """From all that matters to nothing."""
        if len(mask) > self.max_size + WIDTH:  # larger ones are too far from what was asked for
            ascending = self._ascending(mask, relevance, self.learner.mask_)
            mask = self._in_order(ascending[len(mask) - self.max_size - WIDTH :])
        self._return_of(mask)
        while mask:
            ascending = self._ascending(mask, relevance, mask)
            groups = [[name] for name in ascending[:WIDTH]]
            if len(mask) > MANY:
                groups = [ascending[: max(1, len(mask) // GROUP)]]
            tried = [self._in_order(set(mask).difference(group)) for group in groups]
            mask = max(tried, key=self._return_of)

    def _ascending(self, mask: Mask, relevance: Relevance, known: Mask) -> list[str]:
        """The variables of a mask, the least important first, to an agent that knows some.

        What only predicts variables that are gone is the least important of all.
        """
        worth = guess_importance(self.study, relevance, self.evaluator.visits(known))
        direct = set(relevance.direct)
        useful = direct.union(
            parent for target in mask for parent in relevance.parents[target] if parent != target
        )
        return sorted(mask, key=lambda name: (name in useful, worth[name], name))

    def _in_order(self, names: Iterable[str]) -> Mask:
        wanted = set(names)
        return tuple(name for name in self.names if name in wanted)


def _subsets(names: Mask) -> Iterator[Mask]:
    return chain.from_iterable(combinations(names, k) for k in range(len(names) + 1))
