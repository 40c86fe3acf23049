"""A sweep of value iteration over the endogenous part, for a range of x.

It walks through x in C order, like a mileage counter. While the digits up to some variable stay
the same, so do the rewards of those variables and the rows of the rules that look at no other:
what was worked out for the last x is only brought up to date.

Indices into large arrays are unsigned: see :class:`SuccessorRows`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exo_envs.compiled.functions import njit
from planners.core.arrays import Floats, Ints, set_joint_values, subset_index
from planners.value_iteration.backups import back_up, choose, follow
from planners.value_iteration.successors import SuccessorRows


class RewardTables(NamedTuple):
    """The reward tables of all terms; the first one includes the base reward.

    They are in the order of the last variables that they look at.
    """

    scope_starts: Ints  # (k + 1,)
    variables: Ints  # the scope of each term, increasing
    starts: Ints  # (k + 1,)
    tables: Floats  # (joint values, N, A) for each, one after another


class SweepModel(NamedTuple):
    """All that a sweep reads of a model."""

    discount: Any  # of the type of V, like all numbers here
    num_actions: int
    terminal: Any  # (N,)
    sizes: Ints  # (m,) of the exogenous variables
    rewards: RewardTables
    successors: SuccessorRows


class KeptActions(NamedTuple):
    """All that a sweep with fixed actions reads.

    ``rewards`` and ``rows`` are those of the fixed actions. An action stays the best one until V
    has drifted further than ``certain``: see :class:`Drift`. What there is no room for has no
    rows; without the others there is no ``certain``.
    """

    discount: Any
    terminal: Any  # (N,)
    rewards: Floats  # (X, N)
    rows: Any  # (X, N), indices of successor rows
    certain: Any  # (X, N), float32
    entry_starts: Any  # as in SuccessorRows
    targets: Any
    probabilities: Floats


class Change(NamedTuple):
    """How V has changed."""

    least: float
    largest: float
    widest: float  # the most that changes at the same x differ by


class Drift(NamedTuple):
    """How much the difference between the values of two actions may have changed so far.

    If a change of V has the span s, that difference changes by at most discount * s. So an action
    that is better than all others by more than the discount times the sum of all spans since then
    is still the best: the others need not be looked at.
    """

    now: float  # the discount times the sum of the spans of all changes of V
    rounded: float  # the same with what rounding may add to it


@njit(cache=True, nogil=True)
def sweep(
    model: Any,
    kept: Any,
    best_of: Any,
    shift: Any,
    chunk: Any,
    values: Any,
    actions: Any,
    ranges: Any,
) -> Any:
    """V <- R - shift + discount * E[W], with the best actions if ``improving``, else the given.

    Args:
        model: a :class:`SweepModel`.
        kept: the :class:`KeptActions`, whose rewards and rows are overwritten if ``improving``.
        best_of: whether to look for the best actions (``improving``), whether all W are zero, and
            the two numbers of a :class:`Drift`.
        shift: what is subtracted from every reward.
        chunk: the first x, and W of this and the following x, shape (., N).
        values: V, shape (X, N), overwritten for these x.
        actions: (X, N) twice. The first is overwritten for these x if ``improving``. The second
            are the best actions of the sweep before.
        ranges: the least and the largest change of V at each x, shape (2, X), overwritten for
            these x.

    Returns:
        The least and the largest change of V, the most that changes at the same x differ by, the
        least and the largest new V, and the number of states whose actions are others than before.
    """
    first, expected = chunk
    improving, _, _, rounded_drift = best_of
    discount, num_actions, terminal, sizes, reward_tables, successors = model
    rule_starts, groups, entry_starts, targets, probabilities, left = successors
    _, _, kept_rewards, kept_rows, certain, _, _, _ = kept
    chosen, before = actions
    digits = np.zeros(len(sizes), np.int64)
    rows = np.zeros(len(groups.rules), np.uint64)  # of each rule, at the current x
    scopes, variables, starts, tables = reward_tables
    num_terms = len(scopes) - 1
    sums = np.empty((max(num_terms, 1), len(terminal) * num_actions), values.dtype)
    new = np.empty(len(terminal), values.dtype)
    single = len(rows) == len(rule_starts) - 1  # each pair has one rule
    keep = improving and len(certain) > 0
    infinite = values.dtype.type(np.inf)
    least, largest, widest = infinite, -infinite, values.dtype.type(0)
    lowest, highest = infinite, -infinite
    others = 0
    newest_looked_at = -1  # by any rule
    for variable in groups.variables:
        newest_looked_at = max(newest_looked_at, variable)
    outdated = -1  # the first digit that has changed since rows and rewards were found
    for x in range(first, first + len(expected)):
        outdated = min(outdated, _turn(x, x == first, digits, sizes))
        w = expected[x - first]
        if keep and _exceeds(certain, x, rounded_drift):
            for n in range(len(terminal)):
                chosen[x, n] = before[x, n]
            back_up(kept, shift, x, w, new)
        else:
            if newest_looked_at >= outdated:
                _find_rows(groups, outdated, digits, sizes, rows)
            rewards = _add_rewards(scopes, variables, starts, tables, outdated, digits, sizes, sums)
            outdated = len(sizes)
            if not improving:
                follow(
                    *(discount, shift, num_actions, terminal, w, rewards, rows),
                    *(rule_starts, entry_starts, targets, probabilities, left, chosen[x], new),
                )
            elif single:
                choose(
                    *(best_of, discount, shift, num_actions, terminal, x, w, rewards, rows),
                    *(rule_starts, entry_starts, targets, probabilities, None),
                    *(chosen, before, kept_rewards, kept_rows, certain, new),
                )
            else:
                choose(
                    *(best_of, discount, shift, num_actions, terminal, x, w, rewards, rows),
                    *(rule_starts, entry_starts, targets, probabilities, left),
                    *(chosen, before, kept_rewards, kept_rows, certain, new),
                )
            if improving:
                for n in range(len(terminal)):
                    others += chosen[x, n] != before[x, n]
        low, high = _limits(new)
        lowest, highest = min(lowest, low), max(highest, high)
        low, high = _renew(values[x], new)
        ranges[0, x], ranges[1, x] = low, high
        least, largest, widest = min(least, low), max(largest, high), max(widest, high - low)
    return least, largest, widest, lowest, highest, others


@njit(cache=True, nogil=True)
def sweep_kept(kept: Any, shift: Any, chunk: Any, values: Any, changes: Any, ranges: Any) -> Any:
    """The same with the kept actions, which is faster: the first three numbers.

    The changes of V are written to ``changes``, shape (X, N), unless that has no rows. The record
    comes as a plain tuple: Numba recognises that in a fraction of the time, and a sweep over a
    small model takes microseconds.
    """
    first, expected = chunk
    terminal = kept[1]
    recording = len(changes) > 0
    new = np.empty(len(terminal), values.dtype)
    infinite = values.dtype.type(np.inf)
    least, largest, widest = infinite, -infinite, values.dtype.type(0)
    for x in range(first, first + len(expected)):
        back_up(kept, shift, x, expected[x - first], new)
        v = values[x]
        if recording:
            record = changes[x]
            for n in range(len(new)):
                record[n] = new[n] - v[n]
        low, high = _renew(v, new)
        ranges[0, x], ranges[1, x] = low, high
        least, largest, widest = min(least, low), max(largest, high), max(widest, high - low)
    return least, largest, widest


@njit(cache=True, inline="always")
def _exceeds(numbers: Any, x: int, limit: float) -> bool:
    """Whether all of them at one x are larger."""
    smaller = 0
    for i in range(numbers.shape[1]):
        smaller += not numbers[x, i] > limit
    return smaller == 0


# Without NaN the extremes of several numbers are found at once. There is none: finite numbers are
# added up, and V that grows beyond all bounds is seen by its size.
@njit(cache=True, fastmath={"nnan", "nsz"})
def _renew(v: Any, new: Any) -> Any:
    """Overwrite V at one x: the least and the largest change."""
    least = v.dtype.type(np.inf)
    largest = -least
    for n in range(len(new)):
        change = new[n] - v[n]
        v[n] = new[n]
        least, largest = min(least, change), max(largest, change)
    return least, largest


@njit(cache=True, fastmath={"nnan", "nsz"})
def _limits(new: Any) -> Any:
    """The least and the largest of them."""
    lowest = new.dtype.type(np.inf)
    highest = -lowest
    for n in range(len(new)):
        lowest, highest = min(lowest, new[n]), max(highest, new[n])
    return lowest, highest


@njit(cache=True, inline="always")
def _turn(x: int, start: bool, digits: Any, sizes: Any) -> Any:
    """Set the digits of x, given those of x - 1, and return the first that changed."""
    if start:
        set_joint_values(x, sizes, digits)
        return -1
    i = len(sizes) - 1
    while digits[i] + 1 == sizes[i]:
        digits[i] = 0
        i -= 1
    digits[i] += 1
    return i


@njit(cache=True, inline="always")
def _find_rows(groups: Any, changed: int, digits: Any, sizes: Any, rows: Any) -> None:
    """The current row of each rule, unless nothing that it looks at has changed."""
    variables, starts = groups.variables, groups.starts
    for group in range(len(groups.row_starts)):
        first, last = groups.variable_starts[group], groups.variable_starts[group + 1]
        newest = -1 if first == last else variables[last - 1]
        if newest < changed:
            continue
        value = subset_index(digits, variables, first, last, sizes)
        start, size = starts[group], starts[group + 1] - starts[group]
        place = groups.row_starts[group] + value * size
        for k in range(size):
            rows[groups.rules[start + k]] = groups.rows[place + k]


@njit(cache=True)
def _add_rewards(
    scopes: Any,
    variables: Any,
    starts: Any,
    tables: Any,
    changed: int,
    digits: Any,
    sizes: Any,
    sums: Any,
) -> Any:
    """R(x, n, a) for all pairs: the sum of the tables at the current digits.

    ``sums[k]`` holds the sum of the tables up to that of the k-th term.
    """
    size = sums.shape[1]
    if len(scopes) == 1:
        return tables[:size]
    place = starts[0] + subset_index(digits, variables, scopes[0], scopes[1], sizes) * size
    total = tables[place : place + size]
    for k in range(1, len(scopes) - 1):
        if variables[scopes[k + 1] - 1] >= changed:
            value = subset_index(digits, variables, scopes[k], scopes[k + 1], sizes)
            place = starts[k] + value * size
            term = tables[place : place + size]
            out = sums[k]
            for i in range(size):
                out[i] = total[i] + term[i]
        total = sums[k]
    return total
