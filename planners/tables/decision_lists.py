"""Endogenous dynamics P(n' | n, a, x) as decision lists.

A robot's next cell depends, for each cell and action, on very few exogenous variables (is the
cell ahead occupied?), or on many that act one by one (is one of twelve objects the goal, and
here?). A joint table over all of them would not fit; a list of rules does. For a pair (n, a) the
rules are asked in order. A rule looks at the joint value of a few variables and either decides
n' or, with the probability that is left, passes the question on; the last rule of every list
looks at nothing and always decides.

n is the flat index of the endogenous state; everything is kept in flat arrays, for Numba.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from exo_envs.mdp import FloatArray, IntArray
from planners.arrays import Ints


@dataclass(frozen=True)
class Rule:
    """One rule: ``table[v, n']`` is the probability of deciding for n' at the joint value v.

    What a row lacks to one is the probability of passing on. Joint values are in C order.
    """

    variables: tuple[int, ...]
    table: FloatArray  # (product of the variables' sizes, N)


@dataclass(frozen=True)
class Moves:
    """The rules of all pairs (n, a), flattened.

    The pair ``n * num_actions + a`` has the rules ``rule_starts[pair] : rule_starts[pair + 1]``;
    rule r looks at ``variables[variable_starts[r] : variable_starts[r + 1]]`` and has its first
    row at ``row_starts[r]``; a row is ``targets`` and ``probabilities`` between two
    ``entry_starts``.
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
    def from_rules(
        cls,
        num_states: int,
        num_actions: int,
        sizes: Sequence[int] | IntArray,
        rules: Mapping[tuple[int, int], Sequence[Rule]],
    ) -> Moves:
        """Flatten ``rules[n, a]``; the last rule of each list must decide."""
        rule_starts, variable_starts, row_starts, entry_starts = [0], [0], [0], [0]
        variables: list[int] = []
        targets: list[NDArray[Any]] = []
        probabilities: list[NDArray[Any]] = []
        all_sizes: Ints = np.asarray(sizes, dtype=np.int64)
        for n in range(num_states):
            for a in range(num_actions):
                last = rules[n, a][-1]
                if last.variables or not np.isclose(last.table.sum(), 1.0):
                    raise ValueError(f"the last rule of state {n} and action {a} does not decide")
                for rule in rules[n, a]:
                    rows = int(np.prod(all_sizes[list(rule.variables)], dtype=np.int64))
                    if rule.table.shape != (rows, num_states):
                        raise ValueError(
                            f"a rule on variables {rule.variables} has a table of shape "
                            f"{rule.table.shape}; it should be {(rows, num_states)}"
                        )
                    variables.extend(rule.variables)
                    variable_starts.append(len(variables))
                    row_starts.append(row_starts[-1] + rows)
                    row, target = np.nonzero(rule.table)
                    targets.append(target)
                    probabilities.append(rule.table[row, target])
                    ends = entry_starts[-1] + np.bincount(row, minlength=rows).cumsum()
                    entry_starts.extend(ends.tolist())
                rule_starts.append(len(variable_starts) - 1)
        return cls(
            num_states,
            num_actions,
            all_sizes,
            np.array(rule_starts),
            np.array(variable_starts),
            np.array(variables, dtype=np.int64),
            np.array(row_starts),
            np.array(entry_starts),
            np.concatenate(targets).astype(np.int64),
            np.concatenate(probabilities).astype(np.float64),
        )

    @classmethod
    def from_table(
        cls, table: FloatArray, parents: tuple[int, ...], sizes: Sequence[int] | IntArray
    ) -> Moves:
        """From one joint table P(n' | n, a, parents) of shape (N, A, *parent sizes, N)."""
        num_states, num_actions = table.shape[:2]
        rows = table.reshape(num_states, num_actions, -1, num_states)
        rules = {}
        for n in range(num_states):
            for a in range(num_actions):
                if len(rows[n, a]) == 1 or (rows[n, a] == rows[n, a, :1]).all():
                    rules[n, a] = [Rule((), rows[n, a, :1])]
                else:
                    decide = np.zeros((1, num_states))
                    decide[0, n] = 1.0  # never asked: the joint rule always decides
                    rules[n, a] = [Rule(parents, rows[n, a]), Rule((), decide)]
        return cls.from_rules(num_states, num_actions, sizes, rules)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays in the order in which the kernels take them."""
        return tuple(getattr(self, field.name) for field in fields(self)[1:])

    def dependencies(self) -> tuple[int, ...]:
        """The exogenous variables that any rule looks at."""
        return tuple(int(i) for i in np.unique(self.variables))

    def sample(self, n: IntArray, action: IntArray, exogenous: IntArray, uniform: Any) -> Ints:
        """Draw n' for a batch: (B,), (B,), (B, m) and uniform numbers (B,)."""
        return _sample(n, action, exogenous, uniform, *self.arrays)

    def distribution(self, n: IntArray, action: IntArray, exogenous: IntArray) -> FloatArray:
        """P(n' | n, a, x) for a batch, shape (B, N)."""
        out = np.zeros((len(n), self.num_states))
        _distribution(n, action, exogenous, out, *self.arrays)
        return out


@njit(cache=True)
def joint_value(x: Any, variables: Any, start: int, end: int, sizes: Any) -> Any:
    """The joint value of some variables, in C order."""
    value = 0
    for k in range(start, end):
        value = value * sizes[variables[k]] + x[variables[k]]
    return value


@njit(cache=True)
def _sample(
    n: Any,
    action: Any,
    x: Any,
    uniform: Any,
    num_actions: int,
    sizes: Any,
    rule_starts: Any,
    variable_starts: Any,
    variables: Any,
    row_starts: Any,
    entry_starts: Any,
    targets: Any,
    probabilities: Any,
) -> Any:
    out = np.empty(len(n), np.int64)
    for lane in range(len(n)):
        pair = n[lane] * num_actions + action[lane]
        below = 0.0  # what the entries so far decided for
        passed = 1.0  # what was passed on to this rule
        found = False
        chosen = n[lane]
        for rule in range(rule_starts[pair], rule_starts[pair + 1]):
            value = joint_value(
                x[lane], variables, variable_starts[rule], variable_starts[rule + 1], sizes
            )
            row = row_starts[rule] + value
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
def _distribution(
    n: Any,
    action: Any,
    x: Any,
    out: Any,
    num_actions: int,
    sizes: Any,
    rule_starts: Any,
    variable_starts: Any,
    variables: Any,
    row_starts: Any,
    entry_starts: Any,
    targets: Any,
    probabilities: Any,
) -> None:
    for lane in range(len(n)):
        pair = n[lane] * num_actions + action[lane]
        passed = 1.0
        for rule in range(rule_starts[pair], rule_starts[pair + 1]):
            value = joint_value(
                x[lane], variables, variable_starts[rule], variable_starts[rule + 1], sizes
            )
            row = row_starts[rule] + value
            decided = 0.0
            for entry in range(entry_starts[row], entry_starts[row + 1]):
                out[lane, targets[entry]] += passed * probabilities[entry]
                decided += probabilities[entry]
            passed *= max(0.0, 1.0 - decided)
