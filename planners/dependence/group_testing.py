"""Which exogenous variables each (n, a) depends on, found by group tests.

Of all variables few matter to one pair (n, a), so they are not tried one by one. Two states that
differ in everything are compared; where the answer is another one, halving the set of variables
they differ in finds one that is responsible, in log2(m) steps. It is kept the same in both states
from then on, and the search goes on until a whole round of comparisons shows no difference.

What a round overlooks is rare: a variable that makes a difference in a share q of the comparisons
is missed with probability (1 - q) ** NUM_TESTS.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from exo_envs.compiled.functions import njit
from exo_envs.core.mdp import BoolArray, IntArray
from planners.core.arrays import Ints, chunks
from planners.samples.rollouts import ExogenousData

#: (questions (B,), x (B, m), y (B, m), seed) -> whether the answers differ (B,).
Differ = Callable[[Ints, IntArray, IntArray, int], BoolArray]

#: Comparisons per question in one round.
NUM_TESTS = 512
#: Differences per question and round that are traced to a variable.
MAX_TRACED = 8
#: Values, over all states and variables, of the differences that are traced in a round; one
#: difference per question is traced all the same.
TRACED_VALUES = 400_000_000


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
        longest = max((part.stop - part.start for part in _first(states, repeats)), default=0)
        rows = min(len(states) * repeats, longest + len(states))
        return cls(states, states[np.arange(rows) % max(1, len(states))])

    def window(self, part: slice) -> IntArray:
        """The states of a chunk of all questions and states."""
        begin = part.start % len(self.states)
        return self.tiles[begin : begin + part.stop - part.start]


def _first(states: IntArray, repeats: int) -> Iterator[slice]:
    """The first chunk, which is the longest."""
    yield from itertools.islice(chunks(len(states) * repeats, states.shape[1]), 1)


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
