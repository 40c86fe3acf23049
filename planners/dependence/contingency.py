"""Counting joint values: the samples by row and by case, information, conditional tables.

Samples are kept variable by variable, one contiguous array each. A set of parents splits them
into *rows*, one for each joint value that occurs; rows are numbered in the order in which they
are first met, so no table over all possible joint values is ever needed to look for parents. The
value of a target splits a row into *cases*.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import check_kind, check_whole, sampled_values, whole_numbers
from exo_envs.core.mdp import FloatArray, IntArray
from exo_envs.core.statistics import GTest
from planners.core.arrays import Ints
from planners.dependence import counting_kernels as kernels
from planners.dependence.g_statistic import sparse_information

#: An entry that was never counted in its row is dropped if smoothing gives it less than this.
NEGLIGIBLE = 1e-4
#: Tables up to this size are counted whole; they stay in the fastest cache.
SMALL_TABLE = 2**12
#: Cells that a table of counts may have: 4 GB.
MAX_CELLS = 2**30
#: Samples are numbered with 32 bits.
MAX_SAMPLES = 2**31 - 1


@dataclass(eq=False)
class Rows:
    """Samples grouped by the joint value of some variables: a row for each one that occurs."""

    count: int  # of joint values that occur
    row: NDArray[np.int32]  # (samples,), of each sample

    def __post_init__(self) -> None:
        """Kernels do not look where they write."""
        self.count = check_whole("count", self.count, 0, MAX_SAMPLES)
        self.row = whole_numbers("row", self.row, 0, self.count, dtype=np.int32)

    @classmethod
    def of(cls, samples: int) -> Rows:
        """All samples in one row: no variable is looked at."""
        samples = check_whole("samples", samples, 0, MAX_SAMPLES)
        return cls(1, np.zeros(samples, dtype=np.int32))

    def split(self, column: IntArray, size: int) -> Rows:
        """The rows that one more variable makes of these."""
        size = _size("size", size, self.count)
        column = sampled_values("column", column, size, len(self.row))
        row, count = kernels.refine(self.row, self.count, column, size)
        return Rows(count, row)

    @cached_property
    def grouped(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The samples row by row, shape (samples,), and where the rows start, (count + 1,)."""
        order, starts = kernels.group_samples(self.row, self.count)
        return order, starts


@dataclass(eq=False)
class Cases:
    """Samples grouped by their row and the value of a target: a case for each pair that occurs."""

    rows: Rows  # by the joint value of what is conditioned on
    target: IntArray  # (samples,), its value in each sample
    size: int  # how many values the target has

    def __post_init__(self) -> None:
        """Kernels do not look where they write."""
        check_kind("rows", self.rows, Rows)
        self.size = _size("size", self.size, self.rows.count)
        self.target = sampled_values("target", self.target, self.size, len(self.rows.row))

    @cached_property
    def counted(self) -> kernels.CaseCounts:
        """How many samples each row and each case has."""
        counted: kernels.CaseCounts = kernels.count_cases(
            self.rows.row, self.rows.count, self.target, self.size
        )
        return counted

    @property
    def nbytes(self) -> int:
        """About as many bytes as it takes once it has been counted against."""
        return 20 * len(self.rows.row)

    @property
    def count(self) -> int:
        """The number of cases; if it is that of the rows, there is nothing left to tell."""
        return len(self.counted[2])

    @cached_property
    def bits(self) -> NDArray[np.uint64]:
        """Which samples belong to a case, a bit for each, shape (cases, words)."""
        bits: NDArray[np.uint64] = kernels.pack_cases(self.counted[0], self.count)
        return bits


def conditional_information(cases: Cases, column: IntArray, size: int) -> GTest:
    """How much a variable of some ``size`` tells about the target of the cases, given the rows."""
    size = _size("size", size, cases.size)
    column = sampled_values("column", column, size, len(cases.rows.row))
    if cases.rows.count * size * cases.size <= SMALL_TABLE:
        one, found = (np.zeros(1, dtype=np.int64), np.array([size])), np.empty((2, 1))
        if size <= 256:  # the type that most columns are kept in: the kernel is compiled for it
            column = column.astype(np.uint8)
        kernels.table_information(column[None], *one, cases.counted, *found)
        statistic, freedom = found[:, 0]
    else:
        grouped = cases.rows.grouped
        statistic, freedom = sparse_information(*grouped, cases.target, cases.size, column, size)
    return GTest(max(0.0, float(statistic)), float(freedom))


def _size(name: str, size: int, others: int) -> int:
    """How many values a variable has that is counted in a table with so many others."""
    why = f"a table of counts has {MAX_CELLS:,} cells"
    return check_whole(name, size, 1, MAX_CELLS // max(1, others), why=why)


def count_table(codes: Ints, rows: int, target: IntArray, size: int) -> Ints:
    """How often each value of ``target`` comes with each code, shape (rows, size)."""
    cells = codes * size + target
    return np.bincount(cells, minlength=rows * size).reshape(rows, size)


def smooth(counts: IntArray, weight: float) -> FloatArray:
    """Conditional probabilities from counts of shape (*sizes of the parents, size).

    Each row is shrunk, with the weight of ``weight`` samples, towards the row of the same parents
    without the last one, that towards the row without the last two, and so on to the overall
    distribution, which is not smoothed. A row never seen so takes what is known without its last
    parents. A value that was never seen in a row of many samples all but disappears; if less than
    ``NEGLIGIBLE`` is left it is dropped, so that what is deterministic stays so and rows stay
    short.
    """
    counts = np.asarray(counts, dtype=np.float64)
    if counts.ndim == 1:
        return counts / counts.sum()
    coarser = smooth(counts.sum(axis=-2), weight)[..., None, :]
    totals = counts.sum(axis=-1, keepdims=True)
    table = (counts + weight * coarser) / (totals + weight)
    table[(counts == 0) & (totals > 0) & (table < NEGLIGIBLE)] = 0.0
    return table / table.sum(axis=-1, keepdims=True)
