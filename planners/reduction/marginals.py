"""The endogenous dynamics that are seen through a mask: P(n' | n, a, masked x).

A rule that looks at masked variables only stays as it is. One that looks at a dropped variable
is averaged over that variable's distribution in the rollouts, given

* the rule's variables that are in the mask,
* that the rule is reached, that is, the rules before it did not decide,
* and at most ``MAX_INFORMATIVE`` other masked variables, of few values, that tell something about
  what the rule says, by a G-test on states of different rollouts, which are independent.

The states over which averages are taken, x as it occurs in the rollouts, are the *backgrounds*.

A dropped variable is never given a value. What is lost is how the dropped variables of different
rules depend on each other beyond that.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.mdp import IntArray
from planners.arrays import Ints, joint_index
from planners.information import (
    Cases,
    Information,
    Rows,
    conditional_information,
    count_table,
    select_forward,
    smooth,
)
from planners.memory import Memory
from planners.reduction.survey import EndogenousSurvey
from planners.tables import Rule, simplify, with_default

#: Masked variables that a rule may look at because they tell about a dropped one.
MAX_INFORMATIVE = 2
#: Joint values of the variables that tell about a dropped one: each is a condition to forecast.
MAX_INFORMATIVE_ROWS = 48
#: Variables that the rule which closes an undecided list may look at.
MAX_OPEN = 8
#: Cells of the largest table: rows times values of what is averaged over.
MAX_CELLS = 2**16
#: Backgrounds that the rows of a table need on average: in tests, and at the open end of a list.
MIN_TESTED, MIN_SAMPLES = 5, 20
#: A rule that fewer backgrounds reach is averaged over all of them.
MIN_REACHING = 50
#: The weight of the coarser table in a row, in samples.
SMOOTHING = 1.0


def reduce_lists(
    survey: EndogenousSurvey,
    columns: Sequence[int],
    *,
    level: float = 1e-3,
    memory: Memory | None = None,
) -> list[list[Rule]]:
    """The decision lists of all pairs (n, a) in terms of a mask.

    Args:
        survey: the lists over all variables.
        columns: the positions of the masked variables, increasing.
        level: of the test for variables that tell about dropped ones.
        memory: of this survey, to share with other masks; by default a new one.

    Returns:
        One list for each pair; variables are numbered by their place in the mask.
    """
    memory = Memory() if memory is None else memory
    memory.bind(survey=survey)
    reduction = _Reduction(survey, [int(j) for j in columns], level, memory)
    return [reduction.reduce(pair) for pair in range(len(survey.lists))]


class _Question(NamedTuple):
    """What a rule will say, in some backgrounds."""

    label: Ints  # (backgrounds,): which of the things it can say
    num_labels: int
    where: Ints  # (backgrounds,): their positions
    number: int  # of values of what is averaged over
    log_level: float | None = None  # of the test that a variable has to pass; None if it need not
    key: Hashable | None = None  # under which answers are remembered; None if they are not

    def is_answered(self, found: Information, num_rows: int) -> bool:
        """Whether a variable passes its test, and leaves rows of enough backgrounds."""
        enough = MIN_SAMPLES if self.log_level is None else MIN_TESTED
        passes = self.log_level is None or found.log_p < self.log_level
        return passes and num_rows * enough <= len(self.where)


class _Reduction:
    def __init__(
        self, survey: EndogenousSurvey, columns: list[int], level: float, memory: Memory
    ) -> None:
        self.survey = survey
        self.backgrounds = survey.backgrounds
        self.sizes = self.backgrounds.data.sizes
        self.columns = columns
        self.place = {j: k for k, j in enumerate(columns)}
        self.log_level = math.log(level)
        self.memory = memory
        self.averages: dict[Hashable, Rule] = {}  # of this mask: many pairs share rules

    def reduce(self, pair: int) -> list[Rule]:
        """The list of one pair."""
        rules = self.survey.lists[pair]
        out: list[Rule] = []
        for k, rule in enumerate(rules):
            if all(j in self.place for j in rule.variables):
                out.append(rule)
            else:
                key = tuple(other.key for other in rules[: k + 1])
                if key not in self.averages:
                    self.averages[key] = self._average(rule, rules[:k], key)
                out.append(self.averages[key])
        if pair in self.survey.undecided:
            relevant = np.flatnonzero(self.survey.relevant[pair]).tolist()
            out += self._close(self.survey.undecided[pair], rules, relevant)
        return simplify(
            [replace(rule, variables=tuple(self.place[j] for j in rule.variables)) for rule in out]
        )

    def _shape(self, variables: Sequence[int]) -> list[int]:
        return [int(self.sizes[j]) for j in variables]

    def _column(self, j: int) -> Ints:
        """One variable in all backgrounds."""
        return self.memory.backgrounds.get(j, partial(self.backgrounds.column, j))

    def _row(self, variables: Sequence[int], where: Ints) -> Ints:
        """The joint values of some variables in some backgrounds."""
        values = np.array([self._column(j)[where] for j in variables], dtype=np.int64)
        return joint_index(values.reshape(len(variables), len(where)).T, self._shape(variables))

    def _reaching(self, before: Sequence[Rule]) -> Ints:
        """The backgrounds in which none of the rules decides."""
        everywhere = reaching = np.arange(len(self.backgrounds))
        for rule in before:
            reaching = reaching[rule.decided[self._row(rule.variables, reaching)] < 0.5]
        return reaching if len(reaching) >= MIN_REACHING else everywhere

    def _average(self, rule: Rule, before: Sequence[Rule], key: tuple[Hashable, ...]) -> Rule:
        """What a rule says if some of its variables are not seen."""
        kept = [j for j in rule.variables if j in self.place]
        dropped = [j for j in rule.variables if j not in self.place]
        number = math.prod(self._shape(dropped))
        where = self._reaching(before)
        says = [rule.row(row) for row in range(rule.num_rows)]
        label_of = {said: label for label, said in enumerate(dict.fromkeys(says))}
        label = np.array([label_of[said] for said in says])[self._row(rule.variables, where)]
        question = _Question(label, len(label_of), where, number, key=key)
        given = kept + self._informative(question, kept)

        def averaged() -> Rule:
            chances = self._frequencies(given, where, self._row(dropped, where), number)
            targets = np.unique(rule.targets)
            said = rule.to_matrix(targets).reshape(*self._shape(rule.variables), len(targets))
            axes = [rule.variables.index(j) for j in (*kept, *dropped)]
            said = said.transpose(*axes, len(axes)).reshape(-1, number, len(targets))
            chances = chances.reshape(len(said), -1, number)
            return self._rule(given, np.einsum("kid,kdt->kit", chances, said), targets)

        return self.memory.averaged_rules.get((key, tuple(given)), averaged)

    def _frequencies(
        self, given: Sequence[int], where: Ints, label: Ints, number: int
    ) -> NDArray[np.float64]:
        """P(label | given) in some backgrounds, shape (*sizes of what is given, number)."""
        shape = self._shape(given)
        counts = count_table(self._row(given, where), math.prod(shape), label, number)
        return smooth(counts.reshape(*shape, number), SMOOTHING)

    def _rule(self, given: list[int], table: NDArray[np.float64], targets: Ints) -> Rule:
        """A rule over ``given`` in any order; its variables, the model's, are put in order."""
        order = sorted(range(len(given)), key=lambda k: given[k])
        table = table.reshape(*self._shape(given), len(targets)).transpose(*order, len(given))
        return Rule.from_matrix(tuple(sorted(given)), table.reshape(-1, len(targets)), targets)

    def _informative(self, question: _Question, given: list[int]) -> list[int]:
        """Masked variables that tell, given others, what a rule will say."""
        independent = question.where < self.backgrounds.num_independent
        if question.num_labels < 2 or not independent.any():
            return []
        question = question._replace(
            label=question.label[independent],
            where=question.where[independent],
            log_level=self.log_level - math.log(max(1, len(self.columns) - len(given))),
        )
        return self._select(question, given, self.columns, MAX_INFORMATIVE, MAX_INFORMATIVE_ROWS)

    def _select(
        self,
        question: _Question,
        given: list[int],
        candidates: Sequence[int],
        limit: int,
        max_rows: int,
    ) -> list[int]:
        """Candidates that tell, given others, what a rule will say, the most informative first."""
        answers: dict[int, tuple[Information, int]] = {}

        def rank(chosen: list[int], live: IntArray) -> tuple[IntArray, list[int]]:
            known = [*given, *chosen]
            cells = question.number * math.prod(self._shape(known))
            room = max_rows // math.prod(self._shape(chosen))
            live = live[self.sizes[live] <= min(room, MAX_CELLS // cells)]
            answers.update(self._answers(question, known, live.tolist()))
            gains = {j: answers[j][0].gain for j in live.tolist() if answers[j][0].gain > 0}
            return live, sorted(gains, key=lambda j: -gains[j])

        rest = np.array([j for j in candidates if j not in given], dtype=np.int64)
        return select_forward(
            rest, limit, rank=rank, passes=lambda _, j: question.is_answered(*answers[j])
        )

    def _answers(
        self, question: _Question, given: list[int], candidates: list[int]
    ) -> dict[int, tuple[Information, int]]:
        """What each candidate tells given others, and into how many rows it splits."""

        @cache  # made when the first answer is not remembered
        def cases() -> Cases:
            rows = Rows.of(len(question.where))
            for j in given:
                rows = rows.split(self._column(j)[question.where], int(self.sizes[j]))
            return Cases(rows, question.label, question.num_labels)

        def answer(j: int) -> tuple[Information, int]:
            size, column = int(self.sizes[j]), self._column(j)[question.where]
            found = conditional_information(cases(), column, size)
            # Rows are only counted for what may be chosen.
            return found, cases().rows.split(column, size).count if found.gain > 0 else 0

        if question.key is None:
            return {j: answer(j) for j in candidates}
        store, known = self.memory.rule_information, tuple(given)
        return {j: store.get((question.key, known, j), partial(answer, j)) for j in candidates}

    def _close(self, end: Ints, before: Sequence[Rule], relevant: list[int]) -> list[Rule]:
        """A table for the end of a list that is open, over the most informative variables.

        The variables it depends on need no test; others have to pass it.
        """
        where = self._reaching(before)
        targets, label = np.unique(end[where], return_inverse=True)
        label, number = label.reshape(-1).astype(np.int64), len(targets)
        question = _Question(label, number, where, number)
        direct = [j for j in relevant if j in self.place]
        given = self._select(question, [], direct, MAX_OPEN, MAX_CELLS)
        if len(given) < len(relevant):
            given += self._informative(question, given)
        table = self._frequencies(given, where, label, number)
        return with_default(self._rule(given, table, targets))
