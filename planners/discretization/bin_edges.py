"""Where the bins of a real variable begin: by how often values occur, and by what they do.

Bins of equally many samples are good for predicting. For deciding, a bin should not hide a
threshold: where price decides whether to sell, the bins are to meet at the price from which on it
pays. So the model is asked what it pays and how n moves along the values of a variable, in states
that an agent meets, with the same noise. Bins begin where equal shares of all that changes have
been passed; a jump is located by bisection.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.checked_mdp import checked
from exo_envs.core.mdp import ExoMDP, FloatArray, State
from planners.core.arrays import Ints

#: Bins that a real variable has at most because of how often its values occur, and because of what
#: they do.
NUM_BY_SAMPLES, NUM_BY_CHANGE = 16, 16
#: Samples that there are for each pair of bins, so that a third variable of 24 values that predicts
#: well is still worth its place in a table (Akaike's criterion); and bins that there are even of
#: fewer samples.
SAMPLES_PER_PAIR, FEWEST_BINS = 100, 6
#: Values of a variable, and states, at which the model is asked what changes.
NUM_VALUES, NUM_CONTEXTS = 65, 64
#: The same for a model that answers one question at a time.
SLOW_VALUES, SLOW_CONTEXTS = 17, 32
#: Values at which it is first asked whether anything changes at all.
NUM_FIRST = 5
#: A jump is what changes by more than this share between two neighbouring values.
JUMP = 0.05
#: Bisections that locate a jump.
NUM_BISECTIONS = 24
#: A bin has at least this share of the samples.
MIN_SHARE = 1 / 512


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

    def at(self, j: int, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rewards (values, contexts) and n' (values, contexts, k) with x_j at these values."""
        paid, moved = [], []
        for value in values.tolist():
            x = self.state.exogenous.copy()
            x[:, j] = value
            state = State(self.state.endogenous, x)
            noise = np.random.default_rng(self.seed)
            outcome = self.mdp.sample_outcome(state, self.action, noise)
            moved.append(outcome.endogenous)
            paid.append(outcome.reward)
        return np.array(paid), np.array(moved, dtype=np.float64)

    def changes(self, j: int, values: FloatArray) -> FloatArray:
        """How much changes from each value to the next, shape (values - 1,), 1 in all or 0."""
        paid, moved = self.at(j, values)
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
    jumps = np.flatnonzero(change > JUMP)
    found = [
        (float(change[k]), _locate(responses, j, values[k], values[k + 1])) for k in jumps.tolist()
    ]
    smooth = np.where(change > JUMP, 0.0, change)
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
