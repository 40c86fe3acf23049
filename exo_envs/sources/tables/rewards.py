"""Which columns a reward looks at: said by the user, or found by changing columns.

The reward can be asked about any x, recorded or not. So take rows that were recorded, give one
column the values that it has in other rows, and see whether what is paid changes. Two columns pay
*together* if changing both does not add up to changing each. Columns that pay together make one
term; a reward that is a sum of such terms is split into them exactly: with a row x° of the record,

    R(n, a, x) = R(n, a, x°) + sum over groups g of  R(n, a, x° with x_g) - R(n, a, x°).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import FloatArray
from exo_envs.sources.tables.functions import Interface, as_scopes

#: States in which a column is changed.
NUM_PROBES = 2048
#: A difference of rewards, as a share of the largest one, that counts as one.
TOLERANCE = 1e-9
#: Columns that may pay together at most, unless the user says which do.
MAX_TOGETHER = 3

Scope = tuple[str, ...]
Asked = tuple[NDArray[Any], NDArray[np.int64], NDArray[Any]]  # n (B, k), a (B,), x (B, m)


class Probes(NamedTuple):
    """States to ask about, with x of the record."""

    n: NDArray[Any]  # (B, k)
    a: NDArray[np.int64]  # (B,)
    x: NDArray[Any]  # (B, m)
    other: NDArray[Any]  # (B, m): the x of other rows

    def changed(self, columns: Sequence[int]) -> Asked:
        """The states with some columns of other rows."""
        x = self.x.copy()
        x[:, columns] = self.other[:, columns]
        return self.n, self.a, x


class RewardRule(ABC):
    """A reward as terms of few columns each, and what depends on none."""

    scopes: tuple[Scope, ...]

    @abstractmethod
    def terms(self, n: NDArray[Any], a: NDArray[np.int64], x: NDArray[Any]) -> FloatArray:
        """What each term pays, shape (B, scopes)."""

    @abstractmethod
    def base(self, n: NDArray[Any], a: NDArray[np.int64]) -> FloatArray:
        """What is paid whatever x is, shape (B,)."""


class NamedTerms(RewardRule):
    """The user's function says what each scope pays."""

    def __init__(
        self, interface: Interface, reward: Callable[..., Any], probes: Probes, scopes: Any
    ) -> None:
        self._interface, self._reward = interface, reward
        self._anywhere = probes.x[:1]
        said = tuple(interface.paid(reward, probes.n, probes.a, probes.x))
        if scopes is not None and set(as_scopes(scopes, _names(interface))) != {*said} - {()}:
            raise ArgumentError(
                f"reward returns terms for {list(said)}, but scopes={scopes!r}; leave scopes out"
            )
        self._has_base = () in said
        self._said = frozenset(said)
        self.scopes = tuple(scope for scope in said if scope)
        self._check(probes)

    def _paid(self, asked: Asked) -> dict[Any, FloatArray]:
        found = self._interface.paid(self._reward, *asked)
        if found.keys() != self._said:
            raise ArgumentError(
                f"reward returned terms for {sorted(map(str, found))}; before, it was "
                f"{sorted(map(str, self._said))}: the scopes are always the same"
            )
        return found

    def _check(self, probes: Probes) -> None:
        """Refuse a term that looks at a column outside its scope."""
        names, before = _names(self._interface), self._paid((probes.n, probes.a, probes.x))
        for scope, values in before.items():
            outside = [j for j, name in enumerate(names) if name not in scope]
            if not _differ(values, self._paid(probes.changed(outside))[scope]).any():
                continue
            for j in outside:
                if _differ(values, self._paid(probes.changed([j]))[scope]).any():
                    raise ArgumentError(
                        f"the reward term of {scope} also looks at {names[j]!r}; its scope is "
                        f"{(*scope, names[j])}"
                    )
            raise ArgumentError(f"the reward term of {scope} looks at columns outside its scope")

    def terms(self, n: NDArray[Any], a: NDArray[np.int64], x: NDArray[Any]) -> FloatArray:
        """As the function says."""
        found = self._paid((n, a, x))
        terms = np.empty((len(n), len(self.scopes)))
        for j, scope in enumerate(self.scopes):
            terms[:, j] = found[scope]
        return terms

    def base(self, n: NDArray[Any], a: NDArray[np.int64]) -> FloatArray:
        """The term of the scope (), which is the same for any x."""
        if not self._has_base:
            return np.zeros(len(n))
        return self._paid((n, a, np.repeat(self._anywhere, len(n), axis=0)))[()]


class SplitSum(RewardRule):
    """A reward that is one array, split into the groups of columns that it adds up from."""

    def __init__(
        self,
        interface: Interface,
        reward: Callable[..., Any],
        probes: Probes,
        scopes: tuple[Scope, ...],
    ) -> None:
        self._interface, self._reward = interface, reward
        self._reference = probes.x[0]
        self.scopes = scopes
        names = _names(interface)
        self._groups = [[names.index(name) for name in scope] for scope in scopes]
        columns = [j for group in self._groups for j in group]
        if len(set(columns)) != len(columns):
            raise ArgumentError(
                f"the scopes {scopes} share columns, so one array cannot be split into them; let "
                "reward return a mapping from scopes to arrays"
            )
        for asked in ((probes.n, probes.a, probes.x), probes.changed(range(len(names)))):
            parts = self.base(*asked[:2]) + self.terms(*asked).sum(axis=-1)
            if _differ(self._paid(asked), parts).any():
                raise ArgumentError(
                    f"the reward is no sum of terms with the scopes {scopes}: it looks at more "
                    f"columns, or some pay only together. {_HOW_TO_WRITE}"
                )

    def _paid(self, asked: Asked) -> FloatArray:
        found = self._interface.paid(self._reward, *asked)
        if found.keys() != {None}:
            raise ArgumentError("reward returned a mapping; before, it was one array")
        return found[None]

    def base(self, n: NDArray[Any], a: NDArray[np.int64]) -> FloatArray:
        """The reward at x°."""
        return self._paid((n, a, np.repeat(self._reference[None], len(n), axis=0)))

    def terms(self, n: NDArray[Any], a: NDArray[np.int64], x: NDArray[Any]) -> FloatArray:
        """What each group adds to the reward at x°; all are asked in one call."""
        parts = len(self._groups) + 1
        asked = np.repeat(self._reference[None], parts * len(n), axis=0)
        for g, group in enumerate(self._groups):
            asked[g * len(n) : (g + 1) * len(n), group] = x[:, group]
        paid = self._paid((np.tile(n, (parts, 1)), np.tile(a, parts), asked))
        blocks = paid.reshape(parts, len(n))
        return (blocks[:-1] - blocks[-1]).T


class Whole(RewardRule):
    """A reward that is one array and one term."""

    def __init__(
        self, interface: Interface, reward: Callable[..., Any], probes: Probes, scope: Scope
    ) -> None:
        self._interface, self._reward = interface, reward
        self.scopes = (scope,)
        names = _names(interface)
        inside = [names.index(name) for name in scope]
        outside = [j for j in range(len(names)) if j not in inside]
        before, after = (self.terms(*asked) for asked in ((*probes[:3],), probes.changed(outside)))
        if _differ(before, after).any():
            looked = columns_seen(interface, reward, probes)
            raise ArgumentError(
                f"the reward has the scope {scope}, but it looks at {looked}. {_HOW_TO_WRITE}"
            )

    def base(self, n: NDArray[Any], a: NDArray[np.int64]) -> FloatArray:
        """Nothing."""
        return np.zeros(len(n))

    def terms(self, n: NDArray[Any], a: NDArray[np.int64], x: NDArray[Any]) -> FloatArray:
        """The reward."""
        found = self._interface.paid(self._reward, n, a, x)
        if found.keys() != {None}:
            raise ArgumentError("reward returned a mapping; before, it was one array")
        return found[None][:, None]


_HOW_TO_WRITE = (
    "Let reward return a mapping from scopes to arrays, such as {('price', 'load'): ..., "
    "('weather',): ..., (): what depends on no column}"
)


def find_rule(
    interface: Interface, reward: Callable[..., Any], probes: Probes, scopes: Any
) -> RewardRule:
    """The terms of a reward; see the module."""
    first = interface.paid(reward, *probes[:3])
    for scope, values in first.items():
        if not np.isfinite(values).all():
            term = "" if scope is None else f" for {scope}"
            raise ArgumentError(
                f"reward returned {values[~np.isfinite(values)][0]}{term}; rewards are finite "
                "numbers"
            )
    if None not in first:
        return NamedTerms(interface, reward, probes, scopes)
    if scopes is not None:
        given = as_scopes(scopes, _names(interface))
        if len(given) == 1:
            return Whole(interface, reward, probes, given[0])
        return SplitSum(interface, reward, probes, given)
    groups = _together(interface, reward, probes, columns_seen(interface, reward, probes))
    large = [group for group in groups if len(group) > MAX_TOGETHER]
    if large:
        raise ArgumentError(
            f"the reward looks at {', '.join(map(repr, large[0]))} together, which is more than "
            f"{MAX_TOGETHER} columns; plans would need tables of all of them. {_HOW_TO_WRITE}; or "
            f"say scopes=[{large[0]}] if that is what it is"
        )
    return SplitSum(interface, reward, probes, tuple(groups))


def columns_seen(interface: Interface, reward: Callable[..., Any], probes: Probes) -> list[str]:
    """The columns that change what is paid, if they change alone."""
    before = interface.paid(reward, *probes[:3])[None]
    return [
        name
        for j, name in enumerate(_names(interface))
        if _differ(before, interface.paid(reward, *probes.changed([j]))[None]).any()
    ]


def _together(
    interface: Interface, reward: Callable[..., Any], probes: Probes, seen: Sequence[str]
) -> list[Scope]:
    """Groups of columns that pay together, found pair by pair."""
    names = _names(interface)
    columns = [names.index(name) for name in seen]

    def paid(changed: Sequence[int]) -> FloatArray:
        return interface.paid(reward, *probes.changed(list(changed)))[None]

    none, each = paid(()), {j: paid([j]) for j in columns}
    group = {j: {j} for j in columns}
    for place, i in enumerate(columns):
        for j in columns[place + 1 :]:
            alone = each[i] + each[j]
            if group[i] is not group[j] and _differ(paid([i, j]) + none, alone).any():
                group[i] |= group[j]
                for k in group[j]:
                    group[k] = group[i]
    found = {id(members): members for members in group.values()}
    return [tuple(names[j] for j in sorted(members)) for members in found.values()]


def _names(interface: Interface) -> list[str]:
    return [coding.name for coding in interface.codings]


def _differ(first: FloatArray, second: FloatArray) -> NDArray[np.bool_]:
    scale = max(
        1e-300, float(np.abs(first).max(initial=0.0)), float(np.abs(second).max(initial=0.0))
    )
    return np.abs(first - second) > TOLERANCE * scale
