"""Endogenous dynamics P(n' | n, a, x): the decision lists of all (n, a), in flat arrays.

What a list and its rules mean is said in :mod:`planners.tables.rules`. Here n is the flat index of
the endogenous state and (n, a) a *pair*, ``n * num_actions + a``. Numba takes a
:class:`DecisionLists` as it is, so a kernel gets one record and not a dozen arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from exo_envs.mdp import FloatArray, IntArray
from planners.arrays import Ints, join_tables, starts_of, subset_index
from planners.tables.rules import Rule


class DecisionLists(NamedTuple):
    """The rules of all pairs (n, a).

    A form of its own because a model has many thousand rules, and kernels cannot take objects.

    A pair has the rules ``rule_starts[pair] : rule_starts[pair + 1]``; rule r looks at
    ``variables[variable_starts[r] : variable_starts[r + 1]]`` and has its first row at
    ``row_starts[r]``; a row is ``targets`` and ``probabilities`` between two ``entry_starts``.
    """

    num_states: int  # N
    num_actions: int
    sizes: Ints  # (m,) of the exogenous variables
    rule_starts: Ints  # (N * A + 1,)
    variable_starts: Ints  # (rules + 1,)
    variables: Ints
    row_starts: Ints  # (rules + 1,)
    entry_starts: Ints  # (rows + 1,)
    targets: Ints  # (entries,)
    probabilities: FloatArray  # (entries,)

    @classmethod
    def from_lists(
        cls, lists: Sequence[Sequence[Rule]], num_actions: int, sizes: Sequence[int] | IntArray
    ) -> DecisionLists:
        """The list of every pair, in order; the last rule of each must decide."""
        rules = [rule for listed in lists for rule in listed]
        tables = [(rule.variables, rule.starts, rule.targets, rule.probabilities) for rule in rules]
        all_sizes: Ints = np.asarray(sizes, dtype=np.int64)
        counts = len(lists) // num_actions, num_actions
        return cls(*counts, all_sizes, starts_of(lists), *join_tables(tables))

    @classmethod
    def from_rules(
        cls,
        num_states: int,
        num_actions: int,
        sizes: Sequence[int] | IntArray,
        rules: Mapping[tuple[int, int], Sequence[Rule]],
    ) -> DecisionLists:
        """From ``rules[n, a]``, which are checked."""
        lists = [rules[n, a] for n in range(num_states) for a in range(num_actions)]
        for pair, listed in enumerate(lists):
            if listed[-1].variables or not np.isclose(listed[-1].probabilities.sum(), 1.0):
                n, a = divmod(pair, num_actions)
                raise ValueError(f"the last rule of state {n} and action {a} does not decide")
        for rule in chain.from_iterable(lists):
            rows = math.prod(int(sizes[i]) for i in rule.variables)
            highest = int(rule.targets.max(initial=0))
            if rule.num_rows != rows or highest >= num_states:
                raise ValueError(
                    f"a rule on variables {rule.variables} has {rule.num_rows} rows and targets up "
                    f"to {highest}; it should have {rows} rows and targets below {num_states}"
                )
        return cls.from_lists(lists, num_actions, sizes)

    def dependencies(self) -> tuple[int, ...]:
        """The exogenous variables that any rule looks at."""
        return tuple(int(i) for i in np.unique(self.variables))

    def sample(self, n: IntArray, action: IntArray, exogenous: IntArray, uniform: Any) -> Ints:
        """Draw n' for a batch: (B,), (B,), (B, m) and uniform numbers (B,)."""
        return _sample(self, n, action, exogenous, uniform)

    def distribution(self, n: IntArray, action: IntArray, exogenous: IntArray) -> FloatArray:
        """P(n' | n, a, x) for a batch, shape (B, N)."""
        return _distribution(self, n, action, exogenous)

    def successors(
        self, n: IntArray, action: IntArray, exogenous: IntArray
    ) -> tuple[Ints, FloatArray]:
        """The n' that have a probability, and these, for a batch: two arrays (B, K).

        K is the most n' that any of the batch has; rows with fewer end with probabilities of 0.
        """
        width = _successors(
            self, n, action, exogenous, np.empty((0, 0), np.int64), np.empty((0, 0))
        )
        targets = np.zeros((len(n), width), np.int64)
        probabilities = np.zeros((len(n), width))
        _successors(self, n, action, exogenous, targets, probabilities)
        return targets, probabilities


# Kernels take the fields that they need out of a record before they loop: Numba counts references
# whenever one is taken out.


@njit(cache=True)
def _sample(lists: Any, n: Any, action: Any, x: Any, uniform: Any) -> Any:
    sizes, variable_starts, variables = lists.sizes, lists.variable_starts, lists.variables
    rule_starts, row_starts, entry_starts = lists.rule_starts, lists.row_starts, lists.entry_starts
    targets, probabilities = lists.targets, lists.probabilities
    out = np.empty(len(n), np.int64)
    for lane in range(len(n)):
        pair = n[lane] * lists.num_actions + action[lane]
        below = 0.0  # what the entries so far decided for
        passed = 1.0  # what was passed on to this rule
        found = False
        chosen = n[lane]
        for rule in range(rule_starts[pair], rule_starts[pair + 1]):
            start, end = variable_starts[rule], variable_starts[rule + 1]
            row = row_starts[rule] + subset_index(x[lane], variables, start, end, sizes)
            decided = 0.0
            for entry in range(entry_starts[row], entry_starts[row + 1]):
                decided += probabilities[entry]
                chosen = targets[entry]
                if uniform[lane] < below + passed * decided:
                    found = True
                    break
            if found:
                break
            below += passed * decided
            passed *= 1.0 - decided
        out[lane] = chosen  # the last entry, where rounding leaves a gap below one
    return out


@njit(cache=True)
def follow_rules(lists: Any, first: int, last: int, x: Any, mass: Any, reached: Any) -> Any:
    """What the rules first ... last - 1 decide at x.

    Args:
        lists: the decision lists.
        first: the first of the rules.
        last: the one behind the last of them.
        x: the exogenous variables, shape (m,).
        mass: zeros (N,), to which the probability of every n' is added.
        reached: an array (N,) for the n' that have one.

    Returns:
        How many n' are reached, their total mass, and what is passed on to the next rule.
    """
    sizes, variable_starts, variables = lists.sizes, lists.variable_starts, lists.variables
    row_starts, entry_starts = lists.row_starts, lists.entry_starts
    targets, probabilities = lists.targets, lists.probabilities
    count = 0
    total = 0.0
    passed = 1.0
    for rule in range(first, last):
        start, end = variable_starts[rule], variable_starts[rule + 1]
        row = row_starts[rule] + subset_index(x, variables, start, end, sizes)
        decided = 0.0
        for entry in range(entry_starts[row], entry_starts[row + 1]):
            target = targets[entry]
            share = passed * probabilities[entry]
            decided += probabilities[entry]
            if share > 0.0:
                if mass[target] == 0.0:
                    reached[count] = target
                    count += 1
                mass[target] += share
                total += share
        passed *= max(0.0, 1.0 - decided)
    return count, total, passed


@njit(cache=True)
def _distribution(lists: Any, n: Any, action: Any, x: Any) -> Any:
    out = np.zeros((len(n), lists.num_states))
    reached = np.zeros(lists.num_states, np.int64)
    for lane in range(len(n)):
        pair = n[lane] * lists.num_actions + action[lane]
        first, last = lists.rule_starts[pair], lists.rule_starts[pair + 1]
        follow_rules(lists, first, last, x[lane], out[lane], reached)
    return out


@njit(cache=True)
def _successors(lists: Any, n: Any, action: Any, x: Any, targets: Any, probabilities: Any) -> Any:
    """Write the n' of each lane, if there is room; return the most that any lane has."""
    rule_starts, num_actions = lists.rule_starts, lists.num_actions
    mass = np.zeros(lists.num_states)
    reached = np.zeros(lists.num_states, np.int64)
    filling = len(targets) > 0
    width = 1
    for lane in range(len(n)):
        pair = n[lane] * num_actions + action[lane]
        first, last = rule_starts[pair], rule_starts[pair + 1]
        count, total, _ = follow_rules(lists, first, last, x[lane], mass, reached)
        width = max(width, count)
        for k in range(count):
            if filling:
                targets[lane, k] = reached[k]
                probabilities[lane, k] = mass[reached[k]] / total
            mass[reached[k]] = 0.0
    return width
