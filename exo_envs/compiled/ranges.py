"""The compiled passes over the questions that a model is asked, and over its answers.

Their signatures are fixed: arrays of other types or layouts, read-only ones too, are refused with a
TypeError. That is a check by itself, and nothing is compiled a second time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import boolean, float64, int64

from exo_envs.compiled.functions import njit

VALUES, SIZES = int64[:, ::1], int64[::1]
REALS, REWARDS, FLAGS = float64[:, ::1], float64[::1], boolean[::1]
NARROW_WIDTH = 4  # values in a row that is looked at by column
WORTHWHILE_ROWS = 256  # rows that are worth laying out for
BLOCK_ROWS = 16  # rows that are looked at as one
#: How the kernels refuse what is no array of theirs; Numba has another error for an empty list.
UNKNOWN_TO_KERNELS = (TypeError, ValueError)
#: How far the probabilities of a row may be from a sum of one.
ROUNDING = 1e-5


@njit(boolean(VALUES, SIZES), cache=True)
def all_in_range(values: Any, sizes: Any) -> Any:
    """Whether 0 <= values[b, j] < sizes[j] for all b and j.

    ``v | (size - 1 - v)`` is negative if v is negative or too large. To join the signs of all of
    them is a loop without branches, which compilers turn into vector instructions. Rows are short
    for that. So very short ones are looked at column by column, and of many rows several as if they
    were one, which is three times as fast.
    """
    rows, width = values.shape
    signs, blocks = 0, 0
    if width < NARROW_WIDTH:
        for j in range(width):
            for b in range(rows):
                signs |= values[b, j] | (sizes[j] - 1 - values[b, j])
        return signs >= 0
    if rows >= WORTHWHILE_ROWS:
        blocks, length = rows // BLOCK_ROWS, BLOCK_ROWS * width
        flat, tops = values.reshape(rows * width), np.empty(length, np.int64)
        for j in range(length):
            tops[j] = sizes[j % width] - 1
        for block in range(blocks):
            for j in range(length):
                value = flat[block * length + j]
                signs |= value | (tops[j] - value)
    for b in range(blocks * BLOCK_ROWS, rows):
        for j in range(width):
            signs |= values[b, j] | (sizes[j] - 1 - values[b, j])
    return signs >= 0


@njit(boolean(REALS, REWARDS, REWARDS, FLAGS), cache=True)
def all_within(values: Any, low: Any, high: Any, whole: Any) -> Any:
    """Whether low[j] <= values[b, j] <= high[j] for all b and j, and whole numbers where wanted."""
    wrong = 0
    for b in range(len(values)):
        for j in range(len(low)):
            v = values[b, j]
            wrong |= not (low[j] <= v <= high[j]) or (whole[j] and v != np.floor(v))
    return wrong == 0


@njit(boolean(SIZES, int64), cache=True)
def all_below(values: Any, size: Any) -> Any:
    """Whether 0 <= v < size for all values; see :func:`all_in_range`."""
    signs = 0
    for v in values:
        signs |= v | (size - 1 - v)
    return signs >= 0


@njit(boolean(REWARDS), cache=True)
def all_finite(values: Any) -> Any:
    """Whether no value is infinite, and each is a number."""
    wrong = 0
    for v in values:
        wrong |= not np.isfinite(v)
    return wrong == 0


@njit(boolean(VALUES, VALUES, SIZES, SIZES, SIZES, int64, boolean), cache=True)
def is_batch(
    n: Any, x: Any, action: Any, n_sizes: Any, x_sizes: Any, num_actions: int, look: bool
) -> Any:
    """Whether n, x and actions are of as many lanes and in range; x only if it is looked at."""
    return (
        len(n) == len(x) == len(action)
        and all_below(action, num_actions)
        and n.shape[1] == len(n_sizes)
        and x.shape[1] == len(x_sizes)
        and all_in_range(n, n_sizes)
        and (not look or all_in_range(x, x_sizes))
    )


@njit(boolean(VALUES, VALUES, REWARDS, REALS, SIZES, SIZES, int64, int64), cache=True)
def is_fine(
    n: Any, x: Any, reward: Any, terms: Any, n_sizes: Any, x_sizes: Any, scopes: Any, lanes: Any
) -> Any:
    """Whether a step of ``lanes`` states gave values in range and finite rewards, for all of them.

    The reward is the sum of the terms and of the endogenous reward. So if one of them is not
    finite, it is not.
    """
    if n.shape != (lanes, len(n_sizes)) or x.shape != (lanes, len(x_sizes)):
        return False
    if reward.shape[0] != lanes or terms.shape != (lanes, scopes):
        return False
    for lane in range(lanes):
        if not np.isfinite(reward[lane]):
            return False
    return all_in_range(n, n_sizes) and all_in_range(x, x_sizes)


@njit(cache=True)
def wrong_row(starts: Any, probabilities: Any, decide: Any) -> int:
    """The first row of a sparse table that is no distribution, or -1.

    If ``decide`` is False, rows may have a sum of less than one.
    """
    for row in range(len(starts) - 1):
        total = 0.0
        least = 0.0
        for entry in range(starts[row], starts[row + 1]):
            total += probabilities[entry]
            least = min(least, probabilities[entry])
        # Written so that not a number is wrong, too.
        if not (least >= 0.0 and total <= 1.0 + ROUNDING):
            return row
        if decide and not total >= 1.0 - ROUNDING:
            return row
    return -1
