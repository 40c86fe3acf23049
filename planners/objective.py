"""The paper's *Estimate-Objective* (section 5.1): what a mask is worth.

    J(mask) = E[return of the reduced policy in the full model] - lambda * Cost(mask)

A :class:`~planners.mask_evaluator.MaskEvaluator` builds the reduced model of a mask, plans in it
and plays the policy in the full model: :func:`estimate_objective` does so for one mask, the
learners for many.
"""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np

from exo_envs.contract.check import check_quickly
from exo_envs.contract.checked_mdp import CountedMDP
from exo_envs.core.arguments import as_generator, check_flag, check_kind, check_real, check_whole
from exo_envs.core.clock import Clock, OutOfTimeError, check_time_limit
from exo_envs.core.masks import as_mask
from exo_envs.core.mdp import ExoMDP
from exo_envs.sources.simulators.conversion import as_mdp, warn_of_ignored_wrappers
from exo_envs.sources.simulators.played import PlayedDifferentlyWarning
from planners.core.evaluation import Scenarios
from planners.core.memory import Memory
from planners.core.planner import Plan, PlanCutShortWarning, Planner, check_planner
from planners.core.policy import Mask
from planners.default_planner import DefaultPlanner
from planners.mask_evaluator import MaskEvaluator
from planners.reduced.reduced_mdp import ReducedMDP
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from planners.worth import Cost, Objective, cost_function


def estimate_objective(
    mdp: ExoMDP | gym.Env[Any, Any],
    mask: Any,
    *,
    rng: np.random.Generator | int | None = None,
    cost_weight: float = 0.0,
    cost: Cost = "size",
    n_rollouts: int = 500,
    planner: Planner | None = None,
    planning_time_limit: float | None = 60.0,
    time_limit: float | None = None,
    scenarios: Scenarios | None = None,
    warm_start: Objective | None = None,
    check: bool = True,
    **estimation: Any,
) -> Objective:
    """*Estimate-Objective* for one mask: build the reduced model, plan in it, play the policy.

    A policy for somebody else's environment (:class:`~exo_envs.AdaptedMDP`) plays this environment
    itself: ``mean_return`` is what it earns there, and ``claimed`` what it earns in the model. If
    these differ, there is a :class:`~exo_envs.PlayedDifferentlyWarning` that says why.

    A policy for somebody else's environment (:class:`~exo_envs.AdaptedMDP`) plays this environment
    itself: ``mean_return`` is what it earns there, and ``claimed`` what it earns in the model. If
    these differ, there is a :class:`~exo_envs.PlayedDifferentlyWarning` that says why.

    Args:
        mdp: the full model, or an environment over it (see :func:`exo_envs.as_mdp`).
        mask: names, patterns, indices or booleans; see :func:`exo_envs.core.masks.as_mask`.
        rng: a generator, or a seed; by default the same each time.
        cost_weight: the paper's lambda.
        cost: the number of variables ("size"), the planning time in seconds ("time"), or a
            function of the mask and the plan.
        n_rollouts: how many rollouts; with ``scenarios``, theirs.
        planner: by default one that chooses by size.
        planning_time_limit: for the plan, in seconds; the time for compiling does not count. If it
            is cut short, there is a :class:`~planners.PlanCutShortWarning`.
        time_limit: for everything, in seconds by the clock on the wall; a question that the model
            is just answering is waited for.
        scenarios: exogenous trajectories to share with other masks.
        warm_start: the objective of a similar mask, whose plan is where planning starts from. That
            makes it faster where the planner can do something with it; see
            :class:`~planners.Planner`.
        check: whether to look first if the model keeps its contract
            (:func:`exo_envs.testing.check_quickly`), which takes a second at most.
        **estimation: what :meth:`ReducedMDP.estimate` takes, data to share among them. With
            ``ignored_rewards="average"``, the default, the reduced model pays the average of what
            the mask ignores, so even an empty mask gives a sensible policy, a blind one; with
            "zero", as in the paper, it pays nothing for it.

    Raises:
        OutOfTimeError: ``time_limit`` has passed (a TimeoutError, which says how far it came).
        ContractError: the model breaks a rule of :class:`exo_envs.ExoMDP`, which is a ValueError.
    """
    cost_function(cost)  # what makes no sense is refused before anything is computed
    check_planner(planner)
    check_real("cost_weight", cost_weight)
    check_whole("n_rollouts", n_rollouts, 1)
    check_kind("scenarios", scenarios, Scenarios, optional=True)
    check_kind("warm_start", warm_start, Objective, optional=True)
    check_kind("memory", estimation.get("memory"), Memory, optional=True)
    check_flag("check", check)
    planning_time_limit = check_time_limit("planning_time_limit", planning_time_limit)
    clock = Clock(check_time_limit("time_limit", time_limit, positive=True), wall=True)
    generator = as_generator("rng", rng, default=0)
    given = as_mdp(mdp)
    warn_of_ignored_wrappers(mdp, given)
    names = as_mask(given, mask)
    model, collected = CountedMDP(given), _collected(**estimation)
    estimation["memory"] = Memory() if collected is None else collected
    doing = "looking if the model keeps its contract"

    def reduce(names: Mask, rng: np.random.Generator) -> ReducedMDP:
        nonlocal doing
        doing = "estimating the reduced model"
        reduced = ReducedMDP.estimate(model, names, rng=rng, **estimation)
        doing = "planning (planning_time_limit leaves time to play the best plan by then)"
        return reduced

    evaluator = MaskEvaluator(
        model,
        reduce=reduce,
        planner=lambda _: DefaultPlanner() if planner is None else planner,
        rng=lambda *_: generator,  # one stream for everything: the caller's
        n_rollouts=n_rollouts,
        time_limit=planning_time_limit,
        memory=collected,
    )
    try:
        with clock.above():
            if check:
                check_quickly(model)
            start = warm_start.plan if warm_start else None
            trial = evaluator.plan(names, thorough=True, warm_start=start)
            _warn_of(trial.plan, names, planning_time_limit)
            doing = "playing the policy"
            if scenarios is None:
                scenarios = Scenarios.sample(model, n_rollouts, generator)
            found = evaluator.play(trial, scenarios, cost_weight=cost_weight, cost=cost)
            doing = "comparing what was played with the model"
            if found.disagreement is not None:
                warnings.warn(found.disagreement, PlayedDifferentlyWarning, stacklevel=2)
            return found
    except OutOfTimeError:
        raise OutOfTimeError(
            f"time_limit={time_limit:g} seconds passed while {doing}, so J is not known. The model "
            f"had been asked for {model.samples:,} samples; with smaller n_rollouts and "
            "num_rollouts it takes fewer"
        ) from None


def _warn_of(plan: Plan, names: Mask, limit: float | None) -> None:
    """Say that a plan ran out of time."""
    if plan.out_of_time:
        warnings.warn(
            f"the plan with {len(names)} variable{'' if len(names) == 1 else 's'} did not converge "
            f"within planning_time_limit={limit:g} seconds; with more time its policy, and so J, "
            "might be better",
            PlanCutShortWarning,
            stacklevel=3,
        )


def _collected(
    data: ExogenousData | None = None,
    survey: EndogenousSurvey | None = None,
    memory: Memory | None = None,
    **_: Any,
) -> Memory | None:
    """The caller's memory, or one of what the caller has collected."""
    if memory is None and data is not None and survey is not None:
        memory = Memory(data=data, survey=survey)
    return memory
