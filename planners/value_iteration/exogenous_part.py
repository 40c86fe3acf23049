"""The part of V that depends on x alone, which no action can change.

Whatever is done, x moves by P(x'|x). So a change of V by a function f(x) changes the values of all
actions alike, and the sum of what follows from it, now and in all sweeps to come, is

    discount P f + discount^2 P^2 f + ...

Sweeps need not wait until such a change has died down: the sum is worked out over x alone, which
takes a small part of a sweep over (x, n).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planners.core.arrays import Floats
from planners.value_iteration.expectation import Expectation
from planners.value_iteration.extrapolation import extrapolate

#: Steps of a sum at most.
MAX_STEPS = 2000

#: Steps of a bound at most: each makes it a little smaller.
MAX_BOUND_STEPS = 16

#: Steps from one extrapolation to the next.
CYCLE = 8

#: Arrays over x that a sum takes in any case, and with extrapolation in addition.
ARRAYS, MORE_ARRAYS = 6, CYCLE


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
