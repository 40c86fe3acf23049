"""Draw the pictures of the documentation again: python scripts/pictures.py [folder]."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from exo_envs import ExoMDP, State
from exo_envs.domains.crowd import CrowdMDP
from exo_envs.domains.crowd.viewer import CrowdViewer
from exo_envs.domains.factory import FactoryMDP
from exo_envs.domains.factory.viewer import FactoryViewer
from exo_envs.domains.floor import Move
from exo_envs.domains.grid import GridMDP
from exo_envs.domains.grid.viewer import GridViewer
from exo_envs.rendering.palette import Frame
from shared.diagram import Arrow, Box, elbow, to_svg
from shared.drawing import SIZE, backend, draw, with_palette
from wrappers.cli.console import run

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


def crowd(*, flat: bool = False, masked: bool = False) -> Frame:
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
    viewer = CrowdViewer(mdp, "flat" if flat else backend(), **SIZE)
    return draw(viewer, state, (*cells, *others) if masked else None)


def factory(*, masked: bool = False) -> Frame:
    """The mask: the live order, the one behind it, the belt's clock and the machines."""
    mdp = FactoryMDP()
    machines = mdp.exogenous_names[mdp.machine_slice]
    mask = ("order_0", "order_1", "clock", *machines) if masked else None
    viewer = FactoryViewer(mdp, backend(), **SIZE)
    return draw(viewer, state_after(mdp, [Move.LEFT], seed=45), mask)


def architecture() -> str:
    """The data flow of one LearnedMask: who decides, what is shared, who computes, who is asked."""
    decide = partial(Box, width=220, fill="#fff4e5", stroke="#bc6c25")
    compute = partial(Box, width=220, fill="#e9f7ec", stroke="#2f7d4f")
    answer = partial(Box, width=170, fill="#e7f1fb", stroke="#2f6fab")
    first, second, third, fourth = 30, 310, 590, 925

    wrapper = decide(first, 64, 66, "LearnedMask", file="observation/masked.py")
    fit = decide(first, 174, 66, "MaskLearner.fit", file="learners/base.py")
    relevance = decide(
        first, 290, 84, "Relevance.search", ("what matters?",), "fitting/relevance.py"
    )
    selection = decide(
        first,
        470,
        84,
        "Selection.steps",
        ("what is worth its λ?",),
        "learners/calibrated.py",
    )
    results = decide(first, 612, 66, "mask_, policy_", ("for MaskedObservation",))
    memory = decide(second, 127, 58, "Memory", ("nothing is asked twice",))
    questions = ("data()", "survey()", "parents(names)", "rng(name)")
    study = decide(second, 248, 168, "Study", questions, "fitting/study.py")
    evaluator = compute(
        second, 470, 84, "MaskEvaluator", ("objective(), compare()",), "planners/objective.py"
    )
    data = compute(third, 127, 66, "ExogenousData", ("rollouts of x",))
    survey = compute(third, 213, 66, "EndogenousSurvey", ("what moves n, what pays",))
    parents = compute(third, 299, 66, "actors_of, ParentSearch", ("what predicts those",))
    reduced = compute(third, 420, 58, "ReducedMDP.estimate", ("the model of a mask",))
    planner = compute(third, 502, 58, "DefaultPlanner.plan", ("a policy",))
    returns = compute(third, 584, 58, "evaluate", ("returns on shared Scenarios",))
    counted = ("the model of", "ExoFactory-v0", "", "asked through", "CountedMDP,", "which counts")
    model = answer(fourth, 127, 515, "ExoMDP", counted)

    headings = [
        decide(first, 16, 28, "wrappers: decide"),
        compute(third, 16, 28, "planners: compute"),
        answer(fourth, 16, 28, "exo_envs: answer"),
    ]
    boxes = [wrapper, fit, relevance, selection, results, memory, study, evaluator]
    boxes += [data, survey, parents, reduced, planner, returns, model]
    in_turn = pairwise([wrapper, fit, relevance, selection, results])
    calls = [(study, data), (study, survey), (study, parents)]
    calls += [(evaluator, reduced), (evaluator, planner), (evaluator, returns)]
    asked = {data: "x'", survey: "n', rewards", parents: "x'", returns: "x', n', rewards"}
    arrows = [
        *(Arrow((above.at(0.5, 1), below.at(0.5, 0))) for above, below in in_turn),
        Arrow((relevance.at(1, 0.5), study.at(0, 0.5))),
        Arrow((selection.at(1, 0.5), evaluator.at(0, 0.5))),
        Arrow((evaluator.at(0.5, 0), study.at(0.5, 1))),
        Arrow((study.at(0.5, 0), memory.at(0.5, 1)), dashed=True),
        *(elbow(caller.at(1, 0.5), called.at(0, 0.5)) for caller, called in calls),
        *(
            Arrow((part.at(1, 0.5), (fourth, part.at(1, 0.5)[1])), label)
            for part, label in asked.items()
        ),
    ]
    return to_svg(1125, 700, "Data flow of LearnedMask", [*arrows, *headings, *boxes])


PICTURES: dict[str, Callable[[], Frame]] = {
    "grid": grid,
    "grid_masked": lambda: grid(("object", "guard", "guard_intent")),
    "crowd": crowd,
    "crowd_masked": lambda: crowd(masked=True),
    "crowd_flat": lambda: crowd(flat=True),
    "factory": factory,
    "factory_masked": lambda: factory(masked=True),
}


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    if backend() == "flat":
        print("there is no PyBullet here, so the scenes of Crowd and Factory are drawn flat")
    (folder / "architecture.svg").write_text(architecture(), encoding="utf-8")
    for name, picture in PICTURES.items():
        path = folder / f"{name}.png"
        with_palette(picture()).save(path, optimize=True)
        print(f"{path} ({path.stat().st_size / 1000:.0f} kB)", flush=True)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="where they go")
    asked = parser.parse_args()
    sys.exit(run(lambda: main(asked.folder)))
