"""Time limits: one :class:`Clock`, and :func:`tick` wherever something may take long.

A clock that is :meth:`~Clock.above` limits everything done below it: models that count their
questions, environments before each step, memories and planners call :func:`tick`, which raises an
:class:`OutOfTimeError` when the time is up. So nobody has to be told about a limit.

How long a plan takes, and how good it gets within its time, must not depend on whether its kernels
were compiled before: that takes seconds for each, once on a machine. So clocks stand still
meanwhile. Numba tells when it compiles, the functions of a user's own model included.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np

from exo_envs.core.errors import ArgumentError, ArgumentTypeError, ExoError

#: Says what goes on, for people; only asked when somebody wants to know.
Doing = Callable[[], str]


class OutOfTimeError(ExoError, TimeoutError):
    """A clock ran out; planners and learners catch it and return what they have.

    Who has nothing to return by then, such as :func:`planners.estimate_objective`, says so in it.
    """


def check_time_limit(name: str, limit: Any, *, positive: bool = False) -> float | None:
    """A number of seconds as a Python float; None and infinity are no limit.

    >>> check_time_limit("time_limit", "soon")
    Traceback (most recent call last):
    exo_envs.core.errors.ArgumentTypeError: time_limit is a number of seconds or None, not 'soon'
    """
    if limit is None:
        return None
    number = isinstance(limit, (int, float, np.integer, np.floating))
    if not number or isinstance(limit, bool):
        raise ArgumentTypeError(f"{name} is a number of seconds or None, not {limit!r}")
    if not (limit > 0 if positive else limit >= 0):
        choices = "more than 0" if positive else "at least 0"
        raise ArgumentError(f"{name} is a number of seconds, {choices}, or None, not {limit!r}")
    return float(limit)


class Clock:
    """The rest of a time limit, for the thread that made the clock.

    The clock stands still while this thread compiles, unless it is a wall clock.

    Args:
        limit: in seconds; None is no limit.
        wall: whether the time for compiling counts, too.
        watch: is called with each tick of this clock, and of those that it is :meth:`above`.

    Attributes:
        ends: ticks raise from this time on, in seconds since the start; before the limit where
            part of the time is kept for something else.
    """

    def __init__(
        self,
        limit: float | None,
        *,
        wall: bool = False,
        watch: Callable[[Doing], object] | None = None,
    ) -> None:
        limit = check_time_limit("time_limit", limit)
        self._limit = math.inf if limit is None else limit
        self._compiling = _Compiling() if wall else _threads().compiling
        self._watch = watch
        self._above = _ABOVE.get()
        self._start = self._compiling.working_time()
        self.ends = self._limit

    def seconds(self) -> float:
        """The time since the start."""
        return self._compiling.working_time() - self._start

    def left(self) -> float | None:
        """The seconds that are left, also of a clock above this one; None if there is no limit."""
        above = None if self._above is None else self._above.left()
        if self._limit == math.inf:
            return above
        own = max(0.0, self._limit - self.seconds())
        return own if above is None else min(own, above)

    def tick(self, doing: Doing = str) -> None:
        """Raise an :class:`OutOfTimeError` if the time is up, of this clock or of one above it."""
        if self._above is not None:
            self._above.tick(doing)
        if self._watch is not None:
            self._watch(doing)
        if self.seconds() >= self.ends:
            raise OutOfTimeError

    @contextmanager
    def above(self) -> Iterator[None]:
        """Limit everything within: :func:`tick`, and clocks that are made there.

        What is given a limit of its own keeps to this one, too, also if this is a wall clock.
        """
        token = _ABOVE.set(self)
        try:
            yield
        finally:
            _ABOVE.reset(token)


_ABOVE: ContextVar[Clock | None] = ContextVar("above", default=None)


def tick() -> None:
    """Raise an :class:`OutOfTimeError` if the time of a clock :meth:`~Clock.above` is up."""
    clock = _ABOVE.get()
    if clock is not None:
        clock.tick()


def working_time() -> float:
    """The time in seconds without that for which this thread has been compiling."""
    return _threads().compiling.working_time()


class _Compiling:
    """The seconds that a thread has spent in the compiler, or waiting for it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.began: list[tuple[float, float]] = []  # when, and the seconds by then

    def working_time(self) -> float:
        """A clock, in seconds, that stands still while the thread compiles."""
        return time.perf_counter() - self.seconds


class _Threads(threading.local):
    def __init__(self) -> None:  # called once for each thread
        self.compiling = _Compiling()


@cache
def _threads() -> _Threads:
    """The time that each thread has spent, as Numba tells from now on.

    The lock of the compiler is held while a function is compiled, and while it is read from or
    written to the cache. A thread takes it many times over: the time of what happens within is
    replaced by that of the whole. So a start whose end an interrupt has swallowed spoils nothing.
    """
    from numba.core import event  # not before a clock is wanted

    threads = _Threads()

    class Listener(event.Listener):
        def on_start(self, _: Any) -> None:
            own = threads.compiling
            own.began.append((time.perf_counter(), own.seconds))

        def on_end(self, _: Any) -> None:
            own = threads.compiling
            if own.began:
                began, seconds = own.began.pop()
                own.seconds = seconds + time.perf_counter() - began

    event.register("numba:compiler_lock", Listener())
    return threads
