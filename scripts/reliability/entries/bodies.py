"""Viewers: text and pictures of odd states, with odd masks and sizes."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from exo_envs import State
from exo_envs.domains.crowd.viewer import CrowdViewer
from exo_envs.domains.factory.viewer import FactoryViewer
from exo_envs.domains.grid.viewer import GridViewer
from exo_envs.rendering.viewer import Viewer
from reliability import subjects
from reliability.odd import Odd
from reliability.registry import entry

VIEWERS = {"grid": GridViewer, "factory": FactoryViewer, "crowd": CrowdViewer, "market": Viewer}


def _odd_state(odd: Odd, mdp: Any) -> Any:
    n, x = subjects.sound_state(mdp, (), odd.rng)
    kind = odd.below(10)
    if kind < 2:
        n = odd.damaged(n, mdp.endogenous_sizes)
    elif kind < 5:
        x = odd.damaged(x, mdp.exogenous_sizes)
    elif kind == 5:
        return odd.anything()
    return State(n, x)


def _sizes(odd: Odd, *names: str) -> dict[str, Any]:
    """Numbers of pixels; what is refused is refused long before a large picture is made."""
    given = {name: odd.number_() for name in names if odd.chance(0.1)}
    return {
        name: 64 if isinstance(value, (int, np.integer, float)) and 300 < value < 10**9 else value
        for name, value in given.items()
    }


@entry("viewers/flat", weight=1.5)
def flat(odd: Odd) -> None:
    """A viewer of odd sizes, an odd mask, an odd state."""
    name = odd.pick(sorted(VIEWERS))
    mdp = subjects.model(name)
    given: dict[str, Any] = {}
    if name == "grid":
        given = _sizes(odd, "width")
    elif name != "market":
        given = _sizes(odd, "width", "height", "supersampling")
        given["backend"] = odd.pick(("flat",) * 9 + ("x", None, 3))
    viewer = odd.call(VIEWERS[name], mdp if odd.chance(0.95) else odd.anything(), **given)
    if odd.chance(0.3):
        viewer.mask = odd.pick((mdp.exogenous_names[:1], (), None, mdp.exogenous_names))
    draw = odd.pick((viewer.text, viewer.draw, viewer.draw, viewer.show))
    odd.call(draw, _odd_state(odd, mdp))
    odd.must_work(viewer.close)


@entry("viewers/solid", weight=0.5)
def solid(odd: Odd) -> None:
    """The same in three dimensions, where there is PyBullet."""
    backend = "bullet" if sys.version_info < (3, 12) else "flat"
    name = odd.pick(("factory", "crowd"))
    viewer = VIEWERS[name](subjects.model(name), backend, width=64, height=48)
    if odd.chance(0.3):
        viewer.mask = subjects.model(name).exogenous_names
    odd.call(viewer.draw, _odd_state(odd, subjects.model(name)))
    odd.must_work(viewer.close)
