"""Pictures of ExoGrid: a floor plan in two dimensions, or in letters."""

from __future__ import annotations

import math
from typing import NamedTuple

from exo_envs.core.arguments import check_whole
from exo_envs.core.mdp import State
from exo_envs.domains.grid.model import GridMDP
from exo_envs.rendering import flat
from exo_envs.rendering.flat import Canvas
from exo_envs.rendering.palette import GOAL, INK, KEPT, PAPER, PORTER, TABLE, WALL, Colour, mix
from exo_envs.rendering.things import Point, Thing
from exo_envs.rendering.viewer import MOST_PIXELS, SMALLEST_SIZE, SceneViewer

GUARD_COLOUR: Colour = (70, 74, 92)
SUN: Colour = (255, 196, 30)
RAIN: Colour = (90, 150, 220)


class _Scene(NamedTuple):
    robot: int
    table: int  # where the object is
    carrier: int
    guard: int
    intent: int
    weather: int


class GridViewer(SceneViewer):
    """Draws the floor, the wall with its two doors, the tables and who moves among them.

    The star lies on the table that the robot looks for; the carrier in front of it walks along the
    dashed arrow when it next takes the star away; the guard's bubble says which door it has in
    mind. With a mask, what it keeps is marked in red and what it drops is grey.

    Args:
        mdp: the model.
        width: the width of the picture in pixels; the height follows.
    """

    draws = GridMDP
    mdp: GridMDP

    def __init__(self, mdp: GridMDP, *, width: int = 480) -> None:
        width = check_whole("width", width, SMALLEST_SIZE[0], MOST_PIXELS)
        height = 2 * round(0.431 * width)  # videos want it even
        super().__init__(mdp, "flat", width=width, height=height)

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

    @property
    def extent(self) -> tuple[float, float, float, float]:
        return -0.1, -0.1, self.mdp.floor.columns + 0.1, self.mdp.floor.rows + 0.1

    def draw_ground(self, canvas: Canvas, state: State) -> None:
        floor, scene, emphasis = self.mdp.floor, _scene(state), self.emphasis
        flat.tiles(canvas, floor.rows, floor.columns)
        for row, column in floor.walls:
            canvas.box((column, row), (column + 1, row + 1), fill=WALL)
        for place in self.mdp.tables:
            if emphasis.marks("object"):
                flat.square(canvas.at(_point(place)))
        for door, (row, column) in enumerate(self.mdp.doors):
            for edge in (column, column + 1):
                ends = (edge, row + 0.08), (edge, row + 0.92)
                canvas.line(*ends, fill=mix(WALL, PAPER, 0.5), width=0.04)
            if emphasis.marks("guard"):
                flat.square(canvas.at(_point((row, column))))
                if scene.guard == door:
                    flat.occupied_disc(canvas.at(_point((row, column))))
        target = (scene.table + 1 - 2 * scene.carrier) % len(self.mdp.tables)
        here, there = (_point(self.mdp.tables[table]) for table in (scene.table, target))
        length = math.dist(here, there)
        right, down = (there[0] - here[0]) / length, (there[1] - here[1]) / length
        canvas.arrow(
            (here[0] + 0.5 * right, here[1] + 0.5 * down),
            (there[0] - 0.5 * right, there[1] - 0.5 * down),
            fill=(*emphasis.paint(PORTER, "carrier"), 150),
            width=0.05,
            dash=0.07,
        )
        self._draw_thought(canvas.at(_point(self.mdp.doors[scene.guard])), scene)

    def _draw_thought(self, canvas: Canvas, scene: _Scene) -> None:
        """What the guard has in mind: the way to the other door, or to stay."""
        ink = self.emphasis.paint(INK, "guard_intent")
        edge = KEPT if self.emphasis.marks("guard_intent") else ink
        canvas.disc((0.12, -0.12), 0.035, fill=PAPER, outline=edge, width=0.012)
        bubble = canvas.at((0.29, -0.27))
        bubble.disc((0.0, 0.0), 0.17, fill=PAPER, outline=edge, width=0.03)
        if scene.guard == scene.intent:
            for side in (-0.05, 0.05):
                bubble.line((side, -0.06), (side, 0.06), fill=ink, width=0.04)
        else:
            down = 1 if scene.intent > scene.guard else -1
            bubble.arrow((0.0, -0.11 * down), (0.0, 0.12 * down), fill=ink, width=0.045)

    def lay_out(self, state: State) -> list[Thing]:
        mdp, scene = self.mdp, _scene(state)
        of_object = ("object",)
        things = [
            Thing("table", f"table {i}", _point(place, 0.0, -0.23), TABLE, None, of_object)
            for i, place in enumerate(mdp.tables)
        ]
        table, door = mdp.tables[scene.table], mdp.doors[scene.guard]
        guard = _point(door, -0.18, 0.0), GUARD_COLOUR, GUARD_COLOUR, ("guard",)
        things += [
            Thing("goal", "object", _point(table, -0.16, -0.2), GOAL, None, of_object),
            Thing("person", "carrier", _point(table, 0.28, 0.16), PORTER, None, ("carrier",)),
            Thing("person", "guard", *guard),
        ]
        if scene.robot != mdp.done:
            place = mdp.floor.position(scene.robot)
            aside = (-0.15, 0.2) if place in mdp.tables else (0.22, 0.12)
            aside = aside if place in (*mdp.tables, *mdp.doors) else (0.0, 0.0)
            things.append(Thing("robot", "robot", _point(place, *aside)))
        return things

    def key(self, state: State) -> flat.Key:
        scene, emphasis = _scene(state), self.emphasis
        draw, colour = ((_draw_sun, SUN), (_draw_rain, RAIN))[scene.weather]
        painted, is_kept = emphasis.paint(colour, "weather"), emphasis.marks("weather")

        def weather(canvas: Canvas) -> None:
            if is_kept:
                flat.ring(canvas)
            draw(canvas, painted)

        if scene.robot == self.mdp.done:
            return [(flat.robot, "object found"), (weather, "weather")]
        entries = ((flat.robot, "robot"), (flat.goal_sign, "goal"), (weather, "weather"))
        if self.mask is not None:
            kept = ((flat.square, "kept cell"), (flat.ring, "kept"))
            return [*entries, *kept, (flat.ignored_sign, "ignored")]
        guard = flat.person_sign(GUARD_COLOUR, GUARD_COLOUR)
        return [*entries, (flat.person_sign(PORTER), "carrier"), (guard, "guard")]


def _scene(state: State) -> _Scene:
    return _Scene(*(int(value) for part in state for value in part))


def _point(place: tuple[int, int], right: float = 0.0, down: float = 0.0) -> Point:
    """The middle of a cell, or a point so far from it."""
    return place[1] + 0.5 + right, place[0] + 0.5 + down


def _draw_sun(canvas: Canvas, colour: Colour) -> None:
    for ray in range(8):
        right, down = math.cos(ray * math.pi / 4), math.sin(ray * math.pi / 4)
        ends = (0.25 * right, 0.25 * down), (0.36 * right, 0.36 * down)
        canvas.line(*ends, fill=colour, width=0.05)
    canvas.disc((0.0, 0.0), 0.2, fill=colour)


def _draw_rain(canvas: Canvas, colour: Colour) -> None:
    cloud = mix(colour, INK, 0.25)
    for right, radius in ((-0.18, 0.14), (0.0, 0.2), (0.18, 0.14)):
        canvas.disc((right, -0.1), radius, fill=cloud)
    for drop in (-0.15, 0.0, 0.15):
        canvas.line((drop + 0.05, 0.12), (drop, 0.3), fill=colour, width=0.05)
