"""The things that the flat pictures of several domains show, drawn on a canvas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from exo_envs.rendering.canvas import Canvas, Point
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
    faded,
    mix,
)

SHADOW = (0, 0, 0, 45)

Sign: TypeAlias = Callable[[Canvas, Point, float], None]  # draws something of a size at a point
Key: TypeAlias = Sequence[tuple[Sign, str]]  # signs and what they mean


def tiles(canvas: Canvas, rows: int, columns: int) -> None:
    """A floor of square cells, one unit each."""
    for row in range(rows):
        for column in range(columns):
            canvas.box(
                (column, row),
                (column + 1, row + 1),
                fill=FLOOR if (row + column) % 2 == 0 else FLOOR_OTHER,
                outline=GROUT,
                width=0.012,
            )


def robot(canvas: Canvas, centre: Point, size: float = 1.0) -> None:
    """The robot: a gold body, a purple head and a purple base."""
    x, y = centre
    canvas.disc((x, y + 0.38 * size), 0.36 * size, fill=SHADOW, flatness=0.35)
    canvas.box(
        (x - 0.30 * size, y + 0.18 * size),
        (x + 0.30 * size, y + 0.40 * size),
        fill=PURPLE,
        radius=0.10 * size,
    )
    canvas.box(
        (x - 0.24 * size, y - 0.16 * size),
        (x + 0.24 * size, y + 0.26 * size),
        fill=GOLD,
        outline=mix(GOLD, INK, 0.35),
        width=0.02 * size,
        radius=0.08 * size,
    )
    for side in (-1, 1):
        canvas.line(
            (x + side * 0.29 * size, y - 0.06 * size),
            (x + side * 0.33 * size, y + 0.12 * size),
            fill=GOLD,
            width=0.08 * size,
        )
    canvas.line((x, y - 0.42 * size), (x, y - 0.50 * size), fill=PURPLE, width=0.03 * size)
    canvas.disc((x, y - 0.50 * size), 0.04 * size, fill=GOLD)
    canvas.box(
        (x - 0.20 * size, y - 0.44 * size),
        (x + 0.20 * size, y - 0.14 * size),
        fill=PURPLE,
        radius=0.10 * size,
    )
    for side in (-1, 1):
        canvas.disc((x + side * 0.09 * size, y - 0.29 * size), 0.055 * size, fill=PAPER)
        canvas.disc((x + side * 0.09 * size, y - 0.29 * size), 0.025 * size, fill=INK)


def person(
    canvas: Canvas,
    centre: Point,
    body: Colour,
    *,
    head: Colour = SKIN,
    cap: Colour | None = None,
    size: float = 1.0,
) -> None:
    """Somebody who is not the robot: a pawn, with or without a cap."""
    x, y = centre
    canvas.disc((x, y + 0.36 * size), 0.28 * size, fill=SHADOW, flatness=0.35)
    edge = mix(body, INK, 0.35)
    canvas.polygon(
        [
            (x - 0.10 * size, y - 0.10 * size),
            (x + 0.10 * size, y - 0.10 * size),
            (x + 0.25 * size, y + 0.34 * size),
            (x - 0.25 * size, y + 0.34 * size),
        ],
        fill=body,
    )
    canvas.disc((x, y + 0.34 * size), 0.25 * size, fill=body, flatness=0.36)
    canvas.disc((x, y - 0.08 * size), 0.13 * size, fill=edge, flatness=0.5)
    canvas.disc((x, y - 0.22 * size), 0.15 * size, fill=head, outline=edge, width=0.02 * size)
    if cap is not None:
        canvas.disc((x, y - 0.31 * size), 0.19 * size, fill=cap, flatness=0.3)
        canvas.box(
            (x - 0.11 * size, y - 0.42 * size),
            (x + 0.11 * size, y - 0.30 * size),
            fill=cap,
            radius=0.04 * size,
        )


def table(
    canvas: Canvas, centre: Point, width: float, depth: float, colour: Colour = TABLE
) -> None:
    """A table, from above."""
    x, y = centre
    right, down = width / 2, depth / 2
    low = 0.05 * width
    canvas.box((x - right, y - down + low), (x + right, y + down + low), fill=SHADOW, radius=low)
    canvas.box(
        (x - right, y - down),
        (x + right, y + down),
        fill=colour,
        outline=mix(colour, INK, 0.35),
        width=0.03 * width,
        radius=low,
    )


def parcel(canvas: Canvas, centre: Point, colour: Colour = OBJECT, *, size: float = 1.0) -> None:
    """An object that the robot does not want."""
    x, y = centre
    half = 0.5 * size
    edge = mix(colour, INK, 0.4)
    canvas.box(
        (x - half, y - half), (x + half, y + half), fill=colour, outline=edge, width=0.1 * size
    )
    canvas.line((x - half, y), (x + half, y), fill=edge, width=0.08 * size)


def goal_star(canvas: Canvas, centre: Point, colour: Colour = GOAL, *, size: float = 1.0) -> None:
    """The thing that the robot wants."""
    canvas.star(centre, 0.34 * size, fill=PAPER)
    canvas.star(centre, 0.26 * size, fill=colour)


def square(canvas: Canvas, centre: Point, size: float = 1.0) -> None:
    """The red square on a cell that a mask keeps."""
    x, y = centre
    half = 0.45 * size
    canvas.box(
        (x - half, y - half),
        (x + half, y + half),
        fill=(*KEPT, 90),
        outline=KEPT,
        width=0.07 * size,
    )


def occupied_disc(canvas: Canvas, centre: Point, size: float = 1.0) -> None:
    """The green disc on a kept cell that is occupied now."""
    canvas.disc(centre, 0.38 * size, fill=(*OCCUPIED, 215))


def ring(canvas: Canvas, centre: Point, size: float = 1.0) -> None:
    """The ring around something else that a mask keeps."""
    canvas.disc(centre, 0.5 * size, outline=PAPER, width=0.14 * size)
    canvas.disc(centre, 0.48 * size, outline=MARK, width=0.10 * size)


def person_sign(body: Colour, cap: Colour | None = None) -> Sign:
    """Somebody, as a sign."""
    return lambda canvas, centre, size: person(canvas, centre, body, cap=cap, size=size)


def ignored_sign(canvas: Canvas, centre: Point, size: float) -> None:
    """Somebody whom a mask ignores, as a sign."""
    person(canvas, centre, faded(PORTER), head=faded(SKIN), size=size)


def parcel_sign(canvas: Canvas, centre: Point, size: float) -> None:
    """An object, as a sign."""
    parcel(canvas, centre, size=0.6 * size)


def goal_sign(canvas: Canvas, centre: Point, size: float) -> None:
    """The thing that the robot wants, as a sign."""
    goal_star(canvas, centre, size=1.7 * size)


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
        sign(canvas, (x + 0.5 * size, y), 0.85 * size)
        x += 1.15 * size
        canvas.text((x, y), meaning, size=text * size, anchor="lm")
        x += canvas.text_width(meaning, size=text * size) + gap * size


def column_key(canvas: Canvas, corner: Point, width: float, size: float, entries: Key) -> None:
    """Signs and what they mean, one below the other, as large as ``width`` allows."""
    widest = max(canvas.text_width(meaning, size=0.5 * size) for _, meaning in entries)
    size *= min(1.0, width / (1.3 * size + widest))
    x, y = corner
    for sign, meaning in entries:
        sign(canvas, (x + 0.5 * size, y + 0.5 * size), 0.85 * size)
        canvas.text((x + 1.25 * size, y + 0.5 * size), meaning, size=0.5 * size, anchor="lm")
        y += 1.15 * size
