"""How much of what an environment pays depends on chance."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from exo_envs.core.mdp import IntArray
from exo_envs.sources.access.episodes import NUM_SEEDS
from exo_envs.sources.simulators.foreign import Rows
from exo_envs.sources.simulators.stepped import SteppedModel

#: Steps that are taken to find out, at most, in states that were met and in others.
MAX_STEPS = 2048
#: Seeds under which each state and action is asked about, at least and at most. (What happens
#: once in ten times is missed under 32 seeds with a probability of 3 %.)
MIN_SEEDS, MAX_SEEDS = 4, 32
#: Steps of episodes whose states are looked at.
NUM_MET = 128
#: The standard error of a mean reward that is wanted, and one that is too large, as shares of the
#: distance between the smallest and the largest reward.
WANTED_ERROR, LARGE_ERROR = 0.03, 0.1
#: Seeds over which a reward is averaged at most, unless somebody wants more.
MOST_SAMPLES = 100
#: Seeds over which a reward is averaged at least, however many states there are.
FEWEST_SAMPLES = 16
#: Rewards that a planner may ask for in all.
MAX_REWARDS = 400_000
#: Values of a real variable of n and of x that planners look at, and pairs (n, a), at most.
REAL_POINTS, REAL_VALUES, MAX_PAIRS = 41, 20, 40_000
#: Rewards that differ by no more than this, relative to their size, are the same.
ROUNDING = 1e-9


class Chance(NamedTuple):
    """A state and an action whose reward depends on chance, more than in others."""

    row: Rows  # (k + m,)
    action: int
    low: float  # the smallest reward there
    high: float  # the largest
    deviation: float  # the standard deviation of the reward there
    span: float  # the distance between the smallest and the largest reward anywhere

    @property
    def samples(self) -> int:
        """The number of seeds that a reward should be averaged over."""
        wanted = math.ceil((self.deviation / self.span / WANTED_ERROR) ** 2)
        return min(MOST_SAMPLES, max(1, wanted))

    def is_large(self, samples: int) -> bool:
        """Whether the mean over so many seeds still depends on chance, by much."""
        return self.deviation / self.span / math.sqrt(samples) > LARGE_ERROR


def find_chance(model: SteppedModel, max_steps: int = MAX_STEPS) -> Chance | None:
    """Where the reward of an environment depends on chance the most, if it does.

    Looked at are states of episodes, and every n with every action, if there are not too many, each
    with an x that was met: random actions may never come where chance decides, and a plan does.

    Args:
        model: the adapted environment.
        max_steps: how many steps are taken in states that were met, and as many in others.
    """
    met = model.record(min(NUM_MET, max(1, max_steps // MIN_SEEDS)))
    everywhere = _everywhere(model, met.rows, max_steps)
    asked = ((met.rows, np.array(met.actions)), everywhere)
    found = [
        chance
        for rows, actions in asked
        if len(rows) and (chance := _largest(model, rows, actions, max_steps)) is not None
    ]
    if not found:
        return None
    worst = max(found, key=lambda own: own.deviation)
    if worst.high - worst.low <= ROUNDING * (1 + abs(worst.high)):
        return None
    return worst._replace(span=max(own.span for own in found))


def affordable_samples(model: SteppedModel) -> int:
    """The number of seeds over which all rewards that a planner asks for can be averaged."""
    n, x = model.foreign.access.parts
    sizes = [REAL_POINTS if own.is_real else int(own.size) for own in n]
    pairs = min(MAX_PAIRS, math.prod(sizes) * model.foreign.num_actions)
    values = [REAL_VALUES if own.is_real else int(own.size) for own in x]
    joint = [math.prod(values[i] for i in scope) for scope in model.scopes]
    rows = pairs * (1 + sum(min(number, MAX_PAIRS) for number in joint))
    return max(FEWEST_SAMPLES, min(MOST_SAMPLES, MAX_REWARDS // rows))


def _largest(model: SteppedModel, rows: Rows, actions: IntArray, max_steps: int) -> Chance | None:
    """The state whose reward varies the most from seed to seed; None if all rewards are equal."""
    number = min(MAX_SEEDS, max(MIN_SEEDS, max_steps // len(rows)))
    seeds = np.random.default_rng(0).integers(NUM_SEEDS, size=number)
    try:
        steps = [model.foreign.step(rows, actions, np.full(len(rows), seed)) for seed in seeds]
    except ValueError:
        return None  # a combination of values that never occurs, and cannot be set
    paid = np.array([step.reward for step in steps])
    if np.ptp(paid) == 0.0:
        return None
    deviation = paid.std(axis=0, ddof=1)
    lane = int(deviation.argmax())
    own = paid[:, lane]
    low, high, span = float(own.min()), float(own.max()), float(np.ptp(paid))
    return Chance(rows[lane], int(actions[lane]), low, high, float(deviation[lane]), span)


def _everywhere(model: SteppedModel, met: Rows, max_steps: int) -> tuple[Rows, IntArray]:
    """All n, or some of them, with all actions, each with an x that was met."""
    k, num_actions = model.k, model.foreign.num_actions
    rng = np.random.default_rng(0)
    variables = model.foreign.access.parts[0]
    most = max_steps // (MIN_SEEDS * num_actions)
    if not most:
        return met[:0], np.zeros(0, dtype=np.int64)
    sizes = [int(variable.size) for variable in variables]
    if any(variable.is_real for variable in variables):
        n = met[rng.integers(len(met), size=min(most, len(met))), :k]
    elif math.prod(sizes) <= most:
        n = np.indices(sizes).reshape(k, math.prod(sizes)).T
    else:
        n = np.column_stack([rng.integers(size, size=most) for size in sizes])
    rows = np.column_stack([n, met[rng.integers(len(met), size=len(n)), k:]])
    rows = np.repeat(rows.astype(met.dtype), num_actions, axis=0)
    return rows, np.tile(np.arange(num_actions), len(n))
