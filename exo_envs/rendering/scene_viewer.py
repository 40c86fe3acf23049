"""A viewer with two backends: a 3-D scene by PyBullet, or a flat picture by Pillow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from exo_envs.core.arguments import check_choice, check_whole
from exo_envs.core.mdp import ExoMDP, State
from exo_envs.rendering import figures
from exo_envs.rendering.canvas import Canvas
from exo_envs.rendering.scene import Scene
from exo_envs.rendering.viewer import Frame, Viewer, has_display

SIZES = {"bullet": (480, 360), "flat": (640, 480)}  # pybullet's renderer works on the CPU

#: Pixels of a frame: the smallest width and height.
SMALLEST = (64, 48)
#: Pixels of a frame at most, to either side.
MOST_PIXELS = 10_000
#: A larger factor takes memory and smooths nothing more.
MOST_SUPERSAMPLING = 16


class SceneViewer(Viewer, ABC):
    """Draws states in 3-D, or quickly in two dimensions.

    Args:
        mdp: the model.
        backend: "bullet" draws in 3-D by PyBullet: frames by its CPU renderer, windows by its
            own. "flat" draws floor plans by Pillow and needs no pybullet.
        width: the width of a frame in pixels; by default 480, or 640 if flat.
        height: its height; by default 360, or 480 if flat.
        supersampling: how many times larger a 3-D frame is drawn before it is scaled down,
            which smooths its edges and takes that much squared longer.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": ["human", "rgb_array", "ansi"],
        "render_fps": 4,
    }

    def __init__(
        self,
        mdp: ExoMDP,
        backend: str = "bullet",
        *,
        width: int | None = None,
        height: int | None = None,
        supersampling: int = 1,
    ) -> None:
        check_choice("render backend", backend, SIZES)
        super().__init__(mdp)
        self.backend = backend
        wide, high = SIZES[backend]
        self.width = check_whole(
            "width", wide if width is None else width, SMALLEST[0], MOST_PIXELS
        )
        self.height = check_whole(
            "height", high if height is None else height, SMALLEST[1], MOST_PIXELS
        )
        self.supersampling = check_whole("supersampling", supersampling, 1, MOST_SUPERSAMPLING)
        self._scene: Scene | None = None

    # --- what a domain's viewer writes ----------------------------------------------------

    @abstractmethod
    def draw_flat(self, canvas: Canvas, state: State) -> None:
        """Draw a state on a canvas whose units are pixels."""

    @abstractmethod
    def corners(self) -> list[tuple[float, float, float]]:
        """Points that the 3-D picture has to contain."""

    @abstractmethod
    def build(self, scene: Scene, state: State) -> None:
        """Name the bodies of the 3-D scene, whatever state comes first."""

    @abstractmethod
    def pose(self, scene: Scene, state: State) -> None:
        """Show the bodies as the state has them; those not shown are hidden."""

    @abstractmethod
    def key(self, state: State) -> figures.Key:
        """What there is to say below a 3-D picture: signs and what they mean."""

    # --- what follows from it -------------------------------------------------------------

    def draw(self, state: State) -> Frame:
        """The state as a picture, shape (height, width, 3)."""
        state = self.check(state)
        if self.backend == "flat":
            canvas = Canvas(self.width, self.height)
            self.draw_flat(canvas, state)
            return canvas.frame()
        scene = self._update(state, window=False)
        strip = self._strip(state)
        shape = (self.width, self.height - len(strip))
        frame = scene.picture(*(self.supersampling * side for side in shape))
        if self.supersampling > 1:
            frame = np.asarray(Image.fromarray(frame).reduce(self.supersampling), dtype=np.uint8)
        return np.vstack([frame, strip])

    def show(self, state: State) -> None:
        """Show the state in a window: PyBullet's own, or pygame's if the picture is flat.

        Without an X display PyBullet would end the whole process, so there it is pygame's too.
        """
        if self.backend == "flat" or not has_display("DISPLAY"):
            super().show(state)
        else:
            self._update(self.check(state), window=True)

    def close(self) -> None:
        """Close windows and the PyBullet client; calling it again does nothing."""
        super().close()
        if self._scene is not None:
            self._scene.close()
            self._scene = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the client behind too: copies open their own."""
        return {**super().__getstate__(), "_scene": None}

    def _update(self, state: State, *, window: bool) -> Scene:
        """The scene as the state has it: the one there is, or a new one."""
        scene = self._scene
        if scene is not None and (not scene.is_open or (window and not scene.window)):
            scene.close()
            scene = None
        if scene is None:
            self._scene = scene = Scene(self.corners(), window=window)
            self.build(scene, state)
        with scene.changing(self.metadata["render_fps"]):
            self.pose(scene, state)
            scene.hide_others()
        return scene

    @property
    def _strip_height(self) -> int:
        return round(self.width / 18)

    def _strip(self, state: State) -> Frame:
        height = self._strip_height
        canvas, margin = Canvas(self.width, height), 0.25 * height
        figures.row_key(canvas, (margin, 0.0), self.width - 2 * margin, height, self.key(state))
        return canvas.frame()
