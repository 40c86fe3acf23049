"""Asking a model where the agent ends up, at states of our choice.

n is the number of a surveyed state and (n, a) a *pair* ``n * num_actions + a``, so that a batch of
questions is an array of pairs and an array of x. Whether x matters is asked with *common random
numbers*: the same seed for both x. A model that draws the same amount of noise whatever the state,
as batched models do, then answers alike unless x made the difference. :class:`SuccessorSampler`
checks that first; for a model that does otherwise it compares distributions, which takes many draws
and overlooks effects that are weak.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exo_envs import ExoMDP, State
from exo_envs.mdp import BoolArray, IntArray
from planners.arrays import Ints, chunks
from planners.information import (
    ExogenousData,
    chi_squared_log_tail,
    compare_histograms,
    draw_probes,
)

#: Draws of n' from each of two states whose distributions are compared.
NUM_DRAWS = 64
#: Level of the G-test between the n' that are drawn from two states.
LEVEL = 1e-6


@dataclass
class SuccessorSampler:
    """Draws n' and says whether x makes a difference.

    Args:
        mdp: the model that is asked.
        endogenous: the n to ask about, shape (S, k).
        rng: where all noise comes from.

    Attributes:
        common_noise: whether the model honours common random numbers.
    """

    mdp: ExoMDP
    endogenous: IntArray
    rng: np.random.Generator
    common_noise: bool = True

    @cached_property
    def _weights(self) -> Ints:
        """What one step of each variable adds to the integer that stands for n, shape (k,)."""
        sizes = self.mdp.endogenous_sizes
        if math.prod(sizes.tolist()) >= 2**63:  # random, so that wrapping round makes a hash
            return np.random.default_rng(0).integers(2**63, size=len(sizes)) | 1
        weights = np.ones(len(sizes), dtype=np.int64)
        weights[:-1] = np.cumprod(sizes[:0:-1])[::-1]
        return weights

    def draw(self, pairs: Ints, x: IntArray, seed: int | None = None) -> Ints:
        """Draw n' for each pair and x: (B,) and (B, m) give (B,).

        An integer stands for n': its flat index, or a hash if n has more values than integers.
        With a ``seed`` the noise is that of every other call with as many states.
        """
        out = np.empty(len(pairs), dtype=np.int64)
        rng = self.rng if seed is None else np.random.default_rng(seed)
        n, action = np.divmod(pairs, self.mdp.num_actions)
        for part in chunks(len(pairs), x.shape[1]):
            state = State(self.endogenous[n[part]], x[part])
            following = self.mdp.sample_endogenous(state, action[part], rng)
            out[part] = following @ self._weights
        return out

    def seed(self) -> int:
        """A seed for :meth:`draw` and :meth:`differ`."""
        return int(self.rng.integers(2**63))

    def look_at_noise(self, pairs: Ints, data: ExogenousData, num_tests: int) -> bool:
        """Whether n' is left to chance in some pair; sets ``common_noise`` as well.

        Each pair is looked at in ``num_tests`` states, which are drawn from ``data``.
        """
        every = np.repeat(pairs, num_tests)
        test = np.tile(np.arange(num_tests), len(pairs))
        probes = [draw_probes(data, num_tests, self.rng) for _ in range(2)]
        is_noisy = False
        for part in chunks(len(every), len(data.sizes)):
            x, y = (some[test[part]] for some in probes)
            first = self.draw(every[part], x)
            is_noisy |= bool((self.draw(every[part], x) != first).any())
            if self.common_noise:
                self._check_common_noise(every[part], x, y)
        return is_noisy

    def _check_common_noise(self, pairs: Ints, x: Ints, y: Ints) -> None:
        """Find out whether n' stays the same where x does, whatever happens in other states."""
        changed = self.rng.random(len(pairs)) < 0.5
        seed = self.seed()
        apart = self.draw(pairs, np.where(changed[:, None], y, x), seed)
        self.common_noise = bool((apart == self.draw(pairs, x, seed))[~changed].all())

    def differ(self, pairs: Ints, x: IntArray, y: IntArray, seed: int) -> BoolArray:
        """Whether n' is another one, or has another distribution, under y than under x."""
        if self.common_noise:
            return np.asarray(self.draw(pairs, x, seed) != self.draw(pairs, y, seed))
        out = np.zeros(len(pairs), dtype=np.bool_)
        for part in chunks(len(pairs), NUM_DRAWS * (x.shape[1] + len(self.endogenous))):
            lane = np.repeat(np.arange(part.start, part.stop), NUM_DRAWS)
            drawn = [self.draw(pairs[lane], states[lane]) for states in (x, y)]
            out[part] = _distributions_differ(*drawn)
        return out


def _distributions_differ(first: Ints, second: Ints) -> BoolArray:
    """A G-test for each of B states: two times (B * NUM_DRAWS,) draws of n' give (B,)."""
    values, label = np.unique(np.concatenate([first, second]), return_inverse=True)
    num_rows = len(label) // NUM_DRAWS
    cells = np.repeat(np.arange(num_rows), NUM_DRAWS) * len(values) + label.reshape(-1)
    counts = np.bincount(cells, minlength=num_rows * len(values)).reshape(2, -1, len(values))
    tests = zip(*compare_histograms(*counts), strict=True)
    return np.array([chi_squared_log_tail(*test) for test in tests]) < math.log(LEVEL)
