"""How much of what an environment pays depends on chance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from exo_envs.core.mdp import IntArray
from exo_envs.sources.simulators.foreign import ForeignEnv, Rows

if TYPE_CHECKING:
    from exo_envs.sources.simulators.playing import PlayableMDP

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
    deviation: float  # the standard deviation of the reward there, as a share of the next
    span: float  # the distance between the smallest and the largest reward anywhere

    @property
    def samples(self) -> int:
        """The number of seeds that a reward should be averaged over."""
        wanted = math.ceil((self.deviation / WANTED_ERROR) ** 2)
        return min(MOST_SAMPLES, max(1, wanted))

    def is_large(self, samples: int) -> bool:
        """Whether the mean over so many seeds still depends on chance, by much."""
        return self.deviation / math.sqrt(samples) > LARGE_ERROR


def find_chance(mdp: PlayableMDP, max_steps: int = MAX_STEPS) -> Chance | None:
    """Where the reward of an environment depends on chance the most, if it does.

    Looked at are states of episodes, and every n with every action, if there are not too many, each
    with an x that was met: random actions may never come where chance decides, and a plan does.

    Args:
        mdp: the adapted environment.
        max_steps: how many steps are taken in states that were met, and as many in others.
    """
    met = mdp.record(min(NUM_MET, max(1, max_steps // MIN_SEEDS)))
    everywhere = _everywhere(mdp.foreign, met.rows, mdp.num_actions, max_steps)
    found = [
        _largest(mdp.foreign, rows, actions, max_steps)
        for rows, actions in ((met.rows, met.actions), everywhere)
        if len(rows)
    ]
    span = max((own.span for own in found if own is not None), default=0.0)
    if span == 0.0:
        return None
    rescaled = [
        own._replace(deviation=own.deviation * own.span / span, span=span)
        for own in found
        if own is not None
    ]
    worst = max(rescaled, key=lambda own: own.deviation)
    return worst if worst.high - worst.low > ROUNDING * (1 + abs(worst.high)) else None


def affordable_samples(mdp: PlayableMDP) -> int:
    """The number of seeds over which all rewards that a planner asks for can be averaged."""
    sizes = [REAL_POINTS if v.is_real else int(v.size) for v in mdp.foreign.parts[0]]
    pairs = min(MAX_PAIRS, math.prod(sizes) * mdp.num_actions)
    joint = [
        math.prod(REAL_VALUES if own.is_real else int(own.size) for own in scope)
        for scope in ([mdp.foreign.parts[1][i] for i in scope] for scope in mdp.scope_indices)
    ]
    rows = pairs * (1 + sum(min(number, MAX_PAIRS) for number in joint))
    return max(FEWEST_SAMPLES, min(MOST_SAMPLES, MAX_REWARDS // rows))


def _largest(foreign: ForeignEnv, rows: Rows, actions: IntArray, max_steps: int) -> Chance | None:
    """The state whose reward varies the most from seed to seed; None if all rewards are equal."""
    number = min(MAX_SEEDS, max(MIN_SEEDS, max_steps // len(rows)))
    seeds = np.random.default_rng(0).integers(2**31, size=number)
    try:
        paid = np.array(
            [foreign.step(rows, actions, np.full(len(rows), seed)).reward for seed in seeds]
        )
    except ValueError:
        return None  # a combination of values that never occurs, and cannot be set
    span = float(np.ptp(paid))
    if span == 0.0:
        return None
    deviation = paid.std(axis=0, ddof=1)
    lane = int(deviation.argmax())
    low, high = float(paid[:, lane].min()), float(paid[:, lane].max())
    return Chance(rows[lane], int(actions[lane]), low, high, float(deviation[lane]) / span, span)


def _everywhere(
    foreign: ForeignEnv, met: Rows, num_actions: int, max_steps: int
) -> tuple[Rows, IntArray]:
    """All n, or some of them, with all actions, each with an x that was met."""
    rng = np.random.default_rng(0)
    variables, k = foreign.parts[0], len(foreign.parts[0])
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
