"""Asking a model where the agent ends up, at states of our choice.

n is a flat index and (n, a) a *pair* ``n * num_actions + a``, so that a batch of questions is an
array of pairs and an array of x. Whether x matters is asked with *common random numbers*: the same
seed for both x. A model that draws the same amount of noise whatever the state, as batched models
do, then answers alike unless x made the difference. :class:`MoveOracle` checks that first; for a
model that does otherwise it compares distributions, which takes many draws and overlooks effects
that are weak.
"""

from __future__ import annotations

import math

import numpy as np

from exo_envs import ExoMDP, State
from exo_envs.mdp import BoolArray, FloatArray, IntArray
from planners.arrays import Ints, chunks, joint_index, joint_values
from planners.information.contingency import chi_squared_log_tail
from planners.tables import num_endogenous_states

#: Draws from each state where distributions have to be compared, and the level of the test.
NUM_DRAWS = 64
LEVEL = 1e-6


def all_endogenous(mdp: ExoMDP) -> Ints:
    """Every n in the order of its flat index, shape (N, k)."""
    return joint_values(np.arange(num_endogenous_states(mdp)), mdp.endogenous_sizes)


class MoveOracle:
    """Draws n' and says whether x makes a difference.

    Attributes:
        states_asked: how many n' have been drawn.
        common_noise: whether the model honours common random numbers.
    """

    def __init__(self, mdp: ExoMDP, rng: np.random.Generator) -> None:
        """Ask about ``mdp``; all noise comes from ``rng``."""
        self.mdp = mdp
        self.rng = rng
        self.endogenous = all_endogenous(mdp)  # (N, k)
        self.num_states = len(self.endogenous)
        self.states_asked = 0
        self.common_noise = True

    def outcomes(self, pairs: Ints, x: IntArray, seed: int | None = None) -> Ints:
        """Draw n' for each pair and x: (B,) and (B, m) give (B,).

        With a ``seed`` the noise is that of every other call with as many states.
        """
        out = np.empty(len(pairs), dtype=np.int64)
        rng = self.rng if seed is None else np.random.default_rng(seed)
        n, action = np.divmod(pairs, self.mdp.num_actions)
        for part in chunks(len(pairs), x.shape[1]):
            state = State(self.endogenous[n[part]], x[part])
            following = self.mdp.sample_endogenous(state, action[part], rng)
            out[part] = joint_index(following, self.mdp.endogenous_sizes)
        self.states_asked += len(pairs)
        return out

    def seed(self) -> int:
        """A seed for :meth:`outcomes` and :meth:`differ`."""
        return int(self.rng.integers(2**63))

    def check_common_noise(self, pairs: Ints, x: Ints, y: Ints) -> None:
        """Find out whether n' stays the same where x does, whatever happens in other states."""
        changed = self.rng.random(len(pairs)) < 0.5
        seed = self.seed()
        apart = self.outcomes(pairs, np.where(changed[:, None], y, x), seed)
        self.common_noise = bool((apart == self.outcomes(pairs, x, seed))[~changed].all())

    def differ(self, pairs: Ints, x: IntArray, y: IntArray, seed: int) -> BoolArray:
        """Whether n' is another one, or has another distribution, under y than under x."""
        if self.common_noise:
            return np.asarray(self.outcomes(pairs, x, seed) != self.outcomes(pairs, y, seed))
        out = np.zeros(len(pairs), dtype=np.bool_)
        for part in chunks(len(pairs), NUM_DRAWS * (x.shape[1] + self.num_states)):
            counts = [self._histogram(pairs[part], states[part]) for states in (x, y)]
            out[part] = _histograms_differ(*counts)
        return out

    def _histogram(self, pairs: Ints, x: IntArray) -> Ints:
        """How often each n' follows each state, shape (B, N)."""
        lane = np.repeat(np.arange(len(pairs)), NUM_DRAWS)
        cells = lane * self.num_states + self.outcomes(pairs[lane], x[lane])
        counts = np.bincount(cells, minlength=len(pairs) * self.num_states)
        return counts.reshape(len(pairs), self.num_states)


def _histograms_differ(first: Ints, second: Ints) -> BoolArray:
    """A G-test of each row of two tables of counts with the same totals."""
    both = first + second
    statistic: FloatArray = np.zeros(len(both))
    for counts in (first, second):
        ratio = np.where(counts > 0, 2.0 * counts / np.maximum(both, 1), 1.0)
        statistic += 2.0 * (counts * np.log(ratio)).sum(axis=-1)
    freedom = np.count_nonzero(both, axis=-1) - 1
    chance = [chi_squared_log_tail(*pair) for pair in zip(statistic, freedom, strict=True)]
    return np.array(chance) < math.log(LEVEL)
