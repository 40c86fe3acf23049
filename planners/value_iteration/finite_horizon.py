"""The best values with a given number of steps left, exactly.

A policy that knows how many steps are left can do better than one that does not, so these values
are what bounds on all policies are made of (:mod:`planners.bounds`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from planners.core.arrays import Floats
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.indexing import num_exogenous_states
from planners.value_iteration.preparation import prepare
from planners.value_iteration.run import action_type
from planners.value_iteration.sweeps import sweep

#: Look for the best actions, whatever W may be and however far V has drifted.
BEST = (True, False, 0.0, 0.0)


def backward_induction(mdp: FactoredMDP, steps: int, dtype: Any = np.float64) -> Iterator[Floats]:
    """V with 0, 1, ... ``steps`` steps left, each of shape (X, N).

    The array is overwritten when the next one is asked for; copy what is to be kept. The discount
    may be 1.

    >>> from planners import ReducedMDP
    >>> from exo_envs.domains.grid import GridMDP
    >>> reduced = ReducedMDP.estimate(GridMDP(), ["object"], rng=0)
    >>> [round(float(values.max())) for values in backward_induction(reduced, 2)]
    [0, 100, 100]
    """
    dtype = np.dtype(dtype)
    prepared = prepare(mdp, dtype, _never)
    kept, shift = prepared.keep_nothing(), dtype.type(0)
    shape = (num_exogenous_states(mdp), mdp.num_endogenous_states)
    values = np.zeros(shape, dtype)
    actions = np.zeros(shape, action_type(mdp))
    ranges = np.empty((2, shape[0]), dtype)
    yield values
    for _ in range(steps):
        prepared.expectation.begin(values, _never)
        for chunk in prepared.expectation.chunks():
            sweep(prepared.model, kept, BEST, shift, chunk, values, (actions, actions), ranges)
        yield values


def _never() -> None:
    """Is called between pieces of work; nothing interrupts these."""
