"""How plots of results look, and how they become files: the same results, the same bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import matplotlib as mpl
from matplotlib.figure import Figure

Format = Literal["png", "svg"]

#: Okabe and Ito's colours, which the colour-blind can tell apart.
COLOURS = {
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "yellow": "#F0E442",
    "black": "#000000",
}

LOOKS = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "svg.hashsalt": "exo-envs",
}


@contextmanager
def new_figure() -> Iterator[Figure]:
    """A figure; what is drawn meanwhile looks like the others."""
    with mpl.rc_context(LOOKS):
        yield Figure(figsize=(6.0, 3.6), layout="constrained")


def bytes_of(figure: Figure, image_format: Format) -> bytes:
    """The file that the figure makes, without a date."""
    stream = io.BytesIO()
    metadata = {"Date": None} if image_format == "svg" else {"Software": None}
    figure.savefig(stream, format=image_format, dpi=150, metadata=metadata)
    return stream.getvalue()
