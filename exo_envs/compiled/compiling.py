"""How long each thread has spent compiling: time that no time limit counts.

Kernels are compiled when they are first called, which takes seconds for each and happens once on a
machine; later processes read them from a cache. What is done within a time limit must not depend on
that. Numba tells when it compiles, so this holds for all compiled functions, those of a user's own
model included.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from numba.core import event
from numba.core.compiler_lock import global_compiler_lock


class Compiling:
    """The seconds that a thread has spent in the compiler, or waiting for it."""

    seconds = 0.0
    began = 0.0

    def working_time(self) -> float:
        """A clock, in seconds, that stands still while the thread compiles."""
        return time.perf_counter() - self.seconds


class _Threads(threading.local):
    def __init__(self) -> None:  # called once for each thread
        self.compiling = Compiling()


def this_thread() -> Compiling:
    """What the thread that calls this has spent."""
    return _THREADS.compiling


class _Listener(event.Listener):
    """Is told by Numba when a thread asks for the lock of the compiler, and when it gives it back.

    The lock is held while a function is compiled, and while it is read from or written to the
    cache. Whoever compiles takes it many times over, and only the outermost time counts. The lock
    itself says which that is: counting would go wrong for good if an interrupt swallowed an event.
    """

    def on_start(self, _: Any) -> None:
        if not global_compiler_lock.is_locked():  # by this thread
            this_thread().began = time.perf_counter()

    def on_end(self, _: Any) -> None:
        if not global_compiler_lock.is_locked():
            compiling = this_thread()
            compiling.seconds += time.perf_counter() - compiling.began


_THREADS = _Threads()
event.register("numba:compiler_lock", _Listener())
