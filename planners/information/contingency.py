"""Counting joint values: information, tests of independence, and conditional tables.

Samples are kept variable by variable, one contiguous array each. A set of parents splits them
into *rows*, one for each joint value that occurs; rows are numbered in the order in which they
are first met, so no table over all possible joint values is ever needed to look for parents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from exo_envs.mdp import FloatArray, IntArray
from planners.arrays import Ints

#: An entry that was never counted in its row is dropped if smoothing gives it less than this.
NEGLIGIBLE = 1e-4
#: Tables up to this size are counted whole; they stay in the fastest cache.
SMALL_TABLE = 2**12
#: Small counts times their logarithms: most cells of a large table hold one of these.
_LOGS = np.array([0.0] + [n * math.log(n) for n in range(1, 1024)])


@dataclass(frozen=True, eq=False)
class Rows:
    """Samples grouped by the joint value of some variables."""

    count: int  # of joint values that occur
    row: NDArray[np.int32]  # (samples,), of each sample

    @classmethod
    def of(cls, samples: int) -> Rows:
        """All samples in one row: no variable is looked at."""
        return cls(1, np.zeros(samples, dtype=np.int32))

    def split(self, column: IntArray, size: int) -> Rows:
        """The rows that one more variable makes of these."""
        row, count = _refine(self.row, self.count, column, size)
        return Rows(count, row)

    @cached_property
    def grouped(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The samples row by row, shape (samples,), and where the rows start, (count + 1,)."""
        order, starts = _group(self.row, self.count)
        return order, starts


class Information(NamedTuple):
    """What a test of conditional independence needs."""

    statistic: float  # G, twice the samples times the plug-in conditional mutual information
    freedom: float  # its degrees of freedom: of the values that occur, row by row

    @property
    def gain(self) -> float:
        """Expected gain in the log-likelihood of as many new samples, doubled (Akaike)."""
        return self.statistic - 2.0 * self.freedom


def conditional_information(
    rows: Rows, target: IntArray, target_size: int, column: IntArray, column_size: int
) -> Information:
    """How much ``column`` tells about ``target`` given the rows."""
    if rows.count * column_size * target_size <= SMALL_TABLE:
        table = _count_dense(rows.row, rows.count, target, target_size, column, column_size)
        statistic, freedom = _dense_information(table)
    else:
        order, starts = rows.grouped
        statistic, freedom = row_information(
            order, starts, target, target_size, column, column_size
        )
    return Information(max(0.0, statistic), freedom)


def joint_codes(columns: Sequence[IntArray], sizes: Sequence[int], samples: int) -> Ints:
    """The joint value of some variables in each sample, in C order."""
    codes = np.zeros(samples, dtype=np.int64)
    for column, size in zip(columns, sizes, strict=True):
        codes *= size
        codes += column
    return codes


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


def chi_squared_log_tail(statistic: float, freedom: float) -> float:
    """The logarithm of P(chi-squared with ``freedom`` degrees > ``statistic``).

    The regularised incomplete gamma function: its series below the mean, its continued fraction
    (by Lentz) above. Logarithms, because p-values of strong effects underflow.

    >>> round(math.exp(chi_squared_log_tail(3.841459, 1)), 6)
    0.05
    """
    if freedom <= 0 or statistic <= 0:
        return 0.0
    a, x = freedom / 2.0, statistic / 2.0
    log_front = a * math.log(x) - x - math.lgamma(a)
    if x < a + 1.0:
        term = total = 1.0 / a
        n = a
        while term > total * 1e-16:
            n += 1.0
            term *= x / n
            total += term
        below = math.exp(log_front + math.log(total))
        return math.log1p(-below) if below < 1.0 else -math.inf
    b = x + 1.0 - a
    c, d = 1e300, 1.0 / b
    fraction, n = d, 0.0
    change = 2.0
    while abs(change - 1.0) > 1e-15:
        n += 1.0
        factor = -n * (n - a)
        b += 2.0
        d = 1.0 / (factor * d + b)
        c = b + factor / c
        change = c * d
        fraction *= change
    return log_front + math.log(fraction)


@njit(cache=True)
def _refine(row: Any, count: int, column: Any, size: int) -> Any:
    """New rows from old ones and one more column, numbered as they are first met."""
    number = np.full(count * size, -1, np.int32)
    out = np.empty(len(row), np.int32)
    found = 0
    for s in range(len(row)):
        cell = np.int64(row[s]) * size + column[s]
        if number[cell] < 0:
            number[cell] = found
            found += 1
        out[s] = number[cell]
    return out, found


@njit(cache=True)
def _group(row: Any, count: int) -> Any:
    """Samples by row (a counting sort), and where each row starts."""
    starts = np.zeros(count + 1, np.int32)
    for s in range(len(row)):
        starts[row[s] + 1] += 1
    for r in range(count):
        starts[r + 1] += starts[r]
    position = starts[:-1].copy()
    order = np.empty(len(row), np.int32)
    for s in range(len(row)):
        order[position[row[s]]] = s
        position[row[s]] += 1
    return order, starts


@njit(cache=True)
def _count_dense(
    row: Any, count: int, target: Any, target_size: int, column: Any, column_size: int
) -> Any:
    table = np.zeros((count, column_size, target_size), np.int32)
    for s in range(len(row)):
        table[row[s], column[s], target[s]] += 1
    return table


@njit(cache=True)
def _dense_information(table: Any) -> Any:
    """The G statistic of a whole table (rows, columns, targets), and its degrees of freedom."""
    statistic, freedom = 0.0, 0.0
    for r in range(table.shape[0]):
        num_columns, num_targets, total, row = 0, 0, 0, 0.0
        for c in range(table.shape[1]):
            number = 0
            for y in range(table.shape[2]):
                number += table[r, c, y]
                row += weighted_log(table[r, c, y])
            row -= weighted_log(number)
            num_columns += number > 0
            total += number
        for y in range(table.shape[2]):
            number = 0
            for c in range(table.shape[1]):
                number += table[r, c, y]
            row -= weighted_log(number)
            num_targets += number > 0
        if num_columns > 1 and num_targets > 1:
            statistic += 2.0 * (row + weighted_log(total))
            freedom += (num_columns - 1) * (num_targets - 1)
    return statistic, freedom


@njit(cache=True)
def weighted_log(number: int) -> float:
    """A count times its logarithm."""
    return number * math.log(number) if number >= len(_LOGS) else _LOGS[number]


@njit(cache=True)
def row_information(
    order: Any, starts: Any, target: Any, target_size: int, column: Any, column_size: int
) -> Any:
    """The G statistic of target and column within rows, and its degrees of freedom.

    Only cells that are counted in are ever touched: a row costs what its samples cost, whatever
    the sizes of the variables.
    """
    table = np.zeros(column_size * target_size, np.int32)
    by_column = np.zeros(column_size, np.int32)
    by_target = np.zeros(target_size, np.int32)
    longest = 0
    for r in range(len(starts) - 1):
        longest = max(longest, starts[r + 1] - starts[r])
    met = np.empty(longest, np.int32)
    columns = np.empty(min(longest, column_size), np.int32)
    targets = np.empty(min(longest, target_size), np.int32)
    statistic, freedom = 0.0, 0.0
    for r in range(len(starts) - 1):
        num_met, num_columns, num_targets = 0, 0, 0
        for k in range(starts[r], starts[r + 1]):
            s = order[k]
            c, y = column[s], target[s]
            cell = np.int64(c) * target_size + y
            if table[cell] == 0:
                met[num_met] = cell
                num_met += 1
                if by_column[c] == 0:
                    columns[num_columns] = c
                    num_columns += 1
                if by_target[y] == 0:
                    targets[num_targets] = y
                    num_targets += 1
            table[cell] += 1
            by_column[c] += 1
            by_target[y] += 1
        if num_columns > 1 and num_targets > 1:
            row = weighted_log(starts[r + 1] - starts[r]) + _sum_logs(table, met, num_met)
            row -= _sum_logs(by_column, columns, num_columns)
            row -= _sum_logs(by_target, targets, num_targets)
            statistic += 2.0 * row
            freedom += (num_columns - 1) * (num_targets - 1)
        _clear(table, met, num_met)
        _clear(by_column, columns, num_columns)
        _clear(by_target, targets, num_targets)
    return statistic, freedom


@njit(cache=True)
def _sum_logs(counts: Any, cells: Any, number: int) -> float:
    total = 0.0
    for k in range(number):
        total += weighted_log(counts[cells[k]])
    return total


@njit(cache=True)
def _clear(counts: Any, cells: Any, number: int) -> None:
    for k in range(number):
        counts[cells[k]] = 0
