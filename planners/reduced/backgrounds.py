"""The x over which dropped variables are averaged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planners.core.arrays import Ints
from planners.samples.rollouts import ExogenousData

#: Values of x that stand for their distribution in the rollouts.
NUM_BACKGROUNDS = 20_000


@dataclass(frozen=True, eq=False)
class Backgrounds:
    """Values of x that occur in the rollouts: the distribution that dropped variables have.

    The first ``num_independent`` come from different rollouts.
    """

    data: ExogenousData
    rollout: Ints  # (backgrounds,)
    step: Ints  # (backgrounds,)
    num_independent: int

    @classmethod
    def draw(cls, data: ExogenousData, rng: np.random.Generator) -> Backgrounds:
        """Steps of all rollouts, as many of each."""
        rollouts = data.num_rollouts
        repeats = max(1, min(data.num_steps, NUM_BACKGROUNDS // rollouts))
        steps = rng.permuted(np.tile(np.arange(data.num_steps), (rollouts, 1)), axis=1)
        chosen = np.ascontiguousarray(steps[:, :repeats].T).reshape(-1)
        return cls(data, np.tile(np.arange(rollouts), repeats), chosen, rollouts)

    def __len__(self) -> int:
        """The number of backgrounds."""
        return len(self.rollout)

    def column(self, j: int) -> Ints:
        """The values of one variable, shape (backgrounds,)."""
        return self.data.values[self.rollout, self.step, j].astype(np.int64)

    def rows(self, part: slice) -> Ints:
        """All variables in some backgrounds, shape (len(part), m)."""
        return self.data.values[self.rollout[part], self.step[part]].astype(np.int64)
