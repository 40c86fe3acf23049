"""ExoCrowd from above."""

from __future__ import annotations

from exo_envs.domains.crowd.layout import TABLE_TOP, Figure, Item, Layout
from exo_envs.domains.crowd.model import CrowdMDP
from exo_envs.rendering import figures
from exo_envs.rendering.canvas import Canvas
from exo_envs.rendering.palette import (
    CAP,
    FADED,
    GOAL,
    OBJECT,
    PAPER,
    PORTER,
    SKIN,
    TABLE,
    WANDERER,
    Emphasis,
    mix,
)


def key(*, masked: bool) -> figures.Key:
    """What the signs of a picture mean."""
    if masked:
        return [
            (figures.robot, "robot"),
            (figures.goal_sign, "goal"),
            (figures.square, "kept cell"),
            (figures.occupied_disc, "occupied"),
            (figures.ring, "kept agent"),
            (figures.ignored_sign, "ignored"),
        ]
    return [
        (figures.robot, "robot"),
        (figures.goal_sign, "goal"),
        (figures.person_sign(PORTER, CAP), "porter"),
        (figures.person_sign(WANDERER), "wanderer"),
        (figures.parcel_sign, "object"),
    ]


def draw_floor_plan(canvas: Canvas, mdp: CrowdMDP, layout: Layout, emphasis: Emphasis) -> None:
    """Draw the floor on the left, what the signs mean on the right."""
    floor = mdp.floor
    column = 0.22 * canvas.width
    left, rim = 0.45, 0.1  # in cells; what is in nobody's hand lies on the left
    scale = min(
        (canvas.width - column) / (floor.columns + left + rim),
        canvas.height / (floor.rows + 2 * rim),
    )
    top = (canvas.height - scale * floor.rows) / 2
    canvas.set_units(scale, (left * scale, top))
    figures.tiles(canvas, floor.rows, floor.columns)
    for cell, name in enumerate(mdp.exogenous_names[mdp.occupancy_slice]):
        if emphasis.marks(name):
            row, place = floor.position(cell)
            figures.square(canvas, (place + 0.5, row + 0.5))
            if layout.occupied[cell]:
                figures.occupied_disc(canvas, (place + 0.5, row + 0.5))
    wood = mix(TABLE, FADED, 0.5) if emphasis.active else TABLE
    for centre in layout.tables:
        figures.table(canvas, centre, *TABLE_TOP, wood)
    _draw_all(canvas, layout, emphasis)
    if layout.robot is None:
        _draw_done(canvas, floor.rows, floor.columns)
    canvas.set_units(1.0, (scale * (floor.columns + left + 2 * rim), top))
    figures.column_key(
        canvas,
        (0.0, 0.0),
        canvas.width - scale * (floor.columns + left + 3 * rim),
        canvas.height / 14,
        key(masked=emphasis.active),
    )


def _draw_all(canvas: Canvas, layout: Layout, emphasis: Emphasis) -> None:
    """Draw agents, objects and the robot, those nearer to the viewer over those behind."""
    held = {item.holder: item for item in layout.items if item.holder is not None}
    for item in layout.items:
        if item.holder is None and not item.is_goal:
            _draw_item(canvas, item, emphasis)
    order = sorted(range(len(layout.figures)), key=lambda agent: layout.figures[agent].spot[1])
    drawn = False
    for agent in order:
        figure = layout.figures[agent]
        if layout.robot is not None and not drawn and figure.spot[1] > layout.robot[1]:
            figures.robot(canvas, (layout.robot[0], layout.robot[1] - 0.1), 0.85)
            drawn = True
        _draw_figure(canvas, figure, emphasis)
        if agent in held and not held[agent].is_goal:
            _draw_item(canvas, held[agent], emphasis)
    if layout.robot is not None and not drawn:
        figures.robot(canvas, (layout.robot[0], layout.robot[1] - 0.1), 0.85)
    for item in layout.items:
        if item.is_goal:  # nothing may hide it
            _draw_item(canvas, item, emphasis)


def _draw_figure(canvas: Canvas, figure: Figure, emphasis: Emphasis) -> None:
    x, y = figure.spot
    if emphasis.marks(*figure.variables):
        figures.ring(canvas, (x, y), 0.6)
    figures.person(
        canvas,
        (x, y - 0.05),
        emphasis.paint(PORTER if figure.is_porter else WANDERER, *figure.variables),
        head=emphasis.paint(SKIN, *figure.variables),
        cap=emphasis.paint(CAP, *figure.variables) if figure.is_porter else None,
        size=0.6,
    )


def _draw_item(canvas: Canvas, item: Item, emphasis: Emphasis) -> None:
    x, y = item.spot
    if item.is_goal:
        colour = emphasis.paint(GOAL, item.name)
        centre = (x + 0.14, y - 0.10) if item.holder is not None else (x, y)  # not on their face
        canvas.disc(centre, 0.32, fill=(*colour, 60), outline=PAPER, width=0.03)
        figures.goal_star(canvas, centre, colour, size=0.95)
    else:
        figures.parcel(canvas, (x, y), emphasis.paint(OBJECT, item.name), size=0.17)


def _draw_done(canvas: Canvas, rows: int, columns: int) -> None:
    x, y = columns / 2, rows / 2
    size = columns / 16
    canvas.box(
        (x - 5 * size, y - size),
        (x + 5 * size, y + size),
        fill=(*PAPER, 235),
        outline=GOAL,
        width=0.12 * size,
        radius=0.3 * size,
    )
    figures.robot(canvas, (x - 3.6 * size, y), 1.6 * size)
    canvas.text((x + size, y), "goal reached", size=size)
