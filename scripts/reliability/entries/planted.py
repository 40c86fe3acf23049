"""Failures that are planted, to see that the runner counts each for what it is."""

from __future__ import annotations

import os
import signal
import time

import numpy as np

from reliability.odd import Odd, UserError, Wrong
from reliability.registry import entry

#: The case of each that fails; the others are fine.
FAILING = 3


@entry("planted/crash", hidden=True, cases=8)
def crash(odd: Odd) -> None:
    if odd.number == FAILING:
        os.kill(os.getpid(), signal.SIGSEGV)


@entry("planted/abort", hidden=True, cases=8)
def abort(odd: Odd) -> None:
    if odd.number == FAILING:
        os.abort()


@entry("planted/hang", hidden=True, cases=8, limit=2.0)
def hang(odd: Odd) -> None:
    if odd.number == FAILING:
        time.sleep(3600)


@entry("planted/internal", hidden=True, cases=8)
def internal(odd: Odd) -> None:
    if odd.number == FAILING:
        np.zeros(3)[odd.number] = 1


@entry("planted/memory", hidden=True, cases=8)
def memory(odd: Odd) -> None:
    if odd.number == FAILING:
        np.ones(2**33)


@entry("planted/wrong", hidden=True, cases=8)
def wrong(odd: Odd) -> None:
    if odd.number == FAILING:
        raise Wrong("planted")


@entry("planted/exit", hidden=True, cases=8)
def leave(odd: Odd) -> None:
    if odd.number == FAILING:
        raise SystemExit("planted")


@entry("planted/user", hidden=True, cases=8)
def user(odd: Odd) -> None:
    if odd.number == FAILING:
        raise UserError("planted, and fine: it is the user's own")
