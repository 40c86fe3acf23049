"""Numba's ``njit``, also where nothing can be written.

Compiled functions are kept beside their sources or in a folder of the user, so that only the first
process compiles. In a container both may be read-only, where Numba refuses to import a function
that is to be kept; or the disk is full, where it fails when the function is first called. Here the
function is compiled in every process instead, with one warning that says what helps.

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
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock

#: Options of functions that only compiled functions call. They have no entry from Python, and are
#: kept as a part of their callers.
INNER = {"no_cpython_wrapper": True}


def njit(
    signature: Any = None, *, cache: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles a function, as ``numba.njit`` with the same options.

    With a signature, or several, it takes arguments of these types and of no others. Each is
    compiled when it is first called with exactly these types; and all are, to find the one that
    fits best, when it is first called with others.
    """

    def compile_(function: Callable[..., Any]) -> Any:
        compiled = numba.njit(**{"no_cfunc_wrapper": True, **options})(function)
        if cache:
            try:
                # Numba does the same, with its own kind of cache, if it is asked to keep it.
                compiled._cache = _ForgivingCache(function)  # type: ignore[no-untyped-call]
            except RuntimeError:  # there is no folder for it
                _warn_of_no_cache()
        _COLLECT_LATER.functions.add(compiled)
        if signature is not None:
            _fix(compiled, signature if isinstance(signature, list) else [signature])
        return compiled

    return compile_


def _fix(compiled: Any, signatures: list[Any]) -> None:
    """Compile a function for these signatures only, and for those that are asked for."""
    by_types = {tuple(signature.args): signature for signature in signatures}
    all_compiled = False

    def compile_for(*arguments: Any) -> Any:
        nonlocal all_compiled
        with global_compiler_lock:  # another thread may have been faster
            if not all_compiled:
                signature = by_types.get(tuple(map(compiled.typeof_pyval, arguments)))
                if signature is not None:
                    return compiled.compile(signature)
                for signature in signatures:
                    compiled.compile(signature)
                compiled.disable_compile()
                all_compiled = True
        return compiled  # Numba calls it again, which finds the best of them or refuses

    compiled._compile_for_args = compile_for


class _ForgivingCache(FunctionCache):
    """Keeps compiled functions if it can."""

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled function to its file."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError:
            _warn_of_no_cache()


class _CollectLater(event.Listener):
    """Puts off the collection of garbage while a function of this project is compiled.

    Numba makes millions of objects on the way, and Python would go through all of them again and
    again, which takes a tenth of the time. Numba compiles under a lock, one function at a time.
    """

    def __init__(self) -> None:
        self.functions: WeakSet[Any] = WeakSet()
        self._outermost: Any = None  # the event of the function whose callees are compiled as well

    def on_start(self, event: Any) -> None:
        """A function is about to be compiled."""
        ours = event.data["dispatcher"] in self.functions
        if ours and self._outermost is None and gc.isenabled():
            self._outermost = event.data
            gc.disable()

    def on_end(self, event: Any) -> None:
        """A function is compiled, or could not be."""
        if self._outermost is event.data:
            self._outermost = None
            gc.enable()


_COLLECT_LATER = _CollectLater()
event.register("numba:compile", _COLLECT_LATER)


@once
def _warn_of_no_cache() -> None:
    warnings.warn(
        "compiled code cannot be kept, so that every process compiles anew, which may take a "
        "minute: the folders for it are read-only or full. Set the environment variable "
        "NUMBA_CACHE_DIR to a folder that can be written to.",
        RuntimeWarning,
        stacklevel=3,
    )
