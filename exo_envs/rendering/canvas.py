"""Drawing in two dimensions, with smooth edges, by Pillow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from exo_envs.rendering.palette import INK, PAPER, Colour
from exo_envs.rendering.viewer import Frame

Point: TypeAlias = tuple[float, float]
Fill: TypeAlias = Colour | tuple[int, int, int, int]  # the fourth number is the opacity, to 255

SUPERSAMPLING = 3


@lru_cache(maxsize=64)
def _font(size: int) -> Any:
    return ImageFont.load_default(size)


class Canvas:
    """A picture of ``width`` x ``height`` pixels on which to draw in units of one's own.

    Everything is drawn larger and scaled down at the end, which smooths the edges. y grows
    downwards.
    """

    def __init__(self, width: int, height: int, background: Colour = PAPER) -> None:
        """Make an empty picture whose units are pixels."""
        self.width, self.height = width, height
        size = (width * SUPERSAMPLING, height * SUPERSAMPLING)
        self._image = Image.new("RGB", size, background)
        self._draw = ImageDraw.Draw(self._image, "RGBA")  # this mode blends what is translucent
        self.set_units(1.0, (0.0, 0.0))

    def set_units(self, scale: float, origin: Point) -> None:
        """Draw from now on in units of ``scale`` pixels, from the pixel ``origin`` on."""
        self._scale = scale * SUPERSAMPLING
        self._origin = (origin[0] * SUPERSAMPLING, origin[1] * SUPERSAMPLING)

    def _pixel(self, point: Point) -> Point:
        return (
            self._origin[0] + point[0] * self._scale,
            self._origin[1] + point[1] * self._scale,
        )

    def _thickness(self, width: float) -> int:
        return max(1, round(width * self._scale)) if width else 0

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
        corners = [self._pixel(corner), self._pixel(opposite)]
        line = self._thickness(width)
        if radius:
            self._draw.rounded_rectangle(corners, radius * self._scale, fill, outline, line)
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
        (x, y), r = self._pixel(centre), radius * self._scale
        self._draw.ellipse(
            [x - r, y - r * flatness, x + r, y + r * flatness],
            fill=fill,
            outline=outline,
            width=self._thickness(width),
        )

    def polygon(self, points: Sequence[Point], *, fill: Fill) -> None:
        """A filled polygon."""
        self._draw.polygon([self._pixel(point) for point in points], fill=fill)

    def line(
        self, start: Point, end: Point, *, fill: Fill, width: float, dash: float = 0.0
    ) -> None:
        """A line with round ends, or one of dashes that are ``dash`` long."""
        length = math.dist(start, end)
        pieces = max(1, round(length / (2 * dash))) if dash else 1
        for piece in range(pieces):
            first, last = piece / pieces, (piece + (0.5 if dash else 1.0)) / pieces
            ends = [
                (
                    start[0] + share * (end[0] - start[0]),
                    start[1] + share * (end[1] - start[1]),
                )
                for share in (first, last)
            ]
            self._draw.line(
                [self._pixel(point) for point in ends], fill=fill, width=self._thickness(width)
            )
            if not dash:
                for point in ends:
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

    def star(self, centre: Point, radius: float, *, fill: Fill) -> None:
        """A star of five points, one of them up."""
        self.polygon(
            [
                (
                    centre[0] + reach * math.sin(corner * math.pi / 5),
                    centre[1] - reach * math.cos(corner * math.pi / 5),
                )
                for corner in range(10)
                for reach in [radius if corner % 2 == 0 else 0.45 * radius]
            ],
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
        font = _font(max(1, round(size * self._scale)))
        self._draw.text(self._pixel(point), text, fill=fill, font=font, anchor=anchor)

    def text_width(self, text: str, *, size: float) -> float:
        """How wide a text will be."""
        return float(_font(max(1, round(size * self._scale))).getlength(text)) / self._scale

    def frame(self) -> Frame:
        """The picture, shape (height, width, 3)."""
        return np.asarray(self._image.reduce(SUPERSAMPLING), dtype=np.uint8).copy()
