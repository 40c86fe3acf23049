"""Two different actions that lead to what looks like the same state, and what follows.

If it differs, the action is remembered by something that is not shown.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exo_envs.audit.trials import NUM_STEPS, Trials, are_same
from exo_envs.core.mdp import BoolArray, FloatArray


class Carried(NamedTuple):
    """Something in which an earlier action shows that no state shows."""

    column: int  # of the outcomes, see :func:`exo_envs.audit.pasts.outcome_names`
    steps: int  # after the action, 1 being the step of the action
    share: float  # of the states that both of two episodes came to


def outcomes_of(trials: Trials, step: int) -> FloatArray:
    """What a step of each trial led to in both episodes, shape (N, 2, columns + 2).

    There is NaN where nothing is known: after the end, or if the step was not taken.
    """
    counts, taken = trials.counts[:, :, step, None], trials.taken[:, :, step, None]
    rows = np.where(counts, trials.rows[:, :, step + 1], np.nan)
    flags = np.stack([trials.rewards[:, :, step], trials.ended[:, :, step]], axis=-1)
    return np.concatenate([rows, np.where(taken, flags, np.nan)], axis=-1)


def differing(one: FloatArray, two: FloatArray) -> BoolArray:
    """Which outcomes differ, where both are known."""
    return ~are_same(one, two) & ~np.isnan(one) & ~np.isnan(two)


def find_carried(trials: Trials) -> list[Carried]:
    """Columns in which an action shows later although the state in between does not show it.

    Nothing is said if chance cannot be excluded: if an episode cannot be repeated, or if some
    action uses more random numbers than another.
    """
    if not trials.repeats or not trials.is_even:
        return []
    met = trials.both & ~trials.differs.any(axis=2)  # (N, NUM_STEPS)
    count, seen = 0, np.zeros((NUM_STEPS, trials.rows.shape[-1] + 2), dtype=np.int64)
    for step in range(1, NUM_STEPS):
        lanes = np.flatnonzero(met[:, step - 1])
        outcomes = outcomes_of(trials, step)[lanes]
        seen[step] = differing(outcomes[:, 0], outcomes[:, 1]).sum(axis=0)
        count += len(lanes)
    found = []
    for column in np.flatnonzero(seen.any(axis=0)).tolist():
        first = int(np.flatnonzero(seen[:, column])[0])
        found.append(Carried(column, 1 + first, int(seen[:, column].sum()) / count))
    return found
