"""Choosing parents: few variables now that say most about one variable a step later.

Greedy forward selection by conditional mutual information I(x'_i ; x_j | parents so far). A
variable enters if

* it passes a G-test at the stated level, divided by the number of candidates. The degrees of
  freedom are those of the values that occur. Rollouts are independent of each other but the steps
  of one are not (where the mask leaves out something slow, every slow variable seems to tell
  about every other). So G is compared with what it is between the target's rollouts and *other*
  rollouts of the candidate, where there is nothing to find: by its mean there, and by its
  variance too where the mean is noticeably above the degrees of freedom. The variable itself, and
  what is known to act on it, are exempt;
* it is worth its table: twice the expected gain in log-likelihood on new data, G - 2 freedom
  (Akaike's criterion), is positive, and of the candidates' the largest;
* the rows that occur have enough samples each.

Variables that act only together (XOR) tell nothing one by one. Those that are suspected because
changing them changes x'_i (:mod:`planners.dependence.interventions`), and all of the mask if a
joint table is affordable, are then tested as a group. At the end, whatever is no longer
significant, or worth its table, given the others is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from exo_envs.core.arguments import (
    Constraints,
    as_positions,
    check_fields,
    check_kind,
    check_level,
    check_whole,
    whole,
)
from exo_envs.core.mdp import FloatArray, IntArray
from exo_envs.core.statistics import GTest, chi_squared_log_tail
from planners.core.memory import MORE_BYTES, Key, Memory, Shelf, every_variable
from planners.dependence.contingency import (
    Cases,
    Rows,
    column_information,
    conditional_information,
)
from planners.dependence.pairwise import SampledColumns
from planners.samples.rollouts import ExogenousData

#: Transitions that all candidates are ranked on; those that look best are tested on all.
SCREENED_TRANSITIONS = 12_000
#: Values of all variables together, from which on they are ranked on fewer transitions.
SCREENED_VALUES = 60_000
#: Candidates that are tested on all transitions before a parent is chosen.
TESTED_CANDIDATES = 6
#: Candidates that are ranked again once the first parent is chosen.
LIVE_CANDIDATES = 32
#: Decimals of a gain that count: what differs by rounding is the same.
GAIN_DECIMALS = 6
#: Cells, rows times values, of a table with several parents.
MAX_CELLS = 2**18
#: Cells of a table with one parent.
MAX_CELLS_ONE_PARENT = 2**22

#: Rollouts are shifted against each other by 1 ... NUM_SHIFTS to measure the inflation of G.
NUM_SHIFTS = 6
#: Rollouts are shifted by 1 ... MORE_SHIFTS where the inflation is noticeable.
MORE_SHIFTS = 32
#: A variable that agrees with another rollout of it beyond chance, by this share of what chance
#: leaves, is a clock: it tells the step, and another rollout of it tells as much.
CLOCK_AGREEMENT = 0.9
#: Where nothing is to be found, a mean of G / freedom as large as this counts as inflated.
NOTICEABLE_INFLATION = 1.25


class ParentEvidence(NamedTuple):
    """What the data says for one parent, given the others."""

    information: float  # conditional mutual information in nats, less the bias, not below 0
    plug_in: float  # the plug-in estimate of that information: statistic / (2 samples)
    statistic: float  # G
    freedom: float  # its degrees of freedom, of the values that occur
    log_p: float  # the logarithm of the p-value


class Null(NamedTuple):
    """The distribution of G, per degree of freedom, where there is nothing to find.

    Samples that depend on each other, such as the steps of one rollout, inflate it.
    """

    mean: float
    freedom: float | None  # of the chi-squared distribution with this mean and its variance

    @classmethod
    def of(cls, ratios: list[float]) -> Null:
        """From G / freedom of pairs of rollouts that have nothing to do with each other."""
        mean = max(1.0, float(np.mean(ratios))) if ratios else 1.0
        variance = float(np.var(ratios, ddof=1)) if len(ratios) > 1 else 0.0
        if mean < NOTICEABLE_INFLATION or variance == 0.0:
            return cls(mean, None)
        return cls(mean, 2.0 * mean**2 / variance)

    def log_p(self, found: GTest) -> float:
        """The logarithm of the probability of a G as large as this (Satterthwaite)."""
        if self.freedom is None:
            return chi_squared_log_tail(found.statistic / self.mean, found.freedom)
        freedom = min(self.freedom, found.freedom)
        scale = self.mean * found.freedom / freedom
        return chi_squared_log_tail(found.statistic / scale, freedom)

    def gain(self, found: GTest) -> float:
        return GTest(found.statistic / self.mean, found.freedom).gain


def _counted_variables(key: Key) -> list[int]:
    return [j for j in key[1:] if j >= 0]


# What the search for parents counts. Keys begin with the *stride*: 1 for all rollouts that are not
# held out, k for every k-th of them.

#: stride -> the values of all variables where transitions begin.
COLUMNS = Shelf[int, SampledColumns]("columns", MORE_BYTES, about=every_variable)
#: (stride, i) -> x_i where transitions end.
LATER = Shelf[Key, IntArray]("later", at_least=4, about=every_variable)
#: (stride, *given) -> the samples by the joint value of some variables.
ROWS = Shelf[Key, Rows]("rows", at_least=4, about=every_variable)
#: (stride, i, *given) -> the samples by the joint value of some variables and x'_i.
CASES = Shelf[Key, Cases]("cases", at_least=4, about=every_variable)
#: (stride, *given), or (stride, *given, -1, i) with x'_i -> the number of joint values that occur.
NUM_ROWS = Shelf[Key, int]("num_rows", about=_counted_variables)
#: (stride, i, *given) -> G and freedom of every candidate, (2, m); not a number if unknown.
SCREENED = Shelf[Key, FloatArray]("screened", about=every_variable)


class TransitionCounts:
    """Transitions of some rollouts, and what is counted in them."""

    def __init__(self, data: ExogenousData, stride: int, memory: Memory) -> None:
        self.data = data
        # k: every k-th rollout that is not held out is used.
        self.stride = check_whole("stride", stride, 1)
        self.memory = memory  # where what was counted is kept
        self.rollouts = data.fitted[:: self.stride]
        self.count = len(self.rollouts) * data.num_steps

    def columns(self) -> SampledColumns:
        if (columns := self.memory.find(COLUMNS, self.stride)) is None:
            columns = SampledColumns.of(self.data, self.rollouts)
            self.memory.keep(COLUMNS, self.stride, columns)
        return columns

    def later(self, i: int) -> IntArray:
        key = (self.stride, i)
        if (values := self.memory.find(LATER, key)) is None:
            (position,) = as_positions("targets", [i], len(self.data.sizes)).tolist()
            values = self.memory.keep(LATER, key, self.data.after(position, self.rollouts))
        return values

    def rows(self, given: Sequence[int]) -> Rows:
        key = (self.stride, *given)
        if (rows := self.memory.find(ROWS, key)) is None:
            rows = self.memory.keep(ROWS, key, self._split(given))
        return rows

    def _split(self, given: Sequence[int]) -> Rows:
        if not len(given):
            return Rows.of(self.count)
        *others, last = as_positions("given", given, len(self.data.sizes)).tolist()
        return self.rows(others).split(self.columns().column(last), int(self.data.sizes[last]))

    def cases(self, target: int, given: Sequence[int]) -> Cases:
        key = (self.stride, target, *given)
        if (cases := self.memory.find(CASES, key)) is None:
            cases = Cases(self.rows(given), self.later(target), int(self.data.sizes[target]))
            self.memory.keep(CASES, key, cases)
        return cases

    def num_rows(self, given: Sequence[int]) -> int:
        """The number of joint values that occur."""
        key = (self.stride, *given)
        if (number := self.memory.find(NUM_ROWS, key)) is None:
            number = self.memory.keep(NUM_ROWS, key, self.rows(given).count)
        return number

    def is_certain(self, target: int, given: Sequence[int]) -> bool:
        """Whether every row has one value of the target only."""
        key = (self.stride, *given, -1, target)
        if (number := self.memory.find(NUM_ROWS, key)) is None:
            number = self.memory.keep(NUM_ROWS, key, self.cases(target, given).count)
        return self.num_rows(given) == number

    def screen(
        self, target: int, given: Sequence[int], candidates: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """G of many candidates and x'_i given others, and its degrees of freedom."""
        if len(candidates) and not 0 <= candidates.min() <= candidates.max() < len(self.data.sizes):
            as_positions("candidates", candidates, len(self.data.sizes))
        key = (self.stride, target, *given)
        if (known := self.memory.find(SCREENED, key)) is None:
            known = self.memory.keep(SCREENED, key, np.full((2, len(self.data.sizes)), np.nan))
        new = candidates[np.isnan(known[0, candidates])]
        if len(new):
            known[:, new] = self.columns().information(self.cases(target, given), new)
        return known[0, candidates], known[1, candidates]

    def information(self, target: int, given: Sequence[int], *group: int) -> GTest:
        """What one variable, or several together, tell about x'_i given others."""
        if len(group) == 1:
            statistic, freedom = self.screen(target, given, np.array(group))
            return GTest(float(statistic[0]), float(freedom[0]))
        rows = self.rows(group)
        return conditional_information(self.cases(target, given), rows.row, rows.count)

    def null(self, target: int, given: Sequence[int], *group: int) -> Null:
        """How G behaves where there is nothing to find: between different rollouts.

        Of clocks, which are the same in all of them, other rollouts begin at other steps, too.
        """
        cases, rows = self.cases(target, given), self.rows(group)
        found = self._shifted(cases, rows, group, 1, NUM_SHIFTS)
        if len(found) < NUM_SHIFTS or np.mean(found) >= NOTICEABLE_INFLATION:
            found += self._shifted(cases, rows, group, 1 + NUM_SHIFTS, MORE_SHIFTS)
        return Null.of(found)

    def _shifted(
        self, cases: Cases, rows: Rows, group: Sequence[int], first: int, last: int
    ) -> list[float]:
        """G / freedom if the rollouts of the group are shifted by ``first`` to ``last``."""
        number = len(self.rollouts)
        shifts = np.arange(first, min(last + 1, number))
        if not len(shifts):
            return []
        row = rows.row.reshape(number, -1)
        origin = (np.arange(number) - shifts[:, None]) % number
        if _is_clock(row, rows.count):
            rng = np.random.default_rng([self.data.seed, first, *group])
            begins = rng.integers(row.shape[1], size=(*origin.shape, 1))
            steps = (np.arange(row.shape[1]) + begins) % row.shape[1]
            shifted = row[origin[..., None], steps].reshape(len(shifts), -1)
        else:
            shifted = row[origin].reshape(len(shifts), -1)
        sizes = np.full(len(shifts), rows.count)
        statistic, freedom = column_information(cases, shifted, sizes)
        found = np.divide(statistic, freedom, out=np.ones(len(shifts)), where=freedom > 0)
        return [float(ratio) for ratio in found]


def _is_clock(row: IntArray, count: int) -> bool:
    """Whether something, shape (rollouts, steps), is much the same in all rollouts."""
    agreement = np.mean(row[1:] == row[:-1]) if len(row) > 1 else 0.0
    if agreement < CLOCK_AGREEMENT:
        return False
    chance = float(((np.bincount(row.reshape(-1), minlength=count) / row.size) ** 2).sum())
    return bool(agreement - chance >= CLOCK_AGREEMENT * (1.0 - chance) > 0.0)


@dataclass(eq=False)
class ParentSearch:
    """Looks for parents in a collection of rollouts.

    Args:
        data: the rollouts; those held out are not looked at.
        level: of the test, over all candidates of one variable.
        max_parents: how many parents a variable may have.
        min_samples: how many samples the rows of a table must have on average.
        memory: of these rollouts, to share with other searches; by default a new one.
    """

    data: ExogenousData
    _: KW_ONLY
    level: float = 1e-3
    max_parents: int = 6
    min_samples: int = 20
    memory: Memory = field(default_factory=Memory)

    constraints: ClassVar[Constraints] = {
        "level": check_level,
        "max_parents": whole(0),
        "min_samples": whole(1),
    }

    def __post_init__(self) -> None:
        check_kind("data", self.data, ExogenousData)
        check_fields(self)
        self.memory.bind(data=self.data)
        share = min(1.0, SCREENED_VALUES / max(1, int(self.data.sizes.sum())))
        screened = math.ceil(share * SCREENED_TRANSITIONS)
        step = max(1, -(-len(self.data.fitted) * self.data.num_steps // screened))
        self.all, self.few = (TransitionCounts(self.data, k, self.memory) for k in (1, step))

    def parents(
        self, target: int, candidates: Sequence[int], suspects: Mapping[int, float] | None = None
    ) -> tuple[int, ...]:
        """The parents of one variable, the most informative first.

        Args:
            target: the variable, by its position in the data.
            candidates: the variables that may be parents.
            suspects: those that are known to act on it, with the strength of the effect.
        """
        self._check_positions(target, candidates, suspects)
        acting = {j: strength for j, strength in (suspects or {}).items() if strength > 0}
        chosen = self._forward(target, np.array(candidates, np.intp), {target, *acting})
        group = self._group(target, chosen, list(candidates), acting)
        found = self._backward(target, chosen + group, len(candidates))
        is_full = len(chosen) + len(group) >= self.max_parents
        if acting.keys() <= {*found} or not (is_full or self.left_out(target, found, acting)):
            return found
        return self._causes_alone(target, found, list(candidates), acting)

    def _check_positions(
        self, target: int, others: Sequence[int], suspects: Mapping[int, float] | None
    ) -> None:
        count = len(self.data.names)
        for name, given in (("target", [target]), ("candidates", others), ("suspects", suspects)):
            as_positions(name, given or (), count)

    def left_out(
        self, target: int, parents: Sequence[int], suspects: Mapping[int, float]
    ) -> tuple[int, ...]:
        """Variables that act on the target, and that no test could judge beside its parents.

        They would make too many parents, too large a table, or too few samples in its rows. Bins
        are never judged: what differs within them does not show. If the parents leave nothing to
        tell there are none.
        """
        rest = [j for j, strength in sorted(suspects.items()) if strength > 0 and j not in parents]
        if not rest or self.all.is_certain(target, parents):
            return ()
        binned = {own.name for own in self.data.bins}
        fits = self._fits(target, (*parents, *rest))
        return tuple(j for j in rest if not fits or self.data.names[j] in binned)

    def explain(
        self, target: int, parents: Sequence[int], suspects: Mapping[int, float] | None = None
    ) -> dict[int, ParentEvidence]:
        """What the data says for each of some parents, given the others.

        Args:
            target: the variable, by its position in the data.
            parents: its parents, as :meth:`parents` found them or of the caller's choice.
            suspects: those that are known to act on it: like the target itself, they need no
                comparison with other rollouts, so their p-values are those of the plain G-test.
        """
        self._check_positions(target, parents, suspects)
        exempt = {target, *(j for j, strength in (suspects or {}).items() if strength > 0)}
        evidence = {}
        for j in parents:
            others = [k for k in parents if k != j]
            found = self.all.information(target, others, j)
            null = Null(1.0, None) if j in exempt else self.few.null(target, others, j)
            evidence[j] = ParentEvidence(
                max(0.0, found.statistic - found.freedom) / (2.0 * self.all.count),
                found.statistic / (2.0 * self.all.count),
                *found,
                null.log_p(found),
            )
        return evidence

    def _forward(self, target: int, candidates: IntArray, acting: set[int]) -> list[int]:
        log_level = math.log(self.level) - math.log(max(1, len(candidates)))
        acts = np.zeros(len(self.data.names), dtype=bool)
        acts[sorted(acting)] = True

        def order(live: IntArray, gain: FloatArray) -> IntArray:
            """The largest gain first; of those that say the same, what is known to act."""
            return np.lexsort((live, ~acts[live], live != target, -np.round(gain, GAIN_DECIMALS)))

        chosen: list[int] = []
        live = candidates
        while len(live) and len(chosen) < self.max_parents:
            if self.all.is_certain(target, chosen):
                break
            live = live[self.data.sizes[live] <= self._largest_parent(target, chosen)]
            statistic, freedom = self.few.screen(target, chosen, live)
            # The variable itself first, where others say just as much.
            live = live[order(live, statistic - 2.0 * freedom)]
            if chosen:
                live = live[:LIVE_CANDIDATES]
            best = live[:TESTED_CANDIDATES]
            statistic, freedom = self.all.screen(target, chosen, best)
            gain = statistic - 2.0 * freedom
            ranked = order(best, gain)
            worth = best[ranked][gain[ranked] > 0].tolist()
            passing = (j for j in worth if self._may_enter(target, chosen, j, log_level, acting))
            if (found := next(passing, None)) is None:
                break
            chosen.append(found)
            live = live[live != found]
        return chosen

    def _may_enter(
        self, target: int, chosen: list[int], j: int, level: float, acting: Collection[int]
    ) -> bool:
        """Whether a candidate passes its test, and leaves rows of enough samples."""
        passes = self._passes(target, chosen, [j], level, acting)
        return passes and self._has_samples((*chosen, j))

    def _passes(
        self, target: int, given: list[int], group: list[int], level: float, acting: Collection[int]
    ) -> bool:
        """Whether a candidate, or a group of them, is significant at the (logarithmic) level.

        What is known to act on the target needs no comparison with other rollouts.
        """
        found = self.all.information(target, given, *group)
        if found.log_p >= level:
            return False
        if all(j in acting for j in group):
            return True
        null = self.few.null(target, given, *group)
        return null.gain(found) > 0 and null.log_p(found) < level

    def _largest_parent(self, target: int, parents: Sequence[int]) -> int:
        """How many values one more parent may have if the table is to stay small enough."""
        cells = math.prod(int(self.data.sizes[j]) for j in (*parents, target))
        return (MAX_CELLS if parents else MAX_CELLS_ONE_PARENT) // cells

    def _fits(self, target: int, parents: Sequence[int]) -> bool:
        """Whether a table of some parents is within all limits."""
        if len(parents) > self.max_parents:
            return False
        if parents and self.data.sizes[parents[-1]] > self._largest_parent(target, parents[:-1]):
            return False
        return self._has_samples(tuple(parents))

    def _has_samples(self, parents: tuple[int, ...]) -> bool:
        return self.all.num_rows(parents) * self.min_samples <= self.all.count

    def _group(
        self, target: int, chosen: list[int], candidates: list[int], acting: dict[int, float]
    ) -> list[int]:
        """Variables that tell something together, if there are any left."""
        rest = [j for j in candidates if j not in chosen]
        group: list[int] = []
        if self.all.is_certain(target, chosen):
            return group
        suspected = sorted((j for j in rest if j in acting), key=lambda j: (-acting[j], j))
        room = self.max_parents - len(chosen)
        for j in suspected + [j for j in rest if j not in suspected]:
            if len(group) == room:
                break
            if j not in suspected and len(rest) > room:
                break  # not all of the mask: then only what is suspected
            fits = self.data.sizes[j] <= self._largest_parent(target, [*chosen, *group])
            if fits and self._has_samples((*chosen, *group, j)):
                group.append(j)
        if len(group) < 2 or self.all.information(target, chosen, *group).gain <= 0:
            return []
        log_level = math.log(self.level) - math.log(len(candidates) + 1)
        return group if self._passes(target, chosen, group, log_level, acting) else []

    def _causes_alone(
        self, target: int, found: tuple[int, ...], candidates: list[int], acting: dict[int, float]
    ) -> tuple[int, ...]:
        """All that acts on the target, where it tells more than what was found and took its place.

        A parity of six is told by all six together, and its own past may tell a little, too.
        """
        causes = sorted(j for j in acting if j in candidates)
        if not causes or not self._fits(target, causes):
            return found
        before = self.all.information(target, [], *found).gain if found else 0.0
        if self.all.information(target, [], *causes).gain <= before:
            return found
        log_level = math.log(self.level) - math.log(len(candidates) + 1)
        if not self._passes(target, [], causes, log_level, acting):
            return found
        return self._backward(target, causes, len(candidates))

    def _backward(self, target: int, chosen: list[int], tests: int) -> tuple[int, ...]:
        """Drop, one at a time, what is not significant, or not worth it, given the others."""
        log_level = math.log(self.level) - math.log(max(1, tests))
        kept = list(chosen)
        while len(kept) > 1:
            found = {j: self.all.information(target, [k for k in kept if k != j], j) for j in kept}
            needless = [j for j in kept if found[j].gain <= 0 or found[j].log_p >= log_level]
            if not needless:
                break
            kept.remove(min(needless, key=lambda j: found[j].gain))
        return tuple(kept)
