"""What the search for parents counts in the transitions of some rollouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exo_envs.core.arguments import as_positions, check_whole
from exo_envs.core.mdp import FloatArray, IntArray
from exo_envs.core.statistics import GTest, chi_squared_log_tail
from planners.core.memory import LARGE, Key, Memory, Shelf, every_variable
from planners.dependence.contingency import Cases, Rows, column_information
from planners.dependence.pairwise import Columns
from planners.samples.rollouts import ExogenousData

#: Rollouts are shifted against each other by 1 ... SHIFTS to measure the inflation of G.
SHIFTS = 6
#: Rollouts are shifted by 1 ... MORE_SHIFTS where the inflation is noticeable.
MORE_SHIFTS = 32
#: A variable that agrees with another rollout of it beyond chance, by this share of what chance
#: leaves, is a clock: it tells the step, and another rollout of it tells as much.
CLOCK = 0.9
#: Where nothing is to be found, a mean of G / freedom as large as this counts as inflated.
NOTICEABLE = 1.25


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
        if mean < NOTICEABLE or variance == 0.0:
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
        """What the gain is if G is deflated."""
        return GTest(found.statistic / self.mean, found.freedom).gain


def _counted_variables(key: Key) -> list[int]:
    return [j for j in key[1:] if j >= 0]


# What the search for parents counts. Keys begin with the *stride*: 1 for all rollouts that are not
# held out, k for every k-th of them.

#: stride -> the values of all variables where transitions begin.
COLUMNS = Shelf[int, Columns]("columns", LARGE, about=every_variable)
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
#: (stride, i, *given, -1, *group) -> what several variables together tell about x'_i.
INFORMATION = Shelf[Key, GTest]("information", about=every_variable)
#: (stride, i, *given, -1, *group) -> the distribution of G if the group tells nothing.
NULLS = Shelf[Key, Null]("nulls", about=every_variable)


class TransitionCounts:
    """Transitions of some rollouts, and what is counted in them."""

    def __init__(self, data: ExogenousData, stride: int, memory: Memory) -> None:
        self.data = data
        # k: every k-th rollout that is not held out is used.
        self.stride = check_whole("stride", stride, 1)
        self.memory = memory  # where what was counted is kept
        self.rollouts = data.fitted[:: self.stride]
        self.count = len(self.rollouts) * data.num_steps

    def columns(self) -> Columns:
        """All variables where the transitions begin."""
        if (columns := self.memory.find(COLUMNS, self.stride)) is None:
            columns = Columns.of(self.data, self.rollouts)
            self.memory.keep(COLUMNS, self.stride, columns)
        return columns

    def later(self, i: int) -> IntArray:
        """x_i where the transitions end."""
        key = (self.stride, i)
        if (values := self.memory.find(LATER, key)) is None:
            (position,) = as_positions("targets", [i], len(self.data.sizes)).tolist()
            values = self.memory.keep(LATER, key, self.data.after(position, self.rollouts))
        return values

    def rows(self, given: Sequence[int]) -> Rows:
        """The samples by the joint value of some variables."""
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
        """The samples by the joint value of some variables and of x'_i."""
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
        key = (self.stride, target, *given, -1, *group)
        if (found := self.memory.find(INFORMATION, key)) is None:
            rows, cases = self.rows(group), self.cases(target, given)
            statistic, freedom = column_information(cases, rows.row[None], np.array([rows.count]))
            found = GTest(float(statistic[0]), float(freedom[0]))
            self.memory.keep(INFORMATION, key, found)
        return found

    def null(self, target: int, given: Sequence[int], *group: int) -> Null:
        """How G behaves where there is nothing to find: between different rollouts.

        Of clocks, which are the same in all of them, other rollouts begin at other steps, too.
        """
        key = (self.stride, target, *given, -1, *group)
        if (null := self.memory.find(NULLS, key)) is None:
            cases, rows = self.cases(target, given), self.rows(group)
            found = self._shifted(cases, rows, group, 1, SHIFTS)
            if len(found) < SHIFTS or np.mean(found) >= NOTICEABLE:
                found += self._shifted(cases, rows, group, 1 + SHIFTS, MORE_SHIFTS)
            null = self.memory.keep(NULLS, key, Null.of(found))
        return null

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
    if agreement < CLOCK:
        return False
    chance = float(((np.bincount(row.reshape(-1), minlength=count) / row.size) ** 2).sum())
    return bool(agreement - chance >= CLOCK * (1.0 - chance) > 0.0)
