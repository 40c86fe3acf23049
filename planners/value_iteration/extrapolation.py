"""Reduced-rank extrapolation: what a sequence of sweeps with fixed actions will converge to.

Sweeps with fixed actions are a linear iteration, V <- r + L V, whose changes shrink slowly when
something in the model changes slowly. The combination of the last iterates, with weights that sum
to one, whose change is smallest is far closer to the fixed point than the last of them. It is what
GMRES finds, and costs two passes over the last few changes. (Smith, Ford and Sidi, 1987.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exo_envs.compiled.functions import njit
from planners.core.arrays import Floats

#: Elements that are worked on at a time, so that they stay in the nearest cache.
BLOCK_ELEMENTS = 1024


def extrapolate(
    values: Floats, changes: Floats, *, up_to_functions_of_x: bool
) -> tuple[float, float, float]:
    """Improve V in place.

    Args:
        values: V after the last sweep, shape (X, N).
        changes: those of the last sweeps, the oldest first, shape (k, X, N).
        up_to_functions_of_x: whether a number for each x added to V does not matter.

    Returns:
        The least and the largest number that was added to V, and the most that numbers which were
        added at the same x differ by.
    """
    products, of_means = _products(changes)
    if up_to_functions_of_x:
        products -= of_means
    scale = np.trace(products)
    if not 0.0 < scale < np.inf:
        return 0.0, 0.0, 0.0  # nothing changes any more
    # Weights that sum to one and minimise the squared norm of the combined change. The little
    # on the diagonal keeps changes that are nearly parallel from cancelling each other.
    products[np.diag_indices_from(products)] += 1e-12 * scale
    weights = np.linalg.solve(products, np.ones(len(products)))
    weights /= weights.sum()
    if np.isfinite(weights).all():
        # The iterate after sweep j lacks the changes of the sweeps after it.
        lacking = np.concatenate([[0.0], np.cumsum(weights)[:-1]])
        least, largest, widest = _subtract(values, changes, lacking.astype(values.dtype))
        return float(least), float(largest), float(widest)
    return 0.0, 0.0, 0.0


@njit(cache=True, fastmath=True)
def _products(changes: Any) -> Any:
    """The scalar products of all pairs, and N times those of their means over n."""
    count, num_x, num_n = changes.shape
    products, of_means = np.zeros((count, count)), np.zeros((count, count))
    height = max(1, BLOCK_ELEMENTS // num_n)
    sums = np.zeros((count, height))
    for first in range(0, num_x, height):
        rows = min(height, num_x - first)
        for i in range(count):
            for x in range(rows):
                sums[i, x] = _sum(changes[i, first + x])
            for j in range(i + 1):
                of_means[i, j] += _product(sums[i, :rows], sums[j, :rows]) / num_n
        for start in range(0, rows * num_n, BLOCK_ELEMENTS):
            end = min(start + BLOCK_ELEMENTS, rows * num_n)
            for i in range(count):
                one = changes[i, first : first + rows].reshape(-1)[start:end]
                for j in range(i + 1):
                    other = changes[j, first : first + rows].reshape(-1)[start:end]
                    products[i, j] += _product(one, other)
    for i in range(count):
        for j in range(i):
            products[j, i], of_means[j, i] = products[i, j], of_means[i, j]
    return products, of_means


@njit(cache=True, fastmath=True)
def _sum(numbers: Any) -> float:
    total = 0.0
    for k in range(len(numbers)):
        total += numbers[k]
    return total


@njit(cache=True, fastmath=True)
def _product(one: Any, other: Any) -> float:
    """The scalar product, in double precision."""
    total = 0.0
    for k in range(len(one)):
        total += np.float64(one[k]) * np.float64(other[k])
    return total


@njit(cache=True, nogil=True)
def _subtract(values: Any, changes: Any, weights: Any) -> Any:
    """Subtract the weighted changes from V: what :func:`extrapolate` returns."""
    num_x, num_n = values.shape
    before = np.empty(BLOCK_ELEMENTS, values.dtype)
    infinite = values.dtype.type(np.inf)
    least, largest, widest = infinite, -infinite, values.dtype.type(0)
    for x in range(num_x):
        low, high = infinite, -infinite
        for start in range(0, num_n, BLOCK_ELEMENTS):
            out = values[x, start : start + BLOCK_ELEMENTS]
            for k in range(len(out)):  # a slice would take a second more to compile
                before[k] = out[k]
            for i in range(len(weights)):
                change = changes[i, x, start : start + BLOCK_ELEMENTS]
                for k in range(len(out)):
                    out[k] -= weights[i] * change[k]
            for k in range(len(out)):
                difference = out[k] - before[k]
                low, high = min(low, difference), max(high, difference)
        least, largest, widest = min(least, low), max(largest, high), max(widest, high - low)
    return least, largest, widest
