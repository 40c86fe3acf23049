"""Real endogenous variables, seen on a grid of points.

Planners enumerate n, so a real variable of n (the charge of a battery) is seen at a few *points*.
An n' between two points goes to either of them by chance, the nearer the likelier: the mean stays
where it is, and a move that is smaller than the distance of two points is not lost. A policy that
was planned on a grid is asked about the nearest point.

If the agent meets few values (a battery that is charged by one unit at a time), these are the
points, and nothing is lost. Else the points are evenly spaced.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import REAL_SIZE, ExoMDP, State
from planners.core.arrays import Ints

#: Points of a grid at most, where the agent meets few values.
MAX_MET = 101
#: Points of an evenly spaced grid: at most, and at least, where n has many variables.
MAX_POINTS, MIN_POINTS = 41, 5
#: Pairs (n, a) that grids may lead to, also where a model answers one question at a time.
MAX_PAIRS, SLOW_PAIRS = 40_000, 2_000
#: Values that differ by less than this share of their range are the same.
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Grid:
    """The points of one real endogenous variable."""

    name: str
    points: NDArray[np.float64]  # (points,), increasing

    def __post_init__(self) -> None:
        """Refuse what is no grid: it may come from a file."""
        points = np.asarray(self.points)
        fits = points.ndim == 1 and len(points) and points.dtype.kind == "f"
        if not fits or not np.isfinite(points).all() or (np.diff(points) <= 0).any():
            raise ArgumentError(
                f"the grid of {self.name!r} has increasing finite numbers as points"
            )

    @property
    def size(self) -> int:
        """How many values the variable has."""
        return REAL_SIZE

    def __len__(self) -> int:
        """The number of points."""
        return len(self.points)

    def nearest(self, values: NDArray[Any]) -> Ints:
        """The number of the point that is nearest to each value."""
        middles = (self.points[1:] + self.points[:-1]) / 2
        return np.searchsorted(middles, values, side="right").astype(np.int64)

    def split(self, values: NDArray[Any], uniform: NDArray[Any]) -> Ints:
        """One of the two points around each value, by a uniform number for each."""
        upper = np.clip(np.searchsorted(self.points, values), 1, max(1, len(self.points) - 1))
        if len(self.points) == 1:
            return np.zeros(np.shape(values), dtype=np.int64)
        low, high = self.points[upper - 1], self.points[upper]
        share = np.clip((values - low) / (high - low), 0.0, 1.0)
        share = np.where(share < TOLERANCE, 0.0, np.where(share > 1.0 - TOLERANCE, 1.0, share))
        return np.asarray(upper - 1 + (uniform < share), dtype=np.int64)


def fewest_endogenous_states(mdp: ExoMDP) -> int:
    """How many n there are at least, once the real variables of n are seen on grids."""
    sizes = (MIN_POINTS if v.is_real else v.size for v in mdp.endogenous_variables)
    return math.prod(sizes)


def fit_grids(mdp: ExoMDP, met: State) -> tuple[Grid, ...]:
    """A grid for each real variable of n.

    Args:
        mdp: the model.
        met: states that an agent meets (:func:`planners.core.evaluation.walk`).

    Raises:
        ValueError: a variable has no bounds, and more values occur than a grid has points.
    """
    real = [j for j, v in enumerate(mdp.endogenous_variables) if v.is_real]
    if not real:
        return ()
    values = {j: _distinct(met.endogenous[:, j]) for j in real}
    few = {j: points for j, points in values.items() if len(points) <= MAX_MET}
    others = np.prod([v.size for v in mdp.endogenous_variables if not v.is_real], initial=1.0)
    others *= mdp.num_actions * np.prod([len(points) for points in few.values()], initial=1.0)
    spaced = len(real) - len(few)
    most = MAX_PAIRS if mdp.is_batched else SLOW_PAIRS
    room = max(1.0, most / others) ** (1 / max(1, spaced))
    number = int(np.clip(room, MIN_POINTS, MAX_POINTS))
    grids = []
    for j in real:
        variable = mdp.endogenous_variables[j]
        points = few.get(j)
        if points is None:
            low, high = variable.bounds
            if not np.isfinite([low, high]).all():
                raise ArgumentError(
                    f"{variable.name!r} is endogenous, real and has values from {variable.range}: "
                    "it cannot be planned with unless low and high are finite"
                )
            points = np.linspace(low, high, number)
        grids.append(Grid(variable.name, points))
    return tuple(grids)


def _distinct(values: NDArray[Any]) -> NDArray[np.float64]:
    """The values that occur, those that differ by rounding only once."""
    ordered = np.unique(values.astype(np.float64))
    apart = np.diff(ordered) > TOLERANCE * max(1.0, float(np.abs(ordered).max(initial=0.0)))
    return ordered[np.concatenate([[True], apart])]
