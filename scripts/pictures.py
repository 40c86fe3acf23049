"""Draw the pictures of the documentation again: python scripts/pictures.py [folder]."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from exo_envs import ExoMDP, State
from exo_envs.crowd import CrowdMDP, CrowdViewer
from exo_envs.drawing import Frame
from exo_envs.factory import FactoryMDP, FactoryViewer
from exo_envs.floor import Move
from exo_envs.grid import GridMDP, GridViewer
from shared.drawing import SIZE, draw, with_palette

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"


def state_after(mdp: ExoMDP, actions: list[int], *, seed: int) -> State:
    """The state after some actions, from a fixed seed."""
    rng = np.random.default_rng(seed)
    state = mdp.sample_initial(1, rng)
    for action in actions:
        state = mdp.sample_next(state, np.array([action]), rng)
    return State(state.endogenous[0], state.exogenous[0])


def grid(mask: tuple[str, ...] | None = None) -> Frame:
    mdp = GridMDP()
    return draw(GridViewer(mdp), state_after(mdp, [], seed=5), mask)


def crowd(*, backend: str = "bullet", masked: bool = False) -> Frame:
    """The mask: objects, porters, and the occupancy of all but the lower left quarter."""
    mdp = CrowdMDP()
    state = state_after(mdp, [Move.RIGHT, Move.UP, Move.RIGHT], seed=90)
    half = mdp.floor.rows // 2
    cells = [
        f"occupancy_{row}_{column}"
        for row in range(mdp.floor.rows)
        for column in range(mdp.floor.columns)
        if row < half or column >= half
    ]
    others = [name for name in mdp.exogenous_names if name.startswith(("porter", "object"))]
    viewer = CrowdViewer(mdp, backend, **SIZE)
    return draw(viewer, state, (*cells, *others) if masked else None)


def factory(*, masked: bool = False) -> Frame:
    """The mask: the live order, the one behind it, the belt's clock and the machines."""
    mdp = FactoryMDP()
    machines = mdp.exogenous_names[mdp.machine_slice]
    mask = ("order_0", "order_1", "clock", *machines) if masked else None
    viewer = FactoryViewer(mdp, **SIZE)
    return draw(viewer, state_after(mdp, [Move.LEFT], seed=45), mask)


PICTURES: dict[str, Callable[[], Frame]] = {
    "grid": grid,
    "grid_masked": lambda: grid(("object", "guard", "guard_intent")),
    "crowd": crowd,
    "crowd_masked": lambda: crowd(masked=True),
    "crowd_flat": lambda: crowd(backend="flat"),
    "factory": factory,
    "factory_masked": lambda: factory(masked=True),
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in PICTURES.items():
        path = folder / f"{name}.png"
        with_palette(picture()).save(path, optimize=True)
        print(f"{path} ({path.stat().st_size / 1000:.0f} kB)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="where they go")
    main(parser.parse_args().folder)
