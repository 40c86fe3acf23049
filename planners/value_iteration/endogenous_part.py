"""The part of a change of V that depends on n alone, which may take many sweeps to die down.

Where n moves slowly, sweeps with fixed actions change V by nearly the same function of n at every
x, and by nearly the same again in the next sweep. What all sweeps to come would add is

    discount Q d + discount^2 Q^2 d + ...,

if d(n) is the mean of the last change over x and Q(n'|n) the mean of the moves of n. It is added at
once. Both means are those of some x only: whatever is added, the next sweep tells how good it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import njit
from planners.core.arrays import Floats, Ints
from planners.value_iteration.sweeps import KeptActions

#: Values x of which means are taken, at most.
SAMPLE_SIZE = 256

#: Values of n at most: the matrix Q has a row and a column for each.
MAX_ENDOGENOUS = 512

#: The part is only added if what is left of the sampled changes without it is below this share.
SMALL_REST = 0.9


class Snapshot(NamedTuple):
    """V at some x, before a sweep."""

    sample: Ints  # (k,)
    values: Floats  # (k, N)

    @classmethod
    def take(cls, values: Floats) -> Snapshot:
        """Of V, shape (X, N), at x that are spread evenly."""
        count = min(SAMPLE_SIZE, len(values))
        sample = np.linspace(0, len(values) - 1, count).astype(np.int64)
        return cls(sample, values[sample])


def part_ahead(before: Snapshot, values: Floats, kept: KeptActions) -> Floats | None:
    """What sweeps to come will add to V at all x, shape (N,); None if it depends on x too much.

    Args:
        before: V before the last sweep, which was one with the kept actions.
        values: V after it, shape (X, N), without terminal states.
        kept: the actions.
    """
    changes = values[before.sample].astype(np.float64) - before.values
    changes -= changes.mean(axis=1, keepdims=True)  # functions of x do not matter
    mean = changes.mean(axis=0)
    rest = np.ptp(changes - mean, axis=1).max()
    if not rest < SMALL_REST * np.ptp(changes, axis=1).max():
        return None
    moves = _mean_moves(
        before.sample, kept.rows, kept.entry_starts, kept.targets, kept.probabilities
    )
    moves *= float(kept.discount)
    ahead: NDArray[Any] = np.linalg.solve(np.eye(len(mean)) - moves, moves @ mean)
    ahead -= ahead.mean()
    return ahead if np.isfinite(ahead).all() else None


@njit(cache=True)
def _mean_moves(sample: Any, rows: Any, entry_starts: Any, targets: Any, probabilities: Any) -> Any:
    """Q: the mean probability to move from each n to each other, shape (N, N)."""
    size = rows.shape[1]
    moves = np.zeros((size, size))
    for x in sample:
        for n in range(size):
            row = rows[x, n]
            for entry in range(entry_starts[row], entry_starts[row + np.uint64(1)]):
                moves[n, targets[entry]] += probabilities[entry]
    return moves / len(sample)
