"""Which public functions, classes and methods the fuzzer calls."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from types import CodeType, FrameType
from typing import Any

PACKAGES = ("exo_envs", "planners", "wrappers")
#: What is public, by its ``__all__``.
PUBLIC = (
    *(
        "exo_envs",
        "exo_envs.domains.crowd",
        "exo_envs.domains.factory",
        "exo_envs.domains.grid",
        "exo_envs.domains.synthetic",
    ),
    *("exo_envs.testing", "planners", "wrappers", "wrappers.sb3"),
)
#: The first cases of every entry are watched; the others run at full speed.
WATCHED = 60
#: What is called only where there is PyBullet, which has no wheels for newer Pythons.
SOLID = ("corners", "key", "pose")


def public_code() -> dict[CodeType, set[str]]:
    """The code of all that is public, with the names that it has."""
    found: dict[CodeType, set[str]] = {}
    for module_name in PUBLIC:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            for path, code in _codes(f"{module_name}.{name}", getattr(module, name)):
                found.setdefault(code, set()).add(path)
    return found


def _codes(path: str, thing: Any) -> Iterator[tuple[str, CodeType]]:
    if getattr(thing, "_is_protocol", False):
        return
    if inspect.isfunction(thing):
        yield path, inspect.unwrap(thing).__code__
    if not inspect.isclass(thing):
        return
    for base in thing.__mro__:
        if base.__module__.partition(".")[0] not in PACKAGES:
            continue
        for name, member in vars(base).items():
            code = _code_of(member)
            if code is not None and not _is_left_out(thing, name, member):
                yield f"{path}.{name}", code


def _is_left_out(thing: type, name: str, member: Any) -> bool:
    """Whether it is not public, or a subclass has its own, or has to."""
    constructs = name in ("__init__", "__new__") and not inspect.isabstract(thing)
    if name.startswith("_") and not constructs and name != "__call__":
        return True
    if name in SOLID and sys.version_info >= (3, 12):
        return True
    abstract = getattr(member, "__isabstractmethod__", False)
    return abstract or inspect.getattr_static(thing, name) is not member


def _code_of(member: Any) -> CodeType | None:
    if isinstance(member, (classmethod, staticmethod)):
        member = member.__func__
    elif isinstance(member, property):
        member = member.fget
    elif isinstance(member, cached_property):
        member = member.func
    return member.__code__ if inspect.isfunction(member) else None


class Watch:
    """Notes which public code is run."""

    def __init__(self) -> None:
        self._public = public_code()
        self._left = set(self._public)
        self._news: set[str] = set()

    @contextmanager
    def during(self, number: int) -> Iterator[None]:
        """Look on, if the case is one of the first."""
        if number >= WATCHED or not self._left:
            yield
            return
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code in self._left:
            self._left.discard(code)
            self._news |= self._public[code]

    def news(self) -> list[str]:
        """The names that were reached since this was last asked."""
        news, self._news = sorted(self._news), set()
        return news


def all_names() -> set[str]:
    """The name of everything that is to be reached."""
    return set().union(*public_code().values())
