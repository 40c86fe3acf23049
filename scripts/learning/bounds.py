"""The picture of what a learned policy earns, between knowing nothing and what nobody exceeds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from learning.bounds_picture import Band, Point, draw_bounds
from planners import Objective
from wrappers import MaskLearner
from wrappers.fitting.history import Record


def draw_bracket(learner: MaskLearner, blind: Objective, picture: Path) -> bool:
    """Draw all masks that were tried, if it is known what no policy can exceed; whether it is."""
    objective = learner.objective_
    bracket = None if objective is None else objective.bracket
    if objective is None or bracket is None:
        return False
    lines = [
        Band("no policy exceeds", bracket.upper.mean, bracket.upper.interval()),
        Band("knows nothing", blind.mean_return, blind.interval(), below=True),
    ]
    learned = Point(len(learner.mask_), objective.mean_return, objective.interval(), "learned mask")
    picture.write_text(draw_bounds([*tried_masks(learner.history_), learned], lines), "utf-8")
    return True


def tried_masks(history: Iterable[Record]) -> list[Point]:
    """The size and the return of every mask that a learner planned with."""
    points = []
    for record in history:
        if record.mean_return is None or record.half_width is None:
            continue
        mask, candidate = set(record.mask), set(record.candidate)
        if record.action in ("start", "try"):
            mask = candidate
        elif not record.accepted:
            mask = mask | candidate if record.action == "add" else mask - candidate
        low, high = (record.mean_return + sign * record.half_width for sign in (-1, 1))
        kind = "kept" if record.accepted else "not kept"
        points.append(Point(len(mask), record.mean_return, (low, high), kind))
    return points
