"""The PyBullet client, wrapped once: nothing else touches pybullet.

The discrete state is the state; a scene is only a view of it. So there are no masses and no
collisions, just coloured solids that are made when they are first shown, and then moved, painted
and hidden.
"""

from __future__ import annotations

import math
import os
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exo_envs.core.errors import NotInstalledError, NoWindowError
from exo_envs.rendering.palette import Colour, Frame

Point3: TypeAlias = tuple[float, float, float]

NOWHERE: Point3 = (0.0, 0.0, -1000.0)  # beyond the far plane: for bodies that are not shown
NEAR, FAR = 0.1, 500.0
WINDOW = (960, 720)
STDERR = 2  # its number, for libraries in C

_LISTS: dict[tuple[bytes, tuple[int, ...], str], list[Any]] = {}  # see _lasting_list


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles with a normal at each corner."""

    vertices: NDArray[np.float64]  # (num_vertices, 3)
    normals: NDArray[np.float64]  # (num_vertices, 3)
    indices: NDArray[np.int64]  # (3 * num_triangles,), counter-clockwise from outside

    def at(self, x: float, y: float, z: float) -> Mesh:
        """The same solid elsewhere."""
        return Mesh(self.vertices + np.array([x, y, z]), self.normals, self.indices)


@dataclass(frozen=True)
class Camera:
    """A camera that looks at ``target`` from ``distance`` away; angles are in degrees."""

    target: Point3
    distance: float
    yaw: float
    pitch: float
    field_of_view: float

    @cached_property
    def _axes(self) -> NDArray[np.float64]:
        """The directions to the right, up and towards the viewer, as rows."""
        yaw, pitch = math.radians(self.yaw), math.radians(self.pitch)
        back = np.array(
            [
                math.sin(yaw) * math.cos(pitch),
                -math.cos(yaw) * math.cos(pitch),
                -math.sin(pitch),
            ]
        )
        right = np.array([math.cos(yaw), math.sin(yaw), 0.0])
        return np.stack([right, np.cross(back, right), back])

    def project(self, points: ArrayLike, aspect: float) -> NDArray[np.float64]:
        """Where points, shape (n, 3), are in the picture: (n, 2) from -1 to 1, y upwards."""
        seen = (np.asarray(points, dtype=np.float64) - np.array(self.target)) @ self._axes.T
        depth = (self.distance - seen[:, 2]) * math.tan(math.radians(self.field_of_view) / 2)
        return np.stack([seen[:, 0] / (depth * aspect), seen[:, 1] / depth], axis=-1)

    @classmethod
    def around(
        cls,
        points: Sequence[Point3],
        aspect: float,
        *,
        yaw: float = 0.0,
        pitch: float = -50.0,
        field_of_view: float = 30.0,
        margin: float = 0.04,
    ) -> Camera:
        """The camera whose picture the points, shape (n, 3), just fill."""
        corners = np.asarray(points, dtype=np.float64)
        target = corners.mean(axis=0)
        distance = 2 * float(np.ptp(corners, axis=0).max()) / math.radians(field_of_view)
        camera = cls(_point(target), distance, yaw, pitch, field_of_view)
        for _ in range(30):  # a contraction: each round centres the picture and sets its size
            seen = camera.project(corners, aspect)
            low, high = seen.min(axis=0), seen.max(axis=0)
            shift = (low + high) / 2 * np.array([aspect, 1.0])
            shift = shift * distance * math.tan(math.radians(field_of_view) / 2)
            target = target + shift @ camera._axes[:2]
            distance *= float((high - low).max()) / (2 - 2 * margin)
            camera = cls(_point(target), distance, yaw, pitch, field_of_view)
        return camera


class Scene:
    """Solids under names, in a PyBullet client of their own.

    Args:
        corners: points that every picture has to contain.
        window: whether to open PyBullet's window; pictures need none.
    """

    def __init__(self, corners: Sequence[Point3], *, window: bool = False) -> None:
        self._bullet = bullet = import_bullet()
        self._corners = tuple(corners)
        self.window = window
        width, height = WINDOW
        try:
            if window:
                self._client = bullet.connect(
                    bullet.GUI, options=f"--width={width} --height={height}"
                )
            else:
                self._client = bullet.connect(bullet.DIRECT)
        except bullet.error:
            self._client = -1
        if self._client < 0:
            raise NoWindowError(
                "pybullet could not open its window: it needs a display, and a process can have "
                'only one; render_backend="flat" opens windows with pygame instead'
            )
        self._shapes: dict[tuple[Mesh, Colour], int] = {}
        self._bodies: dict[str, int] = {}
        self._places: dict[str, Point3] = {}
        self._colours: dict[str, Colour] = {}
        self._shown: set[str] = set()
        self._next_frame = 0.0
        # A viewer that is dropped without being closed does not leave its client behind.
        self._finalizer = weakref.finalize(self, _disconnect, bullet, self._client)
        if window:
            self._set_up_window(width / height)

    @property
    def is_open(self) -> bool:
        """Whether the client still runs; the user can close its window."""
        connected = self._finalizer.alive  # afterwards the number may be another client's
        return connected and bool(self._bullet.isConnected(physicsClientId=self._client))

    @property
    def num_bodies(self) -> int:
        """How many bodies the client holds: those that have been shown, each once."""
        return int(self._bullet.getNumBodies(physicsClientId=self._client))

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

    def picture(self, width: int, height: int) -> Frame:
        """What there is to see, by the CPU: no display and no graphics card needed."""
        bullet = self._bullet
        camera = Camera.around(self._corners, width / height)
        view = bullet.computeViewMatrixFromYawPitchRoll(
            camera.target, camera.distance, camera.yaw, camera.pitch, 0.0, 2
        )
        projection = bullet.computeProjectionMatrixFOV(
            camera.field_of_view, width / height, NEAR, FAR
        )
        pixels = bullet.getCameraImage(
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
            flags=bullet.ER_NO_SEGMENTATION_MASK,
            physicsClientId=self._client,
        )[2]
        return np.array(pixels, dtype=np.uint8).reshape(height, width, 4)[..., :3]

    @contextmanager
    def changing(self, fps: float) -> Iterator[None]:
        """Wait until it is time for the next frame, then hold the window's picture meanwhile."""
        if not self.window:
            yield
            return
        time.sleep(max(0.0, self._next_frame - time.monotonic()))
        self._configure(self._bullet.COV_ENABLE_RENDERING, 0)
        yield
        self._configure(self._bullet.COV_ENABLE_RENDERING, 1)
        self._next_frame = time.monotonic() + 1.0 / fps

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

    def _configure(self, feature: int, value: int) -> None:
        self._bullet.configureDebugVisualizer(feature, value, physicsClientId=self._client)

    def _set_up_window(self, aspect: float) -> None:
        bullet = self._bullet
        for feature in (
            bullet.COV_ENABLE_GUI,
            bullet.COV_ENABLE_SHADOWS,
            bullet.COV_ENABLE_KEYBOARD_SHORTCUTS,
        ):
            self._configure(feature, 0)
        bullet.configureDebugVisualizer(rgbBackground=[1.0, 1.0, 1.0], physicsClientId=self._client)
        # The window always sees about 90 degrees; from a bit farther it looks better.
        camera = Camera.around(self._corners, aspect, field_of_view=70.0)
        bullet.resetDebugVisualizerCamera(
            camera.distance, camera.yaw, camera.pitch, camera.target, physicsClientId=self._client
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


def _point(values: NDArray[np.float64]) -> Point3:
    x, y, z = (float(value) for value in values)
    return x, y, z


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
