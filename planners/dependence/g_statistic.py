"""Kernels of the G statistic, twice the samples times the plug-in conditional information.

There are two because tables are: a small one is counted whole and added up cell by cell, of a
large one only the cells that occur are ever touched.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from exo_envs.compiled.functions import INNER, njit

#: Small counts times their logarithms: most cells of a large table hold one of these.
_LOGS = np.array([0.0] + [n * math.log(n) for n in range(1, 1024)])


@njit(**INNER)
def weighted_log(number: int) -> float:
    """A count times its logarithm."""
    return number * math.log(number) if number >= len(_LOGS) else _LOGS[number]


@njit(**INNER)
def dense_information(table: Any, counted: Any) -> Any:
    """G of a table (values of the candidate, cases), and its degrees of freedom.

    The cases are ``counted`` without the candidate.
    """
    _, starts, _, by_case, by_row = counted
    statistic, freedom = 0.0, 0.0
    for r in range(len(starts) - 1):
        first, last = starts[r], starts[r + 1]
        if last - first < 2:
            continue
        part, met = 0.0, 0
        for c in range(table.shape[0]):
            number = np.int64(0)
            for k in range(first, last):
                if table[c, k] > 0:
                    number += table[c, k]
                    part += weighted_log(np.int64(table[c, k]))
            if number > 0:
                part -= weighted_log(number)
                met += 1
        if met > 1:
            for k in range(first, last):
                part -= by_case[k]
            statistic += 2.0 * (part + by_row[r])
            freedom += (met - 1) * (last - first - 1)
    return statistic, freedom


@njit(cache=True)
def sparse_information(
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
        # Not constants, for which Numba would compile functions anew.
        num_met = num_columns = num_targets = np.int64(0)
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
            row = weighted_log(np.int64(starts[r + 1] - starts[r])) + _sum_logs(table, met, num_met)
            row -= _sum_logs(by_column, columns, num_columns)
            row -= _sum_logs(by_target, targets, num_targets)
            statistic += 2.0 * row
            freedom += (num_columns - 1) * (num_targets - 1)
        _clear(table, met, num_met)
        _clear(by_column, columns, num_columns)
        _clear(by_target, targets, num_targets)
    return statistic, freedom


@njit(**INNER)
def _sum_logs(counts: Any, cells: Any, number: int) -> float:
    total = 0.0
    for k in range(number):
        total += weighted_log(np.int64(counts[cells[k]]))
    return total


@njit(**INNER)
def _clear(counts: Any, cells: Any, number: int) -> None:
    for k in range(number):
        counts[cells[k]] = 0
