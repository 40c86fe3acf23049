"""Learning a decision list for a pair (n, a) that depends on many variables.

Rivest's algorithm for decision lists, with questions instead of examples. A *condition* fixes one
variable, or two, to some values. It is *decisive* if n' no longer depends on anything else where it
holds: those conditions come first in the list, in any order, since two of them that held at once
would have to agree. Then the same is asked again of the states where none of them holds, until the
variables that still matter are few enough for a joint table. So a variable that overrides others
comes before them, and variables that only act together end up in one rule.

If there are no decisive conditions and the joint table would be too large, the list stays
incomplete: what it leaves undecided becomes a table over the few most informative variables
(:mod:`planners.reduced.marginals`).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from exo_envs.core.mdp import BoolArray, IntArray
from planners.core.arrays import Ints, chunks, joint_index
from planners.dependence.group_testing import draw_probes
from planners.reduced.successors import SuccessorSampler
from planners.samples.rollouts import ExogenousData

#: Rows of a joint table that is made as it is, without a search for decisive conditions.
SMALL_JOINT = 64
#: Rows of the largest joint table, made where no decisive conditions are found.
LARGE_JOINT = 1024
#: Comparisons that every condition, or every value of a variable, has to pass at first.
FEW_TESTS = 16
#: Comparisons for a condition that has passed FEW_TESTS. What makes a difference in a share q of
#: the comparisons is overlooked with probability (1 - q) ** MANY_TESTS.
MANY_TESTS = 512
#: Conditions on two variables that are tried at most; if there are more, none is.
MAX_CONDITIONS = 20_000
#: Values, over all comparisons and variables, that are drawn anew for each comparison; if there are
#: more, the same states are used for all conditions.
DRAWN_VALUES = 1_000_000
#: Comparisons in one call of the model then.
POOL = 512
#: Comparisons then for a condition that has passed FEW_TESTS, instead of MANY_TESTS.
POOL_TESTS = 256
#: Comparisons in which hundreds of variables change at once: if n' is always the same, none of them
#: is looked at by itself.
TOGETHER_TESTS = 4_096

Condition = tuple[tuple[int, int], ...]  # variables and their values


@dataclass(frozen=True)
class Domain:
    """The states in which no condition so far holds."""

    data: ExogenousData
    allowed: dict[int, BoolArray] = field(default_factory=dict)  # variable -> values
    excluded: tuple[Condition, ...] = ()  # conditions on two variables

    def restrict(self, x: Ints, rng: np.random.Generator, place: Mapping[int, int]) -> Ints:
        """Change values that are not allowed to some that are, in place.

        Args:
            x: some variables, (B, variables).
            rng: where the randomness comes from.
            place: the column of each variable.
        """
        for j, values in self.allowed.items():
            wrong = np.flatnonzero(~values[x[:, place[j]]])
            x[wrong, place[j]] = rng.choice(np.flatnonzero(values), size=len(wrong))
        return x

    def contains(self, x: IntArray, place: Mapping[int, int]) -> BoolArray:
        """Whether no excluded condition holds; ``place`` is the column of each variable."""
        inside = np.ones(len(x), dtype=np.bool_)
        for condition in self.excluded:
            inside &= ~np.all([x[:, place[j]] == value for j, value in condition], axis=0)
        return inside

    def values(self, j: int) -> Ints:
        """The values of a variable that are still possible."""
        if j in self.allowed:
            return np.flatnonzero(self.allowed[j])
        return np.arange(int(self.data.sizes[j]))

    @property
    def variables(self) -> list[int]:
        """The variables that it restricts."""
        return sorted({*self.allowed, *(j for own in self.excluded for j, _ in own)})

    def without(self, conditions: Sequence[Condition]) -> Domain:
        """What is left where none of ``conditions`` holds."""
        allowed = dict(self.allowed)
        for (j, value), *others in conditions:
            if not others:
                before = allowed.get(j, np.ones(int(self.data.sizes[j]), dtype=np.bool_))
                allowed[j] = before & (np.arange(len(before)) != value)
        excluded = tuple(condition for condition in conditions if len(condition) > 1)
        return replace(self, allowed=allowed, excluded=self.excluded + excluded)


class RuleSkeleton(NamedTuple):
    """A rule without its probabilities: what it looks at, where it decides, where it is asked."""

    variables: tuple[int, ...]  # increasing
    rows: Ints  # joint values of the variables that decide, numbered in C order
    domain: Domain


class ListSkeleton(NamedTuple):
    """A decision list whose probabilities are yet to be drawn, for all pairs at once."""

    rules: list[RuleSkeleton]
    is_complete: bool  # whether every state is decided by some rule

    @property
    def is_small(self) -> bool:
        """Whether it is one small table, over all variables."""
        return self.is_complete and len(self.rules) == 1 and len(self.rules[0].rows) <= SMALL_JOINT


def learn_decision_list(
    sampler: SuccessorSampler, pair: int, variables: Sequence[int], data: ExogenousData
) -> ListSkeleton:
    """Find the rules of one pair (n, a) that depends on ``variables``, without probabilities.

    The model is asked nothing if they have few joint values: then the list is one table over them.
    """
    comparisons = _Comparisons(sampler, pair, np.array(sorted(variables), dtype=np.int64))
    domain = Domain(data)
    rules: list[RuleSkeleton] = []
    while True:
        # Asked of all variables each time: the smaller the domain, the easier they are to see.
        left = [j for j in variables if len(domain.values(j)) > 1]
        if rules:
            left = comparisons.still_relevant(left, domain)
        rows = math.prod(int(data.sizes[j]) for j in left)
        if rows <= SMALL_JOINT:
            break
        conditions = comparisons.decisive(
            [((j, v),) for j in left for v in domain.values(j)], domain
        )
        # Never all values of a variable: something must be left to go on with.
        decided = Counter(j for [(j, _)] in conditions)
        conditions = [c for c in conditions if decided[c[0][0]] < len(domain.values(c[0][0]))]
        if not conditions:
            conditions = comparisons.decisive(_two_variables(left, domain), domain)
        if not conditions:
            break
        rules += _rule_skeletons(conditions, domain)
        domain = domain.without(conditions)
    if rows > LARGE_JOINT and len(left) > 1:
        return ListSkeleton(rules, is_complete=False)
    joint = tuple(sorted(left))
    return ListSkeleton([*rules, RuleSkeleton(joint, np.arange(rows), domain)], is_complete=True)


def _two_variables(variables: list[int], domain: Domain) -> list[Condition]:
    couples = list(itertools.combinations(variables, 2))
    number = sum(len(domain.values(j)) * len(domain.values(k)) for j, k in couples)
    if number > MAX_CONDITIONS:
        return []
    return [
        ((j, v), (k, w))
        for j, k in couples
        for v in domain.values(j).tolist()
        for w in domain.values(k).tolist()
    ]


def _rule_skeletons(conditions: list[Condition], domain: Domain) -> list[RuleSkeleton]:
    """One rule for each set of variables that conditions look at."""
    together: dict[tuple[int, ...], list[Condition]] = defaultdict(list)
    for condition in conditions:
        together[tuple(sorted(j for j, _ in condition))].append(condition)
    rules = []
    for variables, similar in sorted(together.items()):
        values = np.array([[value for _, value in sorted(condition)] for condition in similar])
        rows = joint_index(values, domain.data.sizes[list(variables)])
        rules.append(RuleSkeleton(variables, np.sort(rows), domain))
    return rules


@dataclass(frozen=True)
class _Comparisons:
    """Compares the n' of one pair in states of a domain."""

    sampler: SuccessorSampler
    pair: int
    variables: Ints  # all that the pair depends on, increasing

    def still_relevant(self, variables: list[int], domain: Domain) -> list[int]:
        """The variables that make a difference by themselves somewhere in the domain."""
        found: set[int] = set()
        for tests in (FEW_TESTS, MANY_TESTS):
            rest = [j for j in variables if j not in found]
            is_much = len(rest) * MANY_TESTS * len(self.variables) > DRAWN_VALUES
            together = tests == MANY_TESTS and is_much and not domain.excluded
            if together and not self._matter_together(rest, domain):
                break
            # Every value as often: one of many may be the only one that matters.
            changes = [
                (j, v)
                for j in rest
                for v in np.resize(domain.values(j), max(tests, len(domain.values(j))))
            ]
            fixed = np.array(changes, dtype=np.int64).reshape(-1, 1, 2)
            matter, _ = self._different(fixed, 1, domain, everything_else=False)
            found.update(fixed[matter, 0, 0].tolist())
        return [j for j in variables if j in found]

    def _matter_together(self, variables: list[int], domain: Domain) -> bool:
        """Whether n' differs somewhere in the domain if all of some variables change at once."""
        changed = np.searchsorted(self.variables, variables)
        for _ in range(TOGETHER_TESTS // POOL):
            x, y = (self._draw(POOL, domain) for _ in range(2))
            other = x.copy()
            other[:, changed] = y[:, changed]
            differs = self.sampler.differ_in(self.pair, self.variables, x, other, domain.data)
            if differs.any():
                return True
        return False

    def decisive(self, conditions: Sequence[Condition], domain: Domain) -> list[Condition]:
        """The conditions under which nothing else makes a difference."""
        found = list(conditions)
        for tests in (FEW_TESTS, MANY_TESTS):
            if found:
                fewer = min(tests, POOL_TESTS)
                is_much = len(found) * fewer * len(self.variables) > DRAWN_VALUES
                own_tests = fewer if is_much else tests
                varies, compared = self._different(
                    np.array(found), own_tests, domain, everything_else=True
                )
                passed = ~varies & (2 * compared >= FEW_TESTS)
                found = [found[k] for k in np.flatnonzero(passed)]
        return found

    def _different(
        self, fixed: Ints, tests: int, domain: Domain, *, everything_else: bool
    ) -> tuple[BoolArray, Ints]:
        """Where n' differs: if only what is fixed changes, or if everything else does.

        Args:
            fixed: variables and their values, shape (conditions, variables in each, 2).
            tests: comparisons for each condition.
            domain: comparisons with a state outside of it do not count.
            everything_else: whether the condition holds in both states of a comparison, and all
                else is drawn anew; otherwise they differ in that it holds in the second.

        Returns:
            Whether n' differs, and in how many tests both states were in the domain, (conditions,).
        """
        if len(fixed) * tests * len(self.variables) > DRAWN_VALUES:
            return self._different_in_pool(fixed, tests, domain, everything_else=everything_else)
        different = np.zeros(len(fixed), dtype=np.bool_)
        compared = np.zeros(len(fixed), dtype=np.int64)
        candidate = np.repeat(np.arange(len(fixed)), tests)
        columns, place = self.variables, self._place
        for part in chunks(len(candidate), len(domain.data.sizes)):
            which = candidate[part]
            x = self._draw(len(which), domain)
            y = self._draw(len(which), domain) if everything_else else x.copy()
            for k in range(fixed.shape[1]):
                column, value = fixed[which, k].T
                column = np.searchsorted(columns, column)
                for states in (x, y) if everything_else else (y,):
                    states[np.arange(len(which)), column] = value
            if domain.excluded:
                inside = np.flatnonzero(domain.contains(x, place) & domain.contains(y, place))
                which, x, y = which[inside], x[inside], y[inside]
            differs = self.sampler.differ_in(self.pair, columns, x, y, domain.data)
            different[which[differs]] = True
            compared += np.bincount(which, minlength=len(fixed))
        return different, compared

    @property
    def _place(self) -> dict[int, int]:
        return {j: k for k, j in enumerate(self.variables.tolist())}

    def _draw(self, number: int, domain: Domain) -> Ints:
        """The variables that the pair depends on: everything else makes no difference."""
        rng = self.sampler.rng
        probes = draw_probes(domain.data, number, rng, self.variables)
        return domain.restrict(probes, rng, self._place)

    def _different_in_pool(
        self, fixed: Ints, tests: int, domain: Domain, *, everything_else: bool
    ) -> tuple[BoolArray, Ints]:
        """:meth:`_different` in the same states for all conditions.

        Then only what a condition fixes is written for it. With hundreds of variables, to draw them
        for every comparison would take nearly all of the time.
        """
        different = np.zeros(len(fixed), dtype=np.bool_)
        compared = np.zeros(len(fixed), dtype=np.int64)
        together = max(1, POOL // tests)
        x = self._draw(together * tests, domain)
        y = self._draw(len(x), domain) if everything_else else x.copy()
        with self.sampler.pool(self.pair, self.variables, (x, y), domain.data) as pool:
            for start in range(0, len(fixed), together):
                own = fixed[start : start + together]
                which = np.repeat(np.arange(start, start + len(own)), tests)
                columns, values = np.moveaxis(np.repeat(own, tests, axis=0), 2, 0)
                inside = np.ones(len(which), dtype=np.bool_)
                if domain.excluded:
                    lane, column = np.arange(len(which)), np.searchsorted(self.variables, columns)
                    for states in (x, y):
                        tried = states[: len(which)].copy()
                        if everything_else or states is y:
                            tried[lane[:, None], column] = values
                        inside &= domain.contains(tried, self._place)
                differs = pool(columns, values, both=everything_else) & inside
                different[which[differs]] = True
                compared += np.bincount(which[inside], minlength=len(fixed))
        return different, compared
