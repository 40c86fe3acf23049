"""P(n' | n, a, x) as decision lists, learned for each pair (n, a) by asking the model.

**What the rules look at** is found by Rivest's algorithm for decision lists, with questions instead
of examples. A *condition* fixes one variable, or two, to some values. It is *decisive* if n' no
longer depends on anything else where it holds: those conditions come first in the list, in any
order, since two of them that held at once would have to agree. Then the same is asked again of the
states where none of them holds, until the variables that still matter are few enough for a joint
table. So a variable that overrides others comes before them, and variables that only act together
end up in one rule.

If there are no decisive conditions and the joint table would be too large, the list stays
incomplete: what it leaves undecided becomes a table over the few most informative variables
(:mod:`planners.reduced.marginals`).

**The probabilities** are frequencies of n' where a rule's variables have given values and all
others are as they are in the rollouts.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from exo_envs.core.mdp import BoolArray, IntArray
from planners.core.arrays import Ints, chunks, joint_index, joint_values, starts_of
from planners.reduced.questions import SuccessorSampler, draw_probes
from planners.samples.rollouts import Backgrounds, ExogenousData
from planners.tables.decision_lists import Rule, count_outcomes, with_default

#: Rows of a joint table that is made as it is, without a search for decisive conditions.
SMALL_JOINT_ROWS = 64
#: Rows of the largest joint table, made where no decisive conditions are found.
LARGE_JOINT_ROWS = 1024
#: Comparisons that every condition, or every value of a variable, has to pass at first.
FEW_TESTS = 16
#: Comparisons for a condition that has passed FEW_TESTS. What makes a difference in a share q of
#: the comparisons is overlooked with probability (1 - q) ** MANY_TESTS.
MANY_TESTS = 512
#: Conditions on two variables that are tried at most; if there are more, none is.
MAX_CONDITIONS = 20_000
#: Comparisons in one call of the model at least. All conditions are tried in the same states: with
#: hundreds of variables, to draw others for each would take nearly all of the time.
POOL_STATES = 512
#: Values of the variables of a pair that one call of the model is given, if it has no more states.
POOL_VALUES = 1_000_000
#: Comparisons in which all variables change at once: if n' is always the same, none of them is
#: looked at by itself.
TOGETHER_TESTS = 4_096
#: Draws for each row of a table if n' was never seen to be left to chance.
CERTAIN_DRAWS = 32


class DrawLimits(NamedTuple):
    """Draws for each row of a table where n' is left to chance."""

    least: int
    most: int
    states: int  # that are drawn for the rows of all tables together


#: With a model that answers many questions at a time, and with one that answers one at a time.
FAST_DRAWS, SLOW_DRAWS = DrawLimits(200, 10_000, 5_000_000), DrawLimits(24, 200, 100_000)
#: Values of single variables that are drawn for the rows of all tables together.
DRAW_VALUES = 200_000_000

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
        return (
            self.is_complete
            and len(self.rules) == 1
            and len(self.rules[0].rows) <= SMALL_JOINT_ROWS
        )


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
        if rows <= SMALL_JOINT_ROWS:
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
    if rows > LARGE_JOINT_ROWS and len(left) > 1:
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
            unlikely = tests == MANY_TESTS and not domain.excluded
            if unlikely and not self._matter_together(rest, domain):
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
        for _ in range(TOGETHER_TESTS // POOL_STATES):
            x, y = (self._draw(POOL_STATES, domain) for _ in range(2))
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
                varies, compared = self._different(
                    np.array(found), tests, domain, everything_else=True
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
                else differs; otherwise they differ in that it holds in the second.

        Returns:
            Whether n' differs, and in how many tests both states were in the domain, (conditions,).
        """
        different = np.zeros(len(fixed), dtype=np.bool_)
        compared = np.zeros(len(fixed), dtype=np.int64)
        asked = next(chunks(len(fixed) * tests, len(domain.data.sizes)), slice(0, 0)).stop
        lanes = max(POOL_STATES, min(asked, POOL_VALUES // max(1, len(self.variables))))
        together = max(1, min(len(fixed), lanes // tests))
        pool = self._draw(together * tests, domain)
        others = self._draw(len(pool), domain) if everything_else else pool
        for start in range(0, len(fixed), together):
            which = np.repeat(np.arange(start, min(start + together, len(fixed))), tests)
            lane = np.arange(len(which))
            x, y = pool[: len(which)].copy(), others[: len(which)].copy()
            for k in range(fixed.shape[1]):
                column, value = fixed[which, k].T
                at = lane, np.searchsorted(self.variables, column)
                y[at] = value
                if everything_else:
                    x[at] = value
            if domain.excluded:
                place = self._place
                inside = np.flatnonzero(domain.contains(x, place) & domain.contains(y, place))
                which, x, y = which[inside], x[inside], y[inside]
            differs = self.sampler.differ_in(self.pair, self.variables, x, y, domain.data)
            different[which[differs]] = True
            np.add.at(compared, which, 1)
        return different, compared

    @property
    def _place(self) -> dict[int, int]:
        return {j: k for k, j in enumerate(self.variables.tolist())}

    def _draw(self, number: int, domain: Domain) -> Ints:
        """The variables that the pair depends on: everything else makes no difference."""
        rng = self.sampler.rng
        probes = draw_probes(domain.data, number, rng, self.variables)
        return domain.restrict(probes, rng, self._place)


@dataclass
class DecisionListEstimator:
    """Estimates the decision lists of all pairs.

    Args:
        sampler: asks the model about all n.
        relevant: whether each pair depends on variable j, shape (pairs, m).
        backgrounds: the x over which what a list leaves undecided is averaged.
        is_noisy: whether n' was seen to be left to chance anywhere.
    """

    sampler: SuccessorSampler
    relevant: BoolArray
    backgrounds: Backgrounds
    is_noisy: bool

    def estimate(self, alive: Ints) -> tuple[list[list[Rule]], dict[int, Ints]]:
        """The lists of all pairs; those not ``alive`` are terminal and stay where they are.

        Returns:
            One list for each pair; and, of the pairs whose list does not decide everything, the n'
            drawn in all backgrounds.
        """
        data, num_actions = self.backgrounds.data, self.sampler.mdp.num_actions
        learned = {
            pair: learn_decision_list(
                self.sampler, pair, np.flatnonzero(self.relevant[pair]).tolist(), data
            )
            for pair in alive.tolist()
        }
        draws = CERTAIN_DRAWS
        if self.is_noisy:
            total = sum(len(rule.rows) for found in learned.values() for rule in found.rules)
            states = min(self._draws.states, DRAW_VALUES // max(1, len(data.sizes)))
            draws = max(self._draws.least, min(self._draws.most, states // max(1, total)))

        # Small tables are asked for together: as few calls as there are widths.
        small: dict[int, dict[int, RuleSkeleton]] = defaultdict(dict)
        for pair, found in learned.items():
            if found.is_small:
                small[len(found.rules[0].variables)][pair] = found.rules[0]
        rules = {
            pair: [rule]
            for _, tables in sorted(small.items())
            for pair, rule in zip(tables, self._rules(tables, tables.values(), draws), strict=True)
        }
        lists = [[Rule.certain(pair // num_actions)] for pair in range(len(self.relevant))]
        undecided = {}
        for pair, found in learned.items():
            if not found.is_small:
                alike = itertools.groupby(found.rules, lambda r: (len(r.variables), id(r.domain)))
                runs = [list(run) for _, run in alike]
                rules[pair] = [
                    rule for run in runs for rule in self._rules([pair] * len(run), run, draws)
                ]
            if found.is_complete:
                lists[pair] = [*rules[pair][:-1], *with_default(rules[pair][-1])]
            else:
                lists[pair] = rules[pair]
                undecided[pair] = self.sampler.draw_in(pair, self.backgrounds)
        return lists, undecided

    @property
    def _draws(self) -> DrawLimits:
        return FAST_DRAWS if self.sampler.mdp.is_batched else SLOW_DRAWS

    def _rules(
        self, pairs: Iterable[int], skeletons: Collection[RuleSkeleton], draws: int
    ) -> list[Rule]:
        """Rules of some pairs, as wide as each other and in one domain.

        The rows are frequencies of n'; those that do not decide are empty.
        """
        sizes, num_states = self.backgrounds.data.sizes, len(self.sampler.endogenous)
        values = [joint_values(found.rows, sizes[list(found.variables)]) for found in skeletons]
        starts = starts_of(values)
        of = np.repeat(np.arange(len(values)), np.diff(starts))
        columns = np.array([found.variables for found in skeletons], dtype=np.int64)
        domain = next(iter(skeletons)).domain
        asked = np.array([*pairs])[of], columns[of], np.concatenate(values), domain
        counted = self._count(*asked, np.arange(len(of)), draws)
        table = count_outcomes(counted, len(of), num_states)
        unsure = np.flatnonzero(np.diff(table.starts) > 1)
        if draws == CERTAIN_DRAWS and len(unsure):
            # Certain as far as we know; where it turns out not to be, we look again.
            sure = [~np.isin(cells // num_states, unsure) for cells, _ in counted]
            counted = [(c[kept], n[kept]) for (c, n), kept in zip(counted, sure, strict=True)]
            again = FAST_DRAWS.most // 4 if self.sampler.mdp.is_batched else SLOW_DRAWS.most
            counted += self._count(*asked, unsure, again)
            table = count_outcomes(counted, len(of), num_states)
        rules = []
        for found, start in zip(skeletons, starts.tolist(), strict=False):
            rows = np.full(math.prod(sizes[list(found.variables)].tolist()), -1)
            rows[found.rows] = start + np.arange(len(found.rows))
            rules.append(table.with_rows(found.variables, rows))
        return rules

    def _count(
        self, pairs: Ints, columns: Ints, values: Ints, domain: Domain, chosen: Ints, draws: int
    ) -> list[tuple[Ints, Ints]]:
        """How often each n' follows in the chosen rows of tables; see :func:`count_outcomes`.

        Args:
            pairs: of each row, (rows,).
            columns: the variables that are given values in each row, (rows, width).
            values: these values, (rows, width).
            domain: to which all other variables are restricted.
            chosen: the rows to ask about.
            draws: n' for each of them.
        """
        data, sampler, counted = self.backgrounds.data, self.sampler, []
        place = {j: j for j in domain.variables}
        x = np.zeros((0, 0), np.int64)
        drawn: IntArray = x
        for part in chunks(len(chosen) * draws, len(data.sizes)):
            rows = chosen[np.arange(part.start, part.stop) // draws]
            lane = np.arange(len(rows))
            if part.start == 0:  # the same states are used again, but for the given values
                x = domain.restrict(data.sample(len(rows), sampler.rng), sampler.rng, place)
                drawn = sampler.refine(x)
            states, kept = drawn[: len(rows)], []
            for k in range(columns.shape[1]):
                at = lane, columns[rows, k]
                kept.append((at, x[at], states[at]))
                x[at] = values[rows, k]
                states[at] = sampler.refine_some(x[at], columns[rows, k], sampler.rng)
            inside: Any = slice(None)
            if domain.excluded:
                inside = domain.contains(x[: len(rows)], place)
                # A row that never occurs inside the domain is asked about outside of it.
                inside |= ~np.isin(rows, rows[inside])
            asked_rows = rows[inside]
            following = sampler.draw_refined(pairs[asked_rows], states[inside])
            for at, before, refined in reversed(kept):
                x[at], states[at] = before, refined
            cells = asked_rows * len(sampler.endogenous) + following
            counted.append(np.unique(cells, return_counts=True))
        return counted
