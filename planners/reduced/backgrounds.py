"""The x over which dropped variables are averaged, and the masked variables that tell about them.

What a rule or a reward depends on, and the mask does not have, is averaged over the *backgrounds*:
x as it occurs in the rollouts. The average is taken given at most ``MAX_INFORMATIVE`` masked
variables, of few values, that tell something about it, by a G-test on states of different rollouts,
which are independent.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from exo_envs.core.statistics import GTest
from planners.core.arrays import Ints, joint_index
from planners.core.memory import LARGE, Key, Memory, Shelf
from planners.dependence.contingency import Cases, Rows, conditional_information, count_table
from planners.samples.rollouts import ExogenousData

#: Values of x that stand for their distribution in the rollouts.
NUM_BACKGROUNDS = 20_000
#: Masked variables that an average may be given because they tell about what is averaged.
MAX_INFORMATIVE = 2
#: Joint values of the variables that tell about a dropped one: each is a condition to forecast.
MAX_INFORMATIVE_ROWS = 48
#: Cells of the largest table: rows times values of what is averaged over.
MAX_CELLS = 2**16
#: Backgrounds that the rows of a table need on average: in tests, and where there is no test.
MIN_TESTED, MIN_SAMPLES = 5, 20
#: The weight of the coarser table in a row, in samples.
SMOOTHING = 1.0

#: j -> x_j in the states of the rollouts that averages are taken over.
BACKGROUNDS = Shelf[int, Ints]("backgrounds", LARGE)
#: (rules, given, j) -> what x_j tells about the last rule's decision, and the rows it makes;
#: (("reward", scope), given, j) -> the same about what the variables of a scope pay.
RULE_INFORMATION = Shelf[tuple[Hashable, Key, int], tuple[GTest, int]]("rule_information", LARGE)


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


class Question(NamedTuple):
    """Something that the mask does not show, in some backgrounds."""

    label: Ints  # (backgrounds,): which of the things that it can be
    num_labels: int
    where: Ints  # (backgrounds,): their positions
    number: int  # of values of what is averaged over
    log_level: float | None = None  # of the test that a variable has to pass; None if it need not
    key: Hashable | None = None  # under which answers are remembered; None if they are not

    def is_answered(self, found: GTest, num_rows: int) -> bool:
        """Whether a variable passes its test, and leaves rows of enough backgrounds."""
        enough = MIN_SAMPLES if self.log_level is None else MIN_TESTED
        passes = self.log_level is None or found.log_p < self.log_level
        return passes and num_rows * enough <= len(self.where)


class Informants:
    """The variables of a mask, asked about what the mask does not show.

    Args:
        backgrounds: the x over which averages are taken.
        columns: the positions of the masked variables, increasing.
        level: of the test that a variable has to pass, over all masked variables.
        memory: of the survey that the backgrounds belong to, to share with other masks; by default
            a new one.
    """

    def __init__(
        self,
        backgrounds: Backgrounds,
        columns: Sequence[int],
        level: float = 1e-3,
        memory: Memory | None = None,
    ) -> None:
        self.backgrounds = backgrounds
        self.sizes = backgrounds.data.sizes
        self.columns = [int(j) for j in columns]
        self.log_level = math.log(level)
        self.memory = Memory() if memory is None else memory

    def shape(self, variables: Sequence[int]) -> list[int]:
        """How many values each of some variables has."""
        return [int(self.sizes[j]) for j in variables]

    def column(self, j: int) -> Ints:
        """One variable in all backgrounds."""
        if (column := self.memory.find(BACKGROUNDS, j)) is None:
            column = self.memory.keep(BACKGROUNDS, j, self.backgrounds.column(j))
        return column

    def row(self, variables: Sequence[int], where: Ints) -> Ints:
        """The joint values of some variables in some backgrounds."""
        values = np.array([self.column(j)[where] for j in variables], dtype=np.int64)
        return joint_index(values.reshape(len(variables), len(where)).T, self.shape(variables))

    def counts(self, given: Sequence[int], where: Ints, label: Ints, number: int) -> Ints:
        """How often each label comes with each value of ``given``, shape (*sizes, number)."""
        shape = self.shape(given)
        counts = count_table(self.row(given, where), math.prod(shape), label, number)
        return counts.reshape(*shape, number)

    def informative(self, question: Question, given: list[int]) -> list[int]:
        """Masked variables that tell, given others, what the answer is."""
        independent = question.where < self.backgrounds.num_independent
        if question.num_labels < 2 or not independent.any():
            return []
        question = question._replace(
            label=question.label[independent],
            where=question.where[independent],
            log_level=self.log_level - math.log(max(1, len(self.columns) - len(given))),
        )
        return self.select(question, given, self.columns, MAX_INFORMATIVE, MAX_INFORMATIVE_ROWS)

    def select(
        self,
        question: Question,
        given: list[int],
        candidates: Sequence[int],
        limit: int,
        max_rows: int,
    ) -> list[int]:
        """Candidates that tell, given others, what the answer is, the most informative first."""
        live: Ints = np.array([j for j in candidates if j not in given], dtype=np.int64)
        chosen: list[int] = []
        while len(live) and len(chosen) < limit:
            known = [*given, *chosen]
            cells = question.number * math.prod(self.shape(known))
            room = max_rows // math.prod(self.shape(chosen))
            live = live[self.sizes[live] <= min(room, MAX_CELLS // cells)]
            answers = self._answers(question, known, live.tolist())
            telling = [j for j in answers if answers[j][0].gain > 0]
            telling.sort(key=lambda j: -answers[j][0].gain)
            passing = (j for j in telling if question.is_answered(*answers[j]))
            if (best := next(passing, None)) is None:
                break
            chosen.append(best)
            live = live[live != best]
        return chosen

    def _answers(
        self, question: Question, given: list[int], candidates: list[int]
    ) -> dict[int, tuple[GTest, int]]:
        """What each candidate tells given others, and into how many rows it splits."""

        @cache  # made when the first answer is not remembered
        def cases() -> Cases:
            rows = Rows.of(len(question.where))
            for j in given:
                rows = rows.split(self.column(j)[question.where], int(self.sizes[j]))
            return Cases(rows, question.label, question.num_labels)

        def answer(j: int) -> tuple[GTest, int]:
            size, column = int(self.sizes[j]), self.column(j)[question.where]
            found = conditional_information(cases(), column, size)
            # Rows are only counted for what may be chosen.
            return found, cases().rows.split(column, size).count if found.gain > 0 else 0

        if question.key is None:
            return {j: answer(j) for j in candidates}
        answers, known = {}, tuple(given)
        for j in candidates:
            key = (question.key, known, j)
            if (found := self.memory.find(RULE_INFORMATION, key)) is None:
                found = self.memory.keep(RULE_INFORMATION, key, answer(j))
            answers[j] = found
        return answers
