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

import numpy as np

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

#: Elements of each change that are worked on at a time, so that they stay in the cache.
BLOCK_ELEMENTS = 1 << 13


def sum_ahead(
    function: Floats,
    expectation: Expectation,
    discount: float,
    accuracy: float,
    *,
    roomy: bool = True,
) -> Floats:
    """The sum of discount^k P^k f over k = 1, 2, ...

    Args:
        function: f, shape (X,).
        expectation: P.
        discount: below 1.
        accuracy: how far off the sum may be. It stops earlier if rounding lets it get no closer.
        roomy: whether there is memory for ``MORE_ARRAYS``.
    """
    gain = discount / (1.0 - discount)
    total: Floats = np.zeros(len(function))
    changes = np.empty((CYCLE if roomy else 0, 1, len(function)))
    best, since, extrapolating = np.inf, 0, roomy
    new, least, largest = total, 0.0, 0.0
    for k in range(MAX_STEPS):
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
    count, _, size = changes.shape
    height = max(1, BLOCK_ELEMENTS // size)
    blocks = [slice(first, first + height) for first in range(0, len(values), height)]
    products = np.zeros((count, count))  # the scalar products of all pairs
    for block in blocks:
        own = changes[:, block].astype(np.float64, copy=False)
        if up_to_functions_of_x:
            own = own - own.mean(axis=2, keepdims=True)
        rows = own.reshape(count, -1)
        products += rows @ rows.T
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
        lacking = np.concatenate([[0.0], np.cumsum(weights)[:-1]]).astype(values.dtype)
        for block in blocks:
            values[block] -= np.tensordot(lacking, changes[:, block], 1)
