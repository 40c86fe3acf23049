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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from exo_envs.core.mdp import IntArray
from planners.tables.factors import Factor

#: The time to write and read one element of a tensor, in multiplications.
ELEMENT_COST = 6

#: Entries that the joint factor of several variables may have at most.
MAX_JOINT_ENTRIES = 5_000_000

Axis = tuple[int, bool]  # a variable, and whether it is its next-step value


@dataclass(frozen=True)
class SumStep:
    """Sum over the next-step values of ``group``, given ``parents`` (which contain the group)."""

    group: tuple[int, ...]
    parents: tuple[int, ...]
    before: tuple[Axis, ...]  # of the tensor, without that of n, which is always the last
    after: tuple[Axis, ...]
    entries: int  # of a row of the group's joint factor, at most

    @property
    def span(self) -> range:
        """The variables from the first to the last that the step involves."""
        return range(min(self.parents), max(self.parents) + 1)


@dataclass(frozen=True)
class Elimination:
    sizes: tuple[int, ...]  # of the exogenous variables
    steps: tuple[SumStep, ...]

    def size(self, axes: Iterable[Axis]) -> int:
        """The number of elements of a tensor with these axes, for one n."""
        return math.prod(self.sizes[variable] for variable, _ in axes)

    def buffers(self) -> tuple[int, int]:
        """The elements, for one n, of two arrays that the steps write to in turn."""
        sizes = [self.size(step.after) for step in self.steps]
        return max(sizes[::2], default=0), max(sizes[1::2], default=0)

    def nbytes(self, num_endogenous: int, itemsize: int) -> int:
        """What the buffers and the tables of the steps take, and making the largest table."""
        tables = making = 0
        for step in self.steps:
            middle = self.size(axis for axis in step.after if axis[0] in step.span)
            entries = _num_entries(self.sizes, step)
            tables += 16 * middle + (8 + itemsize) * entries
            making = max(making, 8 * 8 * entries)
        return making + tables + sum(self.buffers()) * num_endogenous * itemsize


def eliminate(
    sizes: Sequence[int] | IntArray, factors: Sequence[Factor], num_endogenous: int
) -> Elimination:
    """All steps: those first that let the tensor grow least, and joint ones where that is cheaper.

    A variable whose parents were eliminated adds no axis. Of a component of variables that depend
    on each other one has to; its steps are then taken together if their joint factor is small. So
    are neighbours that depend on nothing else: fewer passes.
    """
    sizes = tuple(int(size) for size in sizes)
    # Being its own parent keeps a variable's axis in the tensor; it costs nothing.
    parents = [
        {i, *(p for p in factor.parents if sizes[p] > 1)} for i, factor in enumerate(factors)
    ]
    entries = [int(np.diff(factor.starts).max(initial=1)) for factor in factors]

    def step(axes: tuple[Axis, ...], group: Sequence[int]) -> SumStep:
        needed = sorted(set().union(*(parents[i] for i in group)))
        after = {*axes, *((p, False) for p in needed)} - {(i, True) for i in group}
        joint_entries = math.prod(entries[i] for i in group)
        return SumStep(
            tuple(sorted(group)), tuple(needed), axes, tuple(sorted(after)), joint_entries
        )

    def cost(steps: Sequence[SumStep]) -> float:
        """Multiplications of a sweep, and what making the tables adds to each."""
        total = 0.0
        for one in steps:
            size = math.prod(sizes[variable] for variable, _ in one.after)
            made = _num_entries(sizes, one)
            made += math.prod(sizes[variable] for variable, _ in one.after if variable in one.span)
            if len(one.group) > 1 and made > MAX_JOINT_ENTRIES:
                return math.inf
            total += size * num_endogenous * (one.entries + ELEMENT_COST) + made
        return total

    # A variable with one value needs no sum.
    axes: tuple[Axis, ...] = tuple((i, size > 1) for i, size in enumerate(sizes))
    remaining = {i for i, following in axes if following}
    steps: list[SumStep] = []
    while remaining:
        current = {i for i, following in axes if not following}
        growth = {
            i: math.prod(sizes[p] for p in parents[i] - current) / sizes[i]
            for i in sorted(remaining)
        }
        best = min(growth, key=lambda i: growth[i])
        remaining.remove(best)
        steps.append(step(axes, [best]))
        axes, group = steps[-1].after, [best]
        for k in reversed(range(len(steps) - 1)):
            group += steps[k].group
            joint = step(steps[k].before, group)
            if joint.group == joint.parents and cost([joint]) < cost(steps[k:]):
                steps[k:] = [joint]
    return Elimination(sizes, tuple(steps))


def _num_entries(sizes: Sequence[int], step: SumStep) -> int:
    """The entries of a step's joint factor, at most."""
    return math.prod(sizes[parent] for parent in step.parents) * step.entries
