"""The endogenous dynamics that are seen through a mask: P(n' | n, a, masked x).

A rule that looks at masked variables only stays as it is. One that looks at a dropped variable
is averaged over that variable's distribution in the rollouts, given

* the rule's variables that are in the mask,
* that the rule is reached, that is, the rules before it did not decide,
* and a few other masked variables that tell something about what the rule says
  (:mod:`planners.reduced.backgrounds`).

A dropped variable is never given a value. What is lost is how the dropped variables of different
rules depend on each other beyond that.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planners.core.arrays import Ints
from planners.core.memory import LARGE, Key, Shelf
from planners.dependence.contingency import smooth
from planners.reduced.backgrounds import MAX_CELLS, SMOOTHING, Informants, Question
from planners.reduced.survey import EndogenousSurvey
from planners.tables.rules import Rule, simplify, with_default

#: Variables that the rule which closes an undecided list may look at.
MAX_OPEN = 8
#: A rule that fewer backgrounds reach is averaged over all of them.
MIN_REACHING = 50

#: rules -> the backgrounds that reach the last of them, what it says in each, and the number of
#: different things that it says.
RULE_QUESTIONS = Shelf[Hashable, tuple[Ints, Ints, int]]("rule_questions", LARGE)
#: (rules, given) -> the last of some rules, averaged over what it is not given.
AVERAGED_RULES = Shelf[tuple[Hashable, Key], Rule]("averaged_rules", LARGE)


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
        question = Question(label, num_labels, where, number, key=key)
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
        question = Question(label, number, where, number)
        direct = [j for j in relevant if j in self.place]
        given = self.informants.select(question, [], direct, MAX_OPEN, MAX_CELLS)
        if len(given) < len(relevant):
            given += self.informants.informative(question, given)
        table = self._frequencies(given, where, label, number)
        return with_default(self._rule(given, table, targets))
