"""Errors that name the offending value and the choices."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def unknown_name(kind: str, name: object, choices: Iterable[str]) -> ValueError:
    """An error for a name that does not exist, with the nearest one that does.

    >>> unknown_name("exogenous variable", "order_9", ["order_0", "machine_0"])
    ValueError("unknown exogenous variable 'order_9'; did you mean 'order_0'?")
    """
    choices = list(choices)
    near = difflib.get_close_matches(str(name), choices, n=1)
    if near:
        hint = f"did you mean {near[0]!r}?"
    elif len(choices) <= 12:
        hint = f"choose from {', '.join(map(repr, choices)) or 'nothing: there is none'}"
    else:
        hint = f"choose from {', '.join(map(repr, choices[:10]))} ... ({len(choices)} in all)"
    return ValueError(f"unknown {kind} {name!r}; {hint}")
