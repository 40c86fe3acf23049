"""The price curve: which mask is best at which λ, as a table or a plot."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from exo_envs.core.arguments import check_real
from exo_envs.core.errors import ArgumentError
from planners.core.evaluation import Estimate
from planners.core.policy import Mask
from wrappers.reports.rendering import axes, listed, markdown_table, number, pandas_frame

#: Names that a cell of a table lists at most.
LISTED = 12
#: Colours of the plot, which the colour-blind can tell apart.
RETURN, OBJECTIVE = "#0072B2", "#D55E00"


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
        """The number of variables."""
        return len(self.mask)

    @property
    def value(self) -> float:
        """J at ``cost_weight``: the mean return less λ times the cost."""
        return self.value_at(self.cost_weight)

    def value_at(self, cost_weight: float) -> float:
        """J of the mask at another λ."""
        return self.mean_return.mean - check_real("cost_weight", cost_weight, 0.0) * self.cost


@dataclass(frozen=True)
class MaskPath:
    """Which mask is best at which λ, from the cheapest λ to the dearest.

    Masks were chosen by what they earned on shared trajectories; the returns here were earned on
    others, so that choosing does not flatter them.

    Attributes:
        points: one for each mask that is best at some λ, or for each λ that was asked for.
        tried: all masks that were looked at, and what they earned on the shared trajectories.
    """

    points: tuple[PathPoint, ...]
    tried: tuple[ScoredMask, ...]

    def __iter__(self) -> Iterator[PathPoint]:
        """The points."""
        return iter(self.points)

    def __len__(self) -> int:
        """How many points there are."""
        return len(self.points)

    def __getitem__(self, index: int) -> PathPoint:
        """A point by its position."""
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

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` with one row for each point (needs pandas).

        ``mean_return`` is the mean; ``return_low`` and ``return_high`` are its 95 % interval.
        """
        columns = ["cost_weight", "low", "high", "size", "cost", "mean_return"]
        columns += ["return_low", "return_high", "J", "mask"]
        cells = [
            [
                *(p.cost_weight, p.low, p.high, p.size, p.cost, p.mean_return.mean),
                *(*p.mean_return.interval(), p.value, p.mask),
            ]
            for p in self.points
        ]
        return pandas_frame("path.to_pandas()", cells, columns)

    def to_markdown(self) -> str:
        """A table in Markdown, with one row for each point."""
        header = ["best for λ", "variables", "return", "λ", "J", "mask"]
        cells = [
            [
                _range(point),
                str(point.size),
                str(point.mean_return),
                number(point.cost_weight),
                f"{point.value:.1f}",
                listed(point.mask, LISTED) or "(none)",
            ]
            for point in self.points
        ]
        return markdown_table(header, cells)

    def __str__(self) -> str:
        """One line for each point."""
        return "\n".join(
            f"λ {_range(point)}: {variables(point.size)}, return {point.mean_return}: "
            f"{listed(point.mask, LISTED) or '(none)'}"
            for point in self.points
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw return and J over λ, with the number of variables (needs matplotlib).

        Args:
            ax: the axes to draw on; by default new ones.

        Returns:
            The axes.
        """
        ax = axes("path.plot()", ax, height=4.2)
        finite = [p.high for p in self.points if 0 < p.high < math.inf]
        finite += [p.cost_weight for p in self.points if p.cost_weight > 0]
        least, last = min(finite, default=1.0), 2.0 * max(finite, default=1.0)
        labels = {"return": RETURN, "J = return less λ for each variable": OBJECTIVE}
        for p in self.points:
            low, high = min(p.low, last), min(p.high, last)
            ax.plot([low, high], [p.mean_return.mean] * 2, color=RETURN, linewidth=2.0)
            ax.fill_between([low, high], *p.mean_return.interval(), color=RETURN, alpha=0.15)
            steps = [low + (high - low) * k / 32 for k in range(33)]
            values = [p.value_at(step) for step in steps]
            ax.plot(steps, values, color=OBJECTIVE, linewidth=1.5)
            ax.annotate(
                str(p.size),
                (_middle(low, high, least), p.mean_return.mean),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )
        for label, colour in labels.items():
            ax.plot([], [], color=colour, label=label)
        ax.set_xscale("symlog", linthresh=least)
        ax.set_xlim(0.0, last)
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlabel("λ, the price of a variable (numbers: variables in the mask)")
        ax.set_ylabel("discounted return, 95 %")
        ax.legend(loc="best", fontsize=8)
        return ax


def variables(count: int) -> str:
    """So many variables, for people."""
    return f"{count} variable{'' if count == 1 else 's'}"


def _range(point: PathPoint) -> str:
    if math.isinf(point.high):
        return f"{number(point.low)} and more"
    return f"{number(point.low)} to {number(point.high)}"


def _middle(low: float, high: float, least: float) -> float:
    """The middle of a range on an axis that is linear up to ``least`` and logarithmic then."""

    def scaled(x: float) -> float:
        return x / least if x <= least else 1.0 + math.log(x / least)

    middle = (scaled(low) + scaled(high)) / 2.0
    return middle * least if middle <= 1.0 else least * math.exp(middle - 1.0)
