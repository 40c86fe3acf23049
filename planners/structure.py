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
changing them changes x'_i (:mod:`planners.interventions`), and all of the mask if a joint table
is affordable, are then tested as a group. At the end, whatever is no longer significant, or worth
its table, given the others is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.mdp import IntArray
from planners.counting import Information, Rows, chi_squared_log_tail, conditional_information
from planners.data import ExogenousData

#: Candidates are ranked on so many transitions; those that look best are tested on all.
SCREENING = 12_000
#: How many of them are.
TESTED = 6
#: After the first parent, so many candidates stay in the race.
LIVE = 32
#: Rollouts are shifted by 1 ... SHIFTS against each other to measure the inflation of G,
SHIFTS = 6
#: and by more if it is as large as this.
MORE_SHIFTS, NOTICEABLE = 32, 1.25
#: The largest table: rows times values,
MAX_CELLS = 2**18
#: and with one parent only.
MAX_CELLS_ONE_PARENT = 2**22


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


class ParentSearch:
    """Looks for parents in a collection of rollouts; what was counted once is remembered.

    Args:
        data: the rollouts; those held out are not looked at.
        level: of the test, over all candidates of one variable.
        max_parents: how many parents a variable may have.
        min_samples: how many samples the rows of a table must have on average.
    """

    def __init__(
        self,
        data: ExogenousData,
        *,
        level: float = 1e-3,
        max_parents: int = 6,
        min_samples: int = 20,
    ) -> None:
        """See the class."""
        if not 0 < level < 1:
            raise ValueError(f"level is a probability between 0 and 1, not {level!r}")
        if max_parents < 0 or min_samples < 1:
            raise ValueError(
                f"max_parents={max_parents} is at least 0 and min_samples={min_samples} at least 1"
            )
        self.data = data
        self.level = level
        self.max_parents = max_parents
        self.min_samples = min_samples
        step = max(1, -(-len(data.fitted) * data.num_steps // SCREENING))
        self.all = _Sample(data, data.fitted)
        self.few = self.all if step == 1 else _Sample(data, data.fitted[::step])

    @classmethod
    def of(cls, data: ExogenousData, **settings: Any) -> ParentSearch:
        """The search of ``data`` with these settings, which it keeps for the next mask."""
        key = ("search", *sorted(settings.items()))
        if key not in data.memo:
            data.memo[key] = cls(data, **settings)
        search: ParentSearch = data.memo[key]
        return search

    def parents(
        self, target: int, candidates: Sequence[int], suspects: Mapping[int, float] | None = None
    ) -> tuple[int, ...]:
        """The parents of one variable, the most informative first.

        Args:
            target: the variable, by its position in the data.
            candidates: the variables that may be parents.
            suspects: those that are known to act on it, with the strength of the effect.
        """
        acting = {j: strength for j, strength in (suspects or {}).items() if strength > 0}
        chosen = self._forward(target, list(candidates), {target, *acting})
        group = self._group(target, chosen, list(candidates), acting)
        return self._backward(target, chosen + group, len(candidates))

    def _forward(self, target: int, live: list[int], acting: set[int]) -> list[int]:
        chosen: list[int] = []
        log_level = math.log(self.level / max(1, len(live)))
        while live and len(chosen) < self.max_parents:
            if self.all.is_certain(target, chosen):
                break
            largest = self._largest_parent(target, chosen)
            live = [j for j in live if self.data.sizes[j] <= largest]
            told = {j: self.few.information(target, chosen, j) for j in live}
            # The variable itself first, where others say just as much.
            ranked = sorted(live, key=lambda j: (-told[j].gain, j != target, j))
            if chosen:
                ranked = ranked[:LIVE]
            tested = {j: self.all.information(target, chosen, j) for j in ranked[:TESTED]}
            best = next(
                (
                    j
                    for j in sorted(tested, key=lambda j: (-tested[j].gain, j != target, j))
                    if tested[j].gain > 0
                    and self._passes(target, chosen, [j], tested[j], log_level, acting)
                    and self._has_samples((*chosen, j))
                ),
                None,
            )
            if best is None:
                break
            chosen.append(best)
            live = [j for j in ranked if j != best]
        return chosen

    def _passes(
        self,
        target: int,
        given: list[int],
        group: list[int],
        told: Information,
        log_level: float,
        acting: Collection[int],
    ) -> bool:
        """Whether a candidate, or a group of them, is significant.

        What is known to act on the target needs no comparison with other rollouts.
        """
        if chi_squared_log_tail(*told) >= log_level:
            return False
        if all(j in acting for j in group):
            return True
        null = self.few.null(target, given, *group)
        return null.gain(told) > 0 and null.log_p(told) < log_level

    def _largest_parent(self, target: int, parents: Sequence[int]) -> int:
        """How many values one more parent may have if the table is to stay small enough."""
        cells = math.prod(int(self.data.sizes[j]) for j in (*parents, target))
        return (MAX_CELLS if parents else MAX_CELLS_ONE_PARENT) // cells

    def _has_samples(self, parents: tuple[int, ...]) -> bool:
        """Whether the rows that occur have enough samples."""
        return self.all.num_rows(parents) * self.min_samples <= self.all.count

    def _group(
        self,
        target: int,
        chosen: list[int],
        candidates: list[int],
        acting: dict[int, float],
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
        if len(group) < 2:
            return []
        told = self.all.joint_information(target, chosen, group)
        log_level = math.log(self.level / (len(candidates) + 1))
        passes = told.gain > 0 and self._passes(target, chosen, group, told, log_level, acting)
        return group if passes else []

    def _backward(self, target: int, chosen: list[int], tests: int) -> tuple[int, ...]:
        """Drop, one at a time, what is not significant, or not worth it, given the others."""
        log_level = math.log(self.level / max(1, tests))
        kept = list(chosen)
        while len(kept) > 1:
            told = {j: self.all.information(target, [k for k in kept if k != j], j) for j in kept}
            needless = [
                j for j in kept if told[j].gain <= 0 or chi_squared_log_tail(*told[j]) >= log_level
            ]
            if not needless:
                break
            kept.remove(min(needless, key=lambda j: told[j].gain))
        return tuple(kept)


class _Sample:
    """Transitions of some rollouts, and what was counted in them."""

    def __init__(self, data: ExogenousData, rollouts: NDArray[np.intp]) -> None:
        self.data = data
        self.rollouts = rollouts
        self.count = len(rollouts) * data.num_steps
        self._columns: dict[tuple[str, int], IntArray] = {}
        self._rows: dict[tuple[int, ...], Rows] = {}
        self._told: dict[Any, Any] = {}

    def before(self, j: int) -> IntArray:
        """x_j now."""
        if ("before", j) not in self._columns:
            self._columns["before", j] = self.data.before(j, self.rollouts)
        return self._columns["before", j]

    def after(self, i: int) -> IntArray:
        """x_i a step later."""
        if ("after", i) not in self._columns:
            self._columns["after", i] = self.data.after(i, self.rollouts)
        return self._columns["after", i]

    def rows(self, given: Sequence[int]) -> Rows:
        """The samples by the joint value of some variables."""
        given = tuple(given)
        if given not in self._rows:
            if len(self._rows) > 64:  # a few megabytes each, hardly ever asked for again
                self._rows.clear()
            if given:
                size = int(self.data.sizes[given[-1]])
                self._rows[given] = self.rows(given[:-1]).split(self.before(given[-1]), size)
            else:
                self._rows[given] = Rows.of(self.count)
        return self._rows[given]

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
            rows = self.rows(given)
            size = int(self.data.sizes[target])
            self._told[key] = rows.split(self.after(target), size).count == rows.count
        return bool(self._told[key])

    def information(self, target: int, given: Sequence[int], j: int) -> Information:
        """What x_j tells about x'_i given others."""
        key = (target, *given, j)
        if key not in self._told:
            self._told[key] = self._test(target, given, self.before(j), int(self.data.sizes[j]))
        told: Information = self._told[key]
        return told

    def joint_information(
        self, target: int, given: Sequence[int], group: Sequence[int]
    ) -> Information:
        """What some variables together tell about x'_i given others."""
        key = ("joint", target, *given, -1, *group)
        if key not in self._told:
            rows = self.rows(group)
            self._told[key] = self._test(target, given, rows.row, rows.count)
        told: Information = self._told[key]
        return told

    def null(self, target: int, given: Sequence[int], *group: int) -> Null:
        """How G behaves where there is nothing to find: between different rollouts."""
        key = ("null", target, *given, -1, *group)
        if key not in self._told:
            rows = self.rows(group)
            column = rows.row.reshape(len(self.rollouts), -1)
            ratios: list[float] = []
            for shift in range(1, min(1 + MORE_SHIFTS, len(self.rollouts))):
                shifted = np.roll(column, shift, axis=0).reshape(-1)
                told = self._test(target, given, shifted, rows.count)
                ratios.append(told.statistic / told.freedom if told.freedom else 1.0)
                if shift == SHIFTS and np.mean(ratios) < NOTICEABLE:
                    break
            self._told[key] = Null.of(ratios)
        null: Null = self._told[key]
        return null

    def _test(self, target: int, given: Sequence[int], column: IntArray, size: int) -> Information:
        rows = self.rows(given)
        target_size = int(self.data.sizes[target])
        return conditional_information(rows, self.after(target), target_size, column, size)
