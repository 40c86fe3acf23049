"""Learning curves: what an agent earns in the full model, after how many steps of training."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from planners.core.evaluation import paired_difference
from planners.core.files import replacing
from shared.intervals import Interval


class Point(NamedTuple):
    """An evaluation."""

    steps: int
    seconds: float  # of training, evaluations left out
    mean: float  # return on the task's trajectories
    standard_error: float


@dataclass
class Curve:
    """The evaluations of one run.

    Attributes:
        label: what the agent sees and where it was trained; curves with the same are averaged.
        seed: of the run.
        settings: what the run depends on; a run is resumed with the same only.
        points: in the order of steps.
        returns: of the last evaluation, one for each trajectory.
    """

    label: str
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)

    def add(self, steps: int, seconds: float, returns: np.ndarray) -> None:
        """Record an evaluation."""
        error = returns.std(ddof=1) / math.sqrt(len(returns)) if len(returns) > 1 else 0.0
        self.points.append(Point(steps, seconds, float(returns.mean()), float(error)))
        self.returns = returns.tolist()

    def save(self, file: Path) -> None:
        """Replace the file at once."""
        with replacing(file) as part:
            part.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> Curve:
        """Read what :meth:`save` wrote."""
        try:
            curve = cls(**json.loads(file.read_text(encoding="utf-8")))
            curve.points = [
                Point(int(steps), *map(float, others)) for steps, *others in curve.points
            ]
            curve.returns = [float(value) for value in curve.returns]
        except (ValueError, TypeError, RecursionError) as error:
            raise SystemExit(f"error: {file} is damaged ({error}); delete its folder") from error
        return curve

    def gained(self, idle: np.ndarray) -> bool:
        """Whether the agent ended better than it began and than idling, beyond noise (95 %)."""
        first, last = self.points[0], self.points[-1]
        noise = 1.96 * math.hypot(first.standard_error, last.standard_error)
        over_idling = paired_difference(np.array(self.returns), idle)
        return last.mean - first.mean > noise and over_idling.interval()[0] > 0

    def steps_to(self, level: float) -> float | None:
        """When the return first reached a level, on the line between evaluations; None if never."""
        previous: Point | None = None
        for point in self.points:
            if point.mean >= level:
                if previous is None:
                    return float(point.steps)
                share = (level - previous.mean) / (point.mean - previous.mean)
                return previous.steps + share * (point.steps - previous.steps)
            previous = point
        return None


def by_label(curves: Iterable[Curve]) -> dict[str, list[Curve]]:
    """Curves that differ in their seed only."""
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(curve.label, []).append(curve)
    return groups


def average(curves: Sequence[Curve]) -> list[tuple[int, Interval]]:
    """The mean curve, where all runs have been evaluated."""
    shared = set.intersection(*({point.steps for point in curve.points} for curve in curves))
    means = [{point.steps: point.mean for point in curve.points} for curve in curves]
    return [(s, Interval.of([mean[s] for mean in means])) for s in sorted(shared)]


def geometric_mean(values: Sequence[float]) -> float:
    """Of positive numbers; 0 if one of them is not."""
    return math.exp(np.log(values).mean()) if min(values) > 0 else 0.0


def ratio(slower: Sequence[float], faster: Sequence[float]) -> tuple[float, float, float]:
    """How many times as many steps: the ratio of geometric means, and its 95 % interval (Welch).

    With a single run on one of the sides there is no interval: its ends are nan.
    """
    a, b = np.log(slower), np.log(faster)
    difference = float(a.mean() - b.mean())
    variances = [float(v.var(ddof=1)) / len(v) if len(v) > 1 else math.inf for v in (a, b)]
    if not all(map(math.isfinite, variances)):
        return math.exp(difference), math.nan, math.nan
    total = sum(variances)
    if total == 0:
        return math.exp(difference), math.exp(difference), math.exp(difference)
    freedom = total**2 / sum(
        v**2 / (len(values) - 1) for v, values in zip(variances, (a, b), strict=True)
    )
    half = float(stats.t.ppf(0.975, freedom)) * math.sqrt(total)
    return math.exp(difference), math.exp(difference - half), math.exp(difference + half)
