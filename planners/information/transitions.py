"""What the search for parents counts in the transitions of some rollouts, and remembers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.mdp import FloatArray, IntArray
from planners.information.contingency import Information, Rows, chi_squared_log_tail
from planners.information.pairwise import Cases, Columns
from planners.information.rollouts import ExogenousData

#: Rollouts are shifted by 1 ... SHIFTS against each other to measure the inflation of G,
SHIFTS = 6
#: and by more if it is as large as this.
MORE_SHIFTS, NOTICEABLE = 32, 1.25
#: So much of what was counted is remembered, in bytes, of each kind.
REMEMBERED = 2**25


class Null(NamedTuple):
    """The distribution of G, per degree of freedom, where there is nothing to find."""

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

    def log_p(self, told: Information) -> float:
        """The logarithm of the probability of a G as large as this (Satterthwaite)."""
        if self.freedom is None:
            return chi_squared_log_tail(told.statistic / self.mean, told.freedom)
        freedom = min(self.freedom, told.freedom)
        scale = self.mean * told.freedom / freedom
        return chi_squared_log_tail(told.statistic / scale, freedom)

    def gain(self, told: Information) -> float:
        """What the gain is if G is deflated."""
        return Information(told.statistic / self.mean, told.freedom).gain


class Sample:
    """Transitions of some rollouts, and what was counted in them."""

    def __init__(self, data: ExogenousData, rollouts: NDArray[np.intp]) -> None:
        self.data = data
        self.rollouts = rollouts
        self.count = len(rollouts) * data.num_steps
        self.columns = Columns.of(data, rollouts)
        self._after: dict[int, IntArray] = {}
        self._rows: dict[tuple[int, ...], Rows] = {}
        self._cases: dict[tuple[int, ...], Cases] = {}
        self._screened: dict[tuple[int, ...], FloatArray] = {}
        self._told: dict[Any, Any] = {}

    def after(self, i: int) -> IntArray:
        """x_i a step later."""
        if i not in self._after:
            _make_room(self._after, self.count * self.data.values.itemsize)
            self._after[i] = self.data.after(i, self.rollouts)
        return self._after[i]

    def rows(self, given: Sequence[int]) -> Rows:
        """The samples by the joint value of some variables."""
        given = tuple(given)
        if given not in self._rows:
            _make_room(self._rows, 4 * self.count)
            if given:
                size = int(self.data.sizes[given[-1]])
                self._rows[given] = self.rows(given[:-1]).split(
                    self.columns.column(given[-1]), size
                )
            else:
                self._rows[given] = Rows.of(self.count)
        return self._rows[given]

    def cases(self, target: int, given: Sequence[int]) -> Cases:
        """The samples by the same, and by the value of x'_i."""
        key = (target, *given)
        if key not in self._cases:
            _make_room(self._cases, 20 * self.count)
            size = int(self.data.sizes[target])
            self._cases[key] = Cases(self.rows(given), self.after(target), size)
        return self._cases[key]

    def num_rows(self, given: tuple[int, ...]) -> int:
        """The number of joint values that occur."""
        key = ("rows", *given)
        if key not in self._told:
            self._told[key] = self.rows(given).count
        return int(self._told[key])

    def is_certain(self, target: int, given: Sequence[int]) -> bool:
        """Whether every row has one value of the target only."""
        key = ("certain", target, *given)
        if key not in self._told:
            self._told[key] = self.cases(target, given).are_certain
        return bool(self._told[key])

    def screen(
        self, target: int, given: Sequence[int], candidates: NDArray[np.intp]
    ) -> tuple[FloatArray, FloatArray]:
        """G of many candidates and x'_i given others, and its degrees of freedom."""
        key = (target, *given)
        if key not in self._screened:
            variables = len(self.data.sizes)
            _make_room(self._screened, 16 * variables)
            self._screened[key] = np.full((2, variables), np.nan)
        known = self._screened[key]
        new = candidates[np.isnan(known[0, candidates])]
        if len(new):
            known[:, new] = self.columns.information(self.cases(target, given), new)
        return known[0, candidates], known[1, candidates]

    def tests(
        self, target: int, given: Sequence[int], candidates: Sequence[int]
    ) -> dict[int, Information]:
        """What each of some candidates tells about x'_i given others."""
        keys = {j: (target, *given, j) for j in candidates}
        new = [j for j, key in keys.items() if key not in self._told]
        if new:
            found = self.columns.information(self.cases(target, given), np.array(new))
            for j, statistic, freedom in zip(new, *found, strict=True):
                self._told[keys[j]] = Information(float(statistic), float(freedom))
        return {j: self._told[key] for j, key in keys.items()}

    def information(self, target: int, given: Sequence[int], j: int) -> Information:
        """What x_j tells about x'_i given others."""
        return self.tests(target, given, [j])[j]

    def joint_information(
        self, target: int, given: Sequence[int], group: Sequence[int]
    ) -> Information:
        """What some variables together tell about x'_i given others."""
        key = ("joint", target, *given, -1, *group)
        if key not in self._told:
            rows = self.rows(group)
            column = Columns.contiguous(rows.row[None], rows.count)
            found = column.information(self.cases(target, given), np.zeros(1, np.int64))
            self._told[key] = Information(*(float(part[0]) for part in found))
        told: Information = self._told[key]
        return told

    def null(self, target: int, given: Sequence[int], *group: int) -> Null:
        """How G behaves where there is nothing to find: between different rollouts."""
        key = ("null", target, *given, -1, *group)
        if key not in self._told:
            ratios = self._ratios(target, given, group, 1, 1 + SHIFTS)
            if len(ratios) < SHIFTS or np.mean(ratios) >= NOTICEABLE:
                ratios += self._ratios(target, given, group, 1 + SHIFTS, 1 + MORE_SHIFTS)
            self._told[key] = Null.of(ratios)
        null: Null = self._told[key]
        return null

    def _ratios(
        self, target: int, given: Sequence[int], group: Sequence[int], first: int, last: int
    ) -> list[float]:
        """G / freedom if the rollouts of the group are shifted by ``first`` to ``last - 1``."""
        number = len(self.rollouts)
        shifts = np.arange(first, min(last, number))
        if not len(shifts):
            return []
        rows = self.rows(group)
        origin = (np.arange(number) - shifts[:, None]) % number
        shifted = rows.row.reshape(number, -1)[origin].reshape(len(shifts), -1)
        columns = Columns.contiguous(shifted, rows.count)
        statistic, freedom = columns.information(self.cases(target, given), np.arange(len(shifts)))
        ratios = np.divide(statistic, freedom, out=np.ones(len(shifts)), where=freedom > 0)
        return [float(ratio) for ratio in ratios]


def _make_room(memory: dict[Any, Any], item_bytes: int) -> None:
    """Forget everything where one more would be too much; it is hardly ever asked for again."""
    if len(memory) >= max(4, REMEMBERED // max(1, item_bytes)):
        memory.clear()
