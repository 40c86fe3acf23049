"""Reward terms that are recovered from rewards, by changing some exogenous variables at a time.

Let x° be the reference, and R(T) the reward with the variables of T as in x and all others as in
x°. The *effect* of a set S of variables is what S pays beyond what its parts pay:

    f(S) = sum over T in S of (-1)^(|S| - |T|) R(T),    and so    R(S) = sum over T in S of f(T).

A scope's term is the sum of the effects of its subsets, without those that an earlier scope
already has. If no other set has an effect, the terms and R({}) add up to the reward, exactly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from exo_envs.core.mdp import FloatArray, IntArray
from exo_envs.sources.simulators.foreign import Rows

Scope: TypeAlias = frozenset[int]
#: R(n, x, a) of rows (B, k + m) and actions (B,), shape (B,).
Pay: TypeAlias = Callable[[Rows, IntArray], FloatArray]
#: Rows that are asked for at a time.
MAX_ROWS = 100_000
NOTHING: Scope = frozenset()


class RecoveredTerms:
    """The terms of some scopes.

    Args:
        scopes: positions in x, one scope for each term.
        num_endogenous: the number of endogenous variables: x begins there in a row.
        reference: x°.
    """

    def __init__(self, scopes: Sequence[Scope], num_endogenous: int, reference: Rows) -> None:
        self._k = num_endogenous
        self._reference = reference
        self._num_terms = len(scopes)
        #: For each set T of variables: the terms in which R(T) occurs, and how often.
        self._uses: dict[Scope, dict[int, int]] = defaultdict(dict)
        for column, scope in enumerate(scopes):
            for subset, count in _weights(scope, scopes[:column]).items():
                self._uses[subset][column] = count

    def terms(self, rows: Rows, actions: IntArray, pay: Pay) -> FloatArray:
        """The terms of rows (B, k + m) and actions (B,), shape (B, terms)."""
        terms = np.zeros((len(rows), self._num_terms))
        # Where all of x is the reference's, every term is 0 and nothing need be asked.
        some = np.flatnonzero((rows[:, self._k :] != self._reference).any(axis=1))
        at_once = max(1, MAX_ROWS // max(1, len(self._uses)))
        for start in range(0, len(some), at_once):
            lanes = some[start : start + at_once]
            sets = list(self._uses)
            changed = np.concatenate([self.changed(rows[lanes], subset) for subset in sets])
            paid = pay(changed, np.tile(actions[lanes], len(sets))).reshape(len(sets), len(lanes))
            for values, subset in zip(paid, sets, strict=True):
                for column, count in self._uses[subset].items():
                    terms[lanes, column] += count * values
        return terms

    def changed(self, rows: Rows, subset: Scope) -> Rows:
        """Rows with the reference's x, except for the variables of a set."""
        changed = rows.copy()
        changed[:, self._k :] = self._reference
        columns = [self._k + i for i in subset]
        changed[:, columns] = rows[:, columns]
        return changed


def _weights(scope: Scope, earlier: Sequence[Scope]) -> dict[Scope, int]:
    """How often each R(T) occurs in the term of a scope.

    R(scope) has all effects of its subsets. Those that earlier scopes have are the union of the
    subsets of their intersections with it, which is counted by inclusion and exclusion.
    """
    covered: dict[Scope, int] = {NOTHING: 1}  # R({}) is the endogenous reward
    for other in {scope & other for other in earlier} - {NOTHING}:
        added: dict[Scope, int] = defaultdict(int, {other: 1})
        for subset, count in covered.items():
            added[subset & other] -= count
        for subset, count in added.items():
            covered[subset] = covered.get(subset, 0) + count
    weights: dict[Scope, int] = defaultdict(int, {scope: 1})
    for subset, count in covered.items():
        weights[subset] -= count
    return {subset: count for subset, count in weights.items() if count}
