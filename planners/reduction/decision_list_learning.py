"""Learning a decision list for a pair (n, a) that depends on many variables.

Rivest's algorithm for decision lists, with questions instead of examples. A *condition* fixes one
variable, or two, to some values. It is *decisive* if n' no longer depends on anything else where it
holds: those conditions come first in the list, in any order, since two of them that held at once
would have to agree. Then the same is asked again of the states where none of them holds, until the
variables that still matter are few enough for a joint table. So a variable that overrides others
comes before them, and variables that only act together end up in one rule.

If there are no decisive conditions and the joint table would be too large, the list stays
incomplete: what it leaves undecided becomes a table over the few most informative variables
(:mod:`planners.reduction.marginals`).
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from exo_envs.mdp import BoolArray, IntArray
from planners.arrays import Ints, chunks
from planners.information import ExogenousData, draw_probes
from planners.reduction.successors import SuccessorSampler

#: Rows of a joint table that is made as it is, without a search for decisive conditions.
SMALL_JOINT = 64
#: Rows of the largest joint table, made where no decisive conditions are found.
LARGE_JOINT = 1024
#: Comparisons that every condition, or every value of a variable, has to pass at first.
FEW_TESTS = 16
#: Comparisons for those that pass the first. What makes a difference in a share q of the
#: comparisons is overlooked with probability (1 - q) ** MANY_TESTS.
MANY_TESTS = 512
#: Conditions on two variables that are tried at most; if there are more, none is.
MAX_CONDITIONS = 20_000

Condition = tuple[tuple[int, int], ...]  # variables and their values
Draw = Callable[[int], Ints]  # draws as many x from a domain


@dataclass(frozen=True)
class Domain:
    """The states in which no condition so far holds."""

    data: ExogenousData
    allowed: dict[int, BoolArray] = field(default_factory=dict)  # variable -> values
    excluded: tuple[Condition, ...] = ()  # conditions on two variables

    def restrict(self, x: Ints, rng: np.random.Generator) -> Ints:
        """Change values that are not allowed to some that are, in place."""
        for j, values in self.allowed.items():
            wrong = np.flatnonzero(~values[x[:, j]])
            x[wrong, j] = rng.choice(np.flatnonzero(values), size=len(wrong))
        return x

    def contains(self, x: IntArray) -> BoolArray:
        """Whether no excluded condition holds."""
        inside = np.ones(len(x), dtype=np.bool_)
        for condition in self.excluded:
            inside &= ~_holds(condition, x)
        return inside

    def values(self, j: int) -> Ints:
        """The values of a variable that are still possible."""
        if j in self.allowed:
            return np.flatnonzero(self.allowed[j])
        return np.arange(int(self.data.sizes[j]))

    def without(self, conditions: Sequence[Condition]) -> Domain:
        """What is left where none of ``conditions`` holds."""
        allowed = dict(self.allowed)
        for condition in conditions:
            if len(condition) == 1:
                [(j, value)] = condition
                size = int(self.data.sizes[j])
                allowed[j] = allowed.get(j, np.ones(size, dtype=np.bool_)) & (
                    np.arange(size) != value
                )
        excluded = tuple(condition for condition in conditions if len(condition) > 1)
        return replace(self, allowed=allowed, excluded=self.excluded + excluded)


class RuleSkeleton(NamedTuple):
    """A rule without its probabilities: what it looks at, where it decides, where it is asked."""

    variables: tuple[int, ...]  # increasing
    rows: Ints  # joint values of the variables that decide, numbered in C order
    domain: Domain


class ListSkeleton(NamedTuple):
    """A decision list without its probabilities."""

    rules: list[RuleSkeleton]
    is_complete: bool  # whether every state is decided by some rule


def learn_decision_list(
    sampler: SuccessorSampler,
    pair: int,
    variables: Sequence[int],
    data: ExogenousData,
    rng: np.random.Generator,
) -> ListSkeleton:
    """Find the rules of one pair (n, a) that depends on ``variables``, without probabilities."""
    comparisons = _Comparisons(sampler, pair, variables, rng)
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
        conditions = [c for c in conditions if _leaves_some(c, conditions, domain)]
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


def row_values(variables: Sequence[int], rows: IntArray, sizes: IntArray) -> Ints:
    """The values of the variables in rows numbered in C order, shape (len(rows), variables)."""
    if not len(variables):
        return np.zeros((len(rows), 0), dtype=np.int64)
    shape = tuple(int(sizes[j]) for j in variables)
    return np.stack(np.unravel_index(rows, shape), axis=-1).astype(np.int64)


def _holds(condition: Condition, x: IntArray) -> BoolArray:
    holds = np.ones(len(x), dtype=np.bool_)
    for j, value in condition:
        holds &= x[:, j] == value
    return holds


def _leaves_some(condition: Condition, conditions: list[Condition], domain: Domain) -> bool:
    [(j, _)] = condition
    return sum(other[0][0] == j for other in conditions) < len(domain.values(j))


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
        rows = np.ravel_multi_index(tuple(values.T), tuple(domain.data.sizes[list(variables)]))
        rules.append(RuleSkeleton(variables, np.sort(rows), domain))
    return rules


class _Comparisons:
    """Compares the n' of one pair in states of a domain."""

    def __init__(
        self,
        sampler: SuccessorSampler,
        pair: int,
        variables: Sequence[int],
        rng: np.random.Generator,
    ) -> None:
        self.sampler = sampler
        self.pair = pair
        self.variables = np.array(variables)  # all that the pair depends on
        self.rng = rng

    def still_relevant(self, variables: list[int], domain: Domain) -> list[int]:
        """The variables that make a difference by themselves somewhere in the domain."""
        found: set[int] = set()
        for tests in (FEW_TESTS, MANY_TESTS):
            open_ones = [j for j in variables if j not in found]
            # Every value as often: one of many may be the only one that matters.
            changes = np.array(
                [
                    (j, v)
                    for j in open_ones
                    for v in np.resize(domain.values(j), max(tests, len(domain.values(j))))
                ],
                dtype=np.int64,
            ).reshape(-1, 2)

            def change(which: Ints, draw: Draw, changes: Ints = changes) -> tuple[Ints, Ints]:
                x = draw(len(which))
                y = x.copy()
                column, value = changes[which].T
                y[np.arange(len(y)), column] = value
                return x, y

            matter, _ = self._different(len(changes), 1, domain, change)
            found.update(changes[matter, 0].tolist())
        return [j for j in variables if j in found]

    def decisive(self, conditions: Sequence[Condition], domain: Domain) -> list[Condition]:
        """The conditions under which nothing else makes a difference."""
        found = list(conditions)
        for tests in (FEW_TESTS, MANY_TESTS):
            if not found:
                break
            fixed = np.array(found)  # (conditions, variables in each, 2)

            def fix(which: Ints, draw: Draw, fixed: Ints = fixed) -> tuple[Ints, Ints]:
                lane, x, y = np.arange(len(which)), draw(len(which)), draw(len(which))
                for k in range(fixed.shape[1]):
                    column, value = fixed[which, k].T
                    x[lane, column] = value
                    y[lane, column] = value
                return x, y

            varies, compared = self._different(len(found), tests, domain, fix)
            passed = ~varies & (2 * compared >= FEW_TESTS)
            found = [found[k] for k in np.flatnonzero(passed)]
        return found

    def _different(
        self,
        count: int,
        tests: int,
        domain: Domain,
        states: Callable[[Ints, Draw], tuple[Ints, Ints]],
    ) -> tuple[BoolArray, Ints]:
        """Which of some candidates (changes, or conditions) make a difference in a test.

        Args:
            count: how many candidates there are.
            tests: comparisons for each.
            domain: comparisons with a state outside of it do not count.
            states: gives two x to compare for each candidate of a batch.

        Returns:
            Whether it does, and in how many tests both states were in the domain, (count,).
        """
        different = np.zeros(count, dtype=np.bool_)
        compared = np.zeros(count, dtype=np.int64)
        candidate = np.repeat(np.arange(count), tests)

        def draw(number: int) -> Ints:
            x = draw_probes(domain.data, number, self.rng, self.variables)
            return domain.restrict(x, self.rng)

        for part in chunks(len(candidate), len(domain.data.sizes)):
            which = candidate[part]
            x, y = states(which, draw)
            inside = np.flatnonzero(domain.contains(x) & domain.contains(y))
            pairs = np.full(len(inside), self.pair)
            differs = self.sampler.differ(pairs, x[inside], y[inside], self.sampler.seed())
            different[which[inside[differs]]] = True
            compared += np.bincount(which[inside], minlength=count)
        return different, compared
