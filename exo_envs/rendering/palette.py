"""The colours of the pictures, and how a mask changes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Frame: TypeAlias = NDArray[np.uint8]  # (height, width, 3)
Colour: TypeAlias = tuple[int, int, int]

# The robot is gold and purple, kept cells are red and occupied ones green as in the paper's
# figure; nothing else has those colours, save the lights of machines (up is green, down is red).
GOLD: Colour = (240, 180, 30)
PURPLE: Colour = (106, 40, 150)
KEPT: Colour = (214, 40, 40)
OCCUPIED: Colour = (60, 176, 80)

MARK: Colour = (0, 200, 255)  # the ring around what else a mask keeps

GOAL: Colour = (255, 30, 150)
OBJECT: Colour = (244, 132, 40)
PORTER: Colour = (36, 98, 178)
CAP: Colour = (22, 44, 92)  # of the porters
WANDERER: Colour = (96, 178, 190)
TECHNICIAN: Colour = (70, 96, 128)
HELMET: Colour = (252, 252, 252)
UP: Colour = (40, 190, 80)
DOWN: Colour = (230, 40, 40)
LIT: Colour = (150, 225, 255)
SKIN: Colour = (238, 206, 178)
TABLE: Colour = (166, 120, 78)

FLOOR: Colour = (242, 240, 234)
FLOOR_OTHER: Colour = (230, 227, 219)
GROUT: Colour = (206, 203, 194)
WALL: Colour = (84, 90, 102)
INK: Colour = (40, 42, 50)
PAPER: Colour = (255, 255, 255)
FADED: Colour = (200, 199, 194)


def mix(colour: Colour, other: Colour, share: float) -> Colour:
    """``colour`` with a ``share`` of ``other`` in it.

    >>> mix((0, 0, 0), (200, 100, 0), 0.5)
    (100, 50, 0)
    """
    red, green, blue = (
        round((1 - share) * mine + share * yours) for mine, yours in zip(colour, other, strict=True)
    )
    return red, green, blue


def faded(colour: Colour) -> Colour:
    """The grey that stands for ``colour`` where a mask ignores the thing."""
    light = round(0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2])
    return mix((light, light, light), FADED, 0.8)


class Emphasis:
    """What a mask does to a picture: it fades the things whose variables it drops.

    >>> without, with_mask = Emphasis(None), Emphasis(["weather"])
    >>> without.paint(GOLD, "guard") == GOLD == with_mask.paint(GOLD, "weather", "guard")
    True
    >>> without.marks("weather"), with_mask.marks("weather"), with_mask.marks("guard")
    (False, True, False)
    """

    def __init__(self, mask: Iterable[str] | None) -> None:
        self._names = None if mask is None else frozenset(mask)

    def marks(self, *names: str) -> bool:
        """Whether the mask keeps one of these variables of a thing."""
        return self._names is not None and not self._names.isdisjoint(names)

    def paint(self, colour: Colour, *names: str) -> Colour:
        """The colour of a thing with these variables, or with none, which no mask fades."""
        drops = self._names is not None and bool(names) and self._names.isdisjoint(names)
        return faded(colour) if drops else colour
