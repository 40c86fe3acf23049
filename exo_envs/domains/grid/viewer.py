"""Pictures of ExoGrid: a floor plan in two dimensions, or in letters."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

from exo_envs.core.arguments import check_whole
from exo_envs.core.mdp import State
from exo_envs.domains.floor import PICTURES
from exo_envs.domains.grid.model import GridMDP
from exo_envs.rendering import flat
from exo_envs.rendering.flat import Canvas
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
    Frame,
    mix,
)
from exo_envs.rendering.things import Point
from exo_envs.rendering.viewer import Viewer

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

    metadata: ClassVar[dict[str, Any]] = PICTURES
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
        plan = floor.plan(list(signs.values()))
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
        flat.tiles(canvas, floor.rows, floor.columns)
        for row, column in floor.walls:
            canvas.box((column, row), (column + 1, row + 1), fill=WALL)
        self._draw_doors(canvas, scene, emphasis)
        self._draw_object(canvas, scene, emphasis)
        self._draw_guard(canvas, scene, emphasis)
        self._draw_robot(canvas, scene)
        self._draw_strip(canvas, scene, emphasis)
        return canvas.frame()

    def _draw_doors(self, canvas: Canvas, scene: _Scene, emphasis: Emphasis) -> None:
        frame = mix(WALL, PAPER, 0.5)
        for door, (row, column) in enumerate(self.mdp.doors):
            for edge in (column, column + 1):
                canvas.line((edge, row + 0.08), (edge, row + 0.92), fill=frame, width=0.04)
            if emphasis.marks("guard"):
                middle = canvas.at(_centre((row, column)))
                flat.square(middle)
                if scene.guard == door:
                    flat.occupied_disc(middle)

    def _draw_object(self, canvas: Canvas, scene: _Scene, emphasis: Emphasis) -> None:
        tables, here = self.mdp.tables, scene.table
        for place in tables:
            middle = canvas.at(_centre(place))
            if emphasis.marks("object"):
                flat.square(middle)
            flat.table(middle, 0.8, 0.8, emphasis.paint(TABLE, "object"))
        x, y = _centre(tables[here])
        target = _centre(tables[(here + 1 - 2 * scene.carrier) % len(tables)])
        colour = emphasis.paint(PORTER, "carrier")
        length = math.dist((x, y), target)
        right, down = (target[0] - x) / length, (target[1] - y) / length
        canvas.arrow(
            (x + 0.5 * right, y + 0.5 * down),
            (target[0] - 0.5 * right, target[1] - 0.5 * down),
            fill=(*colour, 150),
            width=0.05,
            dash=0.07,
        )
        beside = (x + 0.2, y - 0.12)
        if emphasis.marks("carrier"):
            flat.ring(canvas.at(beside, 0.56))
        flat.person(canvas.at(beside, 0.55), colour, head=emphasis.paint(SKIN, "carrier"))
        flat.goal_star(canvas.at((x - 0.18, y - 0.14), 0.8), emphasis.paint(GOAL, "object"))

    def _draw_guard(self, canvas: Canvas, scene: _Scene, emphasis: Emphasis) -> None:
        guard, intent, doors = scene.guard, scene.intent, self.mdp.doors
        x, y = _centre(doors[guard])
        colour, head = emphasis.paint(GUARD_COLOUR, "guard"), emphasis.paint(SKIN, "guard")
        flat.person(canvas.at((x - 0.12, y + 0.06), 0.85), colour, head=head, cap=colour)
        # What the guard has in mind: the way to the other door, or to stay.
        ink = emphasis.paint(INK, "guard_intent")
        edge = KEPT if emphasis.marks("guard_intent") else ink
        canvas.disc((x + 0.12, y - 0.08), 0.035, fill=PAPER, outline=edge, width=0.012)
        bubble = canvas.at((x + 0.29, y - 0.25))
        bubble.disc((0.0, 0.0), 0.17, fill=PAPER, outline=edge, width=0.03)
        if guard == intent:
            for side in (-0.05, 0.05):
                bubble.line((side, -0.06), (side, 0.06), fill=ink, width=0.04)
        else:
            down = 1 if doors[intent][0] > doors[guard][0] else -1
            bubble.arrow((0.0, -0.11 * down), (0.0, 0.12 * down), fill=ink, width=0.045)

    def _draw_robot(self, canvas: Canvas, scene: _Scene) -> None:
        floor, robot = self.mdp.floor, scene.robot
        if robot == self.mdp.done:
            sign = canvas.at((floor.columns / 2, floor.rows / 2))
            corners, paper = ((-1.15, -0.22), (1.15, 0.22)), (*PAPER, 235)
            sign.box(*corners, fill=paper, outline=GOAL, width=0.03, radius=0.1)
            flat.robot(sign.at((-0.85, 0.0), 0.4))
            sign.text((0.2, 0.0), "object found", size=0.22)
            return
        place = floor.position(robot)
        x, y = _centre(place)
        if place in self.mdp.tables:
            flat.robot(canvas.at((x + 0.04, y + 0.16), 0.62))
        elif place in self.mdp.doors:
            flat.robot(canvas.at((x + 0.18, y + 0.16), 0.62))
        else:
            flat.robot(canvas.at((x, y), 0.95))

    def _draw_strip(self, canvas: Canvas, scene: _Scene, emphasis: Emphasis) -> None:
        floor = self.mdp.floor
        entries: list[tuple[flat.Sign, str]] = [(flat.robot, "robot"), (flat.goal_sign, "goal")]
        if emphasis.active:
            entries += [(flat.square, "kept by the mask"), (flat.ignored_sign, "ignored")]
        else:
            guard = flat.person_sign(GUARD_COLOUR, GUARD_COLOUR)
            entries += [(flat.person_sign(PORTER), "carrier"), (guard, "guard")]
        y = floor.rows + 0.06
        flat.row_key(canvas, (0.05, y), floor.columns - 0.6, STRIP, entries)
        corner = canvas.at((floor.columns - 0.2, y + STRIP / 2))
        if emphasis.marks("weather"):
            flat.ring(corner.at((0.0, 0.0), 0.4))
        if scene.weather == 0:
            _draw_sun(corner, emphasis.paint(SUN, "weather"))
        else:
            _draw_rain(corner, emphasis.paint(RAIN, "weather"))


def _scene(state: State) -> _Scene:
    return _Scene(*(int(value) for part in state for value in part))


def _centre(place: tuple[int, int]) -> Point:
    return place[1] + 0.5, place[0] + 0.5


def _draw_sun(canvas: Canvas, colour: Colour) -> None:
    for ray in range(8):
        right, down = math.cos(ray * math.pi / 4), math.sin(ray * math.pi / 4)
        ends = (0.1 * right, 0.1 * down), (0.145 * right, 0.145 * down)
        canvas.line(*ends, fill=colour, width=0.02)
    canvas.disc((0.0, 0.0), 0.08, fill=colour)


def _draw_rain(canvas: Canvas, colour: Colour) -> None:
    cloud = mix(colour, INK, 0.25)
    for right, radius in ((-0.07, 0.055), (0.0, 0.08), (0.07, 0.055)):
        canvas.disc((right, -0.04), radius, fill=cloud)
    for drop in (-0.06, 0.0, 0.06):
        canvas.line((drop + 0.02, 0.05), (drop, 0.12), fill=colour, width=0.02)
