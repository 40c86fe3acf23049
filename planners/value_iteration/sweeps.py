"""A sweep of value iteration over the endogenous part, for a range of x.

It walks through x in C order, like a mileage counter. While the digits up to some variable stay
the same, so do the rewards of those variables and the rows of the rules that look at no other:
what was worked out for the last x is only brought up to date.

Indices into large arrays are unsigned: see :class:`SuccessorRows`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exo_envs.compiled import njit
from planners.arrays import Floats, Ints, set_joint_values, subset_index
from planners.value_iteration.successors import SuccessorRows

ONE = np.uint64(1)


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

    ``rewards`` and ``rows`` are those of the fixed actions. They have no rows if there is no room.
    """

    discount: Any
    terminal: Any  # (N,)
    rewards: Floats  # (X, N)
    rows: Any  # (X, N), indices of successor rows
    entry_starts: Any  # as in SuccessorRows
    targets: Any
    probabilities: Floats


@njit(cache=True)
def sweep(
    model: Any, kept: Any, improving: bool, shift: Any, chunk: Any, values: Any, actions: Any
) -> Any:
    """V <- R - shift + discount * E[W], with the best actions if ``improving``, else the given.

    Args:
        model: a :class:`SweepModel`.
        kept: the :class:`KeptActions`, whose rewards and rows are overwritten if ``improving``.
        improving: whether to look for the best actions.
        shift: what is subtracted from every reward.
        chunk: the first x, and W of this and the following x, shape (., N).
        values: V, shape (X, N), overwritten for these x.
        actions: (X, N), likewise if ``improving``.

    Returns:
        The least and the largest change of V, and the least and the largest new V.
    """
    first, expected = chunk
    discount, num_actions, terminal, sizes, reward_tables, successors = model
    rule_starts = successors.rule_starts
    digits = np.zeros(len(sizes), np.int64)
    rows = np.zeros(len(successors.groups.rules), np.uint64)  # of each rule, at the current x
    num_terms = len(reward_tables.scope_starts) - 1
    sums = np.empty((max(num_terms, 1), len(terminal) * num_actions), values.dtype)
    single = len(rows) == len(rule_starts) - 1  # each pair has one rule
    kept_rewards, kept_rows = kept.rewards, kept.rows
    keep = len(kept_rows) > 0
    infinite = values.dtype.type(np.inf)
    least, largest, lowest, highest = infinite, -infinite, infinite, -infinite
    for x in range(first, first + len(expected)):
        changed = _turn(x, x == first, digits, sizes)
        _find_rows(successors.groups, changed, digits, sizes, rows)
        rewards = _add_rewards(reward_tables, changed, digits, sizes, sums)
        w = expected[x - first]
        for n in range(len(terminal)):
            best = values.dtype.type(0)
            if not terminal[n]:
                best_action = 0 if improving else actions[x, n]
                end = num_actions if improving else best_action + 1
                pair = np.uint64(n * num_actions + best_action)
                best = -infinite
                for a in range(best_action, end):
                    value = rewards[pair] + discount * _future(successors, single, w, pair, rows)
                    pair += ONE
                    # Without a branch: which action is better is hard to predict.
                    better = value > best
                    best_action = a if better else best_action
                    best = value if better else best
                best -= shift
                if improving:
                    actions[x, n] = best_action
                    if keep:
                        pair = np.uint64(n * num_actions + best_action)
                        kept_rewards[x, n] = rewards[pair]
                        kept_rows[x, n] = rows[rule_starts[pair]]
            change = best - values[x, n]
            values[x, n] = best
            least, largest = min(least, change), max(largest, change)
            lowest, highest = min(lowest, best), max(highest, best)
    return least, largest, lowest, highest


@njit(cache=True)
def sweep_kept(kept: Any, shift: Any, chunk: Any, values: Any, changes: Any) -> Any:
    """The same with the kept actions, which is faster.

    The changes of V are written to ``changes``, shape (X, N), unless that has no rows. The record
    comes as a plain tuple: Numba recognises that in a fraction of the time, and a sweep over a
    small model takes microseconds.
    """
    first, expected = chunk
    discount, terminal, rewards, rows, entry_starts, targets, probabilities = kept
    recording = len(changes) > 0
    infinite = values.dtype.type(np.inf)
    least, largest, lowest, highest = infinite, -infinite, infinite, -infinite
    for x in range(first, first + len(expected)):
        w = expected[x - first]
        v = values[x]
        own_rewards = rewards[x]
        own_rows = rows[x]
        for n in range(len(terminal)):
            value = values.dtype.type(0)
            if not terminal[n]:
                value = _mean(own_rows[n], w, entry_starts, targets, probabilities)
                value = own_rewards[n] + discount * value - shift
            change = value - v[n]
            v[n] = value
            if recording:
                changes[x, n] = change
            least, largest = min(least, change), max(largest, change)
            lowest, highest = min(lowest, value), max(highest, value)
    return least, largest, lowest, highest


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


@njit(cache=True, inline="always")
def _add_rewards(rewards: Any, changed: int, digits: Any, sizes: Any, sums: Any) -> Any:
    """R(x, n, a) for all pairs: the sum of the tables at the current digits.

    ``sums[k]`` holds the sum of the tables up to that of the k-th term.
    """
    scopes, variables, starts, tables = rewards
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


@njit(cache=True, inline="always")
def _mean(row: Any, w: Any, entry_starts: Any, targets: Any, probabilities: Any) -> Any:
    """The mean of W(x, n') over one row of successors."""
    total = w.dtype.type(0)
    entry, stop = entry_starts[row], entry_starts[row + ONE]
    while entry < stop:
        total += probabilities[entry] * w[targets[entry]]
        entry += ONE
    return total


@njit(cache=True, inline="always")
def _future(successors: Any, single: bool, w: Any, pair: Any, rows: Any) -> Any:
    """E[W(x, n')] by the rules of a pair."""
    rule_starts, _, entry_starts, targets, probabilities, left = successors
    rule = pair if single else rule_starts[pair]
    total = _mean(rows[rule], w, entry_starts, targets, probabilities)
    if single:
        return total
    passed = left[rows[rule]]
    rule += ONE
    while passed > 0 and rule < rule_starts[pair + ONE]:
        total += passed * _mean(rows[rule], w, entry_starts, targets, probabilities)
        passed *= left[rows[rule]]
        rule += ONE
    return total
