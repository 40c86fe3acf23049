"""Whether the same state and action give different futures after different pasts.

Where an environment can be put into a state, steps of an episode are compared with the same steps
from states that were set: under the same random numbers first, which settles most cases, and in
distribution if they differ (:class:`exo_envs.core.statistics.Ranks`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.audit.results import END, REWARD
from exo_envs.audit.subject import Subject
from exo_envs.core.mdp import BoolArray, FloatArray
from exo_envs.core.statistics import Ranks
from exo_envs.sources.access.episodes import REPEATS, sample_action
from exo_envs.sources.access.noise import NUM_SEEDS

#: Steps that one episode has at most: the states near the start of one are all alike.
MAX_EPISODE = 30
#: Steps that are drawn from each state that was set.
NUM_REPEATS = 6
#: So many steps that differ decide, if no random number differs: a few may be due to rounding.
CERTAIN_STEPS = 6
#: How much a step counts less than the one after it, when steps before are summed up.
MEMORY = 0.8
#: Numbers of a state that was set are rounded: differences below this part of what a column shows
#: at most do not count.
ROUNDING = 1e-5


class Hidden(NamedTuple):
    """Something whose future depends on the past."""

    column: int  # of the outcomes, see :func:`outcome_names`
    share: float  # of the steps in which it differed
    p_value: float
    seen: str  # for people


def outcome_names(subject: Subject) -> list[str]:
    """What a step leads to: the numbers of the next state, the reward, and whether it ends."""
    return [*subject.names, REWARD, END]


class Played(NamedTuple):
    """Steps of episodes."""

    rows: FloatArray  # (N, columns)
    actions: list[Any]
    noise: list[int]
    outcomes: FloatArray  # (N, columns + 2)
    elapsed: NDArray[np.int64]  # (N,) how many steps of the episode came before

    @classmethod
    def record(cls, subject: Subject, count: int, rng: np.random.Generator) -> Played:
        """So many steps, in episodes with random actions, some of which are repeated."""
        steps: list[tuple[Any, ...]] = []
        space, limit = subject.space, min(MAX_EPISODE, max(2, count // 4))
        while len(steps) < count:
            row = subject.reset(int(rng.integers(NUM_SEEDS)))
            repeat, action = float(rng.choice(REPEATS)), sample_action(space, rng)
            for elapsed in range(limit):
                if rng.random() >= repeat:
                    action = sample_action(space, rng)
                noise = int(rng.integers(NUM_SEEDS // 2))
                taken = subject.step(action, noise)
                steps.append((row, action, noise, taken.outcome, elapsed))
                if taken.is_last or len(steps) >= count:
                    break
                row = taken.row
        rows, actions, seeds, outcomes, times = zip(*steps, strict=True)
        return cls(
            np.array(rows),
            list(actions),
            list(seeds),
            np.array(outcomes),
            np.array(times, dtype=np.int64),
        )

    def from_set_states(
        self, subject: Subject, noise: list[int], rng: np.random.Generator
    ) -> FloatArray:
        """The same steps from states that are set, (N, columns + 2); NaN where that is refused."""
        found = np.full_like(self.outcomes, np.nan)
        for i, (row, action, seed) in enumerate(zip(self.rows, self.actions, noise, strict=True)):
            if subject.try_put(row, int(rng.integers(NUM_SEEDS))):
                found[i] = subject.step(action, seed).outcome
        return found


class SetStates:
    """Steps of episodes beside the same steps from states that were set.

    Attributes:
        played: the steps.
        scale: the largest number that each column of an outcome showed.
        differs: which outcomes differ under the same random numbers, shape (N, columns + 2).
        depends_on_reset: columns that differ between states that were set twice, after resets with
            different seeds. Nothing else that is random is in them: differences in the others are
            no chance.
    """

    def __init__(
        self, subject: Subject, played: Played, again: FloatArray, rng: np.random.Generator
    ) -> None:
        self.subject, self.played, self.rng, self._again = subject, played, rng, again
        self.scale = np.abs(np.nan_to_num(np.concatenate([played.outcomes, again]))).max(axis=0)
        self.differs = self.apart(played.outcomes, again)
        self.depends_on_reset: BoolArray = np.zeros(len(self.scale), dtype=np.bool_)

    @classmethod
    def play(cls, subject: Subject, count: int, rng: np.random.Generator) -> SetStates:
        """So many steps, in both ways."""
        played = Played.record(subject, count, rng)
        again = played.from_set_states(subject, played.noise, rng)
        states = cls(subject, played, again, rng)
        if states.differs.any():
            once_more = played.from_set_states(subject, played.noise, rng)
            states.depends_on_reset = np.asarray(states.apart(again, once_more).any(axis=0))
        return states

    def apart(self, one: FloatArray, two: FloatArray) -> BoolArray:
        """Which numbers of outcomes differ by more than rounding; those after an end do not."""
        known = ~np.isnan(one) & ~np.isnan(two)
        return np.asarray(known & ~(np.abs(one - two) <= ROUNDING * self.scale))

    @property
    def certain(self) -> BoolArray:
        """Columns that depend on the past for certain: no random number differs."""
        often = self.differs.sum(axis=0) >= CERTAIN_STEPS
        return np.asarray(often & ~self.depends_on_reset)

    @property
    def uncertain(self) -> BoolArray:
        """Columns that differ, which may be chance."""
        return np.asarray(self.differs.any(axis=0) & ~self.certain)

    def surely_hidden(self) -> list[Hidden]:
        """Columns that depend on more than the state and the action for certain."""
        own, again = self.played.outcomes, self._again
        columns = np.flatnonzero(self.certain).tolist()
        return [self._say(c, own[:, c], again[:, c, None], 0.0) for c in columns]

    def hidden(self, columns: list[int], error_probability: float) -> Iterator[Hidden]:
        """Some columns, if they depend on more than the state and the action by distribution."""
        own, drawn = self.played.outcomes, []
        for _ in range(NUM_REPEATS if columns else 0):
            noise = self.rng.integers(NUM_SEEDS // 2, size=len(own)).tolist()
            drawn.append(self.played.from_set_states(self.subject, noise, self.rng))
        late = np.where(self.played.elapsed > np.median(self.played.elapsed), 1.0, -1.0)
        for column in columns:
            values = self._values(own, drawn, column)
            won = self._won(Ranks(values[:, 0], values[:, 1:]), late)
            if column < self.played.rows.shape[1]:  # whether it changes at all, too
                now = self._values(self.played.rows, [], column)
                changes = np.abs(values - now) > 0.5 * ROUNDING * self.scale[column]
                won = max(won, self._won(Ranks(changes[:, 0], changes[:, 1:]), late))
            p_value = min(1.0, 6 * len(columns) * math.exp(-won))
            if p_value <= error_probability:
                yield self._say(column, values[:, 0], values[:, 1:], p_value)

    def _say(self, column: int, played: FloatArray, drawn: FloatArray, p_value: float) -> Hidden:
        differing = self.differs[:, column]
        lane = int(np.flatnonzero(differing)[0]) if differing.any() else 0
        seen = (
            f"from {self._show(lane)}, {outcome_names(self.subject)[column]} was "
            f"{played[lane]:g} in an episode and {_spread(drawn[lane])} when that state was set"
        )
        return Hidden(column, float(differing.mean()), p_value, seen)

    def _won(self, ranks: Ranks, late: FloatArray) -> float:
        """The logarithm of what the best bet won: always, late in episodes, or as it was so far."""
        before = _so_far(ranks.places[:, 0], self.played.elapsed)
        return max(ranks.evidence(weight) for weight in (None, late, before))

    def _values(self, own: FloatArray, drawn: list[FloatArray], column: int) -> FloatArray:
        """What was played and drawn, shape (N, 1 + NUM_REPEATS); 0 after the end of an episode."""
        values = np.nan_to_num(np.column_stack([own[:, column], *(d[:, column] for d in drawn)]))
        unit = ROUNDING * float(self.scale[column])
        return np.round(values / unit) * unit if unit else values

    def _show(self, lane: int) -> str:
        pairs = zip(self.subject.names, self.played.rows[lane], strict=True)
        shown = [f"{name}={value:g}" for name, value in pairs]
        more = ", ..." if len(shown) > 12 else ""
        return f"({', '.join(shown[:12])}{more}) with action {self.played.actions[lane]}"


def _so_far(places: FloatArray, elapsed: NDArray[np.int64]) -> FloatArray:
    """Of each step, on which side what was played before in the episode has been: from -1 to 1.

    The mean counts recent steps most. What nobody sees and lasts for a while shows in this.
    """
    sides = np.zeros(len(places))
    for i in range(1, len(places)):
        if elapsed[i] > 0:
            sides[i] = MEMORY * sides[i - 1] + (1.0 - MEMORY) * places[i - 1]
    return sides


def _spread(values: FloatArray) -> str:
    low, high = values.min(), values.max()
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
