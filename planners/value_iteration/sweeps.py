"""A sweep of value iteration over the endogenous part, for a range of x.

It walks through x in C order, like a mileage counter. While the digits up to some variable stay
the same, so do the rewards of those variables and the rows of the rules that look at no other:
what was worked out for the last x is only brought up to date.

Indices into large arrays are unsigned, see :class:`~planners.value_iteration.successors.SuccessorRows`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

ONE = np.uint64(1)


@njit(cache=True)
def sweep(
    improving: bool,
    expected: Any,  # (last - first, N): W
    values: Any,  # (X, N): V, overwritten from first to last
    actions: Any,  # (X, N): likewise, if improving
    first: int,
    last: int,
    kept_rewards: Any,  # (X, N), or with no rows
    kept_rows: Any,  # (X, N), or with no rows
    shift: Any,
    discount: Any,
    terminal: Any,  # (N,)
    num_actions: int,
    sizes: Any,  # (m,)
    paying: Any,
    table_starts: Any,
    tables: Any,
    rule_starts: Any,
    group_starts: Any,
    rules: Any,
    variable_starts: Any,
    variables: Any,
    strides: Any,
    row_starts: Any,
    row_numbers: Any,
    entry_starts: Any,
    targets: Any,
    probabilities: Any,
    left: Any,
) -> Any:
    """V <- R - shift + discount * E[W], with the best actions if ``improving``, else the given.

    Returns:
        The least and the largest change of V, and the least and the largest new V.
    """
    digits = np.zeros(len(sizes), np.int64)
    rows = np.zeros(len(rules), np.uint64)  # of each rule, at the current x
    sums = np.empty((max(len(paying), 1), len(terminal) * num_actions), values.dtype)
    single = len(rules) == len(rule_starts) - 1  # each pair has one rule
    keep = len(kept_rows) > 0
    infinite = values.dtype.type(np.inf)
    least, largest, lowest, highest = infinite, -infinite, infinite, -infinite
    for x in range(first, last):
        changed = _turn(x, x == first, digits, sizes)
        _find_rows(
            changed,
            digits,
            rows,
            group_starts,
            rules,
            variable_starts,
            variables,
            strides,
            row_starts,
            row_numbers,
        )
        rewards = _add_rewards(changed, digits, paying, table_starts, tables, sums)
        w = expected[x - first]
        for n in range(len(terminal)):
            best = values.dtype.type(0)
            if not terminal[n]:
                best_action = 0 if improving else actions[x, n]
                end = num_actions if improving else best_action + 1
                pair = np.uint64(n * num_actions + best_action)
                best = -infinite
                for a in range(best_action, end):
                    value = rewards[pair] + discount * _future(
                        single,
                        w,
                        pair,
                        rows,
                        rule_starts,
                        entry_starts,
                        targets,
                        probabilities,
                        left,
                    )
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
def evaluate(
    expected: Any,
    values: Any,
    changes: Any,  # (X, N): those of this sweep, or with no rows
    first: int,
    last: int,
    kept_rewards: Any,
    kept_rows: Any,
    shift: Any,
    discount: Any,
    terminal: Any,
    entry_starts: Any,
    targets: Any,
    probabilities: Any,
) -> Any:
    """The same for actions whose rewards and rows were kept, which is faster."""
    recording = len(changes) > 0
    infinite = values.dtype.type(np.inf)
    least, largest, lowest, highest = infinite, -infinite, infinite, -infinite
    for x in range(first, last):
        w = expected[x - first]
        v = values[x]
        own_rewards = kept_rewards[x]
        own_rows = kept_rows[x]
        for n in range(len(terminal)):
            value = values.dtype.type(0)
            if not terminal[n]:
                row = own_rows[n]
                entry, stop = entry_starts[row], entry_starts[row + ONE]
                while entry < stop:
                    value += probabilities[entry] * w[targets[entry]]
                    entry += ONE
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
        rest = x
        for i in range(len(sizes) - 1, -1, -1):
            digits[i] = rest % sizes[i]
            rest //= sizes[i]
        return -1
    i = len(sizes) - 1
    while digits[i] + 1 == sizes[i]:
        digits[i] = 0
        i -= 1
    digits[i] += 1
    return i


@njit(cache=True, inline="always")
def _find_rows(
    changed: int,
    digits: Any,
    rows: Any,
    group_starts: Any,
    rules: Any,
    variable_starts: Any,
    variables: Any,
    strides: Any,
    row_starts: Any,
    row_numbers: Any,
) -> None:
    """The current row of each rule, unless nothing that it looks at has changed."""
    for group in range(len(row_starts)):
        first, last = variable_starts[group], variable_starts[group + 1]
        newest = -1 if first == last else variables[first]
        if newest < changed:
            continue
        value = 0
        for k in range(first, last):
            value += digits[variables[k]] * strides[k]
        start, end = group_starts[group], group_starts[group + 1]
        place = row_starts[group] + value * (end - start)
        for k in range(end - start):
            rows[rules[start + k]] = row_numbers[place + k]


@njit(cache=True, inline="always")
def _add_rewards(
    changed: int, digits: Any, paying: Any, table_starts: Any, tables: Any, sums: Any
) -> Any:
    """R(x, n, a) for all pairs: the sum of the tables at the current digits.

    ``sums[k]`` holds the sum of the tables up to the k-th paying variable.
    """
    size = sums.shape[1]
    if len(paying) == 0:
        return tables[:size]
    place = table_starts[0] + digits[paying[0]] * size
    total = tables[place : place + size]
    for k in range(1, len(paying)):
        if paying[k] >= changed:
            place = table_starts[k] + digits[paying[k]] * size
            term = tables[place : place + size]
            out = sums[k]
            for i in range(size):
                out[i] = total[i] + term[i]
        total = sums[k]
    return total


@njit(cache=True, inline="always")
def _future(
    single: bool,
    w: Any,
    pair: Any,
    rows: Any,
    rule_starts: Any,
    entry_starts: Any,
    targets: Any,
    probabilities: Any,
    left: Any,
) -> Any:
    """E[W(x, n')] by the rules of a pair."""
    rule = pair if single else rule_starts[pair]
    row = rows[rule]
    total = w.dtype.type(0)
    entry, stop = entry_starts[row], entry_starts[row + ONE]
    while entry < stop:
        total += probabilities[entry] * w[targets[entry]]
        entry += ONE
    if single:
        return total
    passed = left[row]
    rule += ONE
    while passed > 0 and rule < rule_starts[pair + ONE]:
        row = rows[rule]
        part = w.dtype.type(0)
        entry, stop = entry_starts[row], entry_starts[row + ONE]
        while entry < stop:
            part += probabilities[entry] * w[targets[entry]]
            entry += ONE
        total += passed * part
        passed *= left[row]
        rule += ONE
    return total
