"""Information between all pairs of variables of few values, whose samples are counted as bits.

Nothing is conditioned on here, so the counts of a pair are those of its values' indicators
(:mod:`planners.dependence.indicator_kernels`), and every indicator is made once for all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.threads import in_parts
from exo_envs.core.mdp import FloatArray
from planners.core.arrays import Ints
from planners.dependence import indicator_kernels as kernels

#: Pairs of indicators that two variables may have; with more of them a table is faster.
MAX_INDICATOR_PAIRS = 512
#: Indicators that are counted with as many others at once: 16 MB of counts.
MAX_INDICATORS = 2048
#: Samples that make a second thread worth while.
SAMPLES_PER_THREAD = 2**14


class Indicators(NamedTuple):
    """Some variables, those of fewest values first, and where the indicators of each are."""

    variables: Ints  # (k,)
    starts: Ints  # (k + 1,)

    @classmethod
    def of(cls, variables: Ints, sizes: Ints) -> Iterator[tuple[NDArray[np.intp], Indicators]]:
        """Sorted variables in parts that are counted at once, and where they were before."""
        few = np.flatnonzero(sizes[variables] <= kernels.MAX_VALUES)
        order = few[np.argsort(sizes[variables[few]], kind="stable")]
        ends = np.cumsum(sizes[variables[order]] - 1)
        while len(order):
            many = max(1, int(np.searchsorted(ends, MAX_INDICATORS, side="right")))
            yield order[:many], cls(variables[order[:many]], np.append(0, ends[:many]))
            order, ends = order[many:], ends[many:] - ends[many - 1]

    @property
    def sizes(self) -> Ints:
        """How many values each variable has."""
        return np.diff(self.starts) + 1


def by_indicators(sizes: Ints, others: Ints) -> NDArray[np.bool_]:
    """Which pairs are counted as bits, shape (len(sizes), len(others))."""
    largest = np.maximum(sizes[:, None], others)
    return ((sizes[:, None] - 1) * (others - 1) <= MAX_INDICATOR_PAIRS) & (
        largest <= kernels.MAX_VALUES
    )


def indicator_information(
    columns: Any, targets: Ints, most_cases: int, statistic: FloatArray, freedom: FloatArray
) -> None:
    """G of all targets a step later and all variables now for which bits are the faster way.

    Args:
        columns: the variables now, as :class:`planners.dependence.pairwise.Columns`.
        targets: positions of the targets.
        most_cases: values that a variable may have that is the case of a binary target.
        statistic: is written to, shape (targets, variables); pairs that are not of few values
            are left as they are.
        freedom: the same.
    """
    everything = np.arange(len(columns.sizes))
    for rows, later in Indicators.of(targets, columns.sizes):
        for own, now in Indicators.of(everything, columns.sizes):
            candidates = by_indicators(later.sizes, now.sizes).sum(axis=1)
            if candidates[0] == 0:  # the first has the fewest values
                continue
            counts, totals, now_totals = _count(columns, later, now, candidates)
            found = np.empty((2, len(rows), len(own)))
            kernels.indicator_information(
                counts,
                (later.starts, totals, candidates),
                (now.starts, now_totals),
                len(columns.states),
                most_cases,
                *found,
            )
            for t, number in enumerate(candidates.tolist()):
                statistic[rows[t], own[:number]] = found[0, t, :number]
                freedom[rows[t], own[:number]] = found[1, t, :number]


def _count(columns: Any, later: Indicators, now: Indicators, candidates: Ints) -> Any:
    """How often pairs of indicators are set, and each of those of later and of now alone.

    The samples are shared by as many threads as Numba may use. Counts are whole numbers, so the
    sum of the threads' is the same however many there are.
    """
    abreast = kernels.ABREAST
    limits = np.repeat(-(-now.starts[candidates] // abreast) * abreast, later.sizes - 1)

    def part(first: int, last: int) -> Any:
        given = columns.values, columns.states[first:last]
        return kernels.count_indicators(*given, tuple(later), tuple(now), limits)

    found, *others = in_parts(part, len(columns.states), least=SAMPLES_PER_THREAD)
    for other in others:
        for mine, more in zip(found, other, strict=True):
            np.add(mine, more, out=mine)
    return found
