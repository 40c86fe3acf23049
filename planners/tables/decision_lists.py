"""Endogenous dynamics P(n' | n, a, x): rules, and the decision lists of all (n, a) in flat arrays.

A decision list says where the agent goes: P(n' | n, a, x) for one (n, a). Its rules are asked in
order. A rule looks at the joint value of a few exogenous variables and either decides n' or, with
the probability that is left, passes the question on; the last rule looks at nothing and always
decides. So n' may depend on many variables that act one by one (is one of twelve objects the goal,
and here?) without a joint table over all of them.

n is the flat index of the endogenous state and (n, a) a *pair*, ``n * num_actions + a``. Numba
takes a :class:`DecisionLists` as it is, so a kernel gets one record and not a dozen arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from exo_envs.compiled.functions import njit
from exo_envs.compiled.ranges import ROUNDING, wrong_row
from exo_envs.core.arguments import (
    as_array,
    check_shape,
    check_whole,
    exact,
    exact_starts,
    real_numbers,
    whole_numbers,
)
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import FloatArray, IntArray
from planners.core.arrays import Ints, starts_of, subset_index
from planners.tables.ragged import SparseTables, sparse_rows


@dataclass(eq=False)
class Rule:
    """One rule of a list: what is decided at each joint value of its variables (C order).

    A form of its own because lists are learned and rewritten rule by rule.

    What a row lacks to one is passed on to the next rule; an empty row passes everything on.
    """

    variables: tuple[int, ...]
    starts: Ints  # (rows + 1,)
    targets: Ints  # (entries,)
    probabilities: FloatArray  # (entries,)

    @classmethod
    def certain(cls, target: int) -> Rule:
        """Decides for one n', whatever x is."""
        return cls((), np.array([0, 1]), np.array([target]), np.ones(1))

    @classmethod
    def from_table(cls, variables: tuple[int, ...], table: FloatArray) -> Rule:
        """From a table of shape (rows, N) with the probabilities of all n'."""
        states = np.arange((0, *np.shape(table))[-1])
        return cls.from_matrix(tuple(variables), table, states)

    @classmethod
    def from_matrix(cls, variables: tuple[int, ...], matrix: FloatArray, targets: Ints) -> Rule:
        """From probabilities of shape (rows, len(targets))."""
        matrix, targets = np.asarray(matrix), np.asarray(targets)
        if matrix.ndim != 2 or not len(matrix) or targets.shape != matrix.shape[1:]:
            raise ArgumentError(
                "the probabilities of a rule have shape (rows, targets), at least one row, not "
                f"{matrix.shape} for targets of shape {targets.shape}"
            )
        starts, column, probabilities = sparse_rows(matrix)
        return cls(variables, starts, targets[column], probabilities)

    def to_matrix(self, targets: IntArray) -> FloatArray:
        """The probabilities of the (sorted) targets, shape (rows, len(targets))."""
        matrix = np.zeros((self.num_rows, len(targets)))
        row = np.repeat(np.arange(self.num_rows), np.diff(self.starts))
        matrix[row, np.searchsorted(targets, self.targets)] = self.probabilities
        return matrix

    @property
    def num_rows(self) -> int:
        """The number of joint values of the variables."""
        return len(self.starts) - 1

    @cached_property
    def decided(self) -> FloatArray:
        """The probability that a row decides, shape (rows,)."""
        row = np.repeat(np.arange(self.num_rows), np.diff(self.starts))
        return np.bincount(row, self.probabilities, minlength=self.num_rows).astype(np.float64)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for rules that say the same."""
        parts = (self.starts, self.targets, self.probabilities)
        return (self.variables, *(part.tobytes() for part in parts))

    def row(self, index: int) -> tuple[bytes, bytes]:
        """What one row says, in a form that can be compared."""
        part = slice(int(self.starts[index]), int(self.starts[index + 1]))
        return self.targets[part].tobytes(), self.probabilities[part].tobytes()

    def with_rows(self, variables: tuple[int, ...], rows: IntArray) -> Rule:
        """A rule on other variables; its row k says what ``rows[k]`` does here, -1 is empty."""
        lengths = np.diff(self.starts, append=self.starts[-1])[rows]
        starts = np.concatenate([[0], lengths.cumsum()])
        entry = np.repeat(self.starts[rows] - starts[:-1], lengths) + np.arange(starts[-1])
        return Rule(variables, starts, self.targets[entry], self.probabilities[entry])


def count_outcomes(counted: Sequence[tuple[Ints, Ints]], num_rows: int, num_states: int) -> Rule:
    """Frequencies of the outcomes in each row, as one rule (its variables are left empty).

    Args:
        counted: cells ``row * num_states + outcome`` and how often they were met; a cell may be
            in several of them.
        num_rows: the number of rows.
        num_states: N.
    """
    everywhere = np.concatenate([cells for cells, _ in counted])
    cells, place = np.unique(everywhere, return_inverse=True)
    counts = np.bincount(place.reshape(-1), np.concatenate([number for _, number in counted]))
    rows, targets = np.divmod(cells, num_states)
    totals = np.bincount(rows, counts, minlength=num_rows)
    starts = np.concatenate([[0], np.bincount(rows, minlength=num_rows).cumsum()])
    return Rule((), starts, targets, counts / totals[rows])


def with_default(rule: Rule) -> list[Rule]:
    """A list that says the same: what most rows say becomes the default at its end.

    Empty rows are never asked, so they may say anything.
    """
    said = {row: rule.row(row) for row in np.flatnonzero(np.diff(rule.starts)).tolist()}
    default = Counter(said.values()).most_common(1)[0][0]
    usual = next(row for row, words in said.items() if words == default)
    others = [row for row, words in said.items() if words != default]
    rows = np.full(rule.num_rows, -1)
    rows[others] = others
    deviating = [rule.with_rows(rule.variables, rows)] if others else []
    return [*deviating, rule.with_rows((), np.array([usual]))]


def simplify(rules: Sequence[Rule]) -> list[Rule]:
    """The same list with fewer rules: neighbours that look at the same variables become one."""
    out: list[Rule] = []
    for rule in rules:
        if not len(rule.targets):
            continue
        if out and out[-1].variables == rule.variables:
            out[-1] = _in_a_row(out[-1], rule)
        else:
            out.append(rule)
        if not rule.variables and out[-1].decided[0] > 1 - 1e-12:
            break  # nothing is passed on
    return out


def _in_a_row(first: Rule, second: Rule) -> Rule:
    targets = np.union1d(first.targets, second.targets)
    ahead = first.to_matrix(targets)
    behind = second.to_matrix(targets)
    passed = np.maximum(0.0, 1.0 - first.decided)[:, None]
    return Rule.from_matrix(first.variables, ahead + passed * behind, targets)


class DecisionLists(NamedTuple):
    """The rules of all pairs (n, a).

    A form of its own because a model has many thousand rules, and kernels cannot take objects. A
    pair has the rules ``rule_starts[pair] : rule_starts[pair + 1]``, each a table of n'.
    """

    num_states: int  # N
    num_actions: int
    sizes: Ints  # (m,) of the exogenous variables
    rule_starts: Ints  # (N * A + 1,)
    tables: SparseTables

    def checked(self) -> DecisionLists:
        """The same, with Python's numbers; arrays that do not belong together are refused.

        Kernels would read beside them.
        """
        num_states = check_whole("num_states", self.num_states, 1)
        num_actions = check_whole("num_actions", self.num_actions, 1)
        pairs = num_states * num_actions
        sizes = exact("sizes", self.sizes, 1)
        variables, row_starts, targets, probabilities = self.tables
        rules = as_array("row_starts", row_starts).size - 1
        rows = as_array("the starts of targets", targets.starts).size - 1
        exact_starts("rule_starts", self.rule_starts, pairs, rules, at_least=1)
        variables.check("variables", rules, 0, len(sizes))
        exact_starts("row_starts", row_starts, rules, rows, at_least=1)
        targets.check("targets", rows, 0, num_states)
        real_numbers("probabilities", probabilities, targets.values.shape, finite=False)
        row = wrong_row(targets.starts, probabilities, False)
        if row >= 0:
            entries = slice(*targets.starts[row : row + 2])
            raise ArgumentError(
                f"the probabilities of row {row} are {probabilities[entries]}: they are not "
                "from 0 to 1, or more than 1 together"
            )
        rule = _wrong_rule(self)
        if rule >= 0:
            pair = int(np.searchsorted(self.rule_starts, rule, "right")) - 1
            n, a = divmod(pair, num_actions)
            looked_at = variables.piece(rule)
            raise ArgumentError(
                f"rule {rule}, of state {n} and action {a}, looks at the variables "
                f"{looked_at.tolist()} of sizes {sizes[looked_at].tolist()} and has "
                f"{row_starts[rule + 1] - row_starts[rule]} rows; it should have one for each of "
                "their joint values, and the last rule of a list looks at nothing and decides"
            )
        return self._replace(num_states=num_states, num_actions=num_actions)

    @classmethod
    def from_lists(
        cls, lists: Sequence[Sequence[Rule]], num_actions: int, sizes: Sequence[int] | IntArray
    ) -> DecisionLists:
        """The list of every pair, in order; the last rule of each must decide."""
        num_actions = check_whole("num_actions", num_actions, 1)
        rules = [rule for listed in lists for rule in listed]
        tables = [(rule.variables, rule.starts, rule.targets, rule.probabilities) for rule in rules]
        all_sizes: Ints = np.asarray(sizes, dtype=np.int64)
        counts = len(lists) // num_actions, num_actions
        return cls(*counts, all_sizes, starts_of(lists), SparseTables.of(tables))

    def dependencies(self) -> tuple[int, ...]:
        """The exogenous variables that any rule looks at."""
        return tuple(int(i) for i in np.unique(self.tables.variables.values))

    def distribution(self, n: IntArray, action: IntArray, exogenous: IntArray) -> FloatArray:
        """P(n' | n, a, x) for a batch, shape (B, N)."""
        states = whole_numbers("n", n, 0, self.num_states)
        actions = whole_numbers("action", action, 0, self.num_actions, length=len(states))
        x = np.asarray(exogenous)
        check_shape("exogenous", x, (len(states), len(self.sizes)))
        columns = [
            whole_numbers(f"exogenous[:, {i}]", x[:, i], 0, size)
            for i, size in enumerate(self.sizes.tolist())
        ]
        sound: Ints = np.array(columns, dtype=np.int64).reshape(x.shape[::-1]).T.copy()
        targets, probabilities = list_successors(self, states, actions, sound)
        out = np.zeros((len(targets), self.num_states))
        np.add.at(out, (np.arange(len(targets))[:, None], targets), probabilities)
        return out


def list_successors(
    lists: DecisionLists, n: Ints, action: Ints, exogenous: Ints
) -> tuple[Ints, FloatArray]:
    """The n' that have a probability, and these, for a sound batch: two arrays (B, K).

    K is the most n' that any of the batch has; rows with fewer end with probabilities of 0.
    """
    width = _successors(lists, n, action, exogenous, np.empty((0, 0), np.int64), np.empty((0, 0)))
    targets = np.zeros((len(n), width), np.int64)
    probabilities = np.zeros((len(n), width))
    _successors(lists, n, action, exogenous, targets, probabilities)
    return targets, probabilities


@njit(cache=True)
def _wrong_rule(lists: Any) -> int:
    """The first rule with a wrong number of rows, or that is the last and does not decide."""
    _, _, sizes, rule_starts, tables = lists
    (variables, variable_starts), row_starts, (_, entry_starts), probabilities = tables
    for pair in range(len(rule_starts) - 1):
        for rule in range(rule_starts[pair], rule_starts[pair + 1]):
            rows = row_starts[rule + 1] - row_starts[rule]
            joint = 1
            for k in range(variable_starts[rule], variable_starts[rule + 1]):
                if sizes[variables[k]] > rows // joint:  # their product may not fit into 64 bits
                    return rule
                joint *= sizes[variables[k]]
            if joint != rows:
                return rule
        last = rule_starts[pair + 1] - 1
        row = row_starts[last]
        total = 0.0
        for entry in range(entry_starts[row], entry_starts[row + 1]):
            total += probabilities[entry]
        if variable_starts[last + 1] > variable_starts[last] or total < 1.0 - ROUNDING:
            return last
    return -1


# Kernels take the fields that they need out of a record before they loop: Numba counts references
# whenever one is taken out.


@njit(cache=True)
def sample_lists(lists: Any, n: Any, action: Any, x: Any, uniform: Any) -> Any:
    """Draw n' for a sound batch: (B,), (B,), (B, m) and uniform numbers (B,) give (B,)."""
    _, num_actions, sizes, rule_starts, tables = lists
    (variables, variable_starts), row_starts, (targets, entry_starts), probabilities = tables
    out = np.empty(len(n), np.int64)
    for lane in range(len(n)):
        pair = n[lane] * num_actions + action[lane]
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
    _, _, sizes, _, tables = lists
    (variables, variable_starts), row_starts, (targets, entry_starts), probabilities = tables
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
