"""The endogenous dynamics that are seen through a mask: P(n' | n, a, masked x).

A rule that looks at masked variables only stays as it is. One that looks at a dropped variable is
averaged over that variable's distribution in the rollouts (the *backgrounds*), given

* the rule's variables that are in the mask,
* that the rule is reached, that is, the rules before it did not decide,
* and at most ``MAX_INFORMATIVE`` other masked variables, of few values, that tell something about
  what the rule says, by a G-test on states of different rollouts, which are independent.

A dropped variable is never given a value. What is lost is how the dropped variables of different
rules depend on each other beyond that. What dropped variables pay is averaged in the same way
(:mod:`planners.reduced.ignored_rewards`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.statistics import GTest
from planners.core.arrays import Ints, joint_index
from planners.core.memory import MORE_BYTES, Key, Memory, Shelf
from planners.dependence.contingency import (
    Cases,
    Rows,
    conditional_information,
    count_table,
    smooth,
)
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import Backgrounds
from planners.tables.decision_lists import Rule, simplify, with_default

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
BACKGROUNDS = Shelf[int, Ints]("backgrounds", MORE_BYTES)
#: (rules, given, j) -> what x_j tells about the last rule's decision, and the rows it makes;
#: (("reward", scope), given, j) -> the same about what the variables of a scope pay.
RULE_INFORMATION = Shelf[tuple[Hashable, Key, int], tuple[GTest, int]](
    "rule_information", MORE_BYTES
)
#: Variables that the rule which closes an undecided list may look at.
MAX_OPEN = 8
#: A rule that fewer backgrounds reach is averaged over all of them.
MIN_REACHING = 50

#: rules -> the backgrounds that reach the last of them, what it says in each, and the number of
#: different things that it says.
RULE_QUESTIONS = Shelf[Hashable, tuple[Ints, Ints, int]]("rule_questions", MORE_BYTES)
#: (rules, given) -> the last of some rules, averaged over what it is not given.
AVERAGED_RULES = Shelf[tuple[Hashable, Key], Rule]("averaged_rules", MORE_BYTES)


class Unseen(NamedTuple):
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

    def informative(self, question: Unseen, given: list[int]) -> list[int]:
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
        question: Unseen,
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
        self, question: Unseen, given: list[int], candidates: list[int]
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


def reduce_lists(survey: EndogenousSurvey, informants: Informants) -> list[list[Rule]]:
    """The decision lists of all pairs (n, a) in terms of a mask.

    Variables are numbered by their place in the mask.
    """
    reduction = _Reduction(survey, informants)
    return [reduction.reduce(pair) for pair in range(len(survey.lists))]


class _Reduction:
    def __init__(self, survey: EndogenousSurvey, informants: Informants) -> None:
        self.survey = survey
        self.informants = informants
        self.place = {j: k for k, j in enumerate(informants.columns)}
        self.memory = informants.memory
        self.averages: dict[Hashable, Rule] = {}  # of this mask: many pairs share rules

    def reduce(self, pair: int) -> list[Rule]:
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

    def _reaching(self, before: Sequence[Rule]) -> Ints:
        """The backgrounds in which none of the rules decides."""
        everywhere = reaching = np.arange(len(self.survey.backgrounds))
        for rule in before:
            reaching = reaching[rule.decided[self.informants.row(rule.variables, reaching)] < 0.5]
        return reaching if len(reaching) >= MIN_REACHING else everywhere

    def _average(self, rule: Rule, before: Sequence[Rule], key: tuple[Hashable, ...]) -> Rule:
        """What a rule says if some of its variables are not seen."""
        kept = [j for j in rule.variables if j in self.place]
        dropped = [j for j in rule.variables if j not in self.place]
        number = math.prod(self.informants.shape(dropped))
        if (asked := self.memory.find(RULE_QUESTIONS, key)) is None:
            where = self._reaching(before)
            says = [rule.row(row) for row in range(rule.num_rows)]
            label_of = {said: label for label, said in enumerate(dict.fromkeys(says))}
            labels = np.array([label_of[said] for said in says])
            label = labels[self.informants.row(rule.variables, where)]
            asked = self.memory.keep(RULE_QUESTIONS, key, (where, label, len(label_of)))
        where, label, num_labels = asked
        question = Unseen(label, num_labels, where, number, key=key)
        given = kept + self.informants.informative(question, kept)
        averaged = self.memory.find(AVERAGED_RULES, (key, tuple(given)))
        if averaged is None:
            chances = self._frequencies(given, where, self.informants.row(dropped, where), number)
            targets = np.unique(rule.targets)
            said = rule.to_matrix(targets).reshape(
                *self.informants.shape(rule.variables), len(targets)
            )
            axes = [rule.variables.index(j) for j in (*kept, *dropped)]
            said = said.transpose(*axes, len(axes)).reshape(-1, number, len(targets))
            chances = chances.reshape(len(said), -1, number)
            averaged = self._rule(given, np.einsum("kid,kdt->kit", chances, said), targets)
            self.memory.keep(AVERAGED_RULES, (key, tuple(given)), averaged)
        return averaged

    def _frequencies(
        self, given: Sequence[int], where: Ints, label: Ints, number: int
    ) -> NDArray[np.float64]:
        """P(label | given) in some backgrounds, shape (*sizes of what is given, number)."""
        return smooth(self.informants.counts(given, where, label, number), SMOOTHING)

    def _rule(self, given: list[int], table: NDArray[np.float64], targets: Ints) -> Rule:
        """A rule over ``given`` in any order; its variables, the model's, are put in order."""
        order = sorted(range(len(given)), key=lambda k: given[k])
        table = table.reshape(*self.informants.shape(given), len(targets)).transpose(
            *order, len(given)
        )
        return Rule.from_matrix(tuple(sorted(given)), table.reshape(-1, len(targets)), targets)

    def _close(self, end: Ints, before: Sequence[Rule], relevant: list[int]) -> list[Rule]:
        """A table for the end of a list that is open, over the most informative variables.

        The variables it depends on need no test; others have to pass it.
        """
        where = self._reaching(before)
        targets, label = np.unique(end[where], return_inverse=True)
        label, number = label.reshape(-1).astype(np.int64), len(targets)
        question = Unseen(label, number, where, number)
        direct = [j for j in relevant if j in self.place]
        given = self.informants.select(question, [], direct, MAX_OPEN, MAX_CELLS)
        if len(given) < len(relevant):
            given += self.informants.informative(question, given)
        table = self._frequencies(given, where, label, number)
        return with_default(self._rule(given, table, targets))
