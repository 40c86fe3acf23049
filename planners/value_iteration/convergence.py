"""What the sweeps to come would add to V, worked out at once.

Two parts of V shrink slowly while everything else has converged. What depends on x alone no action
can change: whatever is done, x moves by P(x'|x), so a change of V by a function f(x) changes the
values of all actions alike, and the sum of what follows from it is

    discount P f + discount^2 P^2 f + ...,

found over x alone in a small part of the time of a sweep over (x, n).

Sweeps with fixed actions are a linear iteration, V <- r + L V. The combination of its last
iterates, with weights that sum to one, whose change is smallest is far closer to the fixed point
than the last of them: reduced-rank extrapolation. It is what GMRES finds, and costs two passes over
the last few changes. (Smith, Ford and Sidi, 1987.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from exo_envs.compiled.functions import njit
from planners.core.arrays import Floats
from planners.value_iteration.expectation import Expectation

#: Steps of a sum at most.
MAX_STEPS = 2000

#: Steps of a bound at most: each makes it a little smaller.
MAX_BOUND_STEPS = 16

#: Steps of a sum from one extrapolation to the next.
CYCLE = 8

#: Arrays over x that a sum takes in any case, and with extrapolation in addition.
ARRAYS, MORE_ARRAYS = 6, CYCLE

#: Elements that are worked on at a time, so that they stay in the nearest cache.
BLOCK_ELEMENTS = 1024


def sum_ahead(
    function: Floats,
    expectation: Expectation,
    discount: float,
    accuracy: float,
    tick: Callable[[], None],
    *,
    roomy: bool = True,
) -> Floats:
    """The sum of discount^k P^k f over k = 1, 2, ...

    Args:
        function: f, shape (X,).
        expectation: P.
        discount: below 1.
        accuracy: how far off the sum may be. It stops earlier if rounding lets it get no closer.
        tick: is called in every step, and may raise.
        roomy: whether there is memory for ``MORE_ARRAYS``.
    """
    gain = discount / (1.0 - discount)
    total: Floats = np.zeros(len(function))
    changes = np.empty((CYCLE if roomy else 0, 1, len(function)))
    best, since, extrapolating = np.inf, 0, roomy
    new, least, largest = total, 0.0, 0.0
    for k in range(MAX_STEPS):
        tick()
        new = discount * expectation.of_exogenous(function + total)
        np.subtract(new, total, out=total)
        least, largest = float(total.min()), float(total.max())
        span = largest - least
        best, since = (span, 0) if span < best else (best, since + 1)
        # Without extrapolation the span shrinks in every step, until there is only rounding.
        rounded = since > CYCLE and not extrapolating
        if gain * span <= 2.0 * accuracy or rounded or k == MAX_STEPS - 1:
            break
        if since > 2 * CYCLE:
            extrapolating, best, since = False, np.inf, 0
        if extrapolating:
            changes[k % CYCLE, 0] = total
        total = new
        if extrapolating and k % CYCLE == CYCLE - 1:
            extrapolate(total.reshape(1, -1), changes, up_to_functions_of_x=True)
    return new + gain * (least + largest) / 2.0


def most_ahead(widths: Floats, expectation: Expectation, discount: float, enough: float) -> float:
    """A bound on the sum of discount^k P^k w over k = 1, 2, ..., at every x.

    ``widths`` are w, shape (X,). The bound is made smaller until it is ``enough``, or for a while.
    """
    gain = discount / (1.0 - discount)
    ahead: Floats = widths.astype(np.float64)
    bound, total = gain * float(ahead.max()), np.zeros(len(ahead))
    for _ in range(MAX_BOUND_STEPS):
        if bound <= enough:
            break
        ahead = discount * expectation.of_exogenous(ahead)
        total += ahead
        bound = float(total.max()) + gain * float(ahead.max())
    return bound * (1.0 + 1e-9)  # for what rounding may have taken off


def extrapolate(values: Floats, changes: Floats, *, up_to_functions_of_x: bool) -> None:
    """Improve V in place.

    Args:
        values: V after the last sweep, shape (X, N).
        changes: those of the last sweeps, the oldest first, shape (k, X, N).
        up_to_functions_of_x: whether a number for each x added to V does not matter.
    """
    products, of_means = _products(changes)
    if up_to_functions_of_x:
        products -= of_means
    scale = np.trace(products)
    if not 0.0 < scale < np.inf:
        return  # nothing changes any more
    # Weights that sum to one and minimise the squared norm of the combined change. The little
    # on the diagonal keeps changes that are nearly parallel from cancelling each other.
    products[np.diag_indices_from(products)] += 1e-12 * scale
    weights = np.linalg.solve(products, np.ones(len(products)))
    weights /= weights.sum()
    if np.isfinite(weights).all():
        # The iterate after sweep j lacks the changes of the sweeps after it.
        lacking = np.concatenate([[0.0], np.cumsum(weights)[:-1]])
        _subtract(values, changes, lacking.astype(values.dtype))


@njit(cache=True, fastmath=True)
def _products(changes: Any) -> Any:  # noqa: C901 - blocks that stay in the cache
    """The scalar products of all pairs, and N times those of their means over n."""
    count, num_x, num_n = changes.shape
    products, of_means = np.zeros((count, count)), np.zeros((count, count))
    height = max(1, BLOCK_ELEMENTS // num_n)
    sums = np.zeros((count, height))
    for first in range(0, num_x, height):
        rows = min(height, num_x - first)
        for i in range(count):
            for x in range(rows):
                total = 0.0
                for n in range(num_n):
                    total += changes[i, first + x, n]
                sums[i, x] = total
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
def _product(one: Any, other: Any) -> float:
    """The scalar product, in double precision."""
    total = 0.0
    for k in range(len(one)):
        total += np.float64(one[k]) * np.float64(other[k])
    return total


@njit(cache=True)
def _subtract(values: Any, changes: Any, weights: Any) -> None:
    """Subtract the weighted changes from V."""
    num_x, num_n = values.shape
    for x in range(num_x):
        for start in range(0, num_n, BLOCK_ELEMENTS):
            out = values[x, start : start + BLOCK_ELEMENTS]
            for i in range(len(weights)):
                change = changes[i, x, start : start + BLOCK_ELEMENTS]
                for k in range(len(out)):
                    out[k] -= weights[i] * change[k]
