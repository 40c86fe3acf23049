"""Viewers: one for any model, and one with two backends, 3-D by PyBullet and flat by Pillow."""

from __future__ import annotations

import logging
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
from exo_envs.rendering import flat, solid
from exo_envs.rendering.palette import Emphasis, Frame
from exo_envs.rendering.scene import Scene
from exo_envs.rendering.things import Thing

SIZES = {"bullet": (480, 360), "flat": (640, 480)}  # pybullet's renderer works on the CPU
HEADROOM = 1.8  # above the far edge of a 3-D picture, in cells

#: Pixels of a frame: the smallest width and height.
SMALLEST_SIZE = (64, 48)
#: Pixels of a frame at most, to either side.
MOST_PIXELS = 10_000
#: A larger factor takes memory and smooths nothing more.
MOST_SUPERSAMPLING = 16

#: One of these says on Linux that there is a screen to open a window on.
SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")

logger = logging.getLogger(__name__)


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
        raise ArgumentTypeError(f"{type(self).__name__} draws text only (render_mode='ansi')")

    def show(self, state: State) -> None:
        """Show the picture in a window; without a screen it is drawn for nobody."""
        if sys.platform.startswith("linux") and not any(map(os.environ.get, SCREENS)):
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
        backend: "bullet" draws in 3-D by PyBullet's CPU renderer. "flat" draws floor plans by
            Pillow and needs no pybullet.
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
            "width", wide if width is None else width, SMALLEST_SIZE[0], MOST_PIXELS
        )
        self.height = check_whole(
            "height", high if height is None else height, SMALLEST_SIZE[1], MOST_PIXELS
        )
        self.supersampling = check_whole("supersampling", supersampling, 1, MOST_SUPERSAMPLING)
        self._scene: Scene | None = None

    # --- what a domain's viewer writes ----------------------------------------------------

    @property
    @abstractmethod
    def extent(self) -> tuple[float, float, float, float]:
        """The left, upper, right and lower edge of the floor plan, in cells."""

    @abstractmethod
    def lay_out(self, state: State) -> list[Thing]:
        """What stands on the floor."""

    @abstractmethod
    def draw_ground(self, canvas: flat.Canvas, state: State) -> None:
        """Draw the floor and what lies on it, on a canvas whose units are cells."""

    @abstractmethod
    def key(self, state: State) -> flat.Key:
        """Signs and what they mean."""

    @property
    def emphasis(self) -> Emphasis:
        return Emphasis(self.mask)

    # --- what follows from it -------------------------------------------------------------

    def draw(self, state: State) -> Frame:
        """The state as a picture, shape (height, width, 3), and below it what the signs mean."""
        state = self.check(state)
        strip = self._strip(state)
        draw = self._draw_flat if self.backend == "flat" else self._draw_scene
        return np.vstack([draw(state, self.height - len(strip)), strip])

    def _draw_flat(self, state: State, height: int) -> Frame:
        canvas = flat.Canvas(self.width, height)
        left, top, right, bottom = self.extent
        scale = min(self.width / (right - left), height / (bottom - top))
        x, y = self.width - scale * (left + right), height - scale * (top + bottom)
        canvas.set_units(scale, (x / 2, y / 2))
        self.draw_ground(canvas, state)
        for thing in sorted(self.lay_out(state), key=flat.nearness):
            flat.stand(canvas, thing, self.emphasis)
        return canvas.frame()

    def _draw_scene(self, state: State, height: int) -> Frame:
        times, emphasis = self.supersampling, self.emphasis
        left, top, right, bottom = self.extent
        if self._scene is None:
            heights = ((top, HEADROOM), (bottom, 0.0))
            self._scene = Scene([(x, -y, z) for x in (left, right) for y, z in heights])
        scale = times * self.width / (right - left)
        plan = flat.Canvas(round(scale * (right - left)), round(scale * (bottom - top)))
        plan.set_units(scale, (-left * scale, -top * scale))
        self.draw_ground(plan, state)
        for thing in self.lay_out(state):
            flat.footprint(plan, thing, emphasis)
            solid.stand(self._scene, thing, emphasis)
        self._scene.hide_others()
        size = (times * self.width, times * height)
        frame = self._scene.picture(*size, plan.frame(), (left, top), scale)
        if times > 1:
            frame = np.asarray(Image.fromarray(frame).reduce(times), dtype=np.uint8)
        return frame

    def _strip(self, state: State) -> Frame:
        height = round(self.width / 18)
        canvas, margin = flat.Canvas(self.width, height), 0.25 * height
        flat.row_key(canvas, (margin, 0.0), self.width - 2 * margin, height, self.key(state))
        return canvas.frame()

    def close(self) -> None:
        super().close()
        if self._scene is not None:
            self._scene.close()
            self._scene = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_scene": None}
