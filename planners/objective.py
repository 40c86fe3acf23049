"""The paper's *Estimate-Objective* (section 5.1): what a mask is worth.

    J(mask) = E[return of the reduced policy in the full model] - lambda * Cost(mask)

A :class:`MaskEvaluator` builds the reduced model of a mask, plans in it and plays the policy in the
full model: :func:`estimate_objective` does so for one mask, the learners for many.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from exo_envs import ExoMDP, State, as_mdp
from exo_envs.inputs import as_mask
from exo_envs.mdp import FloatArray
from planners.arrays import joint_index
from planners.default_planner import DefaultPlanner
from planners.evaluation import Scenarios, evaluate, paired_difference
from planners.information import ExogenousData
from planners.memory import Memory
from planners.planner import Plan, Planner, warm_start_for
from planners.policy import Mask
from planners.reduction import EndogenousSurvey, ReducedMDP, can_enumerate
from planners.tables import num_endogenous_states
from planners.worth import Comparison, Cost, Objective, Played, cost_function

#: A comparison of masks may end after these shares of the rollouts.
LOOKS = (0.1, 0.4, 1.0)
#: Exact plans with part of a mask that are kept to start others from: their tables are large.
KEPT_PARTS = 4
#: Rollouts before the first look at a comparison: of fewer, the standard error is a guess.
FIRST_LOOK = 30


@dataclass(eq=False)
class Trial:
    """A mask that was planned with, and what its policy met and earned so far."""

    plan: Plan
    reduced: ReducedMDP
    returns: list[FloatArray]  # one array for each part of the shared trajectories
    visits: FloatArray  # (N * A,), discounted, of all rollouts so far; empty if N * A is too large


class MaskEvaluator:
    """*Estimate-Objective* for many masks, on the same exogenous trajectories.

    Args:
        mdp: the full model.
        reduce: (mask, generator) -> the reduced model of the mask.
        planner: gives the planner, asked with True for a plan that is worth some time.
        rng: gives the generator for what has this name, such as ("plan", 3, 7).
        n_rollouts: episodes that each policy plays.
        time_limit: for one plan, in seconds.
        trials: the masks that were planned with, to which this evaluator adds; by default none.
        memory: what was collected from the model, for :attr:`Objective.bracket`.
    """

    def __init__(
        self,
        mdp: ExoMDP,
        *,
        reduce: Callable[[Mask, np.random.Generator], ReducedMDP],
        planner: Callable[[bool], Planner],
        rng: Callable[..., np.random.Generator],
        n_rollouts: int = 500,
        time_limit: float | None = 60.0,
        trials: dict[Mask, Trial] | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.mdp = mdp
        self.n_rollouts = n_rollouts
        self.time_limit = time_limit
        self.trials: dict[Mask, Trial] = {} if trials is None else trials
        self._thorough: dict[Mask, Trial] = {}
        self._memory = memory
        self._reduce = reduce
        self._planner = planner
        self._rng = rng
        self._scenarios: list[Scenarios] = []
        self._fresh_scenarios: Scenarios | None = None
        self._starts: list[Plan] = []  # exact plans, which others can start from
        self._parts: deque[Plan] = deque(maxlen=KEPT_PARTS)  # the same for parts of masks
        self._num_pairs = 0  # for counting visits, where n can be enumerated
        if can_enumerate(mdp):
            self._num_pairs = num_endogenous_states(mdp) * mdp.num_actions

    def objective(
        self,
        mask: Any,
        *,
        cost_weight: float = 0.0,
        cost: Cost = "size",
        scenarios: Scenarios | None = None,
        first_look: bool = False,
        thorough: bool = False,
        time_limit: float | None = None,
    ) -> Objective:
        """*Estimate-Objective*; what was planned and played before is remembered.

        Args:
            mask: names, indices or booleans.
            cost_weight: the paper's lambda.
            cost: see :func:`estimate_objective`.
            scenarios: what to play instead of the shared trajectories.
            first_look: play the first part of the shared trajectories only.
            thorough: plan as well as can be, and not only as well as comparisons of masks need.
            time_limit: for planning, if that is less than the evaluator's.
        """
        trial = self.plan(as_mask(self.mdp, mask), thorough=thorough, time_limit=time_limit)
        parts = self.scenarios()[: 1 if first_look else None] if scenarios is None else [scenarios]
        if scenarios is None:
            returns = self._returns(trial, len(parts))
        else:
            returns, _ = self._play(trial.plan, scenarios)
        return self._objective(returns, trial, parts, cost_weight=cost_weight, cost=cost)

    def compare(
        self,
        mask: Any,
        other: Any,
        *,
        cost_weight: float = 0.0,
        cost: Cost = "size",
        time_limit: float | None = None,
    ) -> Comparison:
        """J of a mask against J of another one, on as many rollouts as it takes to decide."""
        trials = [
            self.plan(as_mask(self.mdp, names), time_limit=time_limit) for names in (mask, other)
        ]

        def play(parts: int) -> Comparison:
            tried, rival = (
                self._objective(
                    self._returns(trial, parts),
                    trial,
                    self.scenarios()[:parts],
                    cost_weight=cost_weight,
                    cost=cost,
                )
                for trial in trials
            )
            difference = paired_difference(tried.returns, rival.returns)
            return Comparison(tried, tried.gain_over(rival), difference)

        comparison = play(parts := 1)
        while parts < len(self.scenarios()) and not comparison.is_decided:
            comparison = play(parts := parts + 1)
        return comparison

    def knows(self, mask: Mask) -> bool:
        """Whether a mask has been planned with already."""
        return mask in self.trials or mask in self._thorough

    def visits(self, mask: Mask, time_limit: float | None = None) -> FloatArray:
        """How often the policy of a mask meets each pair n * A + a in an episode, discounted.

        Shape (N * A,), or (0,) where there are too many pairs to count.
        """
        trial = self.plan(mask, time_limit=time_limit)
        return trial.visits / len(self._returns(trial, max(1, len(trial.returns))))

    def scenarios(self) -> list[Scenarios]:
        """The trajectories on which masks are compared while one is chosen, in a few parts."""
        if not self._scenarios:
            ends = [
                min(self.n_rollouts, max(FIRST_LOOK, math.ceil(share * self.n_rollouts)))
                for share in LOOKS
            ]
            self._scenarios = [
                Scenarios.sample(self.mdp, int(size), self._rng("scenarios", k))
                for k, size in enumerate(np.diff([0, *ends]))
                if size
            ]
        return self._scenarios

    def fresh_scenarios(self) -> Scenarios:
        """Trajectories on which no mask was chosen, for the final estimate of J."""
        if self._fresh_scenarios is None:
            rng = self._rng("fresh scenarios")
            self._fresh_scenarios = Scenarios.sample(self.mdp, self.n_rollouts, rng)
        return self._fresh_scenarios

    def independent_scenarios(self, number: int) -> Scenarios:
        """The ``number``-th set of trajectories that nothing else is played on."""
        return Scenarios.sample(self.mdp, self.n_rollouts, self._rng("independent", number))

    def plan(
        self,
        mask: Mask,
        *,
        thorough: bool = False,
        time_limit: float | None = None,
        warm_start: Plan | None = None,
    ) -> Trial:
        """The reduced model of a mask and a plan in it; remembered unless it was cut short.

        Args:
            mask: names, in the order of the model.
            thorough: plan as well as can be. Comparisons of masks do without, and so do not use
                such plans: whoever was planned with at length would have an advantage.
            time_limit: in seconds, if that is less than the evaluator's.
            warm_start: a plan to start from; by default one whose mask is most similar.
        """
        kept, known = self._thorough if thorough else self.trials, self.trials.get(mask)
        if mask in kept:
            return kept[mask]
        if known is None and mask in self._thorough:
            return self._thorough[mask]
        if known is not None and (known.plan.values is not None or not self._can_be_thorough):
            return known  # it is as good as can be
        rng = self._rng("plan", *self.mdp.exogenous_indices(mask).tolist())
        reduced = known.reduced if known is not None else self._reduce(mask, rng)
        limit, start = time_limit, warm_start or self._most_similar(mask)
        plan, was_cut = self.solve(
            reduced, rng, thorough=thorough, time_limit=limit, warm_start=start
        )
        if plan.values is not None:
            self._starts.append(plan)
            kept = self.trials
        elif plan.part is not None and plan.part.values is not None:
            self._parts.append(plan.part)
            plan = replace(plan, part=None)
        trial = Trial(plan, reduced, [], np.zeros(self._num_pairs))
        if not was_cut:
            kept[mask] = trial
        return trial

    def _most_similar(self, mask: Mask) -> Plan | None:
        """The exact plan whose mask differs in the fewest variables, the last of several."""
        return min(
            (*reversed(self._parts), *reversed(self._starts)),
            key=lambda plan: len(set(plan.policy.mask) ^ set(mask)),
            default=None,
        )

    @property
    def _can_be_thorough(self) -> bool:
        """Whether there is another planner for thorough plans."""
        return self._planner(True) is not self._planner(False)

    def solve(
        self,
        model: ExoMDP,
        rng: np.random.Generator,
        *,
        thorough: bool = False,
        time_limit: float | None = None,
        warm_start: Plan | None = None,
    ) -> tuple[Plan, bool]:
        """Plan in a model; and whether the caller's time limit, not the evaluator's, cut it short.

        What was cut short for one caller is not remembered for others.
        """
        planner = self._planner(thorough)
        limits = [limit for limit in (time_limit, self.time_limit) if limit is not None]
        limit = min(limits, default=None)
        start = warm_start_for(planner, warm_start)
        plan = planner.plan(model, rng=rng, time_limit=limit, **start)
        return plan, not plan.converged and limit != self.time_limit

    def _objective(
        self, returns: FloatArray, trial: Trial, parts: Sequence[Scenarios], **price: Any
    ) -> Objective:
        rollouts = Played(self.mdp, tuple(parts), self._memory)
        return Objective.of(returns, trial.plan, trial.reduced, **price, rollouts=rollouts)

    def _returns(self, trial: Trial, parts: int) -> FloatArray:
        """The returns on the first parts of the trajectories; what was not played yet is."""
        for scenarios in self.scenarios()[len(trial.returns) : parts]:
            returns, visits = self._play(trial.plan, scenarios)
            trial.returns.append(returns)
            trial.visits += visits
        return np.concatenate(trial.returns[:parts])

    def _play(self, plan: Plan, scenarios: Scenarios) -> tuple[FloatArray, FloatArray]:
        """The returns, and the discounted visits of each pair."""
        visits = np.zeros(self._num_pairs)

        def watch(t: int, state: State, actions: NDArray[Any]) -> None:
            n = joint_index(state.endogenous, self.mdp.endogenous_sizes)
            met = np.bincount(n * self.mdp.num_actions + actions, minlength=len(visits))
            visits[:] += self.mdp.discount**t * met

        counting = watch if self._num_pairs else None
        return evaluate(plan.policy, self.mdp, scenarios=scenarios, watch=counting), visits


def estimate_objective(
    mdp: ExoMDP | gym.Env[Any, Any],
    mask: Any,
    *,
    rng: np.random.Generator | int | None = None,
    cost_weight: float = 0.0,
    cost: Cost = "size",
    n_rollouts: int = 500,
    planner: Planner | None = None,
    time_limit: float | None = 60.0,
    scenarios: Scenarios | None = None,
    warm_start: Objective | None = None,
    **estimation: Any,
) -> Objective:
    """*Estimate-Objective* for one mask: build the reduced model, plan in it, play the policy.

    Args:
        mdp: the full model, or an environment over it (see :func:`exo_envs.as_mdp`).
        mask: names, indices or booleans.
        rng: a generator, or a seed; by default the same each time.
        cost_weight: the paper's lambda.
        cost: the number of variables ("size"), the planning time in seconds ("time"), or a
            function of the mask and the plan.
        n_rollouts: how many rollouts; with ``scenarios``, theirs.
        planner: by default one that chooses by size.
        time_limit: for planning, in seconds.
        scenarios: exogenous trajectories to share with other masks.
        warm_start: the objective of a similar mask, whose plan is where planning starts from. That
            makes it faster where the planner can do something with it; see
            :class:`~planners.Planner`.
        **estimation: what :meth:`ReducedMDP.estimate` takes, data to share among them. With
            ``ignored_rewards="average"``, the default, the reduced model pays the average of what
            the mask ignores, so even an empty mask gives a sensible policy, a blind one; with
            "zero", as in the paper, it pays nothing for it.
    """
    cost_function(cost)  # an unknown one is refused before anything is computed
    generator = np.random.default_rng(0 if rng is None else rng)
    model = as_mdp(mdp)
    evaluator = MaskEvaluator(
        model,
        reduce=lambda names, _: ReducedMDP.estimate(model, names, rng=generator, **estimation),
        planner=lambda _: planner or DefaultPlanner(),
        rng=lambda *_: generator,  # one stream for everything: the caller's
        n_rollouts=n_rollouts,
        time_limit=time_limit,
        memory=_collected(**estimation),
    )
    names = as_mask(model, mask)
    start = warm_start.plan if warm_start else None
    evaluator.plan(names, thorough=True, warm_start=start)
    if scenarios is None:
        scenarios = Scenarios.sample(model, n_rollouts, generator)
    price: dict[str, Any] = {"cost_weight": cost_weight, "cost": cost}
    return evaluator.objective(names, **price, scenarios=scenarios, thorough=True)


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
