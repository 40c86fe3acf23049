"""Time limits that compiling does not use up.

How long a plan takes, and how good it gets within its time, must not depend on whether its kernels
were compiled before (:mod:`exo_envs.compiled.compiling`). So the clock of a plan stands still
meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from exo_envs.compiled.compiling import Compiling, this_thread
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
    TypeError: time_limit is a number of seconds or None, not 'soon'
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
    """What is left of a time limit, for the thread that made the clock.

    The clock stands still while this thread compiles, unless it is a wall clock.

    Args:
        limit: in seconds; None is no limit.
        wall: whether the time for compiling counts, too.
        watch: is called with each tick of this clock, and of those that it is :meth:`above`.
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
        self._compiling = Compiling() if wall else this_thread()
        self._watch = watch
        self._above = _ABOVE.get()
        self._start = self._compiling.working_time()

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
        if self.seconds() >= self._limit:
            raise OutOfTimeError

    @contextmanager
    def above(self) -> Iterator[None]:
        """Clocks that are made within also stop when this one does.

        So what is given a limit of its own keeps to this one, too, also if that is a wall clock.
        """
        token = _ABOVE.set(self)
        try:
            yield
        finally:
            _ABOVE.reset(token)


_ABOVE: ContextVar[Clock | None] = ContextVar("above", default=None)


def is_time_up() -> bool:
    """Whether the time of a clock that is :meth:`~Clock.above` has run out."""
    clock = _ABOVE.get()
    return clock is not None and clock.left() == 0.0
