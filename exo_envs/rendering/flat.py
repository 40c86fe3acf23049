"""Drawing in two dimensions by Pillow: a canvas, and the figures that several domains show."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from exo_envs.rendering.palette import (
    FLOOR,
    FLOOR_OTHER,
    GOAL,
    GOLD,
    GROUT,
    INK,
    KEPT,
    MARK,
    OBJECT,
    OCCUPIED,
    PAPER,
    PORTER,
    PURPLE,
    SKIN,
    TABLE,
    Colour,
    Emphasis,
    Frame,
    faded,
    mix,
)
from exo_envs.rendering.things import MACHINE_TOP, TABLE_TOP, Point, Thing, star

Fill: TypeAlias = Colour | tuple[int, int, int, int]  # the fourth number is the opacity, to 255

SUPERSAMPLING = 3
SHADOW = (0, 0, 0, 45)


@lru_cache(maxsize=64)
def _font(size: int) -> Any:
    return ImageFont.load_default(size)


class Canvas:
    """A picture of ``width`` x ``height`` pixels on which to draw in units of one's own.

    Everything is drawn larger and scaled down at the end, which smooths the edges. y grows
    downwards.
    """

    def __init__(self, width: int, height: int, background: Colour = PAPER) -> None:
        self.width, self.height = width, height
        size = (width * SUPERSAMPLING, height * SUPERSAMPLING)
        self._image = Image.new("RGB", size, background)
        self._draw = ImageDraw.Draw(self._image, "RGBA")  # this mode blends what is translucent
        self._centre, self._size = (0.0, 0.0), 1.0
        self.set_units(1.0, (0.0, 0.0))

    def set_units(self, scale: float, origin: Point) -> None:
        """Draw from now on in units of ``scale`` pixels, from the pixel ``origin`` on."""
        self._scale = scale * SUPERSAMPLING
        self._origin = (origin[0] * SUPERSAMPLING, origin[1] * SUPERSAMPLING)

    def at(self, centre: Point, size: float = 1.0) -> Canvas:
        """The same picture, to draw a figure of a size around a point that is (0, 0) to it."""
        pen = copy.copy(self)
        (x, y), within = self._centre, self._size
        pen._centre = x + centre[0] * within, y + centre[1] * within
        pen._size = within * size
        return pen

    def _pixel(self, point: Point) -> Point:
        (x, y), size, (left, top), scale = self._centre, self._size, self._origin, self._scale
        return left + (x + point[0] * size) * scale, top + (y + point[1] * size) * scale

    def _length(self, length: float) -> float:
        return length * self._size * self._scale

    def _thickness(self, width: float) -> int:
        return max(1, round(self._length(width))) if width else 0

    def box(
        self,
        corner: Point,
        opposite: Point,
        *,
        fill: Fill | None = None,
        outline: Fill | None = None,
        width: float = 0.0,
        radius: float = 0.0,
    ) -> None:
        """A rectangle between its upper left and its lower right corner."""
        corners = [self._pixel(point) for point in (corner, opposite)]
        line = self._thickness(width)
        if radius:
            self._draw.rounded_rectangle(corners, self._length(radius), fill, outline, line)
        else:  # twice as fast
            self._draw.rectangle(corners, fill, outline, line)

    def disc(
        self,
        centre: Point,
        radius: float,
        *,
        fill: Fill | None = None,
        outline: Fill | None = None,
        width: float = 0.0,
        flatness: float = 1.0,
    ) -> None:
        """A disc, or with ``flatness`` below 1 one that is seen from the side."""
        (x, y), r = self._pixel(centre), self._length(radius)
        self._draw.ellipse(
            [x - r, y - r * flatness, x + r, y + r * flatness],
            fill=fill,
            outline=outline,
            width=self._thickness(width),
        )

    def polygon(self, points: Sequence[Point], *, fill: Fill) -> None:
        self._draw.polygon([self._pixel(point) for point in points], fill=fill)

    def line(
        self, start: Point, end: Point, *, fill: Fill, width: float, dash: float = 0.0
    ) -> None:
        """A line with round ends, or one of dashes that are ``dash`` long."""
        (x, y), (last_x, last_y) = start, end
        pieces = max(1, round(math.dist(start, end) / (2 * dash))) if dash else 1
        for piece in range(pieces):
            ends = [
                self._pixel((x + share * (last_x - x), y + share * (last_y - y)))
                for share in (piece / pieces, (piece + (0.5 if dash else 1.0)) / pieces)
            ]
            self._draw.line(ends, fill=fill, width=self._thickness(width))
        if not dash:
            for point in (start, end):
                self.disc(point, width / 2, fill=fill)

    def arrow(
        self, start: Point, end: Point, *, fill: Fill, width: float, dash: float = 0.0
    ) -> None:
        """An arrow whose tip is at ``end``."""
        length = math.dist(start, end)
        if length == 0:
            return
        along = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
        head = 3.2 * width
        neck = (end[0] - head * along[0], end[1] - head * along[1])
        if length > head:
            self.line(start, neck, fill=fill, width=width, dash=dash)
        side = (-0.6 * head * along[1], 0.6 * head * along[0])
        self.polygon(
            [end, (neck[0] + side[0], neck[1] + side[1]), (neck[0] - side[0], neck[1] - side[1])],
            fill=fill,
        )

    def text(
        self,
        point: Point,
        text: str,
        *,
        size: float,
        fill: Fill = INK,
        anchor: str = "mm",
    ) -> None:
        """Text of a height of ``size``; ``anchor`` is Pillow's, by default the middle."""
        font = _font(max(1, round(self._length(size))))
        self._draw.text(self._pixel(point), text, fill=fill, font=font, anchor=anchor)

    def text_width(self, text: str, *, size: float) -> float:
        return float(_font(max(1, round(size * self._scale))).getlength(text)) / self._scale

    def frame(self) -> Frame:
        """The picture, shape (height, width, 3)."""
        return np.asarray(self._image.reduce(SUPERSAMPLING), dtype=np.uint8).copy()


# --- things on a floor -------------------------------------------------------------------------


def nearness(thing: Thing) -> tuple[int, float]:
    """What is drawn later hides what is drawn earlier; nothing may hide a goal."""
    layer = {"table": 0, "machine": 0, "goal": 2}.get(thing.kind, 1)
    return layer, thing.spot[1]


def stand(canvas: Canvas, thing: Thing, emphasis: Emphasis) -> None:
    (x, y), variables = thing.spot, thing.variables
    pen, colour = canvas.at(thing.spot), emphasis.paint(thing.colour, *variables)
    accent = None if thing.accent is None else emphasis.paint(thing.accent, *variables)
    if thing.kind == "robot":
        robot(canvas.at((x, y - 0.1), 0.85))
    elif thing.kind == "person":
        if emphasis.marks(*variables):
            ring(canvas.at((x, y), 0.6))
        skin = emphasis.paint(SKIN, *variables)
        person(canvas.at((x, y - 0.05), 0.6), colour, head=skin, cap=accent)
    elif thing.kind == "table":
        desk(pen, *TABLE_TOP, colour)
    elif thing.kind == "machine":
        desk(pen, *MACHINE_TOP, colour)
        pen.disc((0.27, 0.0), 0.10, fill=accent, outline=PAPER, width=0.03)
    elif thing.kind == "parcel":
        parcel(canvas.at((x, y), 0.17), colour)
    else:
        pen.disc((0.0, 0.0), 0.32, fill=(*colour, 60), outline=PAPER, width=0.03)
        goal_star(canvas.at((x, y), 0.95), colour)


def footprint(canvas: Canvas, thing: Thing, emphasis: Emphasis) -> None:
    """Draw the shadow of a body on its floor, or the ring around somebody whom a mask keeps."""
    if emphasis.marks(*thing.variables) and thing.kind == "person":
        canvas.disc(thing.spot, 0.33, outline=MARK, width=0.09)
    elif thing.kind in ("robot", "person"):
        canvas.disc(thing.spot, 0.4 if thing.kind == "robot" else 0.27, fill=SHADOW)


# --- figures: each is drawn around (0, 0) -------------------------------------------------------

Sign: TypeAlias = Callable[[Canvas], None]
Key: TypeAlias = Sequence[tuple[Sign, str]]  # signs and what they mean


def tiles(canvas: Canvas, rows: int, columns: int) -> None:
    """A floor of square cells, one unit each, from (0, 0) on."""
    for row in range(rows):
        for column in range(columns):
            colour = FLOOR if (row + column) % 2 == 0 else FLOOR_OTHER
            corners = (column, row), (column + 1, row + 1)
            canvas.box(*corners, fill=colour, outline=GROUT, width=0.012)


def robot(canvas: Canvas) -> None:
    canvas.disc((0.0, 0.38), 0.36, fill=SHADOW, flatness=0.35)
    canvas.box((-0.30, 0.18), (0.30, 0.40), fill=PURPLE, radius=0.10)
    edge = mix(GOLD, INK, 0.35)
    canvas.box((-0.24, -0.16), (0.24, 0.26), fill=GOLD, outline=edge, width=0.02, radius=0.08)
    for side in (-1, 1):
        canvas.line((side * 0.29, -0.06), (side * 0.33, 0.12), fill=GOLD, width=0.08)
    canvas.line((0.0, -0.42), (0.0, -0.50), fill=PURPLE, width=0.03)
    canvas.disc((0.0, -0.50), 0.04, fill=GOLD)
    canvas.box((-0.20, -0.44), (0.20, -0.14), fill=PURPLE, radius=0.10)
    for side in (-1, 1):
        canvas.disc((side * 0.09, -0.29), 0.055, fill=PAPER)
        canvas.disc((side * 0.09, -0.29), 0.025, fill=INK)


def person(canvas: Canvas, body: Colour, *, head: Colour = SKIN, cap: Colour | None = None) -> None:
    canvas.disc((0.0, 0.36), 0.28, fill=SHADOW, flatness=0.35)
    edge = mix(body, INK, 0.35)
    canvas.polygon([(-0.10, -0.10), (0.10, -0.10), (0.25, 0.34), (-0.25, 0.34)], fill=body)
    canvas.disc((0.0, 0.34), 0.25, fill=body, flatness=0.36)
    canvas.disc((0.0, -0.08), 0.13, fill=edge, flatness=0.5)
    canvas.disc((0.0, -0.22), 0.15, fill=head, outline=edge, width=0.02)
    if cap is not None:
        canvas.disc((0.0, -0.31), 0.19, fill=cap, flatness=0.3)
        canvas.box((-0.11, -0.42), (0.11, -0.30), fill=cap, radius=0.04)


def desk(canvas: Canvas, width: float, depth: float, colour: Colour = TABLE) -> None:
    """A table, from above."""
    right, down, low = width / 2, depth / 2, 0.05 * width
    canvas.box((-right, -down + low), (right, down + low), fill=SHADOW, radius=low)
    corners, edge = ((-right, -down), (right, down)), mix(colour, INK, 0.35)
    canvas.box(*corners, fill=colour, outline=edge, width=0.03 * width, radius=low)


def parcel(canvas: Canvas, colour: Colour = OBJECT) -> None:
    """An object that the robot does not want."""
    edge = mix(colour, INK, 0.4)
    canvas.box((-0.5, -0.5), (0.5, 0.5), fill=colour, outline=edge, width=0.1)
    canvas.line((-0.5, 0.0), (0.5, 0.0), fill=edge, width=0.08)


def goal_star(canvas: Canvas, colour: Colour = GOAL) -> None:
    """The thing that the robot wants."""
    canvas.polygon(star(0.34), fill=PAPER)
    canvas.polygon(star(0.26), fill=colour)


def square(canvas: Canvas) -> None:
    """The red square on a cell that a mask keeps."""
    canvas.box((-0.45, -0.45), (0.45, 0.45), fill=(*KEPT, 90), outline=KEPT, width=0.07)


def occupied_disc(canvas: Canvas) -> None:
    """The green disc on a kept cell that is occupied now."""
    canvas.disc((0.0, 0.0), 0.38, fill=(*OCCUPIED, 215))


def ring(canvas: Canvas) -> None:
    """The ring around something else that a mask keeps."""
    canvas.disc((0.0, 0.0), 0.5, outline=PAPER, width=0.14)
    canvas.disc((0.0, 0.0), 0.48, outline=MARK, width=0.10)


def person_sign(body: Colour, cap: Colour | None = None) -> Sign:
    return lambda canvas: person(canvas, body, cap=cap)


def ignored_sign(canvas: Canvas) -> None:
    """Somebody whom a mask ignores, as a sign."""
    person(canvas, faded(PORTER), head=faded(SKIN))


def parcel_sign(canvas: Canvas) -> None:
    parcel(canvas.at((0.0, 0.0), 0.6))


def goal_sign(canvas: Canvas) -> None:
    goal_star(canvas.at((0.0, 0.0), 1.7))


def row_key(canvas: Canvas, corner: Point, width: float, height: float, entries: Key) -> None:
    """A line of signs and what they mean, as large as ``width`` allows."""
    text, gap = 0.60, 0.35  # as shares of the size of a sign
    size = height
    length = sum(
        1.15 * size + gap * size + canvas.text_width(meaning, size=text * size)
        for _, meaning in entries
    )
    size *= min(1.0, width / length)
    x, y = corner[0], corner[1] + height / 2
    for sign, meaning in entries:
        sign(canvas.at((x + 0.5 * size, y), 0.85 * size))
        x += 1.15 * size
        canvas.text((x, y), meaning, size=text * size, anchor="lm")
        x += canvas.text_width(meaning, size=text * size) + gap * size
