"""The list of entries: each is a way in that strangers have, tried with odd inputs."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reliability.odd import Odd

Attempt = Callable[[Odd], Any]


@dataclass(frozen=True)
class Entry:
    """One way in.

    Attributes:
        name: of the entry, ``area/what``.
        run: makes one attempt; all that is odd about it comes from its argument.
        limit: seconds that an attempt may take. It includes what is compiled on the way.
        weight: the share of the time that the entry gets, relative to the others.
        cases: how many there are, if they are numbered by a catalogue; None if there is no end.
        hidden: whether it is left out unless asked for by name.
    """

    name: str
    run: Attempt
    limit: float
    weight: float
    cases: int | None
    hidden: bool


ENTRIES: dict[str, Entry] = {}


def entry(
    name: str,
    *,
    limit: float = 30.0,
    weight: float = 1.0,
    cases: int | None = None,
    hidden: bool = False,
) -> Callable[[Attempt], Attempt]:
    """Put a function on the list."""

    def register(run: Attempt) -> Attempt:
        if name in ENTRIES:
            raise ValueError(f"there are two entries called {name!r}")
        ENTRIES[name] = Entry(name, run, limit, weight, cases, hidden)
        return run

    return register


def odd_of(name: str, number: int, seed: int) -> Odd:
    """What case ``number`` of an entry is made from: a function of these three alone."""
    return Odd(np.random.default_rng([seed, zlib.crc32(name.encode()), number]), number)


def chosen(patterns: list[str]) -> list[Entry]:
    """The entries whose name is, or begins with, one of the patterns; all if there are none."""
    if not patterns:
        return [one for one in ENTRIES.values() if not one.hidden]
    found: dict[str, Entry] = {}
    for pattern in patterns:
        fitting = {k: one for k, one in ENTRIES.items() if k == pattern}
        fitting = fitting or {k: one for k, one in ENTRIES.items() if k.startswith(pattern)}
        if not fitting:
            known = ", ".join(k for k, one in ENTRIES.items() if not one.hidden)
            raise SystemExit(f"error: no entry is called {pattern!r}; there are: {known}")
        found |= fitting
    return list(found.values())
