"""Scenes as pictures in files, all of one size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PIL import Image

from exo_envs import State
from exo_envs.rendering.palette import Frame
from exo_envs.rendering.scene import has_bullet
from exo_envs.rendering.viewer import Viewer

#: What viewers of 3-D scenes are given: pixels, and how many times as many are drawn.
SIZE: dict[str, Any] = {"width": 640, "height": 480, "supersampling": 2}
COLOURS = 256  # a palette makes the files small


def backend() -> str:
    """How scenes are drawn: flat where there is no PyBullet, as on Python 3.12 and newer."""
    return "bullet" if has_bullet() else "flat"


def draw(viewer: Viewer, state: State, mask: Sequence[str] | None = None) -> Frame:
    """A state, with what a mask keeps of it; the viewer is closed."""
    viewer.mask = None if mask is None else tuple(mask)
    frame = viewer.draw(state)
    viewer.close()
    return frame


def with_palette(frame: Frame) -> Image.Image:
    """A frame as an image that makes a small file."""
    return Image.fromarray(frame).quantize(COLOURS, dither=Image.Dither.NONE)
