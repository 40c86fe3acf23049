"""What stands on a floor, and where: said once, for flat pictures and for scenes in 3-D."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, TypeAlias

from exo_envs.rendering.palette import PAPER, Colour

Point: TypeAlias = tuple[float, float]

TABLE_TOP = (0.84, 0.42)  # the width and depth of a table
TABLE_HEIGHT = 0.26
MACHINE_TOP = (0.78, 0.40)
MACHINE_HEIGHT = 0.5


class Thing(NamedTuple):
    """A thing on a floor plan: x to the right, y downwards, a cell is one unit wide."""

    kind: Literal["robot", "person", "table", "machine", "parcel", "goal"]
    name: str  # no two things of a picture have the same
    spot: Point
    colour: Colour = PAPER  # the robot has its own
    accent: Colour | None = None  # of a cap or a lamp
    variables: tuple[str, ...] = ()  # a mask that drops all of them fades it
    height: float = 0.0  # of what it lies on


def side_by_side(
    groups: Iterable[tuple[int, Any]], room: Callable[[int], tuple[Point, float, float]]
) -> dict[Any, Point]:
    """Where members stand, side by side with those of the same cell.

    Args:
        groups: pairs of a cell and a member.
        room: the middle, width and depth of the room that a cell has for them.
    """
    members: dict[int, list[Any]] = defaultdict(list)
    for cell, member in groups:
        members[cell].append(member)
    spots = {}
    for cell, group in members.items():
        (x, y), width, depth = room(cell)
        for member, (right, down) in zip(group, slots(len(group), width, depth), strict=True):
            spots[member] = (x + right, y + down)
    return spots


def star(radius: float) -> list[Point]:
    """The corners of a star around (0, 0), clockwise from the one of its five points that is up."""
    reaches = [0.45 * radius if corner % 2 else radius for corner in range(10)]
    angles = [corner * math.pi / 5 for corner in range(10)]
    return [(r * math.sin(a), -r * math.cos(a)) for r, a in zip(reaches, angles, strict=True)]


def slots(count: int, width: float, depth: float) -> list[tuple[float, float]]:
    """``count`` points side by side around (0, 0), in rows if they are many.

    >>> slots(1, 0.8, 0.4), slots(2, 0.8, 0.4)
    ([(0.0, 0.0)], [(-0.2, 0.0), (0.2, 0.0)])
    """
    columns = min(count, max(2, math.ceil(math.sqrt(count * width / depth))))
    rows = math.ceil(count / columns)
    points = []
    for index in range(count):
        row, column = divmod(index, columns)
        in_row = min(columns, count - row * columns)
        points.append((((column + 0.5) / in_row - 0.5) * width, ((row + 0.5) / rows - 0.5) * depth))
    return points
