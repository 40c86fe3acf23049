"""Questions to a model at states of our choice: where the agent ends up, and which x matter.

n is the number of a surveyed state and (n, a) a *pair* ``n * num_actions + a``, so that a batch of
questions is an array of pairs and an array of x. Whether x matters is asked with *common random
numbers*: the same seed for both x. A model that draws the same amount of noise whatever the state,
as batched models do, then answers alike unless x made the difference. :class:`SuccessorSampler`
checks that first; for a model that does otherwise it compares distributions, which takes many draws
and overlooks effects that are weak.

Of all variables few matter to one pair (n, a), so they are not tried one by one but by *group
tests* (:func:`find_relevant`). Two states that differ in everything are compared; where the answer
is another one, halving the set of variables they differ in finds one that is responsible, in
log2(m) steps. It is kept the same in both states from then on, and the search goes on until a whole
round of comparisons shows no difference. What a round overlooks is rare: a variable that makes a
difference in a share q of the comparisons is missed with probability (1 - q) ** NUM_TESTS.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from exo_envs.contract.checked_mdp import CheckedMDP, CountedMDP
from exo_envs.core.mdp import BoolArray, ExoMDP, IntArray, State
from exo_envs.core.statistics import chi_squared_log_tail, g_tests
from planners.core.arrays import Ints, chunks
from planners.dependence.contingency import count_table
from planners.discretization.coarse import CoarseMDP
from planners.samples.rollouts import Backgrounds, ExogenousData

#: (questions (B,), x (B, m), y (B, m), seed) -> whether the answers differ (B,).
Differ = Callable[[Ints, IntArray, IntArray, int], BoolArray]

#: Comparisons per question in one round.
NUM_TESTS = 512
#: Differences per question and round that are traced to a variable.
MAX_TRACED = 8
#: Values, over all states and variables, of the differences that are traced in a round; one
#: difference per question is traced all the same.
TRACED_VALUES = 400_000_000
#: Draws of n' from each of two states whose distributions are compared.
NUM_DRAWS = 64
#: Values, over all states and variables, in which it is looked at whether noise is common.
NOISE_VALUES = 200_000_000
#: Level of the G-test between the n' that are drawn from two states.
DIFFERENCE_LEVEL = 1e-6


def draw_probes(
    data: ExogenousData,
    count: int,
    rng: np.random.Generator,
    columns: IntArray | None = None,
) -> Ints:
    """Values of x to try, shape (count, m): half of them occur, half are anything at all.

    With ``columns`` it is only these variables, and the shape is (count, columns).
    """
    looked_at = np.arange(len(data.sizes)) if columns is None else np.asarray(columns)
    x = data.sample(count, rng, columns)
    chosen = np.flatnonzero(rng.permutation(count) % 2)
    uniform = rng.random((len(chosen), len(looked_at)))
    x[chosen] = (uniform * data.sizes[looked_at]).astype(np.int64)
    return x


def find_relevant(
    differ: Differ,
    num_questions: int,
    data: ExogenousData,
    rng: np.random.Generator,
    *,
    questions: Ints | None = None,
    num_tests: int = NUM_TESTS,
    prepare: Callable[[Ints], IntArray] | None = None,
) -> BoolArray:
    """Find the variables that each question depends on.

    Args:
        differ: compares the answers.
        num_questions: questions are 0 ... num_questions - 1 (such as pairs of n and a).
        data: rollouts, from which the states to compare are drawn.
        rng: draws those states, and the seeds of the comparisons.
        questions: those to ask; by default all.
        num_tests: comparisons per question and round.
        prepare: what is done to the states of a round before anything is asked about them.

    Returns:
        Whether question p depends on variable j, shape (num_questions, m).
    """
    relevant = np.zeros((num_questions, len(data.sizes)), dtype=np.bool_)
    asked = np.arange(num_questions) if questions is None else questions
    while len(asked):
        probes = [draw_probes(data, num_tests, rng) for _ in range(2)]
        x, y = probes if prepare is None else map(prepare, probes)
        known, differs = relevant[asked], np.zeros(len(asked) * num_tests, dtype=np.bool_)
        for part in chunks(len(differs), x.shape[1]):
            place, test = np.divmod(np.arange(part.start, part.stop), num_tests)
            from_, to = x[test], _alike(known, place, x, y, test)
            differs[part] = differ(asked[place], from_, to, int(rng.integers(2**63)))
        most = max(1, min(MAX_TRACED, TRACED_VALUES // (len(asked) * max(1, x.shape[1]))))
        rank = np.cumsum(differs.reshape(len(asked), -1), axis=1).reshape(-1)
        traced = np.flatnonzero(differs & (rank <= most))
        news = []  # what is found in this round is known from the next one on
        for part in chunks(len(traced), x.shape[1]):
            place, test = np.divmod(traced[part], num_tests)
            q, from_, to = asked[place], x[test], _alike(known, place, x, y, test)
            found, variable = _trace(differ, q, from_, to, int(rng.integers(2**63)))
            is_new = found & ~relevant[q, variable]
            news.append((q[is_new], variable[is_new]))
        has_news = np.zeros(num_questions, dtype=np.bool_)
        for q, variable in news:
            relevant[q, variable] = has_news[q] = True
        asked = asked[has_news[asked]]
    return relevant


def _alike(known: BoolArray, place: Ints, x: IntArray, y: IntArray, test: Ints) -> IntArray:
    """States of y that are as in x where a question is known to depend on it: (B, m)."""
    states = y[test]
    for j in np.flatnonzero(known.any(axis=0)).tolist():  # few of the variables are
        own = np.flatnonzero(known[place, j])
        states[own, j] = x[test[own], j]
    return states


def _trace(
    differ: Differ, question: Ints, x: IntArray, y: IntArray, seed: int
) -> tuple[BoolArray, Ints]:
    """Halve the way from x to y until one variable is left; and whether it makes a difference.

    The noise may be another one than that which showed the difference; then there may be none.
    """
    columns = np.arange(x.shape[1])

    def mix(upto: Ints) -> IntArray:
        return np.where(columns < upto[:, None], y, x)

    low = np.zeros(len(x), dtype=np.int64)  # y in the columns before `low` makes no difference
    high = np.full(len(x), x.shape[1])  # and in those before `high` it does
    while (high - low > 1).any():
        middle = (low + high) // 2
        differs = differ(question, mix(low), mix(middle), seed)
        going = high - low > 1
        high = np.where(going & differs, middle, high)
        low = np.where(going & ~differs, middle, low)
    return differ(question, mix(low), mix(high), seed), high - 1


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
    _kept: tuple[IntArray, IntArray] | None = field(default=None, init=False, repr=False)

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
        for part in chunks(len(pairs), x.shape[1]):
            out[part] = self.draw_refined(pairs[part], self.refine(x[part], rng), rng)
        return out

    def draw_refined(
        self, pairs: Ints, x: IntArray, noise: np.random.Generator | int | None = None
    ) -> Ints:
        """:meth:`draw` in one call of the model, where :meth:`refine` has been called before.

        So a few x that many pairs are asked about are put in place of their bins once.
        """
        rng = self.rng if noise is None else np.random.default_rng(noise)
        n, action = np.divmod(pairs, self.mdp.num_actions)
        state = State(self.endogenous[n], x)
        if self._coarse is None:
            following = self.mdp.sample_endogenous(state, action, rng)
        else:
            following = self._coarse.sample_refined(state, action, rng)
            if isinstance(self.mdp, CountedMDP):
                self.mdp.endogenous_samples += len(pairs)
        return np.asarray(following @ self._weights)

    def draw_in(self, pair: int, backgrounds: Backgrounds) -> Ints:
        """The n' of one pair in all backgrounds, shape (backgrounds,)."""
        parts = chunks(len(backgrounds), len(backgrounds.data.sizes))
        rows = [backgrounds.rows(part) for part in parts]
        return np.concatenate([self.draw(np.full(len(x), pair), x) for x in rows])

    @cached_property
    def _coarse(self) -> CoarseMDP | None:
        """The model if it sees some of x in bins."""
        model = self.mdp.model if isinstance(self.mdp, CheckedMDP) else self.mdp
        return model if isinstance(model, CoarseMDP) and model.binned else None

    def refine(self, x: IntArray, rng: np.random.Generator | None = None) -> IntArray:
        """Values in place of bins, (B, m); the same x if there are no bins."""
        return x if self._coarse is None else self._coarse.refine(x, rng or self.rng)

    def refine_some(self, x: IntArray, columns: Ints, rng: np.random.Generator) -> IntArray:
        """:meth:`refine` of some values of x only, whose columns are given."""
        return x if self._coarse is None else self._coarse.refine_some(x, columns, rng)

    def seed(self) -> int:
        return int(self.rng.integers(2**63))

    def look_at_noise(self, pairs: Ints, data: ExogenousData, num_tests: int) -> bool:
        """Whether n' is left to chance in some pair; sets ``common_noise`` as well.

        Each pair is looked at in ``num_tests`` states, which are drawn from ``data``. Whether
        noise is common is looked at in all of them, or in as many as NOISE_VALUES allows.
        """
        x, y = (draw_probes(data, num_tests, self.rng) for _ in range(2))
        first, second, other = (self.refine(z) for z in (x, x, y))
        is_noisy = False
        every = 1 + len(pairs) * num_tests * len(data.sizes) // NOISE_VALUES
        for k, part in enumerate(chunks(len(pairs) * num_tests, len(data.sizes))):
            place, test = np.divmod(np.arange(part.start, part.stop), num_tests)
            asked, states = pairs[place], first[test]
            drawn = self.draw_refined(asked, states)
            is_noisy |= bool((self.draw_refined(asked, second[test]) != drawn).any())
            if self.common_noise and k % every == 0:
                self._check_common_noise(asked, states, other[test])
        return is_noisy

    def _check_common_noise(self, pairs: Ints, x: IntArray, y: IntArray) -> None:
        """Find out whether n' stays the same where x does, whatever happens in other states."""
        changed = self.rng.random(len(pairs)) < 0.5
        seed = self.seed()
        apart = self.draw_refined(pairs, np.where(changed[:, None], y, x), seed)
        self.common_noise = bool((apart == self.draw_refined(pairs, x, seed))[~changed].all())

    def differ(self, pairs: Ints, x: IntArray, y: IntArray, seed: int) -> BoolArray:
        """Whether n' is another one, or has another distribution, under y than under x.

        :meth:`refine` has been called before.
        """
        if self.common_noise:
            first, second = (self.draw_refined(pairs, z, seed) for z in (x, y))
            return np.asarray(first != second)
        out = np.zeros(len(pairs), dtype=np.bool_)
        for part in chunks(len(pairs), NUM_DRAWS * (x.shape[1] + len(self.endogenous))):
            lane = np.repeat(np.arange(part.start, part.stop), NUM_DRAWS)
            drawn = [self.draw_refined(pairs[lane], states[lane]) for states in (x, y)]
            out[part] = _distributions_differ(*drawn)
        return out

    def differ_in(
        self, pair: int, columns: Ints, x: IntArray, y: IntArray, data: ExogenousData
    ) -> BoolArray:
        """:meth:`differ` of one pair that depends on a few variables only.

        Args:
            pair: that is asked about.
            columns: the variables.
            x: their values, (B, columns), in as many states as one call of the model is given.
            y: other values.
            data: of which all other variables have values that occur. These are the same in all
                calls, so that only the columns are written for each.
        """
        if self._kept is None or len(self._kept[0]) < len(x):
            rng = np.random.default_rng([data.seed, len(x)])
            occurring = self.refine(data.sample(len(x), rng), rng)
            self._kept = occurring, occurring.copy()
        first, second = (states[: len(x)] for states in self._kept)
        seed = self.seed()
        for states, own in ((first, x), (second, y)):
            states[:, columns] = self.refine_some(own, columns, np.random.default_rng(seed))
        differs = self.differ(np.full(len(x), pair), first, second, seed)
        second[:, columns] = first[:, columns]
        return differs


def _distributions_differ(first: Ints, second: Ints) -> BoolArray:
    """A G-test for each of B states: two times (B * NUM_DRAWS,) draws of n' give (B,)."""
    values, label = np.unique(np.concatenate([first, second]), return_inverse=True)
    rows = len(label) // NUM_DRAWS
    row = np.repeat(np.arange(rows), NUM_DRAWS)
    counts = count_table(row, rows, label.reshape(-1), len(values)).reshape(2, -1, len(values))
    return chi_squared_log_tail(*g_tests(*counts)) < math.log(DIFFERENCE_LEVEL)
