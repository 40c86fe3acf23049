"""Reduced-rank extrapolation: what a sequence of sweeps with fixed actions will converge to.

Sweeps with fixed actions are a linear iteration, V <- r + L V, whose changes shrink slowly when
something in the model changes slowly. The combination of the last iterates, with weights that sum
to one, whose change is smallest is far closer to the fixed point than the last of them. It is what
GMRES finds, and costs two passes over the last few changes. (Smith, Ford and Sidi, 1987.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exo_envs.compiled import njit
from planners.arrays import Floats

#: Elements that are worked on at a time, so that they stay in the nearest cache.
BLOCK_ELEMENTS = 1024


def extrapolate(values: Floats, changes: Floats, *, up_to_constant: bool) -> tuple[float, float]:
    """Improve V in place.

    Args:
        values: V after the last sweep, shape (S,).
        changes: those of the last sweeps, the oldest first, shape (k, S).
        up_to_constant: whether a constant added to V does not matter.

    Returns:
        The least and the largest number that was added to V.
    """
    products, sums = _products(changes)
    if up_to_constant:
        products -= np.outer(sums, sums) / changes.shape[1]
    scale = np.trace(products)
    if not 0.0 < scale < np.inf:
        return 0.0, 0.0  # nothing changes any more
    # Weights that sum to one and minimise the squared norm of the combined change. The little
    # on the diagonal keeps changes that are nearly parallel from cancelling each other.
    products[np.diag_indices_from(products)] += 1e-12 * scale
    weights = np.linalg.solve(products, np.ones(len(products)))
    weights /= weights.sum()
    if np.isfinite(weights).all():
        # The iterate after sweep j lacks the changes of the sweeps after it.
        lacking = np.concatenate([[0.0], np.cumsum(weights)[:-1]])
        least, largest = _subtract(values, changes, lacking.astype(values.dtype))
        return float(least), float(largest)
    return 0.0, 0.0


@njit(cache=True, fastmath=True)
def _products(changes: Any) -> Any:
    """The scalar products of all pairs, and the sums of each."""
    count, size = changes.shape
    products = np.zeros((count, count))
    sums = np.zeros(count)
    for start in range(0, size, BLOCK_ELEMENTS):
        for i in range(count):
            first = changes[i, start : start + BLOCK_ELEMENTS]
            total = 0.0
            for k in range(len(first)):
                total += first[k]
            sums[i] += total
            for j in range(i + 1):
                second = changes[j, start : start + BLOCK_ELEMENTS]
                total = 0.0
                for k in range(len(first)):
                    total += np.float64(first[k]) * np.float64(second[k])
                products[i, j] += total
    for i in range(count):
        for j in range(i):
            products[j, i] = products[i, j]
    return products, sums


@njit(cache=True, nogil=True)
def _subtract(values: Any, changes: Any, weights: Any) -> Any:
    """Subtract the weighted changes from V: the least and the largest difference that makes."""
    before = np.empty(BLOCK_ELEMENTS, values.dtype)
    infinite = values.dtype.type(np.inf)
    least, largest = infinite, -infinite
    for start in range(0, len(values), BLOCK_ELEMENTS):
        out = values[start : start + BLOCK_ELEMENTS]
        for k in range(len(out)):  # an assignment of arrays takes a second to compile
            before[k] = out[k]
        for i in range(len(weights)):
            change = changes[i, start : start + BLOCK_ELEMENTS]
            for k in range(len(out)):
                out[k] -= weights[i] * change[k]
        for k in range(len(out)):
            difference = out[k] - before[k]
            least, largest = min(least, difference), max(largest, difference)
    return least, largest
