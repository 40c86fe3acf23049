"""What actions move where some of them use more random numbers than others.

Then numbers that come later are others, and what they decide differs although no action moves it.
Two episodes may fall back into step by chance, so that this does not show. But it seldom does: if
a variable differs, while as many random numbers were used, under most random numbers, it is moved.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from exo_envs.sources.simulators.episodes import NUM_SEEDS

if TYPE_CHECKING:
    from exo_envs.audit.trials import Trials

#: How often two episodes that are out of step are taken to fall back into it by chance, at most.
COINCIDENCE = 1 / 3
#: Random numbers under which a step is taken.
NUM_DRAWS = 60
#: After so many draws, whoever showed it in fewer than half of them is out.
FEW_DRAWS = 12
#: Trials in which a variable is looked at, at most.
MAX_TRIALS = 4


class Confirmed(NamedTuple):
    """A column that was confirmed to be moved."""

    steps: int  # after which it showed, 1 being the step of the action
    p_value: float


def confirm_moved(trials: Trials, error_probability: float) -> dict[int, Confirmed]:
    """Columns that are moved; one that is not is among them with at most that probability."""
    found: dict[int, Confirmed] = {}
    tried: dict[int, int] = {}
    first = _first_steps(trials)
    tests = max(1, MAX_TRIALS * int(np.isfinite(first).any(axis=0).sum()))
    needed, p_value = _needed(error_probability / tests)
    p_value *= tests
    while True:
        before = len(found)
        for column in np.flatnonzero(np.isfinite(first).any(axis=0)).tolist():
            order = np.argsort(first[:, column], kind="stable")
            for trial in order[np.isfinite(first[order, column])].tolist():
                if column in found or tried.get(column, 0) >= MAX_TRIALS:
                    break
                step = int(first[trial, column])
                earlier = np.flatnonzero(trials.differs[trial, :step].any(axis=0)).tolist()
                if set(earlier) <= found.keys():  # else it may only follow from chance
                    tried[column] = tried.get(column, 0) + 1
                    first[trial, column] = math.inf
                    if _is_moved(trials, trial, step, column, needed):
                        found[column] = Confirmed(step + 1, p_value)
        if len(found) == before:
            return found


def _first_steps(trials: Trials) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The step in which a column differs first, if in step, else infinity: shape (N, columns)."""
    differs = trials.differs
    steps = differs.argmax(axis=1)
    is_known = differs.any(axis=1) & np.take_along_axis(trials.in_step, steps, axis=1)
    return np.where(is_known, steps.astype(np.float64), math.inf)


def _is_moved(trials: Trials, trial: int, step: int, column: int, needed: int) -> bool:
    """Whether a column differs after a step under as many random numbers of that step."""
    own, shown = trials.trials[trial], 0
    for draw in range(NUM_DRAWS):
        if draw == FEW_DRAWS and 2 * shown < FEW_DRAWS:
            return False
        noise = [*own.noise[:step], int(trials.rng.integers(NUM_SEEDS // 2))]
        one, two = (trials.run(own, arm, noise) for arm in (0, 1))
        both = trials.counted(one)[step] and trials.counted(two)[step]
        if both and one.noise[step] == two.noise[step]:
            values = one.rows[step + 1, column], two.rows[step + 1, column]
            shown += not np.isclose(*values, rtol=1e-9, atol=1e-12, equal_nan=True)
    return shown >= needed


def _needed(error_probability: float) -> tuple[int, float]:
    """How many draws have to show a difference, and how probable that is by coincidence."""
    p, tail = COINCIDENCE, 0.0
    for needed in range(NUM_DRAWS, 0, -1):
        more = math.comb(NUM_DRAWS, needed) * p**needed * (1 - p) ** (NUM_DRAWS - needed)
        if tail + more > error_probability:
            return needed + 1, tail
        tail += more
    return 1, tail
