"""The PyBullet client, wrapped once: nothing else touches pybullet.

The discrete state is the state; a scene is only a view of it. So there are no masses and no
collisions, just coloured solids that are made when they are first shown, and then moved, painted
and hidden. What lies on the floor is a floor plan, seen by the same camera.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from exo_envs.core.errors import NotInstalledError
from exo_envs.rendering.palette import PAPER, Colour, Frame

Point3: TypeAlias = tuple[float, float, float]

NOWHERE: Point3 = (0.0, 0.0, -1000.0)  # beyond the far plane: for bodies that are not shown
NEAR, FAR = 0.1, 500.0
PITCH, FIELD_OF_VIEW = -50.0, 30.0  # of the camera, in degrees
_SIN, _COS = math.sin(math.radians(PITCH)), math.cos(math.radians(PITCH))
#: The camera's directions to the right, up and towards the viewer.
AXES = np.array([[1.0, 0.0, 0.0], [0.0, -_SIN, _COS], [0.0, -_COS, -_SIN]])
#: Half the height of what it sees at distance 1.
REACH = math.tan(math.radians(FIELD_OF_VIEW) / 2)
STDERR = 2  # its number, for libraries in C

_LISTS: dict[tuple[bytes, tuple[int, ...], str], list[Any]] = {}  # see _lasting_list


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles with a normal at each corner."""

    vertices: NDArray[np.float64]  # (num_vertices, 3)
    normals: NDArray[np.float64]  # (num_vertices, 3)
    indices: NDArray[np.int64]  # (3 * num_triangles,), counter-clockwise from outside

    def at(self, x: float, y: float, z: float) -> Mesh:
        return Mesh(self.vertices + np.array([x, y, z]), self.normals, self.indices)


class Camera(NamedTuple):
    """A camera that looks down at ``target`` from ``distance`` away."""

    target: NDArray[np.float64]
    distance: float

    def project(self, points: ArrayLike, aspect: float) -> NDArray[np.float64]:
        """Where points, shape (n, 3), are in the picture: (n, 2) from -1 to 1, y upwards."""
        seen = (np.asarray(points, dtype=np.float64) - self.target) @ AXES.T
        depth = (self.distance - seen[:, 2]) * REACH
        return np.stack([seen[:, 0] / (depth * aspect), seen[:, 1] / depth], axis=-1)

    def to_floor(self, width: int, height: int) -> NDArray[np.float64]:
        """The projective map, (3, 3), from pixels of a picture to places on a floor plan."""
        here = AXES @ self.target
        seen = np.column_stack([AXES[:, 0], -AXES[:, 1], -here])  # of (x, y, 1) on the plan
        pixels = np.array([[width / 2, 0, width / 2], [0, -height / 2, height / 2], [0, 0, 1]])
        ahead = np.array([0.0, 0.0, self.distance]) - seen[2]
        shown = np.stack([seen[0] * height / width, seen[1], ahead * REACH])
        return np.linalg.inv(pixels @ shown)

    @classmethod
    def around(cls, points: Sequence[Point3], aspect: float, *, margin: float = 0.04) -> Camera:
        """The camera whose picture the points, shape (n, 3), just fill."""
        corners = np.asarray(points, dtype=np.float64)
        distance = 2 * float(np.ptp(corners, axis=0).max()) / math.radians(FIELD_OF_VIEW)
        camera = cls(corners.mean(axis=0), distance)
        for _ in range(30):  # a contraction: each round centres the picture and sets its size
            seen = camera.project(corners, aspect)
            low, high = seen.min(axis=0), seen.max(axis=0)
            shift = (low + high) / 2 * np.array([aspect, 1.0]) * camera.distance * REACH
            size = float((high - low).max()) / (2 - 2 * margin)
            camera = cls(camera.target + shift @ AXES[:2], camera.distance * size)
        return camera


class Scene:
    """Solids under names, in a PyBullet client of their own.

    Args:
        corners: points that every picture has to contain.
    """

    def __init__(self, corners: Sequence[Point3]) -> None:
        self._bullet = bullet = import_bullet()
        self._corners = tuple(corners)
        self._client = bullet.connect(bullet.DIRECT)
        self._shapes: dict[tuple[Mesh, Colour], int] = {}
        self._bodies: dict[str, int] = {}
        self._places: dict[str, Point3] = {}
        self._colours: dict[str, Colour] = {}
        self._shown: set[str] = set()
        # A viewer that is dropped without being closed does not leave its client behind.
        self._finalizer = weakref.finalize(self, _disconnect, bullet, self._client)

    def show(self, name: str, mesh: Mesh, colour: Colour, place: Point3 = (0.0, 0.0, 0.0)) -> None:
        """Show a body, which keeps the mesh that it is first shown with."""
        self._shown.add(name)
        if name not in self._bodies:
            self._make(name, mesh, colour, place)
            return
        self._move(name, place)
        if self._colours[name] != colour:
            self._colours[name] = colour
            self._bullet.changeVisualShape(
                self._bodies[name], -1, rgbaColor=_rgba(colour), physicsClientId=self._client
            )

    def hide_others(self) -> None:
        """Put every body out of sight that has not been shown since the last call."""
        for name in self._bodies.keys() - self._shown:
            self._move(name, NOWHERE)
        self._shown.clear()

    def picture(
        self, width: int, height: int, plan: Frame, corner: tuple[float, float], scale: float
    ) -> Frame:
        """The bodies on their floor, by the CPU: no display and no graphics card needed.

        Args:
            width: of the picture in pixels.
            height: of the picture.
            plan: a picture of the floor and all that lies on it, from above.
            corner: the place on the floor that is its upper left corner.
            scale: its pixels for each cell.
        """
        bullet = self._bullet
        camera = Camera.around(self._corners, width / height)
        view = bullet.computeViewMatrixFromYawPitchRoll(
            camera.target.tolist(), camera.distance, 0.0, PITCH, 0.0, 2
        )
        projection = bullet.computeProjectionMatrixFOV(FIELD_OF_VIEW, width / height, NEAR, FAR)
        seen = bullet.getCameraImage(
            width,
            height,
            view,
            projection,
            lightDirection=[-4.0, -6.0, 14.0],
            lightAmbientCoeff=0.62,
            lightDiffuseCoeff=0.42,
            lightSpecularCoeff=0.0,
            shadow=0,  # they treble the time, and from afar they fall in the wrong places
            renderer=bullet.ER_TINY_RENDERER,
            physicsClientId=self._client,
        )
        pixels = np.array(seen[2], dtype=np.uint8).reshape(height, width, 4)[..., :3]
        is_body = np.array(seen[4]).reshape(height, width, 1) >= 0
        (x, y), on_floor = corner, camera.to_floor(width, height)
        to_plan = np.array([[scale, 0, -x * scale], [0, scale, -y * scale], [0, 0, 1]]) @ on_floor
        floor = Image.fromarray(plan).transform(
            (width, height),
            Image.Transform.PERSPECTIVE,
            (to_plan / to_plan[2, 2]).ravel()[:8].tolist(),
            Image.Resampling.BICUBIC,
            fillcolor=PAPER,
        )
        return np.where(is_body, pixels, np.asarray(floor, dtype=np.uint8))

    def close(self) -> None:
        """Close the client; calling it again does nothing."""
        self._finalizer()

    def _make(self, name: str, mesh: Mesh, colour: Colour, place: Point3) -> None:
        bullet = self._bullet
        if (mesh, colour) not in self._shapes:
            self._shapes[mesh, colour] = bullet.createVisualShape(
                bullet.GEOM_MESH,
                vertices=_lasting_list(mesh.vertices),
                normals=_lasting_list(mesh.normals),
                uvs=_lasting_list(np.zeros((len(mesh.vertices), 2))),
                indices=_lasting_list(mesh.indices),
                rgbaColor=_rgba(colour),
                specularColor=[0.0, 0.0, 0.0],
                physicsClientId=self._client,
            )
        self._bodies[name] = bullet.createMultiBody(
            baseVisualShapeIndex=self._shapes[mesh, colour],
            basePosition=place,
            physicsClientId=self._client,
        )
        self._places[name] = place
        self._colours[name] = colour

    def _move(self, name: str, place: Point3) -> None:
        if self._places[name] != place:
            self._places[name] = place
            self._bullet.resetBasePositionAndOrientation(
                self._bodies[name], place, (0.0, 0.0, 0.0, 1.0), physicsClientId=self._client
            )


def _lasting_list(values: NDArray[Any]) -> list[Any]:
    """An array as a list, the same one each time.

    createVisualShape never lets go of the lists that it is handed (pybullet 3.2.7), so new ones
    for each scene would pile up.
    """
    key = (values.tobytes(), values.shape, values.dtype.str)
    return _LISTS.setdefault(key, values.tolist())


def _disconnect(bullet: Any, client: int) -> None:
    with suppress(bullet.error):  # should pybullet have closed it by itself
        bullet.disconnect(physicsClientId=client)


def _rgba(colour: Colour) -> list[float]:
    return [*(part / 255 for part in colour), 1.0]


def has_bullet() -> bool:
    """Whether there are 3-D pictures here: whether pybullet can be imported."""
    try:
        import_bullet()
    except ImportError:
        return False
    return True


def import_bullet() -> Any:
    """The module pybullet, imported on first use; it does not tell when it was built."""
    try:
        with _silent_errors():
            import pybullet
    except ImportError as error:
        raise NotInstalledError(
            "the 3-D pictures need pybullet: pip install pybullet (it has wheels for Python 3.9 "
            'to 3.11); render_backend="flat" draws in two dimensions without it'
        ) from error
    return pybullet


@contextmanager
def _silent_errors() -> Iterator[None]:
    """Let nothing that is written to standard error be seen, not even by libraries in C."""
    try:
        before = os.dup(STDERR)
    except OSError:  # it is closed
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, STDERR)
        yield
    finally:
        os.dup2(before, STDERR)
        os.close(before)
        os.close(nowhere)
