"""Tables and plots of what a learner found, with packages that not everybody has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exo_envs.core.errors import ArgumentTypeError


def pandas_frame(caller: str, cells: Sequence[Sequence[Any]], columns: Sequence[str]) -> Any:
    """A ``pandas.DataFrame``; without pandas, an error that says who needs it."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(f"{caller} needs pandas: pip install pandas") from error
    return pd.DataFrame([list(row) for row in cells], None, list(columns))


def axes(caller: str, ax: Any = None, *, width: float = 7.5, height: float = 4.0) -> Any:
    """Axes to draw on: those that are given, or new ones of ``matplotlib.pyplot``."""
    if ax is not None:
        if not hasattr(ax, "plot"):
            raise ArgumentTypeError(f"ax is axes of matplotlib, not {type(ax).__name__}")
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{caller} needs matplotlib: pip install matplotlib") from error
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, which ends with a line break."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(map(_cell, cells)) + " |\n" for cells in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def listed(names: Sequence[str], most: int) -> str:
    """Names, the first ones if there are many.

    >>> listed(["a", "b", "c"], 3), listed(["a", "b", "c", "d"], 2)
    ('a, b and c', 'a, b and 2 more')
    """
    shown = list(names) if len(names) <= most else [*names[:most], f"{len(names) - most} more"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def number(value: float) -> str:
    """A number for people.

    >>> number(222.22), number(0.32853), number(0.0), number(5.7e-05)
    ('222', '0.329', '0', '5.7e-05')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
