"""Which exogenous variables each (n, a) depends on, found by group tests.

Of all variables few matter to one pair (n, a), so they are not tried one by one. Two states that
differ in everything are compared; where the answer is another one, halving the set of variables
they differ in finds one that is responsible, in log2(m) steps. It is kept the same in both states
from then on, and the search goes on until a whole round of comparisons shows no difference.

What a round overlooks is rare: a variable that makes a difference in a share q of the comparisons
is missed with probability (1 - q) ** NUM_TESTS.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from exo_envs.mdp import BoolArray, IntArray
from planners.arrays import Ints, chunks
from planners.information.rollouts import ExogenousData

#: (questions (B,), x (B, m), y (B, m), seed) -> whether the answers differ (B,).
Differ = Callable[[Ints, IntArray, IntArray, int], BoolArray]

#: Comparisons per question in one round.
NUM_TESTS = 512
#: Differences per question and round that are traced to a variable.
MAX_TRACED = 8


def draw_probes(
    data: ExogenousData,
    count: int,
    rng: np.random.Generator,
    columns: IntArray | None = None,
) -> Ints:
    """Values of x to try, shape (count, m): half of them occur, half are anything at all.

    With ``columns`` it is only these variables that may be anything.
    """
    x = data.sample(count, rng)
    chosen = np.flatnonzero(rng.permutation(count) % 2)
    looked_at = np.arange(len(data.sizes)) if columns is None else np.asarray(columns)
    uniform = rng.random((len(chosen), len(looked_at)))
    x[chosen[:, None], looked_at] = (uniform * data.sizes[looked_at]).astype(np.int64)
    return x


def find_relevant(
    differ: Differ,
    num_questions: int,
    data: ExogenousData,
    rng: np.random.Generator,
    *,
    questions: Ints | None = None,
    num_tests: int = NUM_TESTS,
) -> BoolArray:
    """Find the variables that each question depends on.

    Args:
        differ: compares the answers.
        num_questions: questions are 0 ... num_questions - 1 (such as pairs of n and a).
        data: rollouts, from which the states to compare are drawn.
        rng: draws those states, and the seeds of the comparisons.
        questions: those to ask; by default all.
        num_tests: comparisons per question and round.

    Returns:
        Whether question p depends on variable j, shape (num_questions, m).
    """
    relevant = np.zeros((num_questions, len(data.sizes)), dtype=np.bool_)
    asked = np.arange(num_questions) if questions is None else questions
    while len(asked):
        x = draw_probes(data, num_tests, rng)
        y = draw_probes(data, num_tests, rng)
        question = np.repeat(asked, num_tests)
        test = np.tile(np.arange(num_tests), len(asked))
        differs = np.zeros(len(question), dtype=np.bool_)
        for part in chunks(len(question), x.shape[1]):
            q, here = question[part], x[test[part]]
            there = np.where(relevant[q], here, y[test[part]])
            differs[part] = differ(q, here, there, int(rng.integers(2**63)))
        rank = np.cumsum(differs.reshape(len(asked), -1), axis=1).reshape(-1)
        traced = np.flatnonzero(differs & (rank <= MAX_TRACED))
        before = relevant.copy()
        for part in chunks(len(traced), x.shape[1]):
            lanes = traced[part]
            q, here = question[lanes], x[test[lanes]]
            there = np.where(before[q], here, y[test[lanes]])
            found, variable = _trace(differ, q, here, there, int(rng.integers(2**63)))
            relevant[q[found], variable[found]] = True
        asked = np.flatnonzero((relevant & ~before).any(axis=1))
    return relevant


def _trace(differ: Differ, question: Ints, x: Ints, y: Ints, seed: int) -> tuple[BoolArray, Ints]:
    """Halve the way from x to y until one variable is left; and whether it makes a difference.

    The noise may be another one than that which showed the difference; then there may be none.
    """
    column = np.arange(x.shape[1])
    low = np.zeros(len(x), dtype=np.int64)  # y in the columns before `low` makes no difference
    high = np.full(len(x), x.shape[1])  # and in those before `high` it does

    def mixed(end: Ints) -> Ints:
        return np.where(column < end[:, None], y, x)

    while (high - low > 1).any():
        middle = (low + high) // 2
        differs = differ(question, mixed(low), mixed(middle), seed)
        going = high - low > 1
        high = np.where(going & differs, middle, high)
        low = np.where(going & ~differs, middle, low)
    return differ(question, mixed(low), mixed(high), seed), high - 1
