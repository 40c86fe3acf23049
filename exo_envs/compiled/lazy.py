"""Modules that are imported when something of theirs is first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module until one of its names is asked for.

    Compiled functions need Numba, which takes longer to import than everything else. Whoever only
    makes an environment, or asks for its spaces, does not wait for that.

    >>> json = LazyModule("json")
    >>> json.dumps([1])
    '[1]'
    """

    def __init__(self, name: str) -> None:
        """Take the whole name of the module."""
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        """Import the module, and keep what was asked for."""
        if attribute.startswith("_"):  # of this object, when it is copied or pickled
            raise AttributeError(attribute)
        value = getattr(import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value
