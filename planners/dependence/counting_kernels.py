"""Kernels that number samples by joint values, and count many candidates against one target."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from exo_envs.compiled.functions import njit
from planners.core.arrays import Ints
from planners.dependence.g_statistic import dense_information, weighted_log

#: Samples are copied in blocks of one cache line of bytes; so are neighbouring columns.
BLOCK = 64

# --- rows ------------------------------------------------------------------------------------


@njit(cache=True)
def refine(row: Any, count: int, column: Any, size: int) -> Any:
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
def group_samples(row: Any, count: int) -> Any:
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


# --- cases -----------------------------------------------------------------------------------


#: The case of each sample, where the cases of each row start, shape (rows + 1,), the samples of
#: each case, and these times their logarithm, by case and by row. It is a plain tuple because
#: Numba takes much longer to recognise a named one.
CaseCounts: TypeAlias = tuple[
    NDArray[np.uint32], Ints, Ints, NDArray[np.float64], NDArray[np.float64]
]


@njit(cache=True)
def count_cases(row: Any, count: int, target: Any, size: int) -> Any:
    """Number the pairs of a row and a value of the target that occur."""
    number = np.zeros(count * size, np.int32)
    for s in range(len(row)):
        number[np.int64(row[s]) * size + target[s]] += 1
    starts, by_row = np.zeros(count + 1, np.int64), np.empty(count)
    totals = np.empty(min(len(row), len(number)), np.int64)
    by_case = np.empty(len(totals))
    found = 0
    for r in range(count):
        samples = np.int64(0)  # no constant, for which Numba would compile a function anew
        for cell in range(r * size, (r + 1) * size):
            if number[cell] > 0:
                samples += number[cell]
                totals[found], by_case[found] = number[cell], weighted_log(np.int64(number[cell]))
                number[cell] = found
                found += 1
        starts[r + 1], by_row[r] = found, weighted_log(samples)
    case = np.empty(len(row), np.uint32)
    for s in range(len(row)):
        case[s] = number[np.int64(row[s]) * size + target[s]]
    return case, starts, totals[:found].copy(), by_case[:found].copy(), by_row


@njit(cache=True)
def pack_cases(case: Any, count: int) -> Any:
    """Which samples belong to each case, as bits."""
    bits = np.zeros((count, (len(case) + 63) // 64), np.uint64)
    for s in range(len(case)):
        bits[case[s], s >> 6] |= np.uint64(1) << np.uint64(s & 63)
    return bits


# --- binary candidates -----------------------------------------------------------------------


def _ctpop(_typing: Any, _word: Any) -> Any:
    """How many bits of a word are set: one instruction."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


bit_population: Any = intrinsic(_ctpop)


@njit(cache=True)
def pack_columns(
    values: Any, states: Any, columns: Any, slots: Any, packed: Any, population: Any
) -> None:
    """Turn columns of zeros and ones into bits, a word of all columns after the other."""
    for w in range(packed.shape[1]):
        part = states[64 * w : 64 * w + 64]
        for column, slot in zip(columns, slots):  # noqa: B905 - Numba knows no strict=True
            word = np.uint64(0)
            for s in range(len(part)):
                word |= np.uint64(values[part[s], column]) << np.uint64(s)
            packed[slot, w] = word
            population[slot] += np.int64(bit_population(word))


@njit(cache=True)
def bit_information(packed: Any, population: Any, candidates: Any, bits: Any, counted: Any) -> Any:
    """G and degrees of freedom of binary candidates, by populations of bits.

    Words are taken in blocks, so that those of the cases stay in the fastest cache.
    """
    cases, words = bits.shape
    totals = counted[2]
    counts = np.zeros((len(candidates), cases), np.int64)
    block = max(16, 2048 // cases)
    for begin in range(0, words, block):
        end = min(words, begin + block)
        for j in range(len(candidates)):
            candidate = packed[candidates[j], begin:end]
            for k in range(cases - 1):
                case = bits[k, begin:end]
                number = np.uint64(0)
                for w in range(end - begin):
                    number += bit_population(candidate[w] & case[w])
                counts[j, k] += np.int64(number)
    statistic, freedom = np.empty(len(candidates)), np.empty(len(candidates))
    table = np.empty((2, cases), np.int32)  # as below: compiled once
    for j in range(len(candidates)):
        counts[j, cases - 1] = population[candidates[j]]
        for k in range(cases - 1):
            counts[j, cases - 1] -= counts[j, k]
        for k in range(cases):
            table[0, k] = totals[k] - counts[j, k]
            table[1, k] = counts[j, k]
        statistic[j], freedom[j] = dense_information(table, counted)
    return statistic, freedom


# --- other candidates ------------------------------------------------------------------------


@njit(cache=True)
def lay_out(values: Any, states: Any, columns: Any, slots: Any, out: Any) -> None:
    """Copy columns to contiguous places, some samples of all columns after the other.

    So the same lines of the cache serve neighbouring columns.
    """
    for begin in range(0, len(states), BLOCK):
        part = states[begin : begin + BLOCK]
        for b in range(len(columns)):
            to, column = out[slots[b], begin : begin + BLOCK], columns[b]
            for s in range(len(part)):
                to[s] = values[part[s], column]


@njit(cache=True, nogil=True)
def table_information(
    laid_out: Any, slots: Any, sizes: Any, counted: Any, statistic: Any, freedom: Any
) -> None:
    """Write G and degrees of freedom of candidates whose tables are counted whole.

    Four samples are counted in four tables at a time: a count that was just written need not be
    waited for, as it has to be where one value is common.
    """
    case, cases = counted[0], len(counted[2])
    largest = 0
    for j in range(len(slots)):
        largest = max(largest, sizes[j])
    cells = np.empty((4, largest * cases), np.int32)
    for j in range(len(slots)):
        length = sizes[j] * cases
        first, second = cells[0, :length], cells[1, :length]
        third, fourth = cells[2, :length], cells[3, :length]
        for c in range(length):
            first[c], second[c], third[c], fourth[c] = 0, 0, 0, 0
        column, width = laid_out[slots[j]], np.uint64(cases)
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
        table = first.reshape(sizes[j], cases)
        statistic[j], freedom[j] = dense_information(table, counted)
