"""*Estimate-Objective* for many masks, which remembers what was planned and played."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.checked_mdp import checked
from exo_envs.core.arguments import check_whole
from exo_envs.core.clock import Clock, OutOfTimeError, check_time_limit, tick
from exo_envs.core.masks import as_mask
from exo_envs.core.mdp import ExoMDP, FloatArray, State
from exo_envs.core.original import HasOriginal
from planners.core.arrays import joint_index
from planners.core.evaluation import Estimate, Scenarios, evaluate, paired_difference, play_original
from planners.core.memory import Memory
from planners.core.planner import Plan, Planner, check_plan, warm_start_for
from planners.core.policy import Mask
from planners.discretization.binned_policy import with_values
from planners.reduced.reduced_mdp import ReducedMDP
from planners.reduced.survey import can_enumerate
from planners.tables.indexing import num_endogenous_states
from planners.worth import Comparison, Cost, Objective, Played

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
        time_limit: for one plan, in seconds; compiling takes none of it.
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
        memory: Memory | None = None,
    ) -> None:
        self.mdp = mdp
        self.n_rollouts = check_whole("n_rollouts", n_rollouts, 1)
        self.time_limit = check_time_limit("time_limit", time_limit)
        self.trials: dict[Mask, Trial] = {}  # the masks that were planned with
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
        if can_enumerate(mdp) and not mdp.endogenous_ranges.is_real:
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
        in_model: bool = False,
    ) -> Objective:
        """*Estimate-Objective*; what was planned and played before is remembered.

        Args:
            mask: names, patterns, indices or booleans; see :func:`exo_envs.core.masks.as_mask`.
            cost_weight: the paper's lambda.
            cost: see :func:`estimate_objective`.
            scenarios: what to play instead of the shared trajectories; see :meth:`play`.
            first_look: play the first part of the shared trajectories only.
            thorough: plan as well as can be, and not only as well as comparisons of masks need.
            time_limit: for planning, if that is less than the evaluator's.
            in_model: play in the model only.

        Raises:
            OutOfTimeError: it was cut short before an episode of the environment was played.
        """
        trial = self.plan(as_mask(self.mdp, mask), thorough=thorough, time_limit=time_limit)
        if scenarios is not None:
            price: dict[str, Any] = {"cost_weight": cost_weight, "cost": cost}
            return self.play(trial, scenarios, **price, in_model=in_model)
        parts = self.scenarios(1 if first_look else None)
        returns = self._returns(trial, len(parts))
        return self._objective(returns, trial, parts, cost_weight=cost_weight, cost=cost)

    def play(
        self,
        trial: Trial,
        scenarios: Scenarios,
        *,
        cost_weight: float = 0.0,
        cost: Cost = "size",
        in_model: bool = False,
    ) -> Objective:
        """J of a mask that was planned with, on trajectories of the caller's choice.

        A policy for somebody else's environment also plays this environment itself, unless
        ``in_model``; the returns are then those of its episodes.
        """
        returns, _ = self._play(trial.plan, scenarios)
        price: dict[str, Any] = {"cost_weight": cost_weight, "cost": cost}
        original = None if in_model else checked(self.mdp).original
        if original is not None:
            price["claimed_returns"] = returns
            horizon, count = scenarios.exogenous.shape[:2]
            returns = _played(trial.plan, original, count, scenarios.seed, horizon)
        return self._objective(returns, trial, [scenarios], **price)

    def as_played(self, known: Objective) -> Objective:
        """The same with returns of the environment itself, if the model was made of one.

        Raises:
            OutOfTimeError: it was cut short before an episode was played.
        """
        original = checked(self.mdp).original
        if original is None or known.claimed_returns is not None:
            return known
        seed = int(self._rng("played").integers(2**63))
        returns = _played(known.plan, original, self.n_rollouts, seed, self.mdp.horizon)
        mean = float(returns.mean())
        return replace(
            known,
            value=known.value - known.mean_return + mean,
            mean_return=mean,
            standard_error=Estimate.of(returns).standard_error,
            returns=returns,
            claimed_returns=known.returns,
        )

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
                    self.scenarios(parts),
                    cost_weight=cost_weight,
                    cost=cost,
                )
                for trial in trials
            )
            difference = paired_difference(tried.returns, rival.returns)
            return Comparison(tried, tried.gain_over(rival), difference, rival)

        comparison = play(parts := 1)
        while parts < len(self._parts_of_scenarios) and not comparison.is_decided:
            comparison = play(parts := parts + 1)
        return comparison

    def knows(self, mask: Mask) -> bool:
        """Whether a mask has been planned with already."""
        return mask in self.trials or mask in self._thorough

    def keeps(self, plan: Plan) -> bool:
        """Whether a plan is remembered: none that a caller's time limit cut short is."""
        kept = (*self.trials.values(), *self._thorough.values())
        return any(trial.plan is plan for trial in kept)

    def known_objective(
        self, mask: Mask, *, cost_weight: float = 0.0, cost: Cost = "size"
    ) -> Objective | None:
        """J on those of the shared trajectories that a mask was played on; None if on none.

        The model is asked nothing.
        """
        trial = self.trials.get(mask)
        if trial is None or not trial.returns:
            return None
        returns, parts = np.concatenate(trial.returns), self.scenarios(len(trial.returns))
        return self._objective(returns, trial, parts, cost_weight=cost_weight, cost=cost)

    def visits(self, mask: Mask, time_limit: float | None = None) -> FloatArray:
        """How often the policy of a mask meets each pair n * A + a in an episode, discounted.

        Shape (N * A,), or (0,) where there are too many pairs to count.
        """
        trial = self.plan(mask, time_limit=time_limit)
        return trial.visits / len(self._returns(trial, max(1, len(trial.returns))))

    def scenarios(self, parts: int | None = None) -> list[Scenarios]:
        """The trajectories on which masks are compared while one is chosen, in a few parts.

        There are the first ``parts`` of them, by default all; each is drawn when first asked for.
        """
        wanted = self._parts_of_scenarios[:parts]
        for k, size in wanted[len(self._scenarios) :]:
            self._scenarios.append(Scenarios.sample(self.mdp, size, self._rng("scenarios", k)))
        return self._scenarios[: len(wanted)]

    @cached_property
    def _parts_of_scenarios(self) -> list[tuple[int, int]]:
        """The number of the look that each part is for, and how many trajectories it has."""
        ends = [
            min(self.n_rollouts, max(FIRST_LOOK, math.ceil(share * self.n_rollouts)))
            for share in LOOKS
        ]
        return [(k, size) for k, size in enumerate(np.diff([0, *ends]).tolist()) if size]

    def fresh_scenarios(self) -> Scenarios:
        """Trajectories on which no mask was chosen, for the final estimate of J.

        If the model is a record, they are of the later time that it holds out.
        """
        if self._fresh_scenarios is None:
            rng = self._rng("fresh scenarios")
            self._fresh_scenarios = Scenarios.sample(self.mdp.held_out, self.n_rollouts, rng)
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
        trial = Trial(with_values(plan, reduced), reduced, [], np.zeros(self._num_pairs))
        tick()  # planners that catch it return what they have
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

        Raises:
            OutOfTimeError: it was cut short by a clock above, so that nobody waits for the plan.
        """
        planner, time_limit = self._planner(thorough), check_time_limit("time_limit", time_limit)
        clock = Clock(None)  # has the time that is left of a clock above
        asked = (time_limit, self.time_limit, clock.left())
        limit = min((own for own in asked if own is not None), default=None)
        start = warm_start_for(planner, warm_start)
        plan = check_plan(planner, planner.plan(model, rng=rng, time_limit=limit, **start))
        if not plan.converged and limit is not None and plan.seconds >= limit:
            plan = replace(plan, out_of_time=True)  # a planner need not say so itself
        if not plan.converged and clock.left() == 0.0:
            raise OutOfTimeError
        return plan, plan.out_of_time and limit != self.time_limit

    def _objective(
        self, returns: FloatArray, trial: Trial, parts: Sequence[Scenarios], **price: Any
    ) -> Objective:
        rollouts = Played(self.mdp, tuple(parts), self._memory)
        return Objective.of(returns, trial.plan, trial.reduced, **price, rollouts=rollouts)

    def _returns(self, trial: Trial, parts: int) -> FloatArray:
        """The returns on the first parts of the trajectories; what was not played yet is."""
        for scenarios in self.scenarios(parts)[len(trial.returns) :]:
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


def _played(plan: Plan, original: HasOriginal, count: int, seed: int, horizon: int) -> FloatArray:
    """Returns of so many episodes of the environment itself, or of fewer if time is up."""
    episodes = play_original(plan.policy, original, count, seed, horizon=horizon)
    returns: list[float] = []
    try:
        for earned in episodes:
            returns.append(earned)  # noqa: PERF402 - what was played before time is up is kept
    except OutOfTimeError:
        if not returns:
            raise
    return np.array(returns)
