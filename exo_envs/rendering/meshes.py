"""Solids for the 3-D pictures, as plain arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Point3: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles with a normal at each corner."""

    vertices: NDArray[np.float64]  # (num_vertices, 3)
    normals: NDArray[np.float64]  # (num_vertices, 3)
    indices: NDArray[np.int64]  # (3 * num_triangles,), counter-clockwise from outside

    def at(self, x: float, y: float, z: float) -> Mesh:
        """The same solid elsewhere."""
        return Mesh(self.vertices + np.array([x, y, z]), self.normals, self.indices)


def merge(*meshes: Mesh) -> Mesh:
    """Several solids as one."""
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


def quad(x: float, y: float, width: float, depth: float) -> Mesh:
    """A rectangle in the plane z = 0 that is seen from above, from its least x and y on."""
    corners = [(x, y, 0.0), (x + width, y, 0.0), (x + width, y + depth, 0.0), (x, y + depth, 0.0)]
    normals = np.tile([0.0, 0.0, 1.0], (4, 1))
    return Mesh(np.array(corners), normals, np.array([0, 1, 2, 0, 2, 3]))


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
    """A ball around the origin."""
    angles = np.linspace(0.0, np.pi, sides // 2 + 2)
    solid = lathe([(radius * math.sin(a), -radius * math.cos(a)) for a in angles], sides=sides)
    return Mesh(solid.vertices, solid.vertices / radius, solid.indices)


def disc(radius: float, *, height: float = 0.0, sides: int = 24) -> Mesh:
    """A disc at a height that is seen from above."""
    return lathe([(radius, height), (0.0, height)], sides=sides)


def ring(inner: float, outer: float, *, thickness: float = 0.01, sides: int = 24) -> Mesh:
    """A flat ring on z = 0."""
    profile = [(outer, 0.0), (outer, thickness), (inner, thickness), (inner, 0.0)]
    return lathe(profile, sides=sides)


def star(radius: float, thickness: float) -> Mesh:
    """A star of five points that lies on z = 0."""
    outline = [
        (reach * math.sin(-corner * math.pi / 5), reach * math.cos(corner * math.pi / 5))
        for corner in range(10)
        for reach in [radius if corner % 2 == 0 else 0.45 * radius]
    ]
    return prism(outline, 0.0, thickness)
