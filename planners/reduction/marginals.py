"""The endogenous dynamics that are seen through a mask: P(n' | n, a, masked x).

A rule that looks at masked variables only stays as it is. One that looks at a dropped variable
is averaged over that variable's distribution in the rollouts, given

* the rule's variables that are in the mask,
* that the rule is reached, that is, the rules before it did not decide,
* and at most ``MAX_INFORMATIVE`` other masked variables, of few values, that tell something about
  what the rule says, by a G-test on contexts of different rollouts, which are independent.

A dropped variable is never given a value. What is lost is how the dropped variables of different
rules depend on each other beyond that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import cache, partial
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from planners.arrays import Ints
from planners.information.contingency import (
    Information,
    Rows,
    chi_squared_log_tail,
    conditional_information,
    count_table,
    joint_codes,
    smooth,
)
from planners.reduction.survey import EndogenousSurvey
from planners.tables.rules import Rule, simplify, with_default

T = TypeVar("T")

#: Masked variables that a rule may look at because they tell about a dropped one.
MAX_INFORMATIVE = 2
#: Joint values that those may have: every one of them is a condition to be forecast.
MAX_INFORMATIVE_ROWS = 48
#: Variables that an open end may look at.
MAX_OPEN = 8
#: The largest table: rows times values of what is averaged over.
MAX_CELLS = 2**16
#: Samples that rows need on average: in tests, and where the end of a list is open.
MIN_TESTED, MIN_SAMPLES = 5, 20
#: A rule that fewer contexts reach is averaged over all of them.
MIN_REACHING = 50
#: How many samples' worth of the coarser table a row gets.
SMOOTHING = 1.0


def reduce_lists(
    survey: EndogenousSurvey, columns: Sequence[int], *, level: float = 1e-3
) -> list[list[Rule]]:
    """The decision lists of all pairs (n, a) in terms of a mask.

    Args:
        survey: the lists over all variables.
        columns: the positions of the masked variables, increasing.
        level: of the test for variables that tell about dropped ones.

    Returns:
        One list for each pair; variables are numbered by their place in the mask.
    """
    reduction = _Reduction(survey, [int(j) for j in columns], level)
    return [reduction.reduce(pair) for pair in range(len(survey.lists))]


class _Question(NamedTuple):
    """What a rule will say, in some contexts."""

    label: Ints  # (contexts,): which of the things it can say
    num_labels: int
    where: Ints  # (contexts,)
    number: int  # of values of what is averaged over
    log_level: float | None  # of the test that a variable has to pass; None if it need not
    key: Hashable | None  # under which answers are remembered


class _Reduction:
    def __init__(self, survey: EndogenousSurvey, columns: list[int], level: float) -> None:
        self.survey = survey
        self.contexts = survey.backgrounds
        self.sizes = survey.backgrounds.data.sizes
        self.columns = columns
        self.place = {j: k for k, j in enumerate(columns)}
        self.log_level = math.log(level)
        self.memo = survey.memo.setdefault("marginals", {})  # many masks share rules,
        self._seen: dict[Hashable, Rule] = {}  # and so do many pairs of a mask

    def reduce(self, pair: int) -> list[Rule]:
        """The list of one pair."""
        rules = self.survey.lists[pair]
        end = self.survey.undecided.get(pair)
        out: list[Rule] = []
        for k, rule in enumerate(rules):
            if all(j in self.place for j in rule.variables):
                out.append(self._renumbered(rule, rule.variables))
            else:
                key = tuple(other.key for other in rules[: k + 1])
                if key not in self._seen:
                    self._seen[key] = self._average(rule, rules[:k], key)
                out.append(self._seen[key])
        if end is not None:
            out += self._close(end, rules, np.flatnonzero(self.survey.relevant[pair]))
        return simplify(out)

    def _renumbered(self, rule: Rule, variables: tuple[int, ...]) -> Rule:
        places = tuple(self.place[j] for j in variables)
        return Rule(places, rule.starts, rule.targets, rule.probabilities)

    def _remembered(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self.memo:
            self.memo[key] = make()
        known: T = self.memo[key]
        return known

    def _row(self, variables: Sequence[int], where: Ints) -> Ints:
        """The joint values of some variables in contexts."""
        values = [self.contexts.column(j)[where] for j in variables]
        return joint_codes(values, [int(self.sizes[j]) for j in variables], len(where))

    def _reaching(self, before: Sequence[Rule]) -> Ints:
        """The contexts in which none of the rules decides."""
        everywhere = np.arange(len(self.contexts.rollout))
        reaching = everywhere
        for rule in before:
            passes = rule.decided[self._row(rule.variables, reaching)] < 0.5
            reaching = reaching[passes]
        return reaching if len(reaching) >= MIN_REACHING else everywhere

    def _average(self, rule: Rule, before: Sequence[Rule], key: tuple[Hashable, ...]) -> Rule:
        """What a rule says if some of its variables are not seen."""
        kept = [j for j in rule.variables if j in self.place]
        dropped = [j for j in rule.variables if j not in self.place]
        number = math.prod(int(self.sizes[j]) for j in dropped)
        where = self._reaching(before)
        label, num_labels = self._labels(rule, where)
        given = kept + self._informative(label, num_labels, kept, where, number, key)
        averaged = self._remembered(
            ("average", key, tuple(given)),
            lambda: self._averaged(rule, where, given, kept, dropped),
        )
        return self._renumbered(averaged, averaged.variables)

    def _labels(self, rule: Rule, where: Ints) -> tuple[Ints, int]:
        """Which of the different things it can say a rule says in some contexts."""
        says = [rule.row(row) for row in range(rule.num_rows)]
        label_of = {said: label for label, said in enumerate(dict.fromkeys(says))}
        labels = np.array([label_of[said] for said in says])
        return labels[self._row(rule.variables, where)], len(label_of)

    def _averaged(
        self, rule: Rule, where: Ints, given: list[int], kept: list[int], dropped: list[int]
    ) -> Rule:
        """A rule averaged over what is dropped, in terms of the model's variables."""
        number = math.prod(int(self.sizes[j]) for j in dropped)
        shape = [int(self.sizes[j]) for j in given]
        rows = math.prod(shape)
        counts = count_table(self._row(given, where), rows, self._row(dropped, where), number)
        chances = smooth(counts.reshape(*shape, number), SMOOTHING)  # P(dropped | given)

        targets = np.unique(rule.targets)
        said = rule.to_matrix(targets)
        said = said.reshape(*(int(self.sizes[j]) for j in rule.variables), len(targets))
        axes = [rule.variables.index(j) for j in (*kept, *dropped)]
        said = said.transpose(*axes, len(axes)).reshape(-1, number, len(targets))
        averaged = np.einsum("kid,kdt->kit", chances.reshape(len(said), -1, number), said)
        return self._rule(given, averaged.reshape(rows, -1), targets)

    def _rule(self, given: list[int], matrix: NDArray[np.float64], targets: Ints) -> Rule:
        """A rule over ``given`` in any order; its variables, the model's, are put in order."""
        shape = [int(self.sizes[j]) for j in given]
        order = sorted(range(len(given)), key=lambda k: given[k])
        table = matrix.reshape(*shape, len(targets)).transpose(*order, len(given))
        variables = tuple(given[k] for k in order)
        return Rule.from_matrix(variables, table.reshape(-1, len(targets)), targets)

    def _informative(
        self,
        label: Ints,
        num_labels: int,
        given: list[int],
        where: Ints,
        number: int,
        key: Hashable | None = None,
    ) -> list[int]:
        """Masked variables that tell, given others, what a rule will say."""
        independent = where < self.contexts.num_independent
        where, label = where[independent], label[independent]
        chosen: list[int] = []
        if num_labels < 2 or not len(where):
            return chosen
        log_level = self.log_level - math.log(max(1, len(self.columns) - len(given)))
        question = _Question(label, num_labels, where, number, log_level, key)
        room = MAX_INFORMATIVE_ROWS
        while len(chosen) < MAX_INFORMATIVE:
            small = [j for j in self.columns if self.sizes[j] <= room]
            best = self._best(question, [*given, *chosen], small)
            if best is None:
                break
            chosen.append(best)
            room //= int(self.sizes[best])
        return chosen

    def _split(self, given: Sequence[int], where: Ints) -> Rows:
        rows = Rows.of(len(where))
        for j in given:
            rows = rows.split(self.contexts.column(j)[where], int(self.sizes[j]))
        return rows

    def _best(self, question: _Question, given: list[int], candidates: Sequence[int]) -> int | None:
        """The variable that tells most, if it is worth its table and (unless sure) significant."""
        cells = question.number * math.prod(int(self.sizes[j]) for j in given)
        told = self._told(question, given)
        enough = MIN_SAMPLES if question.log_level is None else MIN_TESTED
        best, gain = None, 0.0
        for j in candidates:
            if j in given or cells * int(self.sizes[j]) > MAX_CELLS:
                continue
            information, num_rows = told(j)
            if information.gain <= gain or num_rows * enough > len(question.where):
                continue
            level = question.log_level
            if level is None or chi_squared_log_tail(*information) < level:
                best, gain = j, information.gain
        return best

    def _told(
        self, question: _Question, given: list[int]
    ) -> Callable[[int], tuple[Information, int]]:
        """What a variable tells given others, and into how many rows it splits the contexts."""
        rows = cache(lambda: self._split(given, question.where))

        def tell(j: int) -> tuple[Information, int]:
            size, column = int(self.sizes[j]), self.contexts.column(j)[question.where]
            information = conditional_information(
                rows(), question.label, question.num_labels, column, size
            )
            # Only counted for what may be chosen.
            return information, rows().split(column, size).count if information.gain > 0 else 0

        if question.key is None:
            return tell
        return lambda j: self._remembered(("told", question.key, tuple(given), j), partial(tell, j))

    def _close(self, end: Ints, before: Sequence[Rule], relevant: Ints) -> list[Rule]:
        """A table for the end of a list that is open, over the most informative variables.

        The variables it depends on need no test; others have to pass it.
        """
        where = self._reaching(before)
        targets, label = np.unique(end[where], return_inverse=True)
        label = label.reshape(-1).astype(np.int64)
        number = len(targets)
        direct = [int(j) for j in relevant if int(j) in self.place]
        given: list[int] = []
        question = _Question(label, number, where, number, None, None)
        while len(given) < MAX_OPEN:
            best = self._best(question, given, direct)
            if best is None:
                break
            given.append(best)
        if len(given) < len(relevant):
            given += self._informative(label, number, given, where, number)
        shape = [int(self.sizes[j]) for j in given]
        counts = count_table(self._row(given, where), math.prod(shape), label, number)
        table = smooth(counts.reshape(*shape, number), SMOOTHING)
        rule = self._rule(given, table.reshape(-1, number), targets)
        return with_default(self._renumbered(rule, rule.variables))
