"""Decision lists in sparse form: what :class:`~planners.tables.decision_lists.Moves` is estimated with.

A :class:`Clause` is a :class:`~planners.tables.decision_lists.Rule` that keeps only the n' that are possible, so
that lists for thousands of n stay small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from exo_envs.mdp import FloatArray, IntArray
from planners.arrays import Ints
from planners.tables.decision_lists import Moves


@dataclass(frozen=True, eq=False)
class Clause:
    """One rule of a list: what is decided at each joint value of its variables (C order).

    What a row lacks to one is passed on to the next clause; an empty row passes everything on.
    """

    variables: tuple[int, ...]  # increasing
    starts: Ints  # (rows + 1,)
    targets: Ints  # (entries,)
    probabilities: FloatArray  # (entries,)

    @classmethod
    def certain(cls, target: int) -> Clause:
        """Decides for one n', whatever x is."""
        return cls((), np.array([0, 1]), np.array([target]), np.ones(1))

    @classmethod
    def from_matrix(cls, variables: tuple[int, ...], matrix: FloatArray, targets: Ints) -> Clause:
        """From probabilities of shape (rows, len(targets))."""
        row, column = np.nonzero(matrix)
        starts = np.concatenate([[0], np.bincount(row, minlength=len(matrix)).cumsum()])
        return cls(variables, starts, targets[column], matrix[row, column])

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
        """Equal for clauses that say the same."""
        parts = (self.starts, self.targets, self.probabilities)
        return (self.variables, *(part.tobytes() for part in parts))

    def row(self, index: int) -> tuple[bytes, bytes]:
        """What one row says, in a form that can be compared."""
        part = slice(int(self.starts[index]), int(self.starts[index + 1]))
        return self.targets[part].tobytes(), self.probabilities[part].tobytes()

    def take_rows(self, rows: IntArray) -> Clause:
        """The same clause with all other rows empty."""
        kept = np.zeros(self.num_rows, dtype=np.bool_)
        kept[rows] = True
        lengths = np.where(kept, np.diff(self.starts), 0)
        entry = np.repeat(kept, np.diff(self.starts))
        starts = np.concatenate([[0], lengths.cumsum()])
        return Clause(self.variables, starts, self.targets[entry], self.probabilities[entry])

    def only_row(self, row: int) -> Clause:
        """A clause that always says what one row of this one says."""
        part = slice(int(self.starts[row]), int(self.starts[row + 1]))
        length = part.stop - part.start
        targets, probabilities = self.targets[part], self.probabilities[part]
        return Clause((), np.array([0, length]), targets, probabilities)


def count_clauses(counted: Sequence[tuple[Ints, Ints]], num_rows: int, num_states: int) -> Clause:
    """Frequencies of the outcomes in each row, as one clause (its variables are left empty).

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
    return Clause((), starts, targets, counts / totals[rows])


def split_rows(clause: Clause, starts: Sequence[int]) -> list[Clause]:
    """Cut a clause into some of consecutive rows, ``starts[i] : starts[i + 1]``."""
    parts = []
    for first, last in pairwise(starts):
        begin, end = clause.starts[first], clause.starts[last]
        parts.append(
            Clause(
                (),
                clause.starts[first : last + 1] - begin,
                clause.targets[begin:end],
                clause.probabilities[begin:end],
            )
        )
    return parts


def with_default(clause: Clause) -> list[Clause]:
    """A list that says the same: what most rows say becomes the default at its end.

    Empty rows are never asked, so they may say anything.
    """
    rows = np.flatnonzero(np.diff(clause.starts))
    said = Counter(clause.row(int(row)) for row in rows)
    default = said.most_common(1)[0][0]
    others = [int(row) for row in rows if clause.row(int(row)) != default]
    usual = next(int(row) for row in rows if clause.row(int(row)) == default)
    deviating = [clause.take_rows(np.array(others))] if others else []
    return [*deviating, clause.only_row(usual)]


def simplify(clauses: Sequence[Clause]) -> list[Clause]:
    """The same list with fewer clauses: neighbours that look at the same variables become one."""
    out: list[Clause] = []
    for clause in clauses:
        if not len(clause.targets):
            continue
        if out and out[-1].variables == clause.variables:
            out[-1] = _in_a_row(out[-1], clause)
        else:
            out.append(clause)
        if not clause.variables and out[-1].decided[0] > 1 - 1e-12:
            break  # nothing is passed on
    return out


def _in_a_row(first: Clause, second: Clause) -> Clause:
    targets = np.union1d(first.targets, second.targets)
    ahead = first.to_matrix(targets)
    behind = second.to_matrix(targets)
    passed = np.maximum(0.0, 1.0 - first.decided)[:, None]
    return Clause.from_matrix(first.variables, ahead + passed * behind, targets)


def flatten(
    lists: Sequence[Sequence[Clause]], num_states: int, num_actions: int, sizes: IntArray
) -> Moves:
    """The lists of all pairs ``n * num_actions + a``; the last clause of each must decide."""
    everything = [clause for clauses in lists for clause in clauses]
    variables = [np.array(clause.variables, dtype=np.int64) for clause in everything]
    entries = np.cumsum([0, *(len(clause.targets) for clause in everything)])
    empty = np.zeros(0, dtype=np.int64)
    return Moves(
        num_states,
        num_actions,
        np.asarray(sizes, dtype=np.int64),
        np.cumsum([0, *(len(clauses) for clauses in lists)]),
        np.cumsum([0, *(len(looked_at) for looked_at in variables)]),
        np.concatenate([*variables, empty]),
        np.cumsum([0, *(clause.num_rows for clause in everything)]),
        np.concatenate(
            [[0], *(clause.starts[1:] + entries[i] for i, clause in enumerate(everything))]
        ).astype(np.int64),
        np.concatenate([*(clause.targets for clause in everything), empty]),
        np.concatenate([*(clause.probabilities for clause in everything), np.zeros(0)]),
    )
