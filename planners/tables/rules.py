"""Rules of decision lists, and what lists of them can be turned into.

A decision list says where the agent goes: P(n' | n, a, x) for one (n, a). Its rules are asked in
order. A rule looks at the joint value of a few exogenous variables and either decides n' or, with
the probability that is left, passes the question on; the last rule looks at nothing and always
decides. So n' may depend on many variables that act one by one (is one of twelve objects the goal,
and here?) without a joint table over all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exo_envs.core.arguments import check_starts, real_numbers, whole_numbers
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import FloatArray, IntArray
from planners.core.arrays import Ints
from planners.tables.ragged import sparse_rows


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

    def check(self) -> None:
        """Refuse arrays that do not belong together.

        Not when it is made, since rules are made by the thousand while lists are learned; those
        that come from elsewhere pass here.
        """
        whole_numbers("targets", self.targets, 0)
        real_numbers("probabilities", self.probabilities, self.targets.shape)
        check_starts("starts", self.starts, self.num_rows, len(self.targets))

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
