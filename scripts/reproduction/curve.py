"""The curve of one Crowd run (section 6.2): J and returns against the number of variables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs import State
from planners import Scenarios, evaluate
from wrappers import MaskLearner, Study

EPISODES = 100  # played to see what the variables pay where the agent goes


def grow(learner: MaskLearner, *, step: int, detail: int) -> list[dict[str, Any]]:
    """What masks are worth that grow by the next most important variable.

    All of them play the same trajectories. Away from the top of J only each ``step``-th mask is
    looked at, and within ``detail`` of the top every one.

    Args:
        learner: a fitted one.
        step: variables between two masks.
        detail: variables on either side of the top.

    Returns:
        One point for each mask, the smallest first.
    """
    order = order_of_importance(learner)
    study = learner.study_
    sizes = {*range(0, len(order), step), len(learner.mask_), len(order)}
    points = {size: _point(study, order, size, learner.cost_weight) for size in sorted(sizes)}
    while True:
        top = max(points, key=lambda size: points[size]["value"])
        near = range(max(0, top - detail), min(len(order), top + detail) + 1)
        missing = [size for size in near if size not in points]
        if not missing:
            return [points[size] for size in sorted(points)]
        for size in missing:
            points[size] = _point(study, order, size, learner.cost_weight)


def _point(study: Study, order: list[str], size: int, cost_weight: float) -> dict[str, Any]:
    objective = study.evaluator.objective(order[:size], cost_weight=cost_weight)
    return {
        "num_variables": size,
        "added": order[size - 1] if size else None,
        "value": objective.value,
        "mean_return": objective.mean_return,
        "standard_error": objective.standard_error,
    }


def order_of_importance(learner: MaskLearner) -> list[str]:
    """All variables: those of the mask first, then what was found to matter, then the rest.

    Within each part: by what a variable pays where the agent goes; one that predicts another one
    comes right behind it.
    """
    mdp = learner.study_.mdp
    pays = dict(zip(mdp.exogenous_names, _worth(learner).tolist(), strict=True))
    found = [step for step in learner.history_ if step.action == "find"]
    place = {name: k for k, step in enumerate(found) for name in step.candidate}
    target = {name: step.target for step in found for name in step.candidate if step.target}

    def worth(name: str) -> float:
        best, discount = pays[name], 1.0
        for _ in target:  # along the chain of what it predicts
            name, discount = target.get(name, ""), discount * mdp.discount
            if name not in pays:
                break
            best = max(best, discount * pays[name])
        return best

    def rank(name: str) -> tuple[bool, bool, float, int]:
        return name not in learner.mask_, name not in place, -worth(name), place.get(name, 0)

    return sorted(mdp.exogenous_names, key=rank)


def _worth(learner: MaskLearner) -> NDArray[np.float64]:
    """How much the reward varies with each variable where the policy goes, shape (m,).

    The policy's steps are paid for with the exogenous state of another episode; it takes care
    that its own costs nothing.
    """
    study = learner.study_
    rng = study.rng("reproduction", "worth")
    worth = np.zeros(len(study.mdp.exogenous_names))

    def watch(t: int, state: State, actions: NDArray[Any]) -> None:
        other = State(state.endogenous, rng.permutation(state.exogenous))
        worth[:] += study.mdp.discount**t * study.mdp.reward_terms(other, actions).std(axis=0)

    if learner.policy_ is not None:
        scenarios = Scenarios.sample(study.mdp, EPISODES, rng)
        evaluate(learner.policy_, study.mdp, scenarios=scenarios, watch=watch)
    return worth
