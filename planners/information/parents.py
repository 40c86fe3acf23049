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
changing them changes x'_i (:mod:`planners.information.interventions`), and all of the mask if a joint table
is affordable, are then tested as a group. At the end, whatever is no longer significant, or worth
its table, given the others is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planners.information.contingency import Information, chi_squared_log_tail
from planners.information.rollouts import ExogenousData
from planners.information.transitions import Null, Sample

#: Candidates are ranked on so many transitions; those that look best are tested on all.
SCREENING = 12_000
#: How many of them are.
TESTED = 6
#: After the first parent, so many candidates stay in the race.
LIVE = 32
#: The largest table: rows times values,
MAX_CELLS = 2**18
#: and with one parent only.
MAX_CELLS_ONE_PARENT = 2**22


class Evidence(NamedTuple):
    """What the data says for one parent, given the others."""

    information: float  # conditional mutual information in nats, less the bias, not below 0
    plug_in: float  # the plug-in estimate of it: statistic / (2 samples)
    statistic: float  # G
    freedom: float  # its degrees of freedom, of the values that occur
    log_p: float  # the logarithm of the p-value


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
        self.all = Sample(data, data.fitted)
        self.few = self.all if step == 1 else Sample(data, data.fitted[::step])

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
        live = np.array(candidates, dtype=np.intp)
        chosen = self._forward(target, live, {target, *acting})
        group = self._group(target, chosen, list(candidates), acting)
        return self._backward(target, chosen + group, len(candidates))

    def explain(
        self,
        target: int,
        parents: Sequence[int],
        suspects: Mapping[int, float] | None = None,
    ) -> dict[int, Evidence]:
        """What the data says for each of some parents, given the others.

        Args:
            target: the variable, by its position in the data.
            parents: its parents, as :meth:`parents` found them or of the caller's choice.
            suspects: those that are known to act on it: like the target itself, they need no
                comparison with other rollouts, so their p-values are those of the plain G-test.
        """
        exempt = {target, *(j for j, strength in (suspects or {}).items() if strength > 0)}
        evidence = {}
        for j in parents:
            others = [k for k in parents if k != j]
            told = self.all.information(target, others, j)
            null = Null(1.0, None) if j in exempt else self.few.null(target, others, j)
            evidence[j] = Evidence(
                max(0.0, told.statistic - told.freedom) / (2.0 * self.all.count),
                told.statistic / (2.0 * self.all.count),
                *told,
                null.log_p(told),
            )
        return evidence

    def _forward(self, target: int, live: NDArray[np.intp], acting: set[int]) -> list[int]:
        chosen: list[int] = []
        log_level = math.log(self.level / max(1, len(live)))
        while len(live) and len(chosen) < self.max_parents:
            if self.all.is_certain(target, chosen):
                break
            live = live[self.data.sizes[live] <= self._largest_parent(target, chosen)]
            statistic, freedom = self.few.screen(target, chosen, live)
            # The variable itself first, where others say just as much.
            live = live[np.lexsort((live, live != target, 2.0 * freedom - statistic))]
            if chosen:
                live = live[:LIVE]
            tested = self.all.tests(target, chosen, live[:TESTED].tolist())
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
            live = live[live != best]
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
