"""The new V of all states (x, n) of one x, given W(x, n') = E[V(x', n') | x].

Indices into large arrays are unsigned: see :class:`SuccessorRows`. Fields of records come one by
one, and places in arrays by their indices: Numba counts references to parts of records and arrays,
which would take longer than the sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exo_envs.compiled.functions import njit

ONE = np.uint64(1)

#: A positive number times this is not larger when it is rounded to float32.
ROUND_DOWN = 1.0 - 2e-7


@njit(cache=True, inline="always")
def back_up(kept: Any, shift: Any, x: int, w: Any, new: Any) -> None:
    """The new V of all states of one x with the kept actions."""
    discount, terminal, rewards, rows, _, entry_starts, targets, probabilities = kept
    own_rewards, own_rows = rewards[x], rows[x]
    for n in range(len(terminal)):
        value = new.dtype.type(0)
        if not terminal[n]:
            value = _mean(own_rows[n], w, entry_starts, targets, probabilities)
            value = own_rewards[n] + discount * value - shift
        new[n] = value


@njit(cache=True)
def follow(
    discount: Any,
    shift: Any,
    num_actions: int,
    terminal: Any,
    w: Any,
    rewards: Any,
    rows: Any,
    rule_starts: Any,
    entry_starts: Any,
    targets: Any,
    probabilities: Any,
    left: Any,
    actions: Any,
    new: Any,
) -> None:
    """The new V of all states of one x with given actions, whose rows are not kept."""
    for n in range(len(terminal)):
        value = new.dtype.type(0)
        if not terminal[n]:
            pair = np.uint64(n * num_actions + actions[n])
            value = _mean(rows[rule_starts[pair]], w, entry_starts, targets, probabilities)
            value += _rest(pair, w, rows, rule_starts, entry_starts, targets, probabilities, left)
            value = rewards[pair] + discount * value - shift
        new[n] = value


@njit(cache=True)
def choose(  # noqa: C901 - calls of functions with arrays would count references
    best_of: Any,
    discount: Any,
    shift: Any,
    num_actions: int,
    terminal: Any,
    x: int,
    w: Any,
    rewards: Any,
    rows: Any,
    rule_starts: Any,
    entry_starts: Any,
    targets: Any,
    probabilities: Any,
    left: Any,
    chosen: Any,
    before: Any,
    kept_rewards: Any,
    kept_rows: Any,
    certain: Any,
    new: Any,
) -> None:
    """The new V of all states of one x, whose rewards and rows are given, with the best actions.

    Without ``left`` each pair has one rule. Fields come one by one, and places in arrays by their
    indices: Numba counts references to parts of records and arrays, which would take longer.
    """
    _, blank, drift, rounded_drift = best_of
    keep, leads = len(kept_rows) > 0, len(certain) > 0
    infinite = new.dtype.type(np.inf)
    for n in range(len(terminal)):
        if leads and certain[x, n] > rounded_drift:
            best = new.dtype.type(0)
            if not terminal[n]:
                row = kept_rows[x, n]
                entry, stop = entry_starts[row], entry_starts[row + ONE]
                while entry < stop:
                    best += probabilities[entry] * w[targets[entry]]
                    entry += ONE
                best = kept_rewards[x, n] + discount * best - shift
            new[n] = best
            chosen[x, n] = before[x, n]
            continue
        if terminal[n]:
            new[n] = 0
            chosen[x, n] = before[x, n]
            if leads:
                certain[x, n] = np.inf
            continue
        best = second = -infinite
        best_action = 0
        pair = np.uint64(n * num_actions)
        for a in range(num_actions):
            mean = new.dtype.type(0)
            if not blank:
                row = rows[pair] if left is None else rows[rule_starts[pair]]
                entry, stop = entry_starts[row], entry_starts[row + ONE]
                while entry < stop:
                    mean += probabilities[entry] * w[targets[entry]]
                    entry += ONE
                if left is not None:
                    mean += _rest(
                        *(pair, w, rows, rule_starts, entry_starts, targets, probabilities, left)
                    )
            value = rewards[pair] + discount * mean
            pair += ONE
            # Without branches: which action is better is hard to predict.
            better = value > best
            worse = best if better else value
            second = worse if worse > second else second  # noqa: FURB136  (one instruction)
            best_action = a if better else best_action
            best = value if better else best
        new[n] = best - shift
        chosen[x, n] = best_action
        pair = np.uint64(n * num_actions + best_action)
        if keep:
            kept_rewards[x, n] = rewards[pair]
            kept_rows[x, n] = rows[pair] if left is None else rows[rule_starts[pair]]
        if leads:
            # A little less, as float32 may round up.
            certain[x, n] = (best - second + drift) * ROUND_DOWN


@njit(cache=True, inline="always")
def _mean(row: Any, w: Any, entry_starts: Any, targets: Any, probabilities: Any) -> Any:
    """The mean of W(x, n') over one row of successors."""
    total = w.dtype.type(0)
    entry, stop = entry_starts[row], entry_starts[row + ONE]
    while entry < stop:
        total += probabilities[entry] * w[targets[entry]]
        entry += ONE
    return total


@njit(cache=True)
def _rest(
    pair: Any,
    w: Any,
    rows: Any,
    rule_starts: Any,
    entry_starts: Any,
    targets: Any,
    probabilities: Any,
    left: Any,
) -> Any:
    """What the rules of a pair after the first one add to the mean of W(x, n')."""
    total = w.dtype.type(0)
    rule = rule_starts[pair]
    passed = left[rows[rule]]
    rule += ONE
    while passed > 0 and rule < rule_starts[pair + ONE]:
        total += passed * _mean(rows[rule], w, entry_starts, targets, probabilities)
        passed *= left[rows[rule]]
        rule += ONE
    return total
