"""ExoFactory from above."""

from __future__ import annotations

from exo_envs.domains.factory.layout import (
    BELT,
    MACHINE,
    STATION_COLOURS,
    Layout,
    Order,
    chevrons,
    dial,
)
from exo_envs.domains.factory.model import FactoryMDP
from exo_envs.rendering import figures
from exo_envs.rendering.canvas import Canvas, Point
from exo_envs.rendering.palette import (
    DOWN,
    GOAL,
    GROUT,
    HELMET,
    INK,
    LIT,
    PAPER,
    SKIN,
    TECHNICIAN,
    UP,
    WALL,
    Colour,
    Emphasis,
    mix,
)


def key(*, masked: bool) -> figures.Key:
    """What the signs of a picture mean."""
    entries: list[tuple[figures.Sign, str]] = [
        (figures.robot, "robot"),
        (figures.goal_sign, "live order"),
    ]
    if masked:
        return [
            *entries,
            (figures.square, "kept"),
            (figures.ring, "kept person"),
            (figures.ignored_sign, "ignored"),
        ]
    return [
        *entries,
        (_lamp_sign(UP), "machine up"),
        (_lamp_sign(DOWN), "down"),
        (figures.person_sign(TECHNICIAN, HELMET), "technician"),
        (_clock_sign, "clock"),
    ]


def draw_floor_plan(canvas: Canvas, mdp: FactoryMDP, layout: Layout, emphasis: Emphasis) -> None:
    """Draw the floor and the belt on the left, what the signs mean on the right."""
    floor = mdp.floor
    column, rim, top = 0.25 * canvas.width, 0.1, 0.4  # the last two in cells
    scale = min(
        (canvas.width - column) / (layout.belt_end + 2 * rim),
        canvas.height / (floor.rows + top + BELT[1] + rim),
    )
    canvas.set_units(scale, (rim * scale, top * scale))
    figures.tiles(canvas, floor.rows, floor.columns)
    for lamp in layout.lamps:
        if emphasis.marks(lamp.variable):
            figures.square(canvas, lamp.spot, 0.32)
        colour = emphasis.paint(LIT if lamp.is_lit else WALL, lamp.variable)
        canvas.disc(lamp.spot, 0.08, fill=colour, outline=mix(colour, INK, 0.4), width=0.02)
    _draw_stations(canvas, layout, emphasis)
    _draw_belt(canvas, layout, emphasis)
    for technician in sorted(layout.technicians, key=lambda figure: figure.spot[1]):
        x, y = technician.spot
        if emphasis.marks(technician.name):
            figures.ring(canvas, (x, y), 0.62)
        figures.person(
            canvas,
            (x, y - 0.05),
            emphasis.paint(TECHNICIAN, technician.name),
            head=emphasis.paint(SKIN, technician.name),
            cap=emphasis.paint(HELMET, technician.name),
            size=0.62,
        )
    figures.robot(canvas, (layout.robot[0], layout.robot[1] - 0.08), 0.85)
    live = layout.orders[0]
    if live.station is not None and not layout.is_fulfilled:
        x, y = layout.stations[live.station].machine
        figures.goal_star(canvas, (x, y - 0.02), emphasis.paint(GOAL, live.variable), size=0.85)
    canvas.set_units(1.0, (scale * (layout.belt_end + 3 * rim), top * scale))
    figures.column_key(
        canvas,
        (0.0, 0.0),
        canvas.width - scale * (layout.belt_end + 4 * rim),
        canvas.height / 13,
        key(masked=emphasis.active),
    )


def _draw_stations(canvas: Canvas, layout: Layout, emphasis: Emphasis) -> None:
    for station in layout.stations:
        if emphasis.marks(station.variable):
            figures.square(canvas, station.centre)
        colour = emphasis.paint(STATION_COLOURS[station.number], station.variable)
        figures.table(canvas, station.machine, *MACHINE, colour)
        x, y = station.machine
        canvas.text((x - 0.28, y), str(station.number), size=0.3, fill=PAPER)
        lamp = emphasis.paint(UP if station.is_up else DOWN, station.variable)
        canvas.disc((x + 0.27, y), 0.10, fill=lamp, outline=PAPER, width=0.03)


def _draw_belt(canvas: Canvas, layout: Layout, emphasis: Emphasis) -> None:
    first = layout.orders[0]
    above, below = first.spot[1] - 0.28, first.spot[1] + 0.28
    canvas.box((1.0, above), (layout.belt_end, below), fill=WALL, radius=0.1)
    for x in chevrons(layout):
        for end in (above + 0.14, below - 0.14):
            canvas.line(
                (x - 0.05, first.spot[1]), (x + 0.05, end), fill=mix(WALL, PAPER, 0.45), width=0.04
            )
    for index, order in enumerate(layout.orders):
        _draw_order(canvas, order, emphasis, is_live=index == 0)
    if layout.is_fulfilled:
        _draw_tick(canvas, first.spot, 0.5)
    _draw_clock(canvas, layout, emphasis)


def _draw_order(canvas: Canvas, order: Order, emphasis: Emphasis, *, is_live: bool) -> None:
    x, y = order.spot
    if emphasis.marks(order.variable):
        figures.square(canvas, order.spot, 0.62)
    if is_live:
        colour = emphasis.paint(GOAL, order.variable)
        canvas.box(
            (x - 0.27, y - 0.27), (x + 0.27, y + 0.27), outline=colour, width=0.05, radius=0.06
        )
    if order.station is None:
        canvas.line((x - 0.08, y), (x + 0.08, y), fill=mix(WALL, PAPER, 0.5), width=0.04)
        return
    colour = emphasis.paint(STATION_COLOURS[order.station], order.variable)
    canvas.box(
        (x - 0.2, y - 0.2), (x + 0.2, y + 0.2), fill=colour, outline=PAPER, width=0.02, radius=0.04
    )
    canvas.text((x, y), str(order.station), size=0.3, fill=PAPER)


def _draw_tick(canvas: Canvas, centre: Point, size: float) -> None:
    x, y = centre
    for colour, width in ((PAPER, 0.26 * size), (UP, 0.16 * size)):
        canvas.line(
            (x - 0.3 * size, y), (x - 0.05 * size, y + 0.25 * size), fill=colour, width=width
        )
        canvas.line(
            (x - 0.05 * size, y + 0.25 * size),
            (x + 0.4 * size, y - 0.35 * size),
            fill=colour,
            width=width,
        )


def _draw_clock(canvas: Canvas, layout: Layout, emphasis: Emphasis) -> None:
    """A dial with as many lights on as steps are left before the belt moves."""
    x, y = layout.clock
    if emphasis.marks(layout.clock_variable):
        figures.square(canvas, layout.clock, 0.68)
    face = emphasis.paint(INK, layout.clock_variable)
    canvas.disc(layout.clock, 0.28, fill=face, outline=GROUT, width=0.02)
    for light, (right, down) in enumerate(dial(layout.clock_size)):
        is_lit = light < layout.steps_left
        colour = emphasis.paint(LIT if is_lit else WALL, layout.clock_variable)
        canvas.disc((x + 0.19 * right, y + 0.19 * down), 0.055, fill=colour)


def _lamp_sign(colour: Colour) -> figures.Sign:
    return lambda canvas, centre, size: canvas.disc(centre, 0.4 * size, fill=colour)


def _clock_sign(canvas: Canvas, centre: Point, size: float) -> None:
    canvas.disc(centre, 0.42 * size, fill=INK)
    for right, down in dial(5):
        place = (centre[0] + 0.26 * size * right, centre[1] + 0.26 * size * down)
        canvas.disc(place, 0.09 * size, fill=LIT)
