"""Drawing in three dimensions: solids, and the figures that several domains show as bodies.

Floors lie in the plane z = 0, a cell is one unit wide, and row 0 is the farthest from the
camera: what is at (x, y) on a floor plan is at (x, -y) in the scene.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from exo_envs.rendering.palette import GOLD, INK, PAPER, PURPLE, SKIN, Colour, Emphasis
from exo_envs.rendering.scene import Mesh, Scene
from exo_envs.rendering.things import (
    MACHINE_HEIGHT,
    MACHINE_TOP,
    TABLE_HEIGHT,
    TABLE_TOP,
    Thing,
    star,
)


def merge(*meshes: Mesh) -> Mesh:
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes[:-1])])
    return Mesh(
        np.vstack([mesh.vertices for mesh in meshes]),
        np.vstack([mesh.normals for mesh in meshes]),
        np.concatenate([mesh.indices + start for mesh, start in zip(meshes, starts, strict=True)]),
    )


def glowing(mesh: Mesh) -> Mesh:
    """The same solid, as bright on every side as a surface that faces the light from above."""
    return Mesh(mesh.vertices, np.tile([-0.25, -0.38, 0.89], (len(mesh.normals), 1)), mesh.indices)


def prism(outline: ArrayLike, bottom: float, top: float) -> Mesh:
    """A flat shape with upright walls; the outline, shape (n, 2), runs counter-clockwise.

    Its centre of mass has to see every corner, as that of a star does.
    """
    corners = np.asarray(outline, dtype=np.float64)
    ends = np.roll(corners, -1, axis=0)
    vertices: list[list[float]] = []
    normals: list[list[float]] = []

    def triangle(points: list[list[float]], normal: list[float]) -> None:
        vertices.extend(points)
        normals.extend([normal] * 3)

    cx, cy = corners.mean(axis=0)
    for (x0, y0), (x1, y1) in zip(corners, ends, strict=True):
        triangle([[cx, cy, top], [x0, y0, top], [x1, y1, top]], [0.0, 0.0, 1.0])
        triangle([[cx, cy, bottom], [x1, y1, bottom], [x0, y0, bottom]], [0.0, 0.0, -1.0])
        length = math.hypot(x1 - x0, y1 - y0)
        side = [(y1 - y0) / length, (x0 - x1) / length, 0.0]
        triangle([[x0, y0, bottom], [x1, y1, bottom], [x1, y1, top]], side)
        triangle([[x0, y0, bottom], [x1, y1, top], [x0, y0, top]], side)
    return Mesh(np.array(vertices), np.array(normals), np.arange(len(vertices)))


def raised(mesh: Mesh, degrees: float) -> Mesh:
    """A flat shape raised until, at 90 degrees, its upper side looks towards negative y."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turn = np.array([[1.0, 0.0, 0.0], [0.0, cos, sin], [0.0, -sin, cos]])
    return Mesh(mesh.vertices @ turn, mesh.normals @ turn, mesh.indices)


def box(width: float, depth: float, height: float) -> Mesh:
    """A box that stands on z = 0 in the middle of x and y."""
    x, y = width / 2, depth / 2
    return prism([(-x, -y), (x, -y), (x, y), (-x, y)], 0.0, height)


def lathe(profile: Sequence[tuple[float, float]], *, sides: int = 16) -> Mesh:
    """A solid of revolution: its profile is (radius, height) from the bottom to the top."""
    angles = np.linspace(0.0, 2 * np.pi, sides + 1)
    around = np.stack([np.cos(angles), np.sin(angles)], axis=-1)  # (sides + 1, 2)
    parts = []
    for (r0, z0), (r1, z1) in pairwise(profile):
        slope = math.hypot(z1 - z0, r1 - r0)
        outwards, upwards = (z1 - z0) / slope, (r0 - r1) / slope
        rings = [
            np.column_stack([radius * around, np.full(sides + 1, height)])
            for radius, height in ((r0, z0), (r1, z1))
        ]
        normal = np.column_stack([outwards * around, np.full(sides + 1, upwards)])
        low = np.arange(sides)
        high = low + sides + 1
        faces = np.stack([low, low + 1, high, high, low + 1, high + 1], axis=-1)
        parts.append(Mesh(np.vstack(rings), np.vstack([normal, normal]), faces.ravel()))
    return merge(*parts)


def ball(radius: float, *, sides: int = 12) -> Mesh:
    angles = np.linspace(0.0, np.pi, sides // 2 + 2)
    solid = lathe([(radius * math.sin(a), -radius * math.cos(a)) for a in angles], sides=sides)
    return Mesh(solid.vertices, solid.vertices / radius, solid.indices)


# --- figures ---------------------------------------------------------------------------------

ROBOT: dict[str, tuple[Mesh, Colour | str]] = {
    "base": (
        lathe([(0.30, 0.0), (0.32, 0.05), (0.30, 0.16), (0.20, 0.20), (0.0, 0.20)]),
        PURPLE,
    ),
    "body": (
        lathe([(0.20, 0.16), (0.25, 0.24), (0.25, 0.52), (0.17, 0.62), (0.0, 0.62)]),
        GOLD,
    ),
    "arms": (
        merge(
            *(
                lathe([(0.0, 0.26), (0.06, 0.30), (0.06, 0.50), (0.0, 0.54)], sides=8).at(
                    side * 0.31, -0.05, 0.0
                )
                for side in (-1, 1)
            )
        ),
        GOLD,
    ),
    "head": (ball(0.20, sides=16).at(0.0, 0.0, 0.78), PURPLE),
    "eyes": (
        merge(*(ball(0.06, sides=8).at(side * 0.09, -0.165, 0.82) for side in (-1, 1))),
        PAPER,
    ),
    "pupils": (
        merge(*(ball(0.03, sides=6).at(side * 0.09, -0.21, 0.835) for side in (-1, 1))),
        INK,
    ),
    "antenna": (
        merge(
            lathe([(0.015, 0.96), (0.015, 1.08)], sides=6),
            ball(0.05, sides=8).at(0.0, 0.0, 1.10),
        ),
        GOLD,
    ),
}
PERSON = lathe(
    [(0.21, 0.0), (0.22, 0.05), (0.15, 0.22), (0.09, 0.42), (0.12, 0.46), (0.07, 0.49)], sides=14
)
HEAD = ball(0.14).at(0.0, 0.0, 0.59)
CAP = merge(
    lathe([(0.13, 0.66), (0.12, 0.72), (0.07, 0.76), (0.0, 0.77)], sides=12),
    box(0.20, 0.09, 0.025).at(0.0, -0.13, 0.665),  # a peak
)
BEACON = glowing(
    merge(
        lathe([(0.03, 0.0), (0.03, 0.85)], sides=6),
        raised(prism(-np.array(star(0.34)), 0.0, 0.05), 40.0).at(0.0, 0.0, 1.1),  # to the camera
    )
)
_LEG = box(0.06, 0.06, TABLE_HEIGHT - 0.05)
DESK = merge(
    box(*TABLE_TOP, 0.05).at(0.0, 0.0, TABLE_HEIGHT - 0.05),
    *(
        _LEG.at(side * (TABLE_TOP[0] / 2 - 0.05), end * (TABLE_TOP[1] / 2 - 0.05), 0.0)
        for side in (-1, 1)
        for end in (-1, 1)
    ),
)
LAMP = merge(
    lathe([(0.05, MACHINE_HEIGHT), (0.05, MACHINE_HEIGHT + 0.06)], sides=8),
    ball(0.13).at(0.0, 0.0, MACHINE_HEIGHT + 0.17),
)
#: The parts of each kind of thing, and their colours, or which of the thing's they have.
BODIES: dict[str, dict[str, tuple[Mesh, Colour | str]]] = {
    "robot": ROBOT,
    "person": {"body": (PERSON, "colour"), "head": (HEAD, SKIN), "cap": (CAP, "accent")},
    "table": {"desk": (DESK, "colour")},
    "machine": {
        "cabinet": (box(*MACHINE_TOP, MACHINE_HEIGHT), "colour"),
        "lamp": (LAMP.at(0.15, 0.0, 0.0), "accent"),
    },
    "parcel": {"box": (box(0.18, 0.18, 0.18), "colour")},
    "goal": {"beacon": (BEACON, "colour")},
}


def stand(scene: Scene, thing: Thing, emphasis: Emphasis) -> None:
    x, y = thing.spot
    for part, (mesh, own) in BODIES[thing.kind].items():
        colour = getattr(thing, own) if isinstance(own, str) else own
        if colour is not None:
            painted = emphasis.paint(colour, *thing.variables)
            scene.show(f"{thing.name} {part}", mesh, painted, (x, -y, thing.height))
