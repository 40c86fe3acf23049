"""How good a learned policy is: between knowing nothing and what no policy can exceed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from learning.bounds_picture import Band, Point, draw_bounds
from planners import Estimate, Objective, Plan
from wrappers import MaskLearner, Record


def show_bounds(learner: MaskLearner, blind: Objective, picture: Path) -> None:
    """Print what the policy earns, what no policy can exceed, and how the policy was found."""
    objective = learner.objective_
    if objective is None:
        print("\nHow good it is: not known, learning was stopped before there was a policy")
        return
    print("\nHow good is that?")
    bracket = objective.bracket
    if bracket is None:
        print("  What any policy could earn is not known: too much would have to be asked.")
    else:
        print(f"  The learned mask {bracket}.")
        if len(bracket.upper_values) < len(objective.returns):
            print(f"  (That is on the first {len(bracket.upper_values)} of the trajectories.)")
        elif str(bracket.lower) != str(Estimate(objective.mean_return, objective.standard_error)):
            print("  (Luck that is zero on average was taken out of the return of the table.)")
    print(f"  What it gives up by ignoring the rest: {learner.cost_of_ignoring_}.")
    for line in describe_plan(objective.plan):
        print(f"  {line}")
    if bracket is not None:
        lines = [
            Band("no policy exceeds", bracket.upper.mean, bracket.upper.interval()),
            Band("knows nothing", blind.mean_return, blind.interval(), below=True),
        ]
        learned = Point(
            len(learner.mask_), objective.mean_return, objective.interval(), "learned mask"
        )
        picture.write_text(draw_bounds([*tried_masks(learner.history_), learned], lines), "utf-8")
        print(f"  A picture of all masks that were tried: {picture}", flush=True)


def describe_plan(plan: Plan) -> list[str]:
    """How a policy was found, and what else was tried for it."""
    if not plan.method and not plan.candidates:
        return []
    first = f"The policy was found by {plan.method or 'a planner that does not say how'}."
    several = plan.candidates if len(plan.candidates) > 1 else ()
    return [first, *(f"  {candidate}" for candidate in several)]


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
