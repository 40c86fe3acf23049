"""Whether the same state and action give different futures after different pasts.

Steps of episodes are compared with the same steps from states that were set: under the same random
numbers first, which settles most cases, and in distribution if they differ
(:class:`exo_envs.core.statistics.Ranks`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from exo_envs.contract.memory import THE_END, THE_REWARD
from exo_envs.core.mdp import BoolArray, FloatArray, IntArray
from exo_envs.core.statistics import Ranks
from exo_envs.sources.access.episodes import Episodes
from exo_envs.sources.access.state_access import Env, StateAccess

#: Steps that are drawn from each state that was set.
NUM_REPEATS = 6
#: So many steps that differ decide, if no random number differs: a few may be due to rounding.
CERTAIN_STEPS = 6
#: How much a step counts less than the one after it, when steps before are summed up.
MEMORY = 0.8
#: Numbers of a state that was set are rounded: differences below this part of what a column shows
#: at most do not count.
ROUNDING = 1e-5
#: Variables of a state that are listed.
MAX_SHOWN = 12


class Hidden(NamedTuple):
    """Something whose future depends on the past."""

    name: str  # of a variable, the reward or the end
    share: float  # of the steps in which it differed
    p_value: float
    seen: str  # for people


class SetStates:
    """Steps of episodes beside the same steps from states that were set.

    Attributes:
        names: of the columns of an outcome: the numbers of the next state, the reward, the end.
        played: the steps.
        scale: the largest number that each column of an outcome showed.
        differs: which outcomes differ under the same random numbers, shape (N, columns + 2).
        certain: columns that depend on the past for certain: none of them differs between states
            that were set twice, after resets with different seeds, so that nothing is chance.
        uncertain: other columns that differ, which may be chance.
    """

    def __init__(
        self, env: Env, access: StateAccess, played: Episodes, rng: np.random.Generator
    ) -> None:
        self.names, self.played = [*access.names, THE_REWARD, THE_END], played
        self._env, self._access = env, access
        own = played.outcomes
        again, _ = self.played.again(self._env, self._access, rng, same_noise=True)
        self.scale = np.abs(np.nan_to_num(np.concatenate([own, again]))).max(axis=0)
        self.differs, self._again = self._apart(own, again), again
        often = self.differs.sum(axis=0) >= CERTAIN_STEPS
        if self.differs.any():
            once_more, _ = self.played.again(self._env, self._access, rng, same_noise=True)
            often &= ~self._apart(again, once_more).any(axis=0)
        self.certain: list[int] = np.flatnonzero(often).tolist()
        self.uncertain: list[int] = np.flatnonzero(self.differs.any(axis=0) & ~often).tolist()

    def surely_hidden(self) -> list[Hidden]:
        """Columns that depend on more than the state and the action for certain."""
        own, again = self.played.outcomes, self._again
        return [self._say(c, own[:, c], again[:, c, None], 0.0) for c in self.certain]

    def hidden(
        self, columns: Sequence[int], rng: np.random.Generator, error_probability: float
    ) -> Iterator[Hidden]:
        """Some columns, if they depend on more than the state and the action by distribution."""
        if not columns:
            return
        own, elapsed = self.played.outcomes, self.played.elapsed
        drawn = [
            self.played.again(self._env, self._access, rng, same_noise=False)[0]
            for _ in range(NUM_REPEATS)
        ]
        late = np.where(elapsed > np.median(elapsed), 1.0, -1.0)
        weights = [None, late]

        def won(ranks: Ranks) -> float:
            """The logarithm of what the best bet won."""
            before = _so_far(ranks.places[:, 0], elapsed)
            return max(ranks.evidence(weight) for weight in (*weights, before))

        tests = 2 * (1 + len(weights)) * len(columns)
        for column in columns:
            values = self._values([own, *drawn], column)
            evidence = won(Ranks(values[:, 0], values[:, 1:]))
            if column < self.played.rows.shape[1]:  # whether it changes at all, too
                now = self._values([self.played.rows], column)
                changes = np.abs(values - now) > 0.5 * ROUNDING * self.scale[column]
                evidence = max(evidence, won(Ranks(changes[:, 0], changes[:, 1:])))
            p_value = min(1.0, tests * math.exp(-evidence))
            if p_value <= error_probability:
                yield self._say(column, values[:, 0], values[:, 1:], p_value)

    def looks_alike(self) -> tuple[int, int] | None:
        """Two steps whose observations differ and are read as one state."""
        first: dict[bytes, int] = {}
        for i, row in enumerate(self.played.rows):
            j = first.setdefault(row.tobytes(), i)
            if not np.array_equal(self.played.shown[i], self.played.shown[j]):
                return j, i
        return None

    def _apart(self, one: FloatArray, two: FloatArray) -> BoolArray:
        """Which numbers of outcomes differ by more than rounding; those after an end do not."""
        known = ~np.isnan(one) & ~np.isnan(two)
        return np.asarray(known & ~(np.abs(one - two) <= ROUNDING * self.scale))

    def _values(self, outcomes: list[FloatArray], column: int) -> FloatArray:
        """One column of several outcomes, rounded; 0 after the end of an episode."""
        values = np.nan_to_num(np.column_stack([own[:, column] for own in outcomes]))
        unit = ROUNDING * float(self.scale[column])
        return np.round(values / unit) * unit if unit else values

    def _say(self, column: int, played: FloatArray, drawn: FloatArray, p_value: float) -> Hidden:
        differing = self.differs[:, column]
        lane = int(np.flatnonzero(differing)[0]) if differing.any() else 0
        low, high = drawn[lane].min(), drawn[lane].max()
        seen = (
            f"from {show_state(self.names, self.played.rows[lane])} with action "
            f"{self.played.actions[lane]}, {self.names[column]} was {played[lane]:g} in an episode "
            f"and {low:g}{'' if low == high else f' to {high:g}'} when that state was set"
        )
        return Hidden(self.names[column], float(differing.mean()), p_value, seen)


def show_state(names: Sequence[str], row: FloatArray) -> str:
    """The first variables of a state, with their values."""
    shown = [f"{name}={value:g}" for name, value in zip(names, row, strict=False)]
    return f"({', '.join(shown[:MAX_SHOWN])}{', ...' if len(shown) > MAX_SHOWN else ''})"


def _so_far(places: FloatArray, elapsed: IntArray) -> FloatArray:
    """Of each step, on which side what was played before in the episode has been: from -1 to 1.

    The mean counts recent steps most. What nobody sees and lasts for a while shows in this.
    """
    sides = np.zeros(len(places))
    for i in range(1, len(places)):
        if elapsed[i] > 0:
            sides[i] = MEMORY * sides[i - 1] + (1.0 - MEMORY) * places[i - 1]
    return sides
