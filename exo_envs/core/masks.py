"""Masks, in every form in which people write them."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Set
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from exo_envs.core.arguments import shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, hint_at
from exo_envs.core.mdp import ExoMDP


def as_mask(mdp: ExoMDP, mask: Any) -> tuple[str, ...]:
    """Check a mask over the exogenous variables of ``mdp``.

    A mask is any collection of names (``["object", "guard"]``), of patterns as in file names
    (``["occupancy_*", "object_?"]``), or of both; or of indices; or of booleans, one for each
    variable; or a mapping from names to booleans, in which those that are not named are left out.
    A name that a variable has is no pattern, and is given once; patterns may overlap with anything.

    >>> from exo_envs.domains.grid import GridMDP
    >>> as_mask(GridMDP(), ["guard*", "object"])
    ('object', 'guard', 'guard_intent')
    >>> as_mask(GridMDP(), {"object": True, "weather": False})
    ('object',)

    Returns:
        The names of the variables that the mask keeps, in the order of the model.

    Raises:
        TypeError: if it is something else, or a mixture.
        ValueError: if a variable does not exist, or is given twice.
    """
    names = mdp.exogenous_names
    if isinstance(mask, Mapping):
        wrong = [value for value in mask.values() if not isinstance(value, (bool, np.bool_))]
        if wrong:
            raise ArgumentTypeError(
                f"a mapping as a mask has True or False for a name, not {wrong[0]!r}"
            )
        mdp.exogenous_indices(list(mask))
        return tuple(name for name in names if mask.get(name, False))
    entries = _entries(mask)
    kinds = {_kind(entry) for entry in entries}
    if len(kinds) > 1:
        raise ArgumentTypeError(
            f"a mask has names, indices or booleans, not {' and '.join(sorted(kinds))}"
        )
    if kinds == {"booleans"}:
        if isinstance(mask, Set):
            raise ArgumentTypeError(f"a set of booleans is no mask: it has no order, {mask!r}")
        if len(entries) != len(names):
            raise ArgumentError(f"a boolean mask has {len(names)} entries, not {len(entries)}")
        return tuple(name for name, kept in zip(names, entries, strict=True) if kept)
    if kinds == {"indices"}:
        indices = [operator.index(entry) for entry in entries]
        wrong = [index for index in indices if not 0 <= index < len(names)]
        if wrong:
            raise ArgumentError(
                f"there is no variable {wrong[0]}; indices are 0 ... {len(names) - 1}"
            )
        given = [names[index] for index in indices]
        matched: set[str] = set()
    else:
        known = frozenset(names)
        patterns = {entry for entry in entries if entry not in known and set(entry) & set("*?[")}
        given = [str(entry) for entry in entries if entry not in patterns]
        mdp.exogenous_indices(given)
        matched = {name for pattern in sorted(patterns) for name in _matching(names, pattern)}
    if len(set(given)) != len(given):
        raise _given_twice(given, entries, names)
    kept = matched.union(given)
    return tuple(name for name in names if name in kept)


def _given_twice(given: list[str], entries: list[Any], names: tuple[str, ...]) -> ValueError:
    """What is wrong if a name is there twice; flags that are no booleans look like that."""
    twice = next(name for name in given if given.count(name) > 1)
    hint = ""
    if len(entries) == len(names) and all(entry in (0, 1) for entry in entries):
        flags = ", ".join(str(bool(entry)) for entry in entries[:3])
        hint = f": these are indices; if they are flags, give booleans, [{flags}, ...]"
    return ArgumentError(f"the mask names {twice!r} more than once{hint}")


def _entries(mask: Any) -> list[Any]:
    """What a mask holds."""
    if isinstance(mask, (str, bytes, bytearray, memoryview)):
        what = "bytes in memory" if isinstance(mask, memoryview) else f"the string {mask!r}"
        raise ArgumentTypeError(f"a mask is a sequence of names, not {what}")
    try:
        return list(mask)
    except TypeError:
        raise ArgumentTypeError(f"a mask is a sequence of names, not {shown(mask)}") from None


def _kind(entry: Any) -> str:
    """What an entry of a mask is."""
    if isinstance(entry, str):
        return "names"
    if isinstance(entry, (bool, np.bool_)):
        return "booleans"
    if isinstance(entry, (int, np.integer)):
        return "indices"
    raise ArgumentTypeError(f"a mask has names, indices or booleans, not {shown(entry)}")


def _matching(names: tuple[str, ...], pattern: str) -> list[str]:
    """The names that a pattern matches, at least one."""
    found = [name for name in names if fnmatchcase(name, pattern)]
    if not found:
        raise ArgumentError(f"no exogenous variable matches {pattern!r}; {hint_at(pattern, names)}")
    return found
