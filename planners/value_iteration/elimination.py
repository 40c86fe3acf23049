"""In which order to sum over the exogenous variables of the next step.

The expectation of V(x', n) over P(x'|x) = prod_i P(x'_i | parents of i) is a sum over all x'. It
is taken variable by variable: a *step* multiplies by the factors of a group of variables (mostly
of one) and sums over them. In between, the tensor has an axis for each next-step variable that is
still to be summed over and one for each current variable that was needed so far; nothing is ever
larger than the largest of these tensors, and the joint matrix P(x'|x) is not formed.

Parents are eliminated before their children, which adds no axis. Only variables that depend on
each other, directly or not, cannot be ordered like that: such a group is eliminated at once, by
its joint factor, or one after another with larger tensors in between, whichever is cheaper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exo_envs.mdp import IntArray
from planners.tables import Factor

#: The time to write and read one element of a tensor, in multiplications.
ELEMENT_COST = 6

#: Entries that the joint factor of several variables may have at most.
MAX_JOINT_ENTRIES = 5_000_000

#: Values of V in a chunk of states: few enough to stay in the cache.
CHUNK_VALUES = 1 << 17

Axis = tuple[int, bool]  # a variable, and whether it is its next-step value


@dataclass(frozen=True)
class Step:
    """Sum over the next-step values of ``group``, given ``parents`` (which contain the group)."""

    group: tuple[int, ...]
    parents: tuple[int, ...]
    before: tuple[Axis, ...]  # of the tensor, without that of n, which is always the last
    after: tuple[Axis, ...]
    entries: int  # of a row of the group's joint factor, at most


@dataclass(frozen=True)
class Elimination:
    """The steps, and how they are laid out in memory.

    The first ``num_global`` steps are taken for all x. After them the first ``num_leading``
    variables are all current: for each of their joint values (a *unit*) the other steps are
    independent, so these are taken for a few units at a time, while they are in the cache.
    """

    sizes: tuple[int, ...]  # of the exogenous variables
    steps: tuple[Step, ...]
    num_global: int
    num_leading: int
    chunk_units: int

    def size(self, axes: Sequence[Axis]) -> int:
        """The number of elements of a tensor with these axes, for one n."""
        return math.prod(self.sizes[variable] for variable, _ in axes)

    def span(self, step: Step) -> tuple[int, int]:
        """The variables that a step involves lie between these two, the second excluded."""
        return min(step.parents), max(step.parents) + 1

    @cached_property
    def num_units(self) -> int:
        """The number of joint values of the leading variables."""
        return math.prod(self.sizes[: self.num_leading])

    @cached_property
    def buffers(self) -> tuple[int, int, int, int]:
        """The elements, for one n, of two arrays for all x and of two for a chunk."""
        out = [0, 0, 0, 0]
        for k, step in enumerate(self.steps):
            if k < self.num_global:
                out[k % 2] = max(out[k % 2], self.size(step.after))
            else:
                place = 2 + (k - self.num_global) % 2
                size = self.size(step.after) // self.num_units * self.chunk_units
                out[place] = max(out[place], size)
        if not self.steps:
            out[2] = self.chunk_units * (math.prod(self.sizes) // self.num_units)
        return out[0], out[1], out[2], out[3]

    def num_entries(self, step: Step) -> int:
        """The entries of a step's joint factor, at most."""
        return math.prod(self.sizes[parent] for parent in step.parents) * step.entries

    def nbytes(self, num_endogenous: int, itemsize: int) -> int:
        """What the buffers and the tables of the steps take, and making the largest table."""
        tables = making = 0
        for step in self.steps:
            first, last = self.span(step)
            middle = self.size([axis for axis in step.after if first <= axis[0] < last])
            entries = self.num_entries(step)
            tables += 16 * middle + (8 + itemsize) * entries
            making = max(making, 8 * 8 * entries)
        return making + tables + sum(self.buffers) * num_endogenous * itemsize


def eliminate(
    sizes: Sequence[int] | IntArray, factors: Sequence[Factor], num_endogenous: int
) -> Elimination:
    """Choose the steps for factors over variables of these sizes."""
    sizes = tuple(int(size) for size in sizes)
    search = _Search(sizes, factors, num_endogenous)
    steps = tuple(search.run())
    unit = math.prod(sizes) * num_endogenous
    num_global = num_leading = 0
    remaining = {i for step in steps for i in step.group}
    while unit > CHUNK_VALUES and num_global < len(steps):
        remaining -= set(steps[num_global].group)
        num_global += 1
        num_leading = min(remaining, default=len(sizes))
        unit = math.prod(sizes[num_leading:]) * num_endogenous
    units = math.prod(sizes[:num_leading])
    chunk_units = max(1, min(units, CHUNK_VALUES // max(unit, 1)))
    return Elimination(sizes, steps, num_global, num_leading, chunk_units)


class _Search:
    """The state of the search for an order."""

    def __init__(
        self, sizes: tuple[int, ...], factors: Sequence[Factor], num_endogenous: int
    ) -> None:
        self.sizes = sizes
        self.num_endogenous = num_endogenous
        # A variable with one value needs no sum.
        self.remaining = {i for i, size in enumerate(sizes) if size > 1}
        self.current = set(range(len(sizes))) - self.remaining
        # Being its own parent keeps a variable's axis in the tensor; it costs nothing.
        self.parents = [
            {i, *(p for p in factor.parents if sizes[p] > 1)} for i, factor in enumerate(factors)
        ]
        self.entries = [int(np.diff(factor.starts).max(initial=1)) for factor in factors]

    def run(self) -> list[Step]:
        """All steps: components of variables that depend on each other, parents first."""
        ancestors = {i: set(self.parents[i]) for i in self.remaining}
        for via, further in ancestors.items():  # Warshall's closure
            for found in ancestors.values():
                if via in found:
                    found.update(further)
        steps: list[Step] = []
        while self.remaining:
            first = min(
                i
                for i in self.remaining
                if all(i in ancestors[p] for p in ancestors[i] & self.remaining)
            )
            steps.extend(self._component(tuple(sorted(ancestors[first] & self.remaining))))
        return self._merge(steps)

    def _component(self, component: tuple[int, ...]) -> list[Step]:
        """Eliminate a component, at once or one by one."""
        saved = set(self.remaining), set(self.current)
        at_once = [self._take(component)]
        if len(component) == 1:
            return at_once
        after = self.remaining, self.current
        self.remaining, self.current = set(saved[0]), set(saved[1])
        one_by_one = []
        left = list(component)
        while left:
            best = min(left, key=self._growth)
            left.remove(best)
            one_by_one.append(self._take((best,)))
        self.remaining, self.current = after
        return min(at_once, one_by_one, key=self._cost)

    def _growth(self, variable: int) -> tuple[float, int]:
        """How much larger the tensor gets; the smaller index wins a tie."""
        added = math.prod(self.sizes[p] for p in self.parents[variable] - self.current)
        return added / self.sizes[variable], variable

    def _axes(self) -> tuple[Axis, ...]:
        return tuple(
            (i, following)
            for i in range(len(self.sizes))
            for following in (False, True)
            if i in (self.remaining if following else self.current)
        )

    def _take(self, group: tuple[int, ...]) -> Step:
        before = self._axes()
        parents = set().union(*(self.parents[i] for i in group))
        self.remaining -= set(group)
        self.current |= parents
        entries = math.prod(self.entries[i] for i in group)
        return Step(group, tuple(sorted(parents)), before, self._axes(), entries)

    def _cost(self, steps: Sequence[Step]) -> float:
        """Multiplications of a sweep, and what making the tables adds to each."""
        total = 0.0
        for step in steps:
            size = math.prod(self.sizes[variable] for variable, _ in step.after)
            entries = math.prod(self.sizes[parent] for parent in step.parents) * step.entries
            if len(step.group) > 1 and entries > MAX_JOINT_ENTRIES:
                return math.inf
            total += size * self.num_endogenous * (step.entries + ELEMENT_COST) + entries
        return total

    def _merge(self, steps: Sequence[Step]) -> list[Step]:
        """Take small neighbours that depend on nothing else together: fewer passes."""
        merged: list[Step] = []
        for step in steps:
            if merged and self._neighbours(merged[-1], step):
                last = merged.pop()
                both = Step(
                    last.group + step.group,
                    last.parents + step.parents,
                    last.before,
                    step.after,
                    last.entries * step.entries,
                )
                merged.append(min(([both], [last, step]), key=self._cost)[0])
                if merged[-1] is last:
                    merged.append(step)
            else:
                merged.append(step)
        return merged

    @staticmethod
    def _neighbours(first: Step, second: Step) -> bool:
        joined = first.parents + second.parents
        closed = first.group == first.parents and second.group == second.parents
        return closed and joined == tuple(range(joined[0], joined[-1] + 1))
