"""Viewers: one for any model, and one with two backends, 3-D by PyBullet and flat by Pillow."""

from __future__ import annotations

import logging
import math
import os
import sys
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from exo_envs.core.arguments import check_choice, check_whole
from exo_envs.core.batches import as_state
from exo_envs.core.errors import ArgumentTypeError, NotInstalledError
from exo_envs.core.mdp import ExoMDP, State
from exo_envs.rendering import flat
from exo_envs.rendering.palette import Emphasis, Frame
from exo_envs.rendering.scene import Point3, Scene

SIZES = {"bullet": (480, 360), "flat": (640, 480)}  # pybullet's renderer works on the CPU

#: Pixels of a frame: the smallest width and height.
SMALLEST = (64, 48)
#: Pixels of a frame at most, to either side.
MOST_PIXELS = 10_000
#: A larger factor takes memory and smooths nothing more.
MOST_SUPERSAMPLING = 16

logger = logging.getLogger(__name__)


def has_display(*names: str) -> bool:
    """Whether there is a screen to open a window on; on Linux, whether one of these says so."""
    return not sys.platform.startswith("linux") or any(map(os.environ.get, names))


class Viewer:
    """Draws single states of one :class:`ExoMDP`; by itself, as text.

    A domain's viewer extends this one with :meth:`draw` and says so in its ``metadata``. Windows
    and other resources are made on first use, freed by :meth:`close`, and never copied: a copy
    of an environment has a viewer that opens its own.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 4}
    #: The models whose states it draws.
    draws: ClassVar[type[Any]] = ExoMDP

    def __init__(self, mdp: ExoMDP) -> None:
        """Draw states of ``mdp``."""
        if not isinstance(mdp, self.draws):
            wanted, given = self.draws.__name__, type(mdp).__name__
            raise ArgumentTypeError(
                f"{type(self).__name__} draws states of a {wanted}, not of a {given}"
            )
        self.mdp = mdp
        self.mask: tuple[str, ...] | None = None  # drawn over the picture where there is one
        self._window: tuple[Any, Any] | None = None  # pygame's screen and clock

    def text(self, state: State) -> str:
        """The state as lines of text; by default every variable with its value."""
        return "\n".join(
            f"{variable.name} = {value}"
            for variables, values in zip(
                (self.mdp.endogenous_variables, self.mdp.exogenous_variables),
                self.check(state),
                strict=True,
            )
            for variable, value in zip(variables, values, strict=True)
        )

    def check(self, state: Any) -> State:
        """One state of the model, or an error that says what is wrong with it."""
        return as_state(self.mdp, state, ())

    def draw(self, state: State) -> Frame:
        """The state as a picture."""
        raise ArgumentTypeError(f"{type(self).__name__} draws text only (render_mode='ansi')")

    def show(self, state: State) -> None:
        """Show the picture in a window; without a screen it is drawn for nobody."""
        if not has_display("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
            logger.warning("render_mode='human' has no screen to open a window on")
            self.draw(state)
            return
        try:
            import pygame
        except ImportError as error:
            raise NotInstalledError(
                "render_mode='human' opens its window with pygame: pip install \"exo-envs[human]\""
            ) from error
        frame = self.draw(state)
        if self._window is None:
            pygame.display.init()
            pygame.display.set_caption(type(self.mdp).__name__)
            screen = pygame.display.set_mode((frame.shape[1], frame.shape[0]))
            self._window = (screen, pygame.time.Clock())
        screen, clock = self._window
        screen.blit(pygame.surfarray.make_surface(frame.swapaxes(0, 1)), (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        clock.tick(self.metadata["render_fps"])

    def close(self) -> None:
        """Free what drawing needed; calling it again does nothing."""
        if self._window is not None:
            import pygame

            pygame.display.quit()
            self._window = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the window behind: copies open their own."""
        return {**self.__dict__, "_window": None}


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
    def draw_flat(self, canvas: flat.Canvas, state: State) -> None:
        """Draw a state on a canvas whose units are pixels."""

    @abstractmethod
    def corners(self) -> list[Point3]:
        """Points that the 3-D picture has to contain."""

    @abstractmethod
    def pose(self, scene: Scene, state: State) -> None:
        """Show the bodies as the state has them; those not shown are hidden."""

    @abstractmethod
    def key(self, state: State) -> flat.Key:
        """What there is to say below a 3-D picture: signs and what they mean."""

    @property
    def emphasis(self) -> Emphasis:
        """What the mask does to the picture."""
        return Emphasis(self.mask)

    # --- what follows from it -------------------------------------------------------------

    def draw(self, state: State) -> Frame:
        """The state as a picture, shape (height, width, 3)."""
        state = self.check(state)
        if self.backend == "flat":
            canvas = flat.Canvas(self.width, self.height)
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
        with scene.changing(self.metadata["render_fps"]):
            self.pose(scene, state)
            scene.hide_others()
        return scene

    def _strip(self, state: State) -> Frame:
        height = round(self.width / 18)
        canvas, margin = flat.Canvas(self.width, height), 0.25 * height
        flat.row_key(canvas, (margin, 0.0), self.width - 2 * margin, height, self.key(state))
        return canvas.frame()


def slots(count: int, width: float, depth: float) -> list[tuple[float, float]]:
    """``count`` points side by side around (0, 0), in rows if they are many.

    >>> slots(1, 0.8, 0.4), slots(2, 0.8, 0.4)
    ([(0.0, 0.0)], [(-0.2, 0.0), (0.2, 0.0)])
    """
    if count == 0:
        return []
    columns = min(count, max(2, math.ceil(math.sqrt(count * width / depth))))
    rows = math.ceil(count / columns)
    points = []
    for index in range(count):
        row, column = divmod(index, columns)
        in_row = min(columns, count - row * columns)
        points.append((((column + 0.5) / in_row - 0.5) * width, ((row + 0.5) / rows - 0.5) * depth))
    return points
