"""Pictures that are part of a page, and the masks of ExoCrowd in its scene."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from exo_envs import State
from exo_envs.domains.crowd import CrowdMDP, CrowdParameters
from exo_envs.domains.crowd.viewer import CrowdViewer
from exo_envs.rendering.palette import Frame
from shared.drawing import SIZE, backend, draw, with_palette

#: The goals of section 6.3 and their names in the paper.
GOALS = {"fixed": "Goal 1", "movable": "Goal 2"}
MEANINGS = {
    "fixed": "the goal is an object that nobody moves",
    "movable": "the goal is an object that somebody carries about",
}


@dataclass(frozen=True)
class Picture:
    """A picture and what it shows."""

    data: bytes
    media_type: str
    caption: str
    alt: str

    def data_uri(self) -> str:
        """The picture as an address that holds all of it."""
        return f"data:{self.media_type};base64,{base64.b64encode(self.data).decode()}"

    @classmethod
    def of_frame(cls, frame: Frame, caption: str, alt: str) -> Picture:
        """A rendered frame, as PNG."""
        file = io.BytesIO()
        with_palette(frame).save(file, "PNG", optimize=True)
        return cls(file.getvalue(), "image/png", caption, alt)


def draw_goals(masks: Mapping[str, Sequence[str]], seed: int) -> list[Picture]:
    """The full world, then the mask of each goal, all in the same scene (the paper's figure)."""
    last = list(masks)[-1]
    pictures = [
        Picture.of_frame(
            _draw(last, None, seed),
            "The full world. The robot is gold and purple; the star is on the goal.",
            "The robot among porters and wanderers, with objects on six tables",
        )
    ]
    for goal, mask in masks.items():
        agents = {name.rsplit("_", 1)[0] for name in mask if name.startswith(("porter", "wander"))}
        cells = sum(name.startswith("occupancy") for name in mask)
        what = f"{GOALS[goal]}, {MEANINGS[goal]}: {len(mask)} variables, {cells} cells (red) and "
        pictures.append(
            Picture.of_frame(
                _draw(goal, mask, seed),
                f"{what}{len(agents)} agents (in a ring). Occupied cells are green.",
                f"The scene with the mask for {GOALS[goal]}: {cells} cells, {len(agents)} agents",
            )
        )
    return pictures


def _draw(goal: str, mask: Sequence[str] | None, seed: int) -> Frame:
    """A scene in 3-D, or a floor plan where there is no PyBullet."""
    mdp = CrowdMDP(CrowdParameters(goal=goal))
    start = mdp.sample_initial(1, np.random.default_rng(seed))
    state = State(start.endogenous[0], start.exogenous[0])
    return draw(CrowdViewer(mdp, backend(), **SIZE), state, mask)
