"""The paper's *Estimate-Objective* (section 5.1): what a mask is worth.

    J(mask) = E[return of the reduced policy in the full model] - lambda * Cost(mask)

:class:`MaskEvaluator` builds the reduced model of a mask, plans in it and plays the policy in the
full model; it remembers what was planned and played. :func:`estimate_objective` does so for one
mask, the learners for many.
"""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.check import check_quickly
from exo_envs.contract.checked_mdp import CountedMDP, checked
from exo_envs.contract.original import HasOriginal
from exo_envs.core.arguments import as_generator, check_flag, check_kind, check_real, check_whole
from exo_envs.core.batches import as_mask
from exo_envs.core.clock import Clock, OutOfTimeError, check_time_limit, tick
from exo_envs.core.mdp import ExoMDP, FloatArray, State
from exo_envs.sources.simulators.conversion import as_mdp, warn_of_ignored_wrappers
from exo_envs.sources.simulators.played import PlayedDifferentlyWarning
from planners.core.arrays import joint_index
from planners.core.evaluation import Estimate, Scenarios, evaluate, paired_difference, play_original
from planners.core.memory import Memory
from planners.core.planner import (
    Plan,
    PlanCutShortWarning,
    Planner,
    check_plan,
    check_planner,
    warm_start_for,
)
from planners.core.policy import Mask
from planners.default_planner import DefaultPlanner
from planners.discretization.binned_policy import with_values
from planners.reduced.reduced_mdp import ReducedMDP
from planners.reduced.survey import can_enumerate
from planners.tables.indexing import num_endogenous_states
from planners.worth import Comparison, Cost, Objective, Played, cost_function

#: A comparison of masks may end after these shares of the rollouts.
LOOKS = (0.1, 0.4, 1.0)
#: Rollouts before the first look at a comparison: of fewer, the standard error is a guess.
FIRST_LOOK = 30
#: Exact plans with part of a mask that are kept to start others from: their tables are large.
KEPT_PARTS = 4


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

    Attributes:
        trials: the masks that were planned with, as well as comparisons of masks need.
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
        self.trials: dict[Mask, Trial] = {}
        self._thorough: dict[Mask, Trial] = {}
        self._memory = memory
        self._reduce, self._planner, self._rng = reduce, planner, rng
        self._scenarios: list[Scenarios] = []
        self._starts: list[Plan] = []  # exact plans, which others can start from
        self._parts: deque[Plan] = deque(maxlen=KEPT_PARTS)  # the same for parts of masks
        self._num_pairs = 0  # for counting visits, where n can be enumerated
        if can_enumerate(mdp) and not mdp.endogenous_ranges.is_real:
            self._num_pairs = num_endogenous_states(mdp) * mdp.num_actions

    # --- plans ----------------------------------------------------------------------------

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
                such plans: the mask that was planned with at length would have an advantage.
            time_limit: in seconds, if that is less than the evaluator's.
            warm_start: a plan to start from; by default one whose mask is most similar.
        """
        known, best = self.trials.get(mask), self._thorough.get(mask)
        if thorough and known is not None and best is None:
            is_best = known.plan.values is not None or self._planner(True) is self._planner(False)
            best = known if is_best else None
        found = best if thorough else known or best
        if found is not None:
            return found
        rng = self._rng("plan", *self.mdp.exogenous_indices(mask).tolist())
        reduced = known.reduced if known is not None else self._reduce(mask, rng)
        start = warm_start or min(  # the exact plan whose mask differs in the fewest variables
            (*reversed(self._parts), *reversed(self._starts)),
            key=lambda plan: len(set(plan.policy.mask) ^ set(mask)),
            default=None,
        )
        plan, was_cut = self.solve(
            reduced, rng, thorough=thorough, time_limit=time_limit, warm_start=start
        )
        if plan.values is not None:
            self._starts.append(plan)
        elif plan.part is not None and plan.part.values is not None:
            self._parts.append(plan.part)
            plan = replace(plan, part=None)
        trial = Trial(with_values(plan, reduced), reduced, [], np.zeros(self._num_pairs))
        tick()  # planners that catch it return what they have
        if not was_cut:
            kept = self._thorough if thorough and plan.values is None else self.trials
            kept[mask] = trial
        return trial

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

    def knows(self, mask: Mask) -> bool:
        """Whether a mask has been planned with already."""
        return mask in self.trials or mask in self._thorough

    def keeps(self, plan: Plan) -> bool:
        """Whether a plan is remembered: none that a caller's time limit cut short is."""
        kept = (*self.trials.values(), *self._thorough.values())
        return any(trial.plan is plan for trial in kept)

    # --- trajectories ---------------------------------------------------------------------

    def scenarios(self, parts: int | None = None) -> list[Scenarios]:
        """The trajectories on which masks are compared while one is chosen, in a few parts.

        There are the first ``parts`` of them, by default all; each is drawn when first asked for.
        """
        wanted = self._looks[:parts]
        for k, size in wanted[len(self._scenarios) :]:
            self._scenarios.append(Scenarios.sample(self.mdp, size, self._rng("scenarios", k)))
        return self._scenarios[: len(wanted)]

    @cached_property
    def _looks(self) -> list[tuple[int, int]]:
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
        return self._fresh

    @cached_property
    def _fresh(self) -> Scenarios:
        return Scenarios.sample(self.mdp.held_out, self.n_rollouts, self._rng("fresh scenarios"))

    def independent_scenarios(self, number: int) -> Scenarios:
        """The ``number``-th set of trajectories that nothing else is played on."""
        return Scenarios.sample(self.mdp, self.n_rollouts, self._rng("independent", number))

    # --- scores ---------------------------------------------------------------------------

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
            mask: names, patterns, indices or booleans; see :func:`exo_envs.core.batches.as_mask`.
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
        price: dict[str, Any] = {"cost_weight": cost_weight, "cost": cost}
        if scenarios is not None:
            return self.play(trial, scenarios, **price, in_model=in_model)
        return self._on_shared(trial, len(self.scenarios(1 if first_look else None)), **price)

    def known_objective(
        self, mask: Mask, *, cost_weight: float = 0.0, cost: Cost = "size"
    ) -> Objective | None:
        """J on those of the shared trajectories that a mask was played on; None if on none.

        The model is asked nothing.
        """
        trial = self.trials.get(mask)
        if trial is None or not trial.returns:
            return None
        return self._on_shared(trial, len(trial.returns), cost_weight=cost_weight, cost=cost)

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
        price: dict[str, Any] = {"cost_weight": cost_weight, "cost": cost}

        def look(parts: int) -> Comparison:
            tried, rival = (self._on_shared(trial, parts, **price) for trial in trials)
            difference = paired_difference(tried.returns, rival.returns)
            return Comparison(tried, tried.gain_over(rival), difference, rival)

        comparison = look(parts := 1)
        while parts < len(self._looks) and not comparison.is_decided:
            comparison = look(parts := parts + 1)
        return comparison

    def visits(self, mask: Mask, time_limit: float | None = None) -> FloatArray:
        """How often the policy of a mask meets each pair n * A + a in an episode, discounted.

        Shape (N * A,), or (0,) where there are too many pairs to count.
        """
        trial = self.plan(mask, time_limit=time_limit)
        return trial.visits / len(self._returns(trial, max(1, len(trial.returns))))

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
        earned = Estimate.of(returns)
        return replace(
            known,
            value=known.value - known.mean_return + earned.mean,
            mean_return=earned.mean,
            standard_error=earned.standard_error,
            returns=returns,
            claimed_returns=known.returns,
        )

    def _on_shared(self, trial: Trial, parts: int, **price: Any) -> Objective:
        """J on the first parts of the shared trajectories."""
        return self._objective(self._returns(trial, parts), trial, self.scenarios(parts), **price)

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

    Args:
        mdp: the full model, or an environment over it (see :func:`exo_envs.as_mdp`).
        mask: names, patterns, indices or booleans; see :func:`exo_envs.core.batches.as_mask`.
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
    names, model = as_mask(given, mask), CountedMDP(given)
    memory = estimation.pop("memory", None)
    if memory is None and None not in (estimation.get("data"), estimation.get("survey")):
        memory = Memory(data=estimation["data"], survey=estimation["survey"])
    doing = "looking if the model keeps its contract"

    def reduce(names: Mask, rng: np.random.Generator) -> ReducedMDP:
        nonlocal doing
        doing = "estimating the reduced model"
        known = Memory() if memory is None else memory
        reduced = ReducedMDP.estimate(model, names, rng=rng, memory=known, **estimation)
        doing = "planning (planning_time_limit leaves time to play the best plan by then)"
        return reduced

    evaluator = MaskEvaluator(
        model,
        reduce=reduce,
        planner=lambda _: DefaultPlanner() if planner is None else planner,
        rng=lambda *_: generator,  # one stream for everything: the caller's
        n_rollouts=n_rollouts,
        time_limit=planning_time_limit,
        memory=memory,
    )
    try:
        with clock.above():
            if check:
                check_quickly(model)
            start = warm_start.plan if warm_start else None
            trial = evaluator.plan(names, thorough=True, warm_start=start)
            if trial.plan.out_of_time:
                warnings.warn(
                    f"the plan with {len(names)} variable{'' if len(names) == 1 else 's'} did not "
                    f"converge within planning_time_limit={planning_time_limit:g} seconds; with "
                    "more time its policy, and so J, might be better",
                    PlanCutShortWarning,
                    stacklevel=2,
                )
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
