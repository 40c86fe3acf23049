"""Counting joint values: the samples by row and by case, information, conditional tables.

Samples are kept variable by variable, one contiguous array each. A set of parents splits them
into *rows*, one for each joint value that occurs, so no table over all possible joint values is
ever needed to look for parents. The value of a target splits a row into *cases*. A candidate is
counted against the numbers of the cases: a small table as a whole, of a large one only the cells
that occur.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import INNER, njit
from exo_envs.compiled.threads import in_parts
from exo_envs.core.arguments import check_kind, check_whole, sampled_values, whole_numbers
from exo_envs.core.mdp import FloatArray, IntArray
from exo_envs.core.statistics import GTest
from planners.core.arrays import Ints

#: An entry that was never counted in its row is dropped if smoothing gives it less than this.
NEGLIGIBLE_PROBABILITY = 1e-4
#: Cells of a table that is counted whole, at most; more if each sample has few of them.
SMALL_TABLE_CELLS, LARGE_TABLE_CELLS, CELLS_PER_SAMPLE = 2**12, 2**15, 4
#: Samples, over all candidates whose tables are counted, that make a second thread worth while.
SAMPLES_PER_THREAD = 2**22
#: Cells that a table of counts may have: 4 GB.
MAX_CELLS = 2**30
#: Samples are numbered with 32 bits.
MAX_SAMPLES = 2**31 - 1

#: Where the cases of each row start, shape (rows + 1,), the samples of each case, and these times
#: their logarithm, by case and by row. It is a plain tuple because Numba takes much longer to
#: recognise a named one.
CaseCounts: TypeAlias = tuple[Ints, Ints, FloatArray, FloatArray]


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
        row, cells, _ = _numbered(self.row, self.count, column, size)
        return Rows(len(cells), row)

    @cached_property
    def grouped(self) -> tuple[NDArray[np.intp], Ints]:
        """The samples row by row, shape (samples,), and where the rows start, (count + 1,)."""
        ends = np.cumsum(np.bincount(self.row, minlength=self.count), dtype=np.int64)
        return np.argsort(self.row, kind="stable"), np.append(0, ends)


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
    def counted(self) -> CaseCounts:
        """How many samples each row and each case has."""
        _, cells, totals = self._numbered
        starts = np.searchsorted(cells, np.arange(self.rows.count + 1) * self.size)
        return counted_cases(starts.astype(np.int64), totals)

    @property
    def case(self) -> NDArray[np.int32]:
        """The case of each sample, shape (samples,); those of a row have neighbouring numbers."""
        return self._numbered[0]

    @cached_property
    def _numbered(self) -> tuple[NDArray[np.int32], Ints, Ints]:
        """The case of each sample, row times size plus value of each case, and its samples."""
        found: Any = _numbered(self.rows.row, self.rows.count, self.target, self.size)
        return found[0], found[1], found[2]

    @property
    def nbytes(self) -> int:
        """About as many bytes as it takes once it has been counted against."""
        return 20 * len(self.rows.row)

    @property
    def count(self) -> int:
        """The number of cases; if it is that of the rows, there is nothing left to tell."""
        return len(self._numbered[1])

    @cached_property
    def bits(self) -> NDArray[np.uint64]:
        """Which samples belong to a case, a bit for each, shape (cases, words)."""
        if self.rows.count == 1:  # its cases are the values that occur
            return indicators(self.target, self._numbered[1])
        return indicators(self.case, np.arange(self.count))


def counted_cases(starts: Ints, totals: Ints) -> CaseCounts:
    """What is known of cases from where those of each row start, and the samples of each."""
    by_row = np.diff(np.append(0, np.cumsum(totals))[starts])
    return starts, totals, _weighted_logs(totals), _weighted_logs(by_row)


def indicators(column: IntArray, values: Ints) -> NDArray[np.uint64]:
    """Which samples have each of some values, a bit for each, shape (values, words)."""
    bits = np.zeros((len(values), -(-len(column) // 64)), dtype=np.uint64)
    for row, value in zip(bits.view(np.uint8), values.astype(column.dtype), strict=True):
        packed = np.packbits(column == value, bitorder="little")
        row[: len(packed)] = packed
    return bits


def conditional_information(cases: Cases, column: IntArray, size: int) -> GTest:
    """How much a variable of some ``size`` tells about the target of the cases, given the rows."""
    size = _size("size", size, cases.size)
    column = sampled_values("column", column, size, len(cases.rows.row))
    statistic, freedom = column_information(cases, column[None], np.array([size]))
    return GTest(float(statistic[0]), float(freedom[0]))


def column_information(
    cases: Cases, columns: IntArray, sizes: IntArray
) -> tuple[FloatArray, FloatArray]:
    """G of each of some columns and the target given the rows, and its degrees of freedom.

    Many columns are shared by as many threads as Numba may use.

    Args:
        cases: the target, and what is conditioned on.
        columns: values in the same samples, shape (columns, samples); nobody looks whether they
            are in range.
        sizes: how many values each has.
    """
    found = np.zeros((2, len(columns)))
    if cases.count == cases.rows.count:
        return found[0], found[1]
    samples = len(cases.rows.row)
    is_large = sizes * cases.count > max(
        SMALL_TABLE_CELLS, min(LARGE_TABLE_CELLS, CELLS_PER_SAMPLE * samples)
    )
    for k in np.flatnonzero(is_large).tolist():
        found[:, k] = _large_information(cases, columns[k], int(sizes[k]))
    small = np.flatnonzero(~is_large)
    if len(small):
        # The kernel is compiled for bytes, which most columns are kept as, and for one other type.
        dtype = np.uint8 if sizes[small].max() <= 2**8 else np.int32
        tables = np.ascontiguousarray(columns if len(small) == len(columns) else columns[small])
        tables, counted = tables.astype(dtype, copy=False), (cases.case, cases.counted)
        own_sizes, own = sizes[small].astype(np.int64), np.empty((2, len(small)))
        least = max(1, SAMPLES_PER_THREAD // max(1, samples))
        in_parts(_count_tables, len(small), tables, own_sizes, *counted, own, least=least)
        found[:, small] = own
    return found[0], found[1]


def _large_information(cases: Cases, column: IntArray, size: int) -> tuple[float, float]:
    """G and its freedom from a table too large to be filled: its cells are sorted."""
    starts, _, by_case, by_row = cases.counted
    pairs = cases.rows.row.astype(np.int64) * size + column
    cells, counts = np.unique(pairs * cases.size + cases.target, return_counts=True)
    pair = cells // cases.size
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    values = np.bincount(pair[first] // size, minlength=cases.rows.count)
    freedom = float(((values - 1) * (np.diff(starts) - 1)).sum())
    by_cell, by_pair = _weighted_logs(counts), _weighted_logs(np.add.reduceat(counts, first))
    statistic = 2.0 * float(by_cell.sum() - by_pair.sum() - by_case.sum() + by_row.sum())
    return (max(0.0, statistic), freedom) if freedom else (0.0, 0.0)


def _weighted_logs(counts: Ints) -> FloatArray:
    """Counts times their natural logarithms; nothing for a count of 0."""
    return np.asarray(counts * np.log(np.maximum(counts, 1)), dtype=np.float64)


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
    ``NEGLIGIBLE_PROBABILITY`` is left it is dropped, so that what is deterministic stays so and
    rows stay short.
    """
    counts = np.asarray(counts, dtype=np.float64)
    if counts.ndim == 1:
        return counts / counts.sum()
    coarser = smooth(counts.sum(axis=-2), weight)[..., None, :]
    totals = counts.sum(axis=-1, keepdims=True)
    table = (counts + weight * coarser) / (totals + weight)
    table[(counts == 0) & (totals > 0) & (table < NEGLIGIBLE_PROBABILITY)] = 0.0
    return table / table.sum(axis=-1, keepdims=True)


@njit(cache=True)
def _numbered(row: Any, rows: int, values: Any, size: int) -> Any:
    """Number the pairs of a row and a value that occur, in increasing order.

    Returns:
        The number of each sample's pair, row times size plus value of each pair, and its samples.
    """
    number = np.zeros(rows * size, np.int32)
    for s in range(len(row)):
        number[np.int64(row[s]) * size + values[s]] += 1
    cells = np.flatnonzero(number)
    totals = np.empty(len(cells), np.int64)
    for k in range(len(cells)):
        totals[k] = number[cells[k]]
        number[cells[k]] = k
    out = np.empty(len(row), np.int32)
    for s in range(len(row)):
        out[s] = number[np.int64(row[s]) * size + values[s]]
    return out, cells, totals


#: Small counts times their logarithms: most cells of a table hold one of these.
_LOGS = np.array([0.0] + [n * math.log(n) for n in range(1, 1024)])


@njit(**INNER)
def _weighted_log(number: int) -> float:
    return number * math.log(number) if number >= len(_LOGS) else _LOGS[number]


@njit(**INNER)
def table_information(table: Any, size: Any, counted: Any) -> Any:
    """G of a table, row by row (values of the candidate, cases), and its degrees of freedom.

    G is twice the samples times the plug-in conditional information.
    """
    starts, totals, by_case, by_row = counted
    statistic, freedom = 0.0, 0.0
    for r in range(len(starts) - 1):
        first, last = starts[r], starts[r + 1]
        if last - first < 2:
            continue
        part, met = 0.0, 0
        for c in range(size):
            number = np.int64(0)
            for k in range(c * len(totals) + first, c * len(totals) + last):
                if table[k] > 0:
                    number += table[k]
                    part += _weighted_log(np.int64(table[k]))
            if number > 0:
                part -= _weighted_log(number)
                met += 1
        if met > 1:
            for k in range(first, last):
                part -= by_case[k]
            statistic += 2.0 * (part + by_row[r])
            freedom += (met - 1) * (last - first - 1)
    return max(0.0, statistic), freedom


@njit(cache=True, nogil=True)
def _count_tables(
    begin: int, end: int, columns: Any, sizes: Any, case: Any, counted: Any, found: Any
) -> None:
    """Write G and degrees of freedom of some of the columns, whose tables are counted whole.

    Four samples are counted in four tables at a time: a count that was just written need not be
    waited for, as it has to be where one value is common.
    """
    cases, most = len(counted[1]), 0
    for j in range(begin, end):
        most = max(most, sizes[j])
    cells = np.empty((4, most * cases), np.int32)
    first, second, third, fourth = cells[0], cells[1], cells[2], cells[3]
    for j in range(begin, end):
        length, column, width = sizes[j] * cases, columns[j], np.uint64(cases)
        for c in range(length):
            first[c], second[c], third[c], fourth[c] = 0, 0, 0, 0
        whole = len(case) // 4 * 4
        for s in range(0, whole, 4):  # unsigned: no check for negative positions
            first[np.uint64(column[s]) * width + np.uint64(case[s])] += 1
            second[np.uint64(column[s + 1]) * width + np.uint64(case[s + 1])] += 1
            third[np.uint64(column[s + 2]) * width + np.uint64(case[s + 2])] += 1
            fourth[np.uint64(column[s + 3]) * width + np.uint64(case[s + 3])] += 1
        for s in range(whole, len(case)):
            first[np.uint64(column[s]) * width + np.uint64(case[s])] += 1
        for c in range(length):
            first[c] += second[c] + third[c] + fourth[c]
        found[0, j], found[1, j] = table_information(first, sizes[j], counted)
