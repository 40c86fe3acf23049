"""The things that the 3-D pictures of several domains show, as bodies of a scene.

Floors lie in the plane z = 0, a cell is one unit wide, and row 0 is the farthest from the
camera: what is at (x, y) on a floor plan is at (x, -y) in the scene.
"""

from __future__ import annotations

from collections.abc import Iterable

from exo_envs.rendering import meshes
from exo_envs.rendering.meshes import merge
from exo_envs.rendering.palette import (
    FLOOR,
    FLOOR_OTHER,
    GOAL,
    GOLD,
    INK,
    KEPT,
    MARK,
    OCCUPIED,
    PAPER,
    PURPLE,
    SKIN,
    Colour,
    Emphasis,
    mix,
)
from exo_envs.rendering.scene import Scene

RIM: Colour = mix(FLOOR_OTHER, INK, 0.3)
KEPT_FLOOR: Colour = mix(KEPT, PAPER, 0.25)
SHADE: Colour = mix(FLOOR_OTHER, INK, 0.22)

ROBOT = {
    "base": (
        meshes.lathe([(0.30, 0.0), (0.32, 0.05), (0.30, 0.16), (0.20, 0.20), (0.0, 0.20)]),
        PURPLE,
    ),
    "body": (
        meshes.lathe([(0.20, 0.16), (0.25, 0.24), (0.25, 0.52), (0.17, 0.62), (0.0, 0.62)]),
        GOLD,
    ),
    "arms": (
        merge(
            *(
                meshes.lathe([(0.0, 0.26), (0.06, 0.30), (0.06, 0.50), (0.0, 0.54)], sides=8).at(
                    side * 0.31, -0.05, 0.0
                )
                for side in (-1, 1)
            )
        ),
        GOLD,
    ),
    "head": (meshes.ball(0.20, sides=16).at(0.0, 0.0, 0.78), PURPLE),
    "eyes": (
        merge(*(meshes.ball(0.06, sides=8).at(side * 0.09, -0.165, 0.82) for side in (-1, 1))),
        PAPER,
    ),
    "pupils": (
        merge(*(meshes.ball(0.03, sides=6).at(side * 0.09, -0.21, 0.835) for side in (-1, 1))),
        INK,
    ),
    "antenna": (
        merge(
            meshes.lathe([(0.015, 0.96), (0.015, 1.08)], sides=6),
            meshes.ball(0.05, sides=8).at(0.0, 0.0, 1.10),
        ),
        GOLD,
    ),
    "shadow": (meshes.disc(0.40, height=0.012), SHADE),
}
PERSON = meshes.lathe(
    [(0.21, 0.0), (0.22, 0.05), (0.15, 0.22), (0.09, 0.42), (0.12, 0.46), (0.07, 0.49)], sides=14
)
HEAD = meshes.ball(0.14).at(0.0, 0.0, 0.59)
CAP = merge(
    meshes.lathe([(0.13, 0.66), (0.12, 0.72), (0.07, 0.76), (0.0, 0.77)], sides=12),
    meshes.box(0.20, 0.09, 0.025).at(0.0, -0.13, 0.665),  # a peak
)
PERSON_SHADOW = meshes.disc(0.27, height=0.012, sides=16)
PERSON_RING = meshes.ring(0.24, 0.33, thickness=0.05)
BEACON = meshes.glowing(
    merge(
        meshes.lathe([(0.03, 0.0), (0.03, 0.85)], sides=6),
        meshes.raised(meshes.star(0.34, 0.05), 40.0).at(0.0, 0.0, 1.1),  # towards the camera
    )
)
SQUARE = meshes.quad(-0.45, -0.45, 0.9, 0.9).at(0.0, 0.0, 0.008)
DISC = meshes.disc(0.41, height=0.016)


def add_floor(scene: Scene, rows: int, columns: int) -> None:
    """A chequered floor with a rim.

    The tiles do not overlap: a pixel drawn twice costs twice, and the floor fills the picture.
    """
    for colour, name in enumerate(("light tiles", "dark tiles")):
        tiles = [
            meshes.quad(column, -row - 1, 1.0, 1.0)
            for row in range(rows)
            for column in range(columns)
            if (row + column) % 2 == colour
        ]
        scene.add(name, merge(*tiles), (FLOOR, FLOOR_OTHER)[colour])
    beam = 0.1
    rim = merge(
        *(
            meshes.box(columns + 2 * beam, beam, 0.14).at(columns / 2, y, -0.12)
            for y in (beam / 2, -rows - beam / 2)
        ),
        *(
            meshes.box(beam, rows, 0.14).at(x, -rows / 2, -0.12)
            for x in (-beam / 2, columns + beam / 2)
        ),
    )
    scene.add("rim", rim, RIM)


def show_floor(scene: Scene) -> None:
    """Show the floor where it is."""
    for name in ("light tiles", "dark tiles", "rim"):
        scene.show(name)


def add_robot(scene: Scene) -> None:
    """The robot: a gold body, a purple head and a purple base."""
    for part, (mesh, colour) in ROBOT.items():
        scene.add(f"robot {part}", mesh, colour)


def show_robot(scene: Scene, x: float, y: float) -> None:
    """Show the robot at a point of the floor plan."""
    for part in ROBOT:
        scene.show(f"robot {part}", (x, -y, 0.0))


def add_person(scene: Scene, name: str, *, cap: bool) -> None:
    """Somebody who is not the robot."""
    scene.add(f"{name} body", PERSON, INK)
    scene.add(f"{name} head", HEAD, SKIN)
    scene.add(f"{name} shadow", PERSON_SHADOW, SHADE)
    scene.add(f"{name} ring", PERSON_RING, MARK)
    if cap:
        scene.add(f"{name} cap", CAP, INK)


def show_person(
    scene: Scene,
    name: str,
    x: float,
    y: float,
    colour: Colour,
    *,
    cap: Colour | None,
    emphasis: Emphasis,
    variables: Iterable[str],
) -> None:
    """Show somebody at a point of the floor plan, as a mask has it."""
    place, variables = (x, -y, 0.0), tuple(variables)
    scene.show(f"{name} body", place, emphasis.paint(colour, *variables))
    scene.show(f"{name} head", place, emphasis.paint(SKIN, *variables))
    if cap is not None:
        scene.show(f"{name} cap", place, emphasis.paint(cap, *variables))
    if emphasis.marks(*variables):
        scene.show(f"{name} ring", place)
    elif not emphasis.active:  # several shadows would hide the disc on an occupied cell
        scene.show(f"{name} shadow", place)


def add_beacon(scene: Scene, name: str) -> None:
    """A star on a pole: what the robot wants."""
    scene.add(name, BEACON, GOAL)


def add_cells(scene: Scene, cells: Iterable[int]) -> None:
    """A red square and a green disc for each cell, to show where a mask keeps it."""
    for cell in cells:
        scene.add(f"kept {cell}", SQUARE, KEPT_FLOOR)
        scene.add(f"occupied {cell}", DISC, OCCUPIED)


def show_cell(scene: Scene, cell: int, x: float, y: float, *, occupied: bool) -> None:
    """Show that a mask keeps a cell, and whether the cell is occupied now."""
    scene.show(f"kept {cell}", (x, -y, 0.0))
    if occupied:
        scene.show(f"occupied {cell}", (x, -y, 0.0))
