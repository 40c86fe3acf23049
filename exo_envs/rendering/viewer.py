"""Drawing states: what the shells need of a viewer, and a viewer for any model."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.batches import as_state
from exo_envs.core.errors import ArgumentTypeError
from exo_envs.core.mdp import ExoMDP, State

Frame = NDArray[np.uint8]  # (height, width, 3)

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
        self._window: Window | None = None

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
        if self._window is None:
            self._window = Window(type(self.mdp).__name__, fps=self.metadata["render_fps"])
        self._window.show(self.draw(state))

    def close(self) -> None:
        """Free what drawing needed; calling it again does nothing."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the window behind: copies open their own."""
        return {**self.__dict__, "_window": None}


class Window:
    """A window on the screen that shows frames, by pygame."""

    def __init__(self, title: str, *, fps: int) -> None:
        """Prepare a window; it opens at the size of the first frame."""
        try:
            import pygame
        except ImportError as error:
            raise ImportError(
                "render_mode='human' opens its window with pygame: pip install \"exo-envs[human]\""
            ) from error
        self._pygame = pygame
        self._title = title
        self._fps = fps
        self._screen: Any = None

    def show(self, frame: Frame) -> None:
        """Put ``frame`` on the screen and wait until it is time for the next one."""
        pygame = self._pygame
        if self._screen is None:
            pygame.display.init()
            pygame.display.set_caption(self._title)
            self._screen = pygame.display.set_mode((frame.shape[1], frame.shape[0]))
            self._clock = pygame.time.Clock()
        self._screen.blit(pygame.surfarray.make_surface(frame.swapaxes(0, 1)), (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(self._fps)

    def close(self) -> None:
        """Close the window."""
        if self._screen is not None:
            self._pygame.display.quit()
            self._screen = None
