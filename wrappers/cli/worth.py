"""What a learned mask earns, in words, and what it gives up by ignoring the rest."""

from __future__ import annotations

from collections.abc import Iterator

from planners.core.evaluation import Estimate
from planners.core.planner import Plan
from wrappers.learners.base import MaskLearner


def describe_worth(learner: MaskLearner) -> Iterator[str]:
    """Sentences about what the mask earns, what no policy can exceed, and how it was planned.

    This plans with all variables, which may take a while.
    """
    objective = learner.objective_
    if objective is None:
        yield "That is not known: learning was stopped before there was a policy."
        return
    earned = str(objective.estimate)
    cost = f"; J, the return less λ for each variable, is {objective.value:.1f}"
    yield (
        f"With these variables the agent earns {earned} in {len(objective.returns)} episodes "
        f"(95 %){cost if learner.cost_weight else ''}."
    )
    if objective.caution is not None:
        yield f"Mind that {objective.caution}."
    given_up = learner.cost_of_ignoring_
    bracket = objective.bracket
    if bracket is None:
        yield "What any policy could earn is not known: too much would have to be asked."
    else:
        yield f"It {bracket}."
        if len(bracket.upper_values) < len(objective.returns):
            yield f"(That is on the first {len(bracket.upper_values)} of the trajectories.)"
        elif str(bracket.lower) != str(Estimate.of(objective.returns)):
            yield "(Luck that is zero on average was taken out of the second figure.)"
    yield f"What it gives up by ignoring the rest: {given_up}."
    yield from describe_plan(objective.plan)


def describe_plan(plan: Plan) -> list[str]:
    """How a policy was found, and what else was tried for it."""
    if not plan.method and not plan.candidates:
        return []
    first = f"The policy was found by {plan.method or 'a planner that does not say how'}."
    several = plan.candidates if len(plan.candidates) > 1 else ()
    return [first, *(f"- {candidate}" for candidate in several)]
