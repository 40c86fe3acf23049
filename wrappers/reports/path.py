"""The price curve: which mask is best at which λ.

All variables that matter are one end of the way, and the empty mask is the other. On the way the
least important variables are dropped, in groups while there are many. Once there are few, several
are tried one by one, and the one without which the agent earns most goes. All masks play the same
trajectories, and what the learner tried before competes, too. If there are few variables all masks
are tried instead.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any, NamedTuple

from exo_envs.core.arguments import as_list, check_real, check_whole, optional
from exo_envs.core.batches import as_mask
from exo_envs.core.errors import ArgumentError
from planners.core.evaluation import Estimate
from planners.core.policy import Mask
from wrappers.fitting.history import Progress
from wrappers.fitting.relevance import Relevance, find_relevance, importance
from wrappers.fitting.session import FittedLearner
from wrappers.reports.tables import ReportTable, Tabular, listed, number, variables

#: All masks are tried if there are at most so many.
ALL_MASKS = 64
#: Masks of more variables lose several at once: one in ``GROUPS_OF_A_MASK`` of them.
MANY_VARIABLES, GROUPS_OF_A_MASK = 12, 4
#: Variables that are tried, of a smaller mask, for the one to be dropped.
VARIABLES_TRIED = 3
#: Names that a cell of a table lists at most.
MOST_NAMES = 12
#: Colours of the plot, which the colour-blind can tell apart.
RETURN_COLOUR, OBJECTIVE_COLOUR = "#0072B2", "#D55E00"


class ScoredMask(NamedTuple):
    """A mask that was tried on the way, and what it earned on the shared trajectories."""

    mask: Mask
    cost: float  # before it is weighted with λ
    mean_return: float


@dataclass(frozen=True)
class PathPoint:
    """A mask, and the prices at which it is the best one.

    Attributes:
        cost_weight: the λ that ``value`` is about: the one that was asked for, or else ``low``.
        low: the mask is best from this λ on ...
        high: ... up to this one; infinite if it stays so.
        mask: the names of its variables, in the model's order.
        cost: of the mask, before it is weighted with λ; its size unless the learner says otherwise.
        mean_return: what its policy earns on trajectories that had no part in any choice.
    """

    cost_weight: float
    low: float
    high: float
    mask: Mask
    cost: float
    mean_return: Estimate

    @property
    def size(self) -> int:
        return len(self.mask)

    @property
    def value(self) -> float:
        """J at ``cost_weight``: the mean return less λ times the cost."""
        return self.value_at(self.cost_weight)

    def value_at(self, cost_weight: float) -> float:
        return self.mean_return.mean - check_real("cost_weight", cost_weight, 0.0) * self.cost


@dataclass(frozen=True)
class MaskPath(Tabular):
    """Which mask is best at which λ, from the cheapest λ to the dearest.

    Masks were chosen by what they earned on shared trajectories; the returns here were earned on
    others, so that choosing does not flatter them. As a table it has one row for each point.

    Attributes:
        points: one for each mask that is best at some λ, or for each λ that was asked for.
        tried: all masks that were looked at, and what they earned on the shared trajectories.
    """

    noun = "path"

    points: tuple[PathPoint, ...]
    tried: tuple[ScoredMask, ...]

    def __iter__(self) -> Iterator[PathPoint]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> PathPoint:
        return self.points[index]

    def at(self, cost_weight: float) -> PathPoint:
        """The point whose mask is best at a λ.

        Raises:
            ValueError: if the path was asked for other λ only.
        """
        cost_weight = check_real("cost_weight", cost_weight, 0.0)
        for point in reversed(self.points):
            if point.low <= cost_weight <= point.high:
                return point
        known = ", ".join(f"{point.cost_weight:g}" for point in self.points)
        raise ArgumentError(
            f"this path has no mask for a cost_weight of {cost_weight:g}, only for {known}; call "
            "path() without cost_weights"
        )

    def __str__(self) -> str:
        return "\n".join(
            f"λ {_prices(p)}: {variables(p.size)}, return {p.mean_return}: {_names(p)}"
            for p in self.points
        )

    def _table(self) -> ReportTable:
        header = ("best for λ", "variables", "return", "λ", "J", "mask")
        rows = [
            (
                *(_prices(p), p.size, p.mean_return),
                *(number(p.cost_weight), f"{p.value:.1f}", _names(p)),
            )
            for p in self.points
        ]
        return ReportTable(header, rows)

    def _values(self) -> ReportTable:
        header = ["cost_weight", "low", "high", "size", "cost", "mean_return"]
        header += ["return_low", "return_high", "J", "mask"]
        rows = [
            [
                *(p.cost_weight, p.low, p.high, p.size, p.cost, p.mean_return.mean),
                *(*p.mean_return.interval(), p.value, p.mask),
            ]
            for p in self.points
        ]
        return ReportTable(header, rows)

    def plot(self, ax: Any = None) -> Any:
        """Draw return and J over λ, with the number of variables (needs matplotlib).

        Args:
            ax: the axes to draw on; by default new ones.

        Returns:
            The axes.
        """
        ax = self._axes(ax, 7.5, 4.2)
        finite = [p.high for p in self.points if 0 < p.high < math.inf]
        finite += [p.cost_weight for p in self.points if p.cost_weight > 0]
        least, last = min(finite, default=1.0), 2.0 * max(finite, default=1.0)
        for p in self.points:
            low, high = min(p.low, last), min(p.high, last)
            earned = p.mean_return.mean
            ax.plot([low, high], [earned] * 2, color=RETURN_COLOUR, linewidth=2.0)
            ax.fill_between([low, high], *p.mean_return.interval(), color=RETURN_COLOUR, alpha=0.15)
            steps = [low + (high - low) * k / 32 for k in range(33)]
            ax.plot(
                steps, [p.value_at(step) for step in steps], color=OBJECTIVE_COLOUR, linewidth=1.5
            )
            # About the middle of the line, on an axis that is logarithmic from ``least`` on.
            middle = math.sqrt(low * high) if low > 0 else high / 2.0
            place = {"xytext": (0, 3), "textcoords": "offset points", "ha": "center"}
            ax.annotate(str(p.size), (middle, earned), **place, fontsize=8)
        labels = {"return": RETURN_COLOUR, "J = return less λ for each variable": OBJECTIVE_COLOUR}
        for label, colour in labels.items():
            ax.plot([], [], color=colour, label=label)
        ax.set_xscale("symlog", linthresh=least)
        ax.set_xlim(0.0, last)
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlabel("λ, the price of a variable (numbers: variables in the mask)")
        ax.set_ylabel("discounted return, 95 %")
        ax.legend(loc="best", fontsize=8)
        return ax


def _prices(point: PathPoint) -> str:
    end = "and more" if math.isinf(point.high) else f"to {number(point.high)}"
    return f"{number(point.low)} {end}"


def _names(point: PathPoint) -> str:
    return listed(point.mask, MOST_NAMES) or "(none)"


def find_path(
    learner: FittedLearner,
    cost_weights: Sequence[float] | None = None,
    max_size: int | None = None,
) -> MaskPath:
    """The price curve of a fitted learner; see :meth:`MaskLearner.path`."""
    asked = None
    if cost_weights is not None:
        given = as_list("numbers for cost_weights", cost_weights)
        asked = [check_real("each of cost_weights", weight, 0.0) for weight in given]
        if not asked:
            raise ArgumentError("cost_weights are numbers, and there is none in it")
    search = _Search(learner, optional(check_whole)("max_size", max_size, 0))
    tried = search.scored()
    hull = envelope(tried)
    chosen = [(low, own, low, high) for own, low, high in hull]
    if asked is not None:
        best = [next(part for part in reversed(hull) if part[1] <= weight) for weight in asked]
        chosen = [(weight, *part) for weight, part in zip(asked, best, strict=True)]
    masks = dict.fromkeys(own.mask for _, own, _, _ in chosen)
    earned = {mask: search.earned_on_fresh(mask) for mask in masks}
    points = (
        PathPoint(weight, low, high, own.mask, own.cost, earned[own.mask])
        for weight, own, low, high in chosen
    )
    return MaskPath(tuple(points), tuple(tried))


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
        self.tried: dict[Mask, ScoredMask] = {}

    def report(self, stage: str) -> None:
        if self.learner.callback is not None:
            self.learner.callback(Progress(stage, time.perf_counter() - self.start))

    def scored(self) -> list[ScoredMask]:
        """All masks that were tried, none larger than asked for."""
        relevance = find_relevance(self.study)
        relevant = as_mask(self.study.mdp, list(relevance.findings))
        known = [*self.evaluator.trials, self.learner.mask_]
        few = next((own for own in (self.names, relevant) if 2 ** len(own) <= ALL_MASKS), None)
        if few is None:
            self._walk(relevance, relevant)
        else:
            known += chain.from_iterable(combinations(few, k) for k in range(len(few) + 1))
        for mask in ((), *known):
            if len(mask) <= self.max_size:
                self._return_of(mask)
        return [own for own in self.tried.values() if len(own.mask) <= self.max_size]

    def earned_on_fresh(self, mask: Mask) -> Estimate:
        """What a mask earns on trajectories that had no part in any choice."""
        self.report(f"playing {variables(len(mask))} on fresh trajectories")
        fresh = self.evaluator.fresh_scenarios()
        return self.evaluator.objective(mask, scenarios=fresh, thorough=True).estimate

    def _return_of(self, mask: Mask) -> float:
        if mask not in self.tried:
            self.report(f"planning with {variables(len(mask))}")
            found = self.evaluator.objective(mask, cost=self.learner.cost)
            self.tried[mask] = ScoredMask(mask, found.cost, found.mean_return)
        return self.tried[mask].mean_return

    def _walk(self, relevance: Relevance, mask: Mask) -> None:
        """From all that matters to nothing."""
        largest = self.max_size + VARIABLES_TRIED
        if len(mask) > largest:  # too far from what was asked for
            ascending = self._ascending(mask, relevance, self.learner.mask_)
            mask = as_mask(self.study.mdp, ascending[len(mask) - largest :])
        self._return_of(mask)
        while mask:
            ascending = self._ascending(mask, relevance, mask)
            groups = [[name] for name in ascending[:VARIABLES_TRIED]]
            if len(mask) > MANY_VARIABLES:
                groups = [ascending[: max(1, len(mask) // GROUPS_OF_A_MASK)]]
            tried = [as_mask(self.study.mdp, set(mask).difference(group)) for group in groups]
            mask = max(tried, key=self._return_of)

    def _ascending(self, mask: Mask, relevance: Relevance, known: Mask) -> list[str]:
        """The variables of a mask, the least important first, to an agent that knows some.

        What only predicts variables that are gone is the least important of all.
        """
        worth = importance(self.study, relevance, self.evaluator.visits(known))
        direct = set(relevance.direct)
        useful = direct.union(
            parent for target in mask for parent in relevance.parents[target] if parent != target
        )
        return sorted(mask, key=lambda name: (name in useful, worth[name], name))
