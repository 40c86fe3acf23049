"""Errors that name the offending value and the choices."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable
from importlib import import_module
from typing import Any

#: What ``copy.deepcopy`` raises of objects that cannot be copied.
UNCOPIABLE = (
    copy.Error,
    TypeError,
    ValueError,
    AttributeError,
    NotImplementedError,
    RecursionError,
)


class ExoError(Exception):
    """The base class of every error that this suite raises for its users to read."""


class ArgumentError(ExoError, ValueError):
    """A value that somebody handed in, or that a model returned, cannot be."""


class ArgumentTypeError(ExoError, TypeError):
    """Something that somebody handed in, or that a model returned, is of the wrong kind."""


class NotInstalledError(ExoError, ImportError):
    """A package that only some users need is not installed; the message says how to get it."""


def require(module: str, needed: str) -> Any:
    """An optional module; without it, an error that says what it is needed for and how to get it.

    >>> require("no_such_module", "A report about nothing needs it: pip install it")
    Traceback (most recent call last):
    exo_envs.core.errors.NotInstalledError: A report about nothing needs it: pip install it
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise NotInstalledError(needed) from error


class NoFileError(ExoError, FileNotFoundError):
    """A file that somebody named is not there."""


class ContractError(ExoError, AssertionError, ValueError):
    """A model broke a rule of the contract of :class:`exo_envs.ExoMDP`; ``rule`` names it."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(f"rule {rule!r} is broken: {message}")
        self.rule = rule


def unknown_name(kind: str, name: object, choices: Iterable[str]) -> ValueError:
    """An error for a name that does not exist, with the nearest one that does.

    >>> unknown_name("exogenous variable", "order_9", ["order_0", "machine_0"])
    ArgumentError("unknown exogenous variable 'order_9'; did you mean 'order_0'?")
    """
    return ArgumentError(f"unknown {kind} {name!r}; {hint_at(name, choices)}")


def hint_at(name: object, choices: Iterable[str]) -> str:
    """What to say about a name that does not exist: the nearest one that does, or all of them."""
    choices = list(choices)
    near = difflib.get_close_matches(str(name), choices, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    if len(choices) <= 12:
        return f"choose from {', '.join(map(repr, choices)) or 'nothing: there is none'}"
    return f"choose from {', '.join(map(repr, choices[:10]))} ... ({len(choices)} in all)"
