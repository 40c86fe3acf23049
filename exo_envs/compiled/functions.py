"""Numba's ``njit``, also where nothing can be written.

Numba keeps compiled functions beside their sources or in a folder of the user, so that only the
first process compiles. In a container both may be read-only, where Numba refuses to import a
function that is to be kept. Here the function is compiled in every process instead, with one
warning that says what helps.

Compiling takes most of the time of a first run, so it is kept short: functions get no entry from C,
which nothing here needs, and garbage is collected once after a function is compiled.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from functools import cache as once
from typing import Any
from weakref import WeakSet

import numba
from numba.core import event

#: Options of functions that only compiled functions call. They have no entry from Python, and are
#: kept as a part of their callers.
INNER = {"no_cpython_wrapper": True}


def njit(
    signature: Any = None, *, cache: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles a function, as ``numba.njit`` with the same options.

    With a signature it takes arguments of these types and of no others.
    """

    def compile_(function: Callable[..., Any]) -> Any:
        settings = {"no_cfunc_wrapper": True, **options}
        try:
            compiled = numba.njit(signature, cache=cache, **settings)(function)
        except RuntimeError:  # there is no folder for it
            _warn_of_no_cache()
            compiled = numba.njit(signature, **settings)(function)
        _COLLECT_LATER.functions.add(compiled)
        return compiled

    return compile_


class _CollectLater(event.Listener):
    """Puts off the collection of garbage while a function of this project is compiled.

    Numba makes millions of objects on the way, and Python would go through all of them again and
    again, which takes a tenth of the time. Numba compiles under a lock, one function at a time.
    """

    def __init__(self) -> None:
        self.functions: WeakSet[Any] = WeakSet()
        self._outermost: Any = None  # the event of the function whose callees are compiled as well

    def on_start(self, event: Any) -> None:
        ours = event.data["dispatcher"] in self.functions
        if ours and self._outermost is None and gc.isenabled():
            self._outermost = event.data
            gc.disable()

    def on_end(self, event: Any) -> None:
        if self._outermost is event.data:
            self._outermost = None
            gc.enable()


_COLLECT_LATER = _CollectLater()
event.register("numba:compile", _COLLECT_LATER)


@once
def _warn_of_no_cache() -> None:
    warnings.warn(
        "compiled code cannot be kept, so that every process compiles anew, which may take a "
        "minute: the folders for it are read-only. Set the environment variable "
        "NUMBA_CACHE_DIR to a folder that can be written to.",
        RuntimeWarning,
        stacklevel=3,
    )
