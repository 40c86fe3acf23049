"""Kernels that count all pairs of variables of few values, as bits that say which value it is.

Every value but the first has an *indicator*: a row of bits, one for each sample. How often two
values occur together is the population of the bits that both their indicators have, and what is
left over belongs to the first values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from exo_envs.compiled.functions import njit
from planners.dependence.counting_kernels import bit_population
from planners.dependence.g_statistic import weighted_log

#: Words of 64 samples that are counted at a time: eight indicators fit in the fastest cache.
WORDS = 512
#: Indicators of a step later that stay in the second cache while those of now pass by.
TILE = 64
#: Indicators of now that one of a step later is compared with at once.
ABREAST = 4
#: Values that a variable may have at most: they are compared as bytes.
MAX_VALUES = 256


def _equal_bytes(_typing: Any, samples: Any, _value: Any) -> Any:
    """Which of the first 64 bytes of an array are a value, a bit for each: few instructions.

    LLVM does not find them by itself in a loop over the samples.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        line = ir.VectorType(ir.IntType(8), 64)
        own = builder.load(builder.bitcast(data, line.as_pointer()), align=1)
        wanted = builder.insert_element(
            ir.Constant(line, ir.Undefined), arguments[1], ir.Constant(ir.IntType(32), 0)
        )
        nowhere = ir.Constant(ir.VectorType(ir.IntType(32), 64), None)
        wanted = builder.shuffle_vector(wanted, ir.Constant(line, ir.Undefined), nowhere)
        return builder.bitcast(builder.icmp_unsigned("==", own, wanted), ir.IntType(64))

    return types.uint64(samples, types.uint8), generate


_equal: Any = intrinsic(_equal_bytes)


@njit(cache=True, nogil=True)
def count_indicators(values: Any, states: Any, later: Any, now: Any, limits: Any) -> Any:
    """How often pairs of indicators are both set, and how often each alone, later and now.

    Args:
        values: of all variables, shape (states, variables).
        states: the state of each sample; a step later comes the next one.
        later: the targets, and where the indicators of each start.
        now: the same of the candidates.
        limits: how many indicators of now each of a step later is counted with: a multiple of
            ABREAST that does not grow.
    """
    rows = -(-now[1][-1] // ABREAST) * ABREAST
    counts = np.zeros((len(limits), rows), np.uint32)
    totals, now_totals = np.zeros(len(limits), np.int64), np.zeros(rows, np.int64)
    # A row is a cache line longer than it need be, or all rows would compete for the same lines.
    bits = np.zeros((len(limits), WORDS + 8), np.uint64)
    now_bits = np.zeros((rows, WORDS + 8), np.uint64)
    for begin in range(0, len(states), 64 * WORDS):
        part = states[begin : begin + 64 * WORDS]
        words = (len(part) + 63) // 64
        _pack(values, part, 1, later[0], later[1], bits, totals)
        _pack(values, part, 0, now[0], now[1], now_bits, now_totals)
        _count_together(bits, now_bits, words, limits, counts)
    return counts, totals, now_totals


@njit(cache=True, nogil=True)
def _pack(
    values: Any, states: Any, ahead: int, variables: Any, starts: Any, bits: Any, totals: Any
) -> None:
    """Write the indicators of some variables, and add to ``totals`` how often each is set.

    A word of all variables is written after the other, as ``values`` has a state after the other.
    Samples that are missing in the last word have the first value, which has no indicator.
    """
    line = np.zeros(64, np.uint8)
    for w in range((len(states) + 63) // 64):
        first, number = 64 * w, min(64, len(states) - 64 * w)
        if number < 64:
            line[:] = 0
        for k in range(len(variables)):
            column, begin = np.uint64(variables[k]), starts[k]
            for s in range(number):
                line[s] = values[states[first + s] + np.uint64(ahead), column]
            for row in range(begin, starts[k + 1]):
                bits[row, w] = _equal(line, np.uint8(row - begin + 1))
                totals[row] += np.int64(bit_population(bits[row, w]))


@njit(cache=True, nogil=True)
def _count_together(later: Any, now: Any, words: int, limits: Any, counts: Any) -> None:
    """Add to ``counts`` how often two indicators are both set."""
    for tile in range(0, len(limits), TILE):
        end = min(tile + TILE, len(limits))
        for b in range(0, limits[tile], ABREAST):
            first, second, third, fourth = now[b], now[b + 1], now[b + 2], now[b + 3]
            for k in range(tile, end):
                if limits[k] <= b:
                    break
                own = later[k]
                n0, n1, n2, n3 = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
                for w in range(words):
                    word = own[w]
                    n0 += bit_population(word & first[w])
                    n1 += bit_population(word & second[w])
                    n2 += bit_population(word & third[w])
                    n3 += bit_population(word & fourth[w])
                counts[k, b] += np.uint32(n0)
                counts[k, b + 1] += np.uint32(n1)
                counts[k, b + 2] += np.uint32(n2)
                counts[k, b + 3] += np.uint32(n3)


@njit(cache=True, nogil=True)
def indicator_information(
    counts: Any, later: Any, now: Any, samples: int, most_cases: int, statistic: Any, freedom: Any
) -> None:
    """G and its freedom of all pairs of variables whose indicators were counted.

    Args:
        counts: of pairs of indicators.
        later: where the indicators of each target start, how often each is set, and how many
            candidates each target has.
        now: the first two of the candidates.
        samples: how many there are.
        most_cases: values of a candidate that takes the part of a binary target, as it does where
            it is counted alone.
        statistic: is written to, shape (targets, candidates).
        freedom: the same.
    """
    starts, candidates = later[0], later[2]
    table = np.empty(MAX_VALUES * MAX_VALUES, np.int64)
    for i in range(len(candidates)):
        height = starts[i + 1] - starts[i] + 1
        for j in range(candidates[i]):
            width = now[0][j + 1] - now[0][j] + 1
            turned = height == 2 and 2 < width <= most_cases
            rows, columns = (height, width) if turned else (width, height)
            down, across = (width, 1) if turned else (1, height)
            own, other = (starts[i], later[1], height), (now[0][j], now[1], width)
            _fill(counts, *own, *other, samples, table, down, across)
            statistic[i, j], freedom[i, j] = _information(table, rows, columns, samples)


@njit(cache=True)
def _fill(
    counts: Any,
    row: int,
    rows: Any,
    height: int,
    column: int,
    columns: Any,
    width: int,
    samples: int,
    table: Any,
    down: int,
    across: int,
) -> None:
    """The table of two variables, with their first values, from the counts of their indicators.

    Cell (a, b), of value a later and b now, is written to ``table[a * down + b * across]``.
    """
    rest = samples
    for b in range(1, width):
        table[b * across] = columns[column + b - 1]
        rest -= columns[column + b - 1]
    for a in range(1, height):
        left = rows[row + a - 1]
        for b in range(1, width):
            number = np.int64(counts[row + a - 1, column + b - 1])
            table[a * down + b * across] = number
            table[b * across] -= number
            left -= number
        table[a * down] = left
        rest -= left
    table[0] = rest


@njit(cache=True)
def _information(table: Any, height: int, width: int, samples: int) -> Any:
    """G of a table, row after row, of a candidate (rows) and a target (columns), and its freedom.

    Logarithms are added up in the order of
    :func:`planners.dependence.g_statistic.dense_information`, so that both find the same to the
    last bit.
    """
    part, met, occur = 0.0, 0, 0
    for c in range(height):
        number = 0
        for k in range(c * width, (c + 1) * width):
            number += table[k]
            part += weighted_log(table[k])
        part -= weighted_log(number)
        met += number > 0
    for k in range(width):
        number = 0
        for c in range(height):
            number += table[c * width + k]
        part -= weighted_log(number)
        occur += number > 0
    if met < 2 or occur < 2:
        return 0.0, 0.0
    return max(0.0, 2.0 * (part + weighted_log(samples))), float((met - 1) * (occur - 1))
