"""Numba's ``njit``, also where nothing can be written.

Compiled functions are kept beside their sources or in a folder of the user, so that only the first
process compiles. In a container both may be read-only, where Numba refuses to import a function
that is to be kept; or the disk is full, where it fails when the function is first called. Here the
function is compiled in every process instead, with one warning that says what helps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache as once
from typing import Any

import numba
from numba.core.caching import FunctionCache


def njit(
    signature: Any = None, *, cache: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles a function, as ``numba.njit`` with the same options.

    With a signature, or several, it is compiled at once, for these types and for no others.
    """

    def compile_(function: Callable[..., Any]) -> Any:
        compiled = numba.njit(**options)(function)
        if cache:
            try:
                # Numba does the same, with its own kind of cache, if it is asked to keep it.
                compiled._cache = _ForgivingCache(function)  # type: ignore[no-untyped-call]
            except RuntimeError:  # there is no folder for it
                _warn_of_no_cache()
        if signature is not None:
            for types in signature if isinstance(signature, list) else [signature]:
                compiled.compile(types)
            compiled.disable_compile()
        return compiled

    return compile_


class _ForgivingCache(FunctionCache):
    """Keeps compiled functions if it can."""

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled function to its file."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError:
            _warn_of_no_cache()


@once
def _warn_of_no_cache() -> None:
    warnings.warn(
        "compiled code cannot be kept, so that every process compiles anew, which may take a "
        "minute: the folders for it are read-only or full. Set the environment variable "
        "NUMBA_CACHE_DIR to a folder that can be written to.",
        RuntimeWarning,
        stacklevel=3,
    )
