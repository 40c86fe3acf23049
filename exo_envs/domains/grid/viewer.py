"""Pictures of ExoGrid: a floor plan in two dimensions, or in letters."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

from exo_envs.core.arguments import check_whole
from exo_envs.core.mdp import State
from exo_envs.domains.grid.model import GridMDP
from exo_envs.rendering import figures
from exo_envs.rendering.canvas import Canvas, Point
from exo_envs.rendering.palette import (
    GOAL,
    INK,
    KEPT,
    PAPER,
    PORTER,
    SKIN,
    TABLE,
    WALL,
    Colour,
    Emphasis,
    mix,
)
from exo_envs.rendering.viewer import Frame, Viewer

GUARD_COLOUR: Colour = (70, 74, 92)
SUN: Colour = (255, 196, 30)
RAIN: Colour = (90, 150, 220)
STRIP = 0.42  # the height of the key below the floor, in cells


class _Scene(NamedTuple):
    """A state of ExoGrid, by name."""

    robot: int
    table: int  # where the object is
    carrier: int
    guard: int
    intent: int
    weather: int


class GridViewer(Viewer):
    """Draws the floor, the wall with its two doors, the tables and who moves among them.

    The star lies on the table that the robot looks for; the carrier beside it walks along the
    dashed arrow when it next takes the star away; the guard's bubble says which door it has in
    mind. With a mask, what it keeps is marked in red and what it drops is grey.

    Args:
        mdp: the model.
        width: the width of the picture in pixels; the height follows.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": ["human", "rgb_array", "ansi"],
        "render_fps": 4,
    }
    draws = GridMDP
    mdp: GridMDP

    def __init__(self, mdp: GridMDP, *, width: int = 480) -> None:
        super().__init__(mdp)
        self.width = check_whole("width", width, 64, 10_000)

    def text(self, state: State) -> str:
        """The floor plan in letters, and below it what has no place on the floor."""
        floor, scene = self.mdp.floor, _scene(self.check(state))
        signs = dict.fromkeys(range(floor.num_cells), ".")
        signs |= {floor.cell(*wall): "#" for wall in floor.walls}
        signs |= {floor.cell(*door): "+" for door in self.mdp.doors}
        signs |= {floor.cell(*place): "T" for place in self.mdp.tables}
        signs[floor.cell(*self.mdp.tables[scene.table])] = "*"
        signs[floor.cell(*self.mdp.doors[scene.guard])] = "G"
        robot = scene.robot
        if robot != self.mdp.done:
            signs[robot] = {"*": "$", "G": "!"}.get(signs[robot], "R")
        plan = [
            " ".join(signs[floor.cell(row, column)] for column in range(floor.columns))
            for row in range(floor.rows)
        ]
        rest = (
            f"robot {'done' if robot == self.mdp.done else f'in cell {floor.position(robot)}'}, "
            f"carrier goes {('forth', 'back')[scene.carrier]}, "
            f"guard wants the {('upper', 'lower')[scene.intent]} door, "
            f"{('sun', 'rain')[scene.weather]}"
        )
        legend = "R robot  * object  $ both  T table  G guard  ! robot and guard  + door  # wall"
        return "\n".join([*plan, rest, legend])

    def draw(self, state: State) -> Frame:
        """The floor plan as a picture."""
        floor = self.mdp.floor
        scale = self.width / (floor.columns + 0.2)
        height = 2 * round(scale * (floor.rows + 0.2 + STRIP) / 2)  # videos want it even
        canvas = Canvas(self.width, height)
        canvas.set_units(scale, (0.1 * scale, 0.1 * scale))
        scene, emphasis = _scene(self.check(state)), Emphasis(self.mask)
        figures.tiles(canvas, floor.rows, floor.columns)
        for row, column in floor.walls:
            canvas.box((column, row), (column + 1, row + 1), fill=WALL)
        self._draw_doors(canvas, scene, emphasis)
        self._draw_object(canvas, scene, emphasis)
        self._draw_guard(canvas, scene, emphasis)
        self._draw_robot(canvas, scene)
        self._draw_strip(canvas, scene, emphasis)
        return canvas.frame()

    def _draw_doors(self, canvas: Canvas, scene: _Scene, emphasis: Emphasis) -> None:
        for door, (row, column) in enumerate(self.mdp.doors):
            for edge in (column, column + 1):
                canvas.line(
                    (edge, row + 0.08), (edge, row + 0.92), fill=mix(WALL, PAPER, 0.5), width=0.04
                )
            if emphasis.marks("guard"):
                figures.square(canvas, _centre((row, column)))
                if scene.guard == door:
                    figures.occupied_disc(canvas, _centre((row, column)))

    def _draw_object(self, canvas: Canvas, scene: _Scene, emphasis: Emphasis) -> None:
        tables, here = self.mdp.tables, scene.table
        for place in tables:
            if emphasis.marks("object"):
                figures.square(canvas, _centre(place))
            figures.table(canvas, _centre(place), 0.8, 0.8, emphasis.paint(TABLE, "object"))
        x, y = _centre(tables[here])
        way = 1 - 2 * scene.carrier
        target = _centre(tables[(here + way) % len(tables)])
        colour = emphasis.paint(PORTER, "carrier")
        length = math.dist((x, y), target)
        along = ((target[0] - x) / length, (target[1] - y) / length)
        canvas.arrow(
            (x + 0.5 * along[0], y + 0.5 * along[1]),
            (target[0] - 0.5 * along[0], target[1] - 0.5 * along[1]),
            fill=(*colour, 150),
            width=0.05,
            dash=0.07,
        )
        if emphasis.marks("carrier"):
            figures.ring(canvas, (x + 0.2, y - 0.12), 0.56)
        figures.person(
            canvas, (x + 0.2, y - 0.12), colour, head=emphasis.paint(SKIN, "carrier"), size=0.55
        )
        figures.goal_star(canvas, (x - 0.18, y - 0.14), emphasis.paint(GOAL, "object"), size=0.8)

    def _draw_guard(self, canvas: Canvas, scene: _Scene, emphasis: Emphasis) -> None:
        guard, intent = scene.guard, scene.intent
        x, y = _centre(self.mdp.doors[guard])
        colour = emphasis.paint(GUARD_COLOUR, "guard")
        figures.person(
            canvas,
            (x - 0.12, y + 0.06),
            colour,
            head=emphasis.paint(SKIN, "guard"),
            cap=colour,
            size=0.85,
        )
        # What the guard has in mind: the way to the other door, or to stay.
        ink = emphasis.paint(INK, "guard_intent")
        edge = KEPT if emphasis.marks("guard_intent") else ink
        bubble = (x + 0.29, y - 0.25)
        canvas.disc((x + 0.12, y - 0.08), 0.035, fill=PAPER, outline=edge, width=0.012)
        canvas.disc(bubble, 0.17, fill=PAPER, outline=edge, width=0.03)
        if guard == intent:
            for side in (-0.05, 0.05):
                canvas.line(
                    (bubble[0] + side, bubble[1] - 0.06),
                    (bubble[0] + side, bubble[1] + 0.06),
                    fill=ink,
                    width=0.04,
                )
        else:
            down = 1 if self.mdp.doors[intent][0] > self.mdp.doors[guard][0] else -1
            canvas.arrow(
                (bubble[0], bubble[1] - 0.11 * down),
                (bubble[0], bubble[1] + 0.12 * down),
                fill=ink,
                width=0.045,
            )

    def _draw_robot(self, canvas: Canvas, scene: _Scene) -> None:
        floor, robot = self.mdp.floor, scene.robot
        if robot == self.mdp.done:
            middle = (floor.columns / 2, floor.rows / 2)
            canvas.box(
                (middle[0] - 1.15, middle[1] - 0.22),
                (middle[0] + 1.15, middle[1] + 0.22),
                fill=(*PAPER, 235),
                outline=GOAL,
                width=0.03,
                radius=0.1,
            )
            figures.robot(canvas, (middle[0] - 0.85, middle[1]), 0.4)
            canvas.text((middle[0] + 0.2, middle[1]), "object found", size=0.22)
            return
        x, y = _centre(floor.position(robot))
        at_table = robot in {floor.cell(*place) for place in self.mdp.tables}
        at_door = robot in {floor.cell(*place) for place in self.mdp.doors}
        if at_table:
            figures.robot(canvas, (x + 0.04, y + 0.16), 0.62)
        elif at_door:
            figures.robot(canvas, (x + 0.18, y + 0.16), 0.62)
        else:
            figures.robot(canvas, (x, y), 0.95)

    def _draw_strip(self, canvas: Canvas, scene: _Scene, emphasis: Emphasis) -> None:
        floor = self.mdp.floor
        entries: figures.Key = [
            (figures.robot, "robot"),
            (figures.goal_sign, "goal"),
            (figures.person_sign(PORTER), "carrier"),
            (figures.person_sign(GUARD_COLOUR, GUARD_COLOUR), "guard"),
        ]
        if emphasis.active:
            entries = [
                (figures.robot, "robot"),
                (figures.goal_sign, "goal"),
                (figures.square, "kept by the mask"),
                (figures.ignored_sign, "ignored"),
            ]
        y = floor.rows + 0.06
        figures.row_key(canvas, (0.05, y), floor.columns - 0.6, STRIP, entries)
        y += STRIP / 2
        place = (floor.columns - 0.2, y)
        if emphasis.marks("weather"):
            figures.ring(canvas, place, 0.4)
        if scene.weather == 0:
            _draw_sun(canvas, place, emphasis.paint(SUN, "weather"))
        else:
            _draw_rain(canvas, place, emphasis.paint(RAIN, "weather"))


def _scene(state: State) -> _Scene:
    return _Scene(*(int(value) for part in state for value in part))


def _centre(place: tuple[int, int]) -> Point:
    return place[1] + 0.5, place[0] + 0.5


def _draw_sun(canvas: Canvas, centre: Point, colour: Colour) -> None:
    x, y = centre
    for ray in range(8):
        angle = ray * math.pi / 4
        reach = (math.cos(angle), math.sin(angle))
        canvas.line(
            (x + 0.1 * reach[0], y + 0.1 * reach[1]),
            (x + 0.145 * reach[0], y + 0.145 * reach[1]),
            fill=colour,
            width=0.02,
        )
    canvas.disc(centre, 0.08, fill=colour)


def _draw_rain(canvas: Canvas, centre: Point, colour: Colour) -> None:
    x, y = centre
    cloud = mix(colour, INK, 0.25)
    for right, radius in ((-0.07, 0.055), (0.0, 0.08), (0.07, 0.055)):
        canvas.disc((x + right, y - 0.04), radius, fill=cloud)
    for drop in (-0.06, 0.0, 0.06):
        canvas.line((x + drop + 0.02, y + 0.05), (x + drop, y + 0.12), fill=colour, width=0.02)
