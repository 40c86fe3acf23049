"""A reward, split into terms of few variables each, by changing some variables at a time.

Let x° be a reference, and R(T) the reward with the variables of T as in x and all others as in x°.
The *effect* of a set S of variables is what S pays beyond what its parts pay:

    f(S) = sum over T in S of (-1)^(|S| - |T|) R(T),    and so    R(S) = sum over T in S of f(T).

A scope's term is the sum of the effects of its subsets, without those that an earlier scope
already has. If no other set has an effect, the terms and R({}) add up to the reward, exactly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import FloatArray

#: Positions of variables in x.
Scope: TypeAlias = frozenset[int]
#: Values of x (B, m) in lanes of a batch (B,), to what is paid there (B,). What else a reward
#: depends on, such as n and the action, is known of each lane.
Pay: TypeAlias = Callable[[NDArray[Any], NDArray[np.intp]], FloatArray]

#: Rows that are asked for at a time.
MAX_ROWS = 100_000
#: Variables that a scope that is found has at most, and scopes of several variables.
MAX_SCOPE, MAX_JOINT = 3, 64
#: Rewards that may differ by this much, relative to the largest, and still count as equal.
ROUNDING = 1e-8


class ScopesError(ArgumentError):
    """The reward does not split into few terms of few variables each."""


class SplitReward:
    """The terms of some scopes.

    Args:
        scopes: positions in x, one scope for each term.
        reference: x°, shape (m,).
    """

    def __init__(self, scopes: Sequence[Scope], reference: NDArray[Any]) -> None:
        self.scopes, self.reference = list(scopes), reference
        #: For each set T of variables: the terms in which R(T) occurs, and how often.
        self._uses: dict[Scope, dict[int, int]] = defaultdict(dict)
        for column, scope in enumerate(scopes):
            for subset, count in _weights(scope, scopes[:column]).items():
                self._uses[subset][column] = count

    def terms(self, x: NDArray[Any], pay: Pay) -> FloatArray:
        """The terms at x (B, m), shape (B, terms)."""
        terms = np.zeros((len(x), len(self.scopes)))
        # Where all of x is the reference's, every term is 0 and nothing need be asked.
        some = np.flatnonzero((x != self.reference).any(axis=1))
        at_once = max(1, MAX_ROWS // max(1, len(self._uses)))
        for start in range(0, len(some), at_once):
            lanes = some[start : start + at_once]
            changed = np.concatenate([self.changed(x[lanes], subset) for subset in self._uses])
            paid = pay(changed, np.tile(lanes, len(self._uses)))
            for values, uses in zip(paid.reshape(-1, len(lanes)), self._uses.values(), strict=True):
                for column, count in uses.items():
                    terms[lanes, column] += count * values
        return terms

    def totals(self, x: NDArray[Any], pay: Pay) -> FloatArray:
        """What the terms and R({}) add up to, shape (B,)."""
        base = pay(self.changed(x, frozenset()), np.arange(len(x)))
        return np.asarray(base + self.terms(x, pay).sum(axis=1))

    def error(self, row: NDArray[Any], subset: Scope, pay: Pay) -> float:
        """How far off the terms are if only the variables of a set are as in a row (1, m)."""
        x = self.changed(row, subset)
        return float(abs(pay(x, np.zeros(1, dtype=np.intp)) - self.totals(x, pay))[0])

    def changed(self, x: NDArray[Any], subset: Scope) -> NDArray[Any]:
        """The reference, except for the variables of a set, which are as in x."""
        changed = np.repeat(self.reference[None].astype(x.dtype), len(x), axis=0)
        columns = sorted(subset)
        changed[:, columns] = x[:, columns]
        return changed


def _weights(scope: Scope, earlier: Sequence[Scope]) -> dict[Scope, int]:
    """How often each R(T) occurs in the term of a scope.

    R(S & A) is the sum of all effects in S & A. So what is left of R(S) without R(S & A) has no
    effect in A: those of earlier scopes are taken away one after another, and R({}) at last.
    """
    weights: dict[Scope, int] = defaultdict(int, {scope: 1})
    for covered in [*{scope & other for other in earlier}, frozenset[int]()]:
        for subset, count in list(weights.items()):
            weights[subset & covered] -= count
    return {subset: count for subset, count in weights.items() if count}


def find_scopes(
    x: NDArray[Any], pay: Pay, reference: NDArray[Any], names: Sequence[str]
) -> list[Scope]:
    """Scopes whose terms add up to the reward at all of some x.

    To begin with each variable has a term of its own. Where these do not add up, variables are
    taken away as long as the rest does not add up either; those that are left pay only together.

    Args:
        x: values that occur, shape (B, m).
        pay: the reward.
        reference: x°, shape (m,).
        names: of the variables.

    Returns:
        Positions in x: sets of variables that pay together, and each other variable by itself.

    Raises:
        ScopesError: more than ``MAX_SCOPE`` variables pay only together, or there are more than
            ``MAX_JOINT`` such sets.
    """
    singles: list[Scope] = [frozenset({i}) for i in range(len(names))]
    split = SplitReward(singles, reference)
    paid = pay(x, np.arange(len(x)))
    joint: set[Scope] = set()
    tolerance = ROUNDING * (1.0 + np.abs(paid).max(initial=0.0))
    for lane in np.flatnonzero(np.abs(paid - split.totals(x, pay)) > tolerance).tolist():
        here, row = _remembered(pay, lane), x[lane : lane + 1]
        differing = frozenset(np.flatnonzero(x[lane] != reference).tolist())
        while split.error(row, differing, here) > tolerance:
            found = differing
            for i in sorted(differing):
                if split.error(row, found - {i}, here) > tolerance:
                    found -= {i}
            joint = {scope for scope in joint if not scope < found} | {found}
            split = SplitReward([*joint, *singles], reference)
            together = [names[i] for i in sorted(found)]
            if len(found) > MAX_SCOPE:
                raise ScopesError(
                    f"{', '.join(map(repr, together))} pay only together, which are more than "
                    f"{MAX_SCOPE} variables; if that is meant, give reward_scopes=[{together}, "
                    "...] with all terms of the reward"
                )
            if len(joint) > MAX_JOINT:
                raise ScopesError(
                    f"more than {MAX_JOINT} sets of variables pay only together, such as "
                    f"{together}; give reward_scopes, or variables that are made of several"
                )
    covered = frozenset().union(*joint)
    return sorted(joint | {s for s in singles if not s <= covered}, key=lambda s: (min(s), *s))


def _remembered(pay: Pay, lane: int) -> Pay:
    """The reward in one lane, wherever it is asked for; nothing is asked twice."""
    known: dict[bytes, float] = {}

    def paid(x: NDArray[Any], _: NDArray[np.intp]) -> FloatArray:
        keys = [row.tobytes() for row in x]
        new = {key: row for key, row in zip(keys, x, strict=True) if key not in known}
        if new:
            asked = pay(np.array(list(new.values())), np.full(len(new), lane))
            known.update(zip(new, asked.tolist(), strict=True))
        return np.array([known[key] for key in keys])

    return paid
