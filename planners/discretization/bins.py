"""How variables of very many values are seen: bins of exogenous ones, grids of endogenous ones.

No data can tell what each of ten million values does, and no table can hold it. So an exogenous
variable of more than ``MAX_SINGLE_VALUES`` values is seen in *bins*: neighbouring values, as many
samples of the rollouts in each. Values that occur often have a bin of their own, rare ones are
merged. A bin is a function of the value, so a test with bins is as valid as one with values; it
finds thresholds and trends, and it cannot see what differs within a bin.

A real variable is in bins, too. Bins of equally many samples are good for predicting. For deciding,
a bin should not hide a threshold: where price decides whether to sell, the bins are to meet at the
price from which on it pays. So the model is asked what it pays and how n moves along the values of
a variable, in states that an agent meets, with the same noise. Bins begin where equal shares of all
that changes have been passed; a jump is located by bisection.

Planners enumerate n, so a real variable of n (the charge of a battery) is seen at a few *points* of
a grid. An n' between two points goes to either of them by chance, the nearer the likelier: the mean
stays where it is, and a move that is smaller than the distance of two points is not lost. A policy
that was planned on a grid is asked about the nearest point. If the agent meets few values (a
battery that is charged by one unit at a time), these are the points, and nothing is lost. Else the
points are evenly spaced.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.checked_mdp import checked
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import REAL_SIZE, ExoMDP, FloatArray, IntArray, State, Variable
from planners.core.arrays import Ints
from planners.core.evaluation import sample_outcome

#: A variable of more values than this is seen in bins.
MAX_SINGLE_VALUES = 256
#: Bins that a variable has at most, besides those of single values that occur as often as a bin.
MAX_BINS = 64
#: Bins are so few that the joint values of two variables have this many samples each.
SAMPLES_PER_CELL = 20
#: Values that stand for a bin where the model is asked about it.
NUM_STAND_INS = 8
#: Bins that a real variable has at most because of how often its values occur, and because of what
#: they do.
NUM_BY_SAMPLES, NUM_BY_CHANGE = 16, 16
#: Samples that there are for each pair of bins, so that a third variable of 24 values that predicts
#: well is still worth its place in a table (Akaike's criterion); and bins that there are even of
#: fewer samples.
SAMPLES_PER_PAIR, FEWEST_BINS = 100, 6
#: Values of a variable, and states, at which the model is asked what changes.
NUM_VALUES, NUM_CONTEXTS = 65, 64
#: Values and states at which a model is asked that answers one question at a time.
SLOW_VALUES, SLOW_CONTEXTS = 17, 32
#: Values at which it is first asked whether anything changes at all.
NUM_FIRST = 5
#: A jump is what changes by more than this share between two neighbouring values.
JUMP_SHARE = 0.05
#: Bisections that locate a jump.
NUM_BISECTIONS = 24
#: A bin has at least this share of the samples.
MIN_SHARE = 1 / 512
#: Points of a grid at most, where the agent meets few values.
MAX_MET_POINTS = 101
#: Points of an evenly spaced grid: at most, and at least, where n has many variables.
MAX_POINTS, MIN_POINTS = 41, 5
#: Pairs (n, a) that grids may lead to, also where a model answers one question at a time.
MAX_GRID_PAIRS, SLOW_GRID_PAIRS = 40_000, 2_000
#: Values that differ by less than this share of their range are the same.
SAME_SHARE = 1e-9


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of one variable."""

    name: str
    size: int  # how many values the variable has
    starts: NDArray[Any]  # (bins,): the smallest value of each bin, increasing
    stand_ins: NDArray[Any]  # (bins, NUM_STAND_INS): values of each bin, as they occurred

    def __post_init__(self) -> None:
        """Refuse what are no bins: they may come from a file."""
        starts, values = np.asarray(self.starts), np.asarray(self.stand_ins)
        kinds = {part.dtype.kind for part in (starts, values)}
        fits = kinds <= ({"f"} if self.size == REAL_SIZE else {"i", "u"})
        if (
            not fits
            or not all(np.isfinite(part).all() for part in (starts, values))
            or starts.ndim != 1
            or not len(starts)
            or values.shape != (len(starts), NUM_STAND_INS)
            or (np.diff(starts) <= 0).any()
            or (self.of_values(values) != np.arange(len(starts))[:, None]).any()
        ):
            raise ArgumentError(
                f"the bins of {self.name!r} start at increasing numbers, whole if it is not real, "
                f"and {NUM_STAND_INS} values stand for each of them"
            )

    @classmethod
    def of(cls, variable: Variable, values: IntArray) -> Bins:
        """Bins for values that occurred, shape (samples,): about as many of them in each."""
        ordered = np.sort(values, axis=None).astype(np.int64)
        distinct, first, counts = np.unique(ordered, return_index=True, return_counts=True)
        wanted = min(MAX_BINS, max(2, math.isqrt(len(ordered) // SAMPLES_PER_CELL)))
        if len(distinct) > wanted:
            rank = (first + counts / 2) * wanted // len(ordered)
            is_frequent = counts * wanted >= len(ordered)
            opens = np.ones(len(distinct), dtype=bool)
            opens[1:] = (np.diff(rank) > 0) | is_frequent[1:] | is_frequent[:-1]
            distinct, first = distinct[opens], first[opens]
        return cls(variable.name, int(variable.size), distinct, _stand_ins(ordered, first))

    @classmethod
    def of_real(cls, variable: Variable, values: NDArray[Any], responses: Responses) -> Bins:
        """Bins for values of a real variable: where it makes a difference, and equal shares."""
        ordered = np.sort(values, axis=None).astype(np.float64)
        j = responses.mdp.exogenous_names.index(variable.name)
        by_samples, most = bin_limits(len(ordered))
        inner = ordered[:-1] if len(ordered) > 1 else ordered
        first = bin_starts(ordered, edges_by_change(responses, j, inner, most), by_samples)
        return cls(variable.name, int(variable.size), ordered[first], _stand_ins(ordered, first))

    def __len__(self) -> int:
        return len(self.starts)

    def of_values(self, values: IntArray) -> NDArray[np.int64]:
        """The bin of each value; what is below the first belongs to it."""
        return np.maximum(np.searchsorted(self.starts, values, side="right") - 1, 0)


def _stand_ins(ordered: NDArray[Any], first: NDArray[Any]) -> NDArray[Any]:
    """Values for each bin, spread evenly over its samples: where they begin is given."""
    ends = np.append(first[1:], len(ordered))
    share = (np.arange(NUM_STAND_INS) + 0.5) / NUM_STAND_INS
    return ordered[first[:, None] + ((ends - first)[:, None] * share).astype(np.int64)]


class Responses:
    """What a model pays and where n goes, as one exogenous variable changes.

    Args:
        mdp: the model, of values.
        met: states that an agent meets, in some of which variables are changed.
        rng: draws these, the actions and the noise.
    """

    def __init__(self, mdp: ExoMDP, met: State, rng: np.random.Generator) -> None:
        number = NUM_CONTEXTS if mdp.is_batched else SLOW_CONTEXTS
        chosen = rng.integers(len(met.endogenous), size=number)
        self.mdp = checked(mdp)
        self.state = State(met.endogenous[chosen], met.exogenous[chosen])
        self.action = rng.integers(mdp.num_actions, size=number)
        self.seed = int(rng.integers(2**63))
        self.num_values = NUM_VALUES if mdp.is_batched else SLOW_VALUES

    def changes(self, j: int, values: FloatArray) -> FloatArray:
        """How much changes from each value of x_j to the next: (values - 1,), 1 in all or 0."""
        outcomes = []
        for value in values.tolist():
            x = self.state.exogenous.copy()
            x[:, j] = value
            state = State(self.state.endogenous, x)
            noise = np.random.default_rng(self.seed)
            outcomes.append(sample_outcome(self.mdp, state, self.action, noise))
        moved = np.array([endogenous for endogenous, _ in outcomes], dtype=np.float64)
        paid = np.array([rewards for _, rewards in outcomes])  # (values, states)
        parts = [
            np.abs(np.diff(paid, axis=0)).mean(axis=1),
            (np.diff(moved, axis=0) != 0).any(axis=2).mean(axis=1),
        ]
        shares = [part / part.sum() for part in parts if part.sum() > 0]
        return np.mean(shares, axis=0) if shares else np.zeros(len(values) - 1)


def edges_by_change(
    responses: Responses, j: int, ordered: NDArray[Any], most: int = NUM_BY_CHANGE
) -> list[float]:
    """Values of x_j at which equal shares of what changes have been passed, the largest jump first.

    Args:
        responses: the model.
        j: the variable.
        ordered: values that occurred, increasing.
        most: how many.
    """
    first = _spread(ordered, NUM_FIRST)
    if len(first) < 2 or not responses.changes(j, first).any():
        return []
    values = _spread(ordered, responses.num_values)
    change = responses.changes(j, values)
    jumps = np.flatnonzero(change > JUMP_SHARE)
    found = [
        (float(change[k]), _locate(responses, j, values[k], values[k + 1])) for k in jumps.tolist()
    ]
    smooth = np.where(change > JUMP_SHARE, 0.0, change)
    number = min(most - len(found), round(most * float(smooth.sum())))
    if number > 0:
        passed = np.cumsum(smooth) / smooth.sum()
        wanted = np.arange(1, number + 1) / (number + 1)
        found += [(0.0, float(v)) for v in values[1:][np.searchsorted(passed, wanted)]]
    return [edge for _, edge in sorted(found, key=lambda entry: -entry[0])][:most]


def bin_limits(num_samples: int) -> tuple[int, int]:
    """How many bins there are because of how often values occur, and because of what they do.

    >>> bin_limits(100_000), bin_limits(5_000)
    ((15, 15), (3, 3))
    """
    share = max(FEWEST_BINS, math.isqrt(num_samples // SAMPLES_PER_PAIR)) // 2
    return min(share, NUM_BY_SAMPLES), min(share, NUM_BY_CHANGE)


def bin_starts(
    ordered: NDArray[Any], by_change: list[float], by_samples: int = NUM_BY_SAMPLES
) -> Ints:
    """Where the bins begin, as places in the samples: those of changes, then equal shares.

    >>> bin_starts(np.arange(8.0), [2.5])
    array([0, 1, 2, 3, 4, 5, 6, 7])
    """
    total = len(ordered)
    least = max(1, round(MIN_SHARE * total))
    starts = [0]
    for edge in by_change:
        place = int(np.searchsorted(ordered, edge))
        if least <= place <= total - least and _is_apart(place, starts, least):
            starts.append(place)
    apart = max(1, total // (4 * by_samples))
    for k in range(1, by_samples):
        # All samples of one value belong to one bin.
        place = int(np.searchsorted(ordered, ordered[k * total // by_samples]))
        if _is_apart(place, starts, apart):
            starts.append(place)
    return np.array(sorted(starts), dtype=np.int64)


def _is_apart(place: int, starts: list[int], distance: int) -> bool:
    return all(abs(place - start) >= distance for start in starts)


def _spread(ordered: NDArray[Any], number: int) -> FloatArray:
    """So many values that occurred, at equal shares of the samples, each once."""
    places = np.linspace(0, len(ordered) - 1, number).round().astype(np.int64)
    return np.unique(ordered[places]).astype(np.float64)


def _locate(responses: Responses, j: int, low: float, high: float) -> float:
    """Where between two values most of the change happens."""
    for _ in range(NUM_BISECTIONS if responses.mdp.is_batched else NUM_BISECTIONS // 4):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        left, right = responses.changes(j, np.array([low, middle, high]))
        low, high = (low, middle) if left >= right else (middle, high)
    return high


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
        return REAL_SIZE

    def __len__(self) -> int:
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
        share = np.where(share < SAME_SHARE, 0.0, np.where(share > 1.0 - SAME_SHARE, 1.0, share))
        return np.asarray(upper - 1 + (uniform < share), dtype=np.int64)


def fewest_endogenous_states(mdp: ExoMDP) -> int:
    """How many n there are at least, once the real variables of n are seen on grids."""
    sizes = (MIN_POINTS if v.is_real else v.size for v in mdp.endogenous_variables)
    return math.prod(sizes)


def fit_grids(mdp: ExoMDP, met: State) -> tuple[Grid, ...]:
    """A grid for each real variable of n.

    Args:
        mdp: the model.
        met: states that an agent meets (:func:`planners.core.walk.walk`).

    Raises:
        ValueError: a variable has no bounds, and more values occur than a grid has points.
    """
    real = [j for j, v in enumerate(mdp.endogenous_variables) if v.is_real]
    if not real:
        return ()
    values = {j: _distinct(met.endogenous[:, j]) for j in real}
    few = {j: points for j, points in values.items() if len(points) <= MAX_MET_POINTS}
    others = np.prod([v.size for v in mdp.endogenous_variables if not v.is_real], initial=1.0)
    others *= mdp.num_actions * np.prod([len(points) for points in few.values()], initial=1.0)
    spaced = len(real) - len(few)
    most = MAX_GRID_PAIRS if mdp.is_batched else SLOW_GRID_PAIRS
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
    apart = np.diff(ordered) > SAME_SHARE * max(1.0, float(np.abs(ordered).max(initial=0.0)))
    return ordered[np.concatenate([[True], apart])]
