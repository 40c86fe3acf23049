"""Which exogenous variables pay only together, found by changing some of them at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import IntArray
from exo_envs.sources.simulators.foreign import Rows
from exo_envs.sources.simulators.rewards import NOTHING, Pay, RecoveredTerms, Scope

#: Variables that a scope that is found has at most.
MAX_SCOPE = 3
#: Scopes of several variables that are found at most.
MAX_JOINT = 64
#: Rewards that may differ by this much, relative to the largest, and still count as equal.
ROUNDING = 1e-8


class ScopesError(ArgumentError):
    """The reward does not split into few terms of few variables each."""


def find_scopes(
    rows: Rows,
    actions: IntArray,
    pay: Pay,
    *,
    num_endogenous: int,
    reference: Rows,
    names: Sequence[str],
) -> list[Scope]:
    """Scopes whose terms add up to the reward in some states.

    To begin with each variable has a term of its own. Where these do not add up, variables are
    taken away as long as the rest does not add up either; those that are left pay only together.

    Args:
        rows: states that occur, shape (B, k + m).
        actions: one for each, shape (B,).
        pay: the reward.
        num_endogenous: where x begins in a row.
        reference: x°, see :mod:`exo_envs.sources.simulators.rewards`.
        names: of the exogenous variables.

    Returns:
        Positions in x: sets of variables that pay together, and each other variable by itself.

    Raises:
        ScopesError: more than ``MAX_SCOPE`` variables pay only together, or there are more than
            ``MAX_JOINT`` such sets.
    """
    singles: list[Scope] = [frozenset({i}) for i in range(len(names))]
    terms = RecoveredTerms(singles, num_endogenous, reference)
    paid, base = pay(rows, actions), pay(terms.changed(rows, NOTHING), actions)
    total = base + terms.terms(rows, actions, pay).sum(axis=1)
    scale = 1.0 + max(np.abs(paid).max(initial=0.0), np.abs(base).max(initial=0.0))
    joint: set[Scope] = set()
    for lane in np.flatnonzero(np.abs(paid - total) > ROUNDING * scale):
        effects = _Effects(rows[lane : lane + 1], actions[lane : lane + 1], pay, terms)
        differing = frozenset(np.flatnonzero(rows[lane, num_endogenous:] != reference).tolist())
        while True:
            known = {subset for scope in (*joint, *singles) for subset in _subsets(scope)}
            if abs(effects.unexplained(differing, known)) <= ROUNDING * scale:
                break
            found = _smallest(differing, effects, known, ROUNDING * scale)
            joint = {scope for scope in joint if not scope < found} | {found}
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


class _Effects:
    """R(T) at one state, and what some effects leave of it."""

    def __init__(self, row: Rows, action: IntArray, pay: Pay, terms: RecoveredTerms) -> None:
        self._row, self._action, self._pay, self._terms = row, action, pay, terms
        self._paid: dict[Scope, float] = {}
        self._effects: dict[Scope, float] = {}

    def paid(self, subset: Scope) -> float:
        if subset not in self._paid:
            changed = self._terms.changed(self._row, subset)
            self._paid[subset] = float(self._pay(changed, self._action)[0])
        return self._paid[subset]

    def effect(self, subset: Scope) -> float:
        if subset not in self._effects:
            self._effects[subset] = sum(
                (-1) ** (len(subset) - len(part)) * self.paid(part)
                for part in (*_subsets(subset), NOTHING)
            )
        return self._effects[subset]

    def unexplained(self, subset: Scope, known: set[Scope]) -> float:
        """R(T) less the known effects in it."""
        inside = (self.effect(part) for part in known if part <= subset)
        return self.paid(subset) - self.paid(NOTHING) - sum(inside)


def _subsets(scope: Scope) -> list[Scope]:
    """All subsets but the empty one."""
    sizes = range(1, len(scope) + 1)
    return [frozenset(part) for size in sizes for part in combinations(scope, size)]


def _smallest(start: Scope, effects: _Effects, known: set[Scope], tolerance: float) -> Scope:
    """A subset that is not explained, of which no variable can be taken away.

    Halves are tried first, then smaller shares: few questions if few variables matter.
    """
    kept, share = sorted(start), 2
    while len(kept) > 1:
        size = -(-len(kept) // share)
        blocks = [frozenset(kept[i : i + size]) for i in range(0, len(kept), size)]
        for block in blocks:
            rest = frozenset(kept) - block
            if abs(effects.unexplained(rest, known)) > tolerance:
                kept, share = sorted(rest), max(2, share - 1)
                break
        else:
            if size == 1:
                break
            share = min(2 * share, len(kept))
    return frozenset(kept)
