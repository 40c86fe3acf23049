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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from exo_envs.compiled.functions import njit
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


@dataclass(frozen=True, eq=False)
class Tiled:
    """A few states over and over, so that any run of questions about them is a view of one array.

    Every question is asked about the same states, one question after another. The states of a call
    are then those of a window that begins anywhere, and nothing is copied for it.
    """

    states: IntArray  # (states, m)
    tiles: IntArray  # (rows, m)

    @classmethod
    def of(cls, states: IntArray, repeats: int) -> Tiled:
        """So many repeats, or as many as windows (:func:`~planners.core.arrays.chunks`) need."""
        count = len(states) * repeats
        longest = next(chunks(count, states.shape[1]), slice(0, 0)).stop
        rows = min(count, longest + len(states))
        return cls(states, states[np.arange(rows) % max(1, len(states))])

    def window(self, part: slice) -> IntArray:
        """The states of a chunk of all questions and states."""
        begin = part.start % len(self.states)
        return self.tiles[begin : begin + part.stop - part.start]


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
        here, there = Tiled.of(x, len(asked)), Tiled.of(y, len(asked))
        differs = np.zeros(len(asked) * num_tests, dtype=np.bool_)
        for part in chunks(len(differs), x.shape[1]):
            question = asked[np.arange(part.start, part.stop) // num_tests]
            with _the_same(relevant, asked, here, there, part):
                windows = here.window(part), there.window(part)
                differs[part] = differ(question, *windows, int(rng.integers(2**63)))
        most = _most_traced(len(asked), x.shape[1])
        rank = np.cumsum(differs.reshape(len(asked), -1), axis=1).reshape(-1)
        traced = np.flatnonzero(differs & (rank <= most))
        news = []  # what is found in this round is known from the next one on
        for part in chunks(len(traced), x.shape[1]):
            lanes = traced[part]
            q, test = asked[lanes // num_tests], lanes % num_tests
            from_, to = x[test], y[test]
            row, column = np.nonzero(relevant[q])
            to[row, column] = from_[row, column]
            found, variable = _trace(differ, q, from_, to, int(rng.integers(2**63)))
            is_new = found & ~relevant[q, variable]
            news.append((q[is_new], variable[is_new]))
        has_news = np.zeros(num_questions, dtype=np.bool_)
        for q, variable in news:
            relevant[q, variable] = has_news[q] = True
        asked = asked[has_news[asked]]
    return relevant


def _most_traced(questions: int, width: int) -> int:
    """Differences of each question that are traced in a round."""
    return max(1, min(MAX_TRACED, TRACED_VALUES // max(1, questions * width)))


@contextmanager
def _the_same(
    relevant: BoolArray, asked: Ints, here: Tiled, there: Tiled, part: slice
) -> Iterator[None]:
    """Give the states of a window the values that known variables have in another one.

    They are what a question is known to depend on. Few variables are: only these are written.
    """
    tests = len(here.states)
    first = part.start // tests
    row, column = np.nonzero(relevant[asked[first : -(-part.stop // tests)]])
    lane = ((first + row)[:, None] * tests + np.arange(tests) - part.start).reshape(-1)
    column = np.repeat(column, tests)
    inside = (lane >= 0) & (lane < part.stop - part.start)
    lane, column = lane[inside], column[inside]
    window = there.window(part)
    kept = window[lane, column]
    window[lane, column] = here.window(part)[lane, column]
    try:
        yield
    finally:
        window[lane, column] = kept


def _trace(
    differ: Differ, question: Ints, x: IntArray, y: IntArray, seed: int
) -> tuple[BoolArray, Ints]:
    """Halve the way from x to y until one variable is left; and whether it makes a difference.

    The noise may be another one than that which showed the difference; then there may be none.
    """
    low = np.zeros(len(x), dtype=np.int64)  # y in the columns before `low` makes no difference
    high = np.full(len(x), x.shape[1])  # and in those before `high` it does
    at_low, tried = x.copy(), x.copy()  # y in the columns before `low`, and before `end`
    end = np.zeros(len(x), dtype=np.int64)

    def mix(upto: Ints) -> None:
        mix_columns(tried, x, y, end, upto)
        end[:] = upto

    while (high - low > 1).any():
        middle = (low + high) // 2
        mix(middle)
        differs = differ(question, at_low, tried, seed)
        going = high - low > 1
        high = np.where(going & differs, middle, high)
        before, low = low, np.where(going & ~differs, middle, low)
        mix_columns(at_low, x, y, before, low)
    mix(high)
    return differ(question, at_low, tried, seed), high - 1


@njit(cache=True)
def mix_columns(states: Any, x: Any, y: Any, before: Any, after: Any) -> None:
    """Make states that are y in the columns below ``before``, else x, so below ``after``."""
    for b in range(len(states)):
        for j in range(before[b], after[b]):
            states[b, j] = y[b, j]
        for j in range(after[b], before[b]):
            states[b, j] = x[b, j]


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
        """A seed for :meth:`draw` and :meth:`differ`."""
        return int(self.rng.integers(2**63))

    def look_at_noise(self, pairs: Ints, data: ExogenousData, num_tests: int) -> bool:
        """Whether n' is left to chance in some pair; sets ``common_noise`` as well.

        Each pair is looked at in ``num_tests`` states, which are drawn from ``data``. Whether
        noise is common is looked at in all of them, or in as many as NOISE_VALUES allows.
        """
        x, y = (draw_probes(data, num_tests, self.rng) for _ in range(2))
        first, second, other = (Tiled.of(self.refine(z), len(pairs)) for z in (x, x, y))
        is_noisy = False
        every = 1 + len(pairs) * num_tests * len(data.sizes) // NOISE_VALUES
        for k, part in enumerate(chunks(len(pairs) * num_tests, len(data.sizes))):
            asked = pairs[np.arange(part.start, part.stop) // num_tests]
            drawn = self.draw_refined(asked, first.window(part))
            is_noisy |= bool((self.draw_refined(asked, second.window(part)) != drawn).any())
            if self.common_noise and k % every == 0:
                self._check_common_noise(asked, first.window(part), other.window(part))
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
