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

#: A positive number times this is not larger when it is rounded to float32.
ROUND_DOWN = 1.0 - 2e-7


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
    model: Any, kept: Any, best_of: Any, shift: Any, chunk: Any, values: Any, actions: Any
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

    Returns:
        The least and the largest change of V, and the least and the largest new V.
    """
    first, expected = chunk
    improving, _, _, rounded_drift = best_of
    _, num_actions, terminal, sizes, reward_tables, successors = model
    digits = np.zeros(len(sizes), np.int64)
    rows = np.zeros(len(successors.groups.rules), np.uint64)  # of each rule, at the current x
    num_terms = len(reward_tables.scope_starts) - 1
    sums = np.empty((max(num_terms, 1), len(terminal) * num_actions), values.dtype)
    keep = improving and len(kept.certain) > 0
    infinite = values.dtype.type(np.inf)
    extremes = infinite, -infinite, infinite, -infinite
    outdated = -1  # the first digit that has changed since rows and rewards were found
    for x in range(first, first + len(expected)):
        outdated = min(outdated, _turn(x, x == first, digits, sizes))
        w = expected[x - first]
        if keep and _exceeds(kept.certain[x], rounded_drift):
            extremes = _stay(kept, shift, x, w, values, actions, extremes)
        else:
            _find_rows(successors.groups, outdated, digits, sizes, rows)
            rewards = _add_rewards(reward_tables, outdated, digits, sizes, sums)
            outdated = len(sizes)
            found = rewards, rows
            extremes = _choose(model, kept, best_of, shift, x, w, values, actions, found, extremes)
    return extremes


@njit(cache=True, nogil=True)
def sweep_kept(kept: Any, shift: Any, chunk: Any, values: Any, changes: Any) -> Any:
    """The same with the kept actions, which is faster: the least and the largest change of V.

    The changes of V are written to ``changes``, shape (X, N), unless that has no rows. The record
    comes as a plain tuple: Numba recognises that in a fraction of the time, and a sweep over a
    small model takes microseconds.
    """
    first, expected = chunk
    discount, terminal, rewards, rows, _, entry_starts, targets, probabilities = kept
    recording = len(changes) > 0
    infinite = values.dtype.type(np.inf)
    least, largest = infinite, -infinite
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
    return least, largest


@njit(cache=True, inline="always")
def _exceeds(numbers: Any, limit: float) -> bool:
    """Whether all of them are larger."""
    smaller = 0
    for i in range(len(numbers)):
        smaller += not numbers[i] > limit
    return smaller == 0


@njit(cache=True, inline="always")
def _stay(kept: Any, shift: Any, x: int, w: Any, values: Any, actions: Any, extremes: Any) -> Any:
    """The backup of all states of one x whose best actions are certain to be the same."""
    discount, terminal, rewards, rows, _, entry_starts, targets, probabilities = kept
    chosen, before = actions
    least, largest, lowest, highest = extremes
    v = values[x]
    for n in range(len(terminal)):
        best = values.dtype.type(0)
        if not terminal[n]:
            best = _mean(rows[x, n], w, entry_starts, targets, probabilities)
            best = rewards[x, n] + discount * best - shift
        chosen[x, n] = before[x, n]
        change = best - v[n]
        v[n] = best
        least, largest = min(least, change), max(largest, change)
        lowest, highest = min(lowest, best), max(highest, best)
    return least, largest, lowest, highest


@njit(cache=True, inline="always")
def _choose(
    model: Any,
    kept: Any,
    best_of: Any,
    shift: Any,
    x: int,
    w: Any,
    values: Any,
    actions: Any,
    found: Any,
    extremes: Any,
) -> Any:
    """The backup of all states of one x, whose rewards and rows are ``found``."""
    improving, blank, drift, rounded_drift = best_of
    discount, num_actions, terminal, _, _, successors = model
    rule_starts = successors.rule_starts
    _, _, kept_rewards, kept_rows, certain, entry_starts, targets, probabilities = kept
    keep = improving and len(kept_rows) > 0
    leads = improving and len(certain) > 0
    rewards, rows = found
    chosen, before = actions
    least, largest, lowest, highest = extremes
    single = len(rows) == len(rule_starts) - 1  # each pair has one rule
    infinite = values.dtype.type(np.inf)
    for n in range(len(terminal)):
        best = values.dtype.type(0)
        if leads and (certain[x, n] > rounded_drift or terminal[n]):
            if terminal[n]:
                certain[x, n] = np.inf
            else:
                best = _mean(kept_rows[x, n], w, entry_starts, targets, probabilities)
                best = kept_rewards[x, n] + discount * best - shift
            chosen[x, n] = before[x, n]
        elif not terminal[n]:
            best_action = 0 if improving else chosen[x, n]
            end = num_actions if improving else best_action + 1
            pair = np.uint64(n * num_actions + best_action)
            best = second = -infinite
            for a in range(best_action, end):
                value = rewards[pair]
                if not blank:
                    value += discount * _future(successors, single, w, pair, rows)
                pair += ONE
                # Without branches: which action is better is hard to predict.
                better = value > best
                worse = best if better else value
                second = worse if worse > second else second  # noqa: FURB136  (one instruction)
                best_action = a if better else best_action
                best = value if better else best
            lead = best - second
            best -= shift
            if improving:
                chosen[x, n] = best_action
            if keep:
                pair = np.uint64(n * num_actions + best_action)
                kept_rewards[x, n] = rewards[pair]
                kept_rows[x, n] = rows[rule_starts[pair]]
            if leads:
                # A little less, as float32 may round up.
                certain[x, n] = (lead + drift) * ROUND_DOWN
        change = best - values[x, n]
        values[x, n] = best
        least, largest = min(least, change), max(largest, change)
        lowest, highest = min(lowest, best), max(highest, best)
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
