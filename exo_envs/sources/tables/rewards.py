"""Which columns a reward looks at: said by the user, or found by changing columns.

The reward can be asked about any x, recorded or not. So take rows that were recorded, give one
column the values that it has in other rows, and see whether what is paid changes. Two columns pay
*together* if changing both does not add up to changing each. Columns that pay together make one
term; a reward that is a sum of such terms is split into them exactly: with a row x° of the record,

    R(n, a, x) = R(n, a, x°) + sum over groups g of  R(n, a, x° with x_g) - R(n, a, x°).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import FloatArray
from exo_envs.sources.tables.functions import Interface, Scope, as_scopes

#: A difference of rewards, as a share of the largest one, that counts as one.
TOLERANCE = 1e-9
#: Columns that may pay together at most, unless the user says which do.
MAX_TOGETHER = 3

Asked = tuple[NDArray[Any], NDArray[np.int64], NDArray[Any]]  # n (B, k), a (B,), x (B, m)
_HOW_TO_WRITE = (
    "Let reward return a mapping from scopes to arrays, such as {('price', 'load'): ..., "
    "('weather',): ..., (): what depends on no column}"
)


class Probes(NamedTuple):
    """States to ask about, with x of the record."""

    n: NDArray[Any]  # (B, k)
    a: NDArray[np.int64]  # (B,)
    x: NDArray[Any]  # (B, m)
    other: NDArray[Any]  # (B, m): the x of other rows

    def changed(self, columns: Iterable[int] = ()) -> Asked:
        """The states with some columns of other rows."""
        columns, x = list(columns), self.x.copy()
        x[:, columns] = self.other[:, columns]
        return self.n, self.a, x


class NamedTerms:
    """A reward whose scopes the user says: a mapping from scopes, or one array of one scope."""

    def __init__(
        self, interface: Interface, probes: Probes, said: dict[Scope, Scope | None]
    ) -> None:
        self._interface, self._anywhere = interface, probes.x[:1]
        self._said = said  # the scopes, and under what the interface returns their terms
        self.scopes = tuple(scope for scope in said if scope)
        names, before = interface.exogenous_names, self._paid(probes.changed())
        for scope, values in before.items():
            outside = [j for j, name in enumerate(names) if name not in scope]
            if not _differ(values, self._paid(probes.changed(outside))[scope]).any():
                continue
            for j in outside:
                if _differ(values, self._paid(probes.changed([j]))[scope]).any():
                    raise ArgumentError(
                        f"the reward term of {scope} also looks at {names[j]!r}; its scope is "
                        f"{(*scope, names[j])}. {_HOW_TO_WRITE}"
                    )
            raise ArgumentError(f"the reward term of {scope} looks at columns outside its scope")

    def _paid(self, asked: Asked) -> dict[Scope, FloatArray]:
        found = self._interface.paid(*asked)
        if found.keys() != {*self._said.values()}:
            raise ArgumentError(
                f"reward returned terms for {sorted(map(str, found))}; before, it was "
                f"{sorted(map(str, self._said))}: the scopes are always the same"
            )
        return {scope: found[key] for scope, key in self._said.items()}

    def terms(self, n: NDArray[Any], a: NDArray[np.int64], x: NDArray[Any]) -> FloatArray:
        found = self._paid((n, a, x))
        terms = np.empty((len(n), len(self.scopes)))
        for j, scope in enumerate(self.scopes):
            terms[:, j] = found[scope]
        return terms

    def base(self, n: NDArray[Any], a: NDArray[np.int64]) -> FloatArray:
        """What is paid whatever x is, shape (B,): the term of the scope ()."""
        if () not in self._said:
            return np.zeros(len(n))
        return self._paid((n, a, np.repeat(self._anywhere, len(n), axis=0)))[()]


class SplitSum:
    """A reward that is one array, split into the groups of columns that it adds up from."""

    def __init__(self, interface: Interface, probes: Probes, scopes: tuple[Scope, ...]) -> None:
        self._interface, self.scopes = interface, scopes
        self._reference = probes.x[:1]
        names = interface.exogenous_names
        self._groups = [[names.index(name) for name in scope] for scope in scopes]
        columns = [j for group in self._groups for j in group]
        if len(set(columns)) != len(columns):
            raise ArgumentError(
                f"the scopes {scopes} share columns, so one array cannot be split into them; let "
                "reward return a mapping from scopes to arrays"
            )
        for asked in (probes.changed(), probes.changed(range(len(names)))):
            parts = self.base(*asked[:2]) + self.terms(*asked).sum(axis=-1)
            if _differ(_total(interface, asked), parts).any():
                raise ArgumentError(
                    f"the reward is no sum of terms with the scopes {scopes}: it looks at more "
                    f"columns, or some pay only together. {_HOW_TO_WRITE}"
                )

    def terms(self, n: NDArray[Any], a: NDArray[np.int64], x: NDArray[Any]) -> FloatArray:
        """What each group adds to the reward at x°; all are asked in one call."""
        parts = len(self._groups) + 1
        asked = np.repeat(self._reference, parts * len(n), axis=0)
        for g, group in enumerate(self._groups):
            asked[g * len(n) : (g + 1) * len(n), group] = x[:, group]
        paid = _total(self._interface, (np.tile(n, (parts, 1)), np.tile(a, parts), asked))
        blocks = paid.reshape(parts, len(n))
        return (blocks[:-1] - blocks[-1]).T

    def base(self, n: NDArray[Any], a: NDArray[np.int64]) -> FloatArray:
        """The reward at x°, shape (B,)."""
        return _total(self._interface, (n, a, np.repeat(self._reference, len(n), axis=0)))


RewardTerms: TypeAlias = NamedTerms | SplitSum


def split_reward(interface: Interface, probes: Probes, scopes: Any) -> RewardTerms:
    """The terms of a reward; see the module."""
    names = interface.exogenous_names
    first = interface.paid(*probes.changed())
    for scope, values in first.items():
        if not np.isfinite(values).all():
            term = "" if scope is None else f" for {scope}"
            raise ArgumentError(
                f"reward returned {values[~np.isfinite(values)][0]}{term}; rewards are finite "
                "numbers"
            )
    told = None if scopes is None else as_scopes(scopes, names)
    if None not in first:
        if told is not None and {*told} != {*first} - {()}:
            raise ArgumentError(
                f"reward returns terms for {list(first)}, but scopes={scopes!r}; leave scopes out"
            )
        return NamedTerms(interface, probes, {scope: scope for scope in first if scope is not None})
    if told is not None and len(told) == 1:
        return NamedTerms(interface, probes, {told[0]: None})
    groups = _groups(interface, probes) if told is None else told
    large = [group for group in groups if told is None and len(group) > MAX_TOGETHER]
    if large:
        raise ArgumentError(
            f"the reward looks at {', '.join(map(repr, large[0]))} together, which is more than "
            f"{MAX_TOGETHER} columns; plans would need tables of all of them. {_HOW_TO_WRITE}; or "
            f"say scopes=[{large[0]}] if that is what it is"
        )
    return SplitSum(interface, probes, groups)


def _groups(interface: Interface, probes: Probes) -> tuple[Scope, ...]:
    """Groups of columns that pay together, found pair by pair."""

    def paid(*changed: int) -> FloatArray:
        return _total(interface, probes.changed(changed))

    names, before = interface.exogenous_names, paid()
    alone = {j: paid(j) for j in range(len(names))}
    group = {j: {j} for j, values in alone.items() if _differ(before, values).any()}
    columns: Sequence[int] = list(group)
    for place, i in enumerate(columns):
        for j in columns[place + 1 :]:
            if group[i] is group[j]:
                continue
            if _differ(paid(i, j) + before, alone[i] + alone[j]).any():
                group[i] |= group[j]
                for k in group[j]:
                    group[k] = group[i]
    found = {id(members): members for members in group.values()}
    return tuple(tuple(names[j] for j in sorted(members)) for members in found.values())


def _total(interface: Interface, asked: Asked) -> FloatArray:
    found = interface.paid(*asked)
    if found.keys() != {None}:
        raise ArgumentError("reward returned a mapping; before, it was one array")
    return found[None]


def _differ(first: FloatArray, second: FloatArray) -> NDArray[np.bool_]:
    scale = max(
        1e-300, float(np.abs(first).max(initial=0.0)), float(np.abs(second).max(initial=0.0))
    )
    return np.abs(first - second) > TOLERANCE * scale
