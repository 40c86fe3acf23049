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
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np

from exo_envs.contract.check import check_quickly
from exo_envs.contract.checked_mdp import CountedMDP, checked
from exo_envs.contract.original import HasOriginal
from exo_envs.core.arguments import (
    as_generator,
    check_flag,
    check_kind,
    check_real,
    check_rollouts,
    check_whole,
)
from exo_envs.core.batches import as_mask
from exo_envs.core.clock import Clock, OutOfTimeError, check_time_limit, tick
from exo_envs.core.mdp import ExoMDP, FloatArray
from exo_envs.sources.simulators.conversion import as_mdp, warn_of_ignored_wrappers
from exo_envs.sources.simulators.played import PlayedDifferentlyWarning
from planners.core.arrays import joint_index
from planners.core.evaluation import (
    Estimate,
    Scenarios,
    paired_difference,
    play,
    play_original,
    returns_on,
)
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
from planners.discretization.coarse import with_values
from planners.findings import Findings
from planners.reduced.reduced_mdp import ReducedMDP
from planners.reduced.survey import can_enumerate
from planners.tables.indexing import num_endogenous_states
from planners.worth import Cost, MaskComparison, Objective, Played, cost_function

#: What the default planner may lose, as a part of the largest reward.
LOSS_SHARE = 1e-3
#: A comparison of masks may end after these shares of the rollouts.
LOOKS = (0.1, 0.4, 1.0)
#: Rollouts before the first look at a comparison: of fewer, the standard error is a guess.
FIRST_LOOK = 30
#: Exact plans with part of a mask that are kept to start others from: their tables are large.
KEPT_PARTS = 4


@dataclass(eq=False)
class PlannedMask:
    """A mask that was planned with, and what its policy met and earned so far."""

    plan: Plan
    reduced: ReducedMDP
    returns: list[FloatArray]  # one array for each part of the shared trajectories
    visits: FloatArray  # (N * A,), discounted, of all rollouts so far; empty if N * A is too large


class MaskEvaluator:
    """*Estimate-Objective* for many masks, on the same exogenous trajectories.

    Args:
        findings: the full model, and what was found out about it.
        planner: by default one that chooses by size, as precise as rollouts can tell.
        n_rollouts: episodes that each policy plays.
        time_limit: for one plan, in seconds; compiling takes none of it. A clock above may leave
            less.

    Attributes:
        trials: the masks that were planned with, as well as comparisons of masks need.
    """

    def __init__(
        self,
        findings: Findings,
        *,
        planner: Planner | None = None,
        n_rollouts: int = 500,
        time_limit: float | None = 60.0,
    ) -> None:
        check_planner(planner)
        self.findings, self.mdp = findings, findings.counted
        self.given_planner = planner
        self.n_rollouts = n_rollouts = check_whole("n_rollouts", n_rollouts, 1)
        self.time_limit = check_time_limit("time_limit", time_limit)
        if not self.mdp.is_recorded:  # a record has only so many
            length = self.mdp.horizon + 1
            check_rollouts("n_rollouts", n_rollouts, length, len(self.mdp.exogenous_variables))
        # Of each look at a comparison the number, and how many trajectories more it has.
        ends = [min(n_rollouts, max(FIRST_LOOK, math.ceil(own * n_rollouts))) for own in LOOKS]
        self._looks = [(k, more) for k, more in enumerate(np.diff([0, *ends]).tolist()) if more]
        self.trials: dict[Mask, PlannedMask] = {}
        self._thorough: dict[Mask, PlannedMask] = {}
        self._scenarios: list[Scenarios] = []
        self._fresh: Scenarios | None = None
        self._starts: list[Plan] = []  # exact plans, which others can start from
        self._parts: deque[Plan] = deque(maxlen=KEPT_PARTS)  # the same for parts of masks
        self._num_pairs = 0  # for counting visits, where n can be enumerated
        if can_enumerate(self.mdp) and not self.mdp.endogenous_ranges.is_real:
            self._num_pairs = num_endogenous_states(self.mdp) * self.mdp.num_actions

    # --- plans ----------------------------------------------------------------------------

    def plan(self, mask: Mask, *, thorough: bool = False) -> PlannedMask:
        """The reduced model of a mask and a plan in it; remembered unless it was cut short.

        Args:
            mask: names, in the order of the model.
            thorough: plan as well as can be. Comparisons of masks do without, and so do not use
                such plans: the mask that was planned with at length would have an advantage.
        """
        known, best = self.trials.get(mask), self._thorough.get(mask)
        if thorough and known is not None and best is None:
            is_best = known.plan.values is not None or self.given_planner is not None
            best = known if is_best else None
        found = best if thorough else known or best
        if found is not None:
            return found
        rng = self.findings.rng("plan", *self.mdp.exogenous_indices(mask).tolist())
        reduced = known.reduced if known is not None else self.reduce(mask, rng)
        start = min(  # the exact plan whose mask differs in the fewest variables
            (*reversed(self._parts), *reversed(self._starts)),
            key=lambda plan: len(set(plan.policy.mask) ^ set(mask)),
            default=None,
        )
        plan, was_cut = self.solve(reduced, rng, thorough=thorough, warm_start=start)
        if plan.values is not None:
            self._starts.append(plan)
        elif plan.part is not None and plan.part.values is not None:
            self._parts.append(plan.part)
            plan = replace(plan, part=None)
        trial = PlannedMask(with_values(plan, reduced), reduced, [], np.zeros(self._num_pairs))
        tick()  # planners that catch it return what they have
        if not was_cut:
            kept = self._thorough if thorough and plan.values is None else self.trials
            kept[mask] = trial
        return trial

    def reduce(self, mask: Mask, rng: np.random.Generator, *, relaxed: bool = False) -> ReducedMDP:
        """The reduced model of a mask, from the samples that all masks share.

        In the ``relaxed`` one every variable moves by itself, whatever the others do, and what the
        mask ignores is seen with optimism.
        """
        known, settings = self.findings, dict[str, Any]()
        if relaxed:
            settings |= {"max_parents": 1, "interventions": False, "ignored_rewards": "optimistic"}
        else:
            settings |= {"max_parents": known.max_parents, "known_parents": known.parents}
            settings |= {"ignored_rewards": known.ignored_rewards}
            known.actors(mask)  # asked now, and not when somebody reads the tables of the model
        known.survey()  # is in the memory from then on
        return ReducedMDP.estimate(self.mdp, mask, rng=rng, memory=known.memory, **settings)

    def planner(self, thorough: bool = False) -> Planner:
        """The planner; the default one is as precise as rollouts can tell.

        Plans for comparisons of masks are made in less time than ``thorough`` ones, if they cannot
        be exact (:class:`~planners.DefaultPlanner`).
        """
        if self.given_planner is not None:
            return self.given_planner
        survey = self.findings.survey()
        tables = [survey.base_reward, *survey.scoped_terms.values()]
        largest = max(float(np.abs(table).max(initial=0.0)) for table in tables)
        tolerance = LOSS_SHARE * (largest or 1.0)
        return DefaultPlanner(tolerance=tolerance, dtype=np.float32, thorough=thorough)

    def solve(
        self,
        model: ExoMDP,
        rng: np.random.Generator,
        *,
        thorough: bool = False,
        warm_start: Plan | None = None,
    ) -> tuple[Plan, bool]:
        """Plan in a model; and whether a clock above, not the evaluator's limit, cut it short.

        What was cut short for one caller is not remembered for others.

        Raises:
            OutOfTimeError: it was cut short by a clock above, so that nobody waits for the plan.
        """
        limit = self.time_limit
        plan, given = make_plan(self.planner(thorough), model, rng, limit, warm_start)
        return plan, plan.out_of_time and given != limit

    def knows(self, mask: Mask) -> bool:
        return mask in self.trials or mask in self._thorough

    def keeps(self, plan: Plan) -> bool:
        """Whether a plan is remembered: none that a caller's clock cut short is."""
        kept = (*self.trials.values(), *self._thorough.values())
        return any(trial.plan is plan for trial in kept)

    # --- trajectories ---------------------------------------------------------------------

    def scenarios(self, parts: int | None = None) -> list[Scenarios]:
        """The trajectories on which masks are compared while one is chosen, in a few parts.

        There are the first ``parts`` of them, by default all; each is drawn when first asked for.
        """
        wanted = self._looks[:parts]
        for k, size in wanted[len(self._scenarios) :]:
            self._scenarios.append(
                Scenarios.sample(self.mdp, size, self.findings.rng("scenarios", k))
            )
        return self._scenarios[: len(wanted)]

    def fresh_scenarios(self) -> Scenarios:
        """Trajectories on which no mask was chosen, for the final estimate of J.

        If the model is a record, they are of the later time that it holds out.
        """
        if self._fresh is None:
            rng = self.findings.rng("fresh scenarios")
            self._fresh = Scenarios.sample(self.mdp.held_out, self.n_rollouts, rng)
        return self._fresh

    def independent_scenarios(self, number: int) -> Scenarios:
        """The ``number``-th set of trajectories that nothing else is played on."""
        return Scenarios.sample(self.mdp, self.n_rollouts, self.findings.rng("independent", number))

    # --- scores ---------------------------------------------------------------------------

    def objective(
        self,
        mask: Any,
        *,
        scenarios: Scenarios | None = None,
        first_look: bool = False,
        thorough: bool = False,
        in_model: bool = False,
        **price: Any,
    ) -> Objective:
        """*Estimate-Objective*; what was planned and played before is remembered.

        Args:
            mask: names, patterns, indices or booleans; see :func:`exo_envs.core.batches.as_mask`.
            scenarios: what to play instead of the shared trajectories.
            first_look: play the first part of the shared trajectories only.
            thorough: plan as well as can be, and not only as well as comparisons of masks need.
            in_model: play in the model only, also if it was made of somebody's environment.
            **price: ``cost_weight`` and ``cost``; see :func:`estimate_objective`.

        Raises:
            OutOfTimeError: it was cut short before an episode of the environment was played.
        """
        trial = self.plan(as_mask(self.mdp, mask), thorough=thorough)
        if scenarios is not None:
            played = self.mdp, scenarios, self.findings.memory
            return score(trial.plan, trial.reduced, *played, **price, in_model=in_model)
        return self._on_shared(trial, len(self.scenarios(1 if first_look else None)), **price)

    def known_objective(self, mask: Mask, **price: Any) -> Objective | None:
        """J on those of the shared trajectories that a mask was played on; None if on none.

        The model is asked nothing.
        """
        trial = self.trials.get(mask)
        if trial is None or not trial.returns:
            return None
        return self._on_shared(trial, len(trial.returns), **price)

    def compare(self, mask: Any, other: Any, **price: Any) -> MaskComparison:
        """J of a mask against J of another one, on as many rollouts as it takes to decide."""
        trials = [self.plan(as_mask(self.mdp, names)) for names in (mask, other)]

        def look(parts: int) -> MaskComparison:
            tried, rival = (self._on_shared(trial, parts, **price) for trial in trials)
            difference = paired_difference(tried.returns, rival.returns)
            return MaskComparison(tried, tried.gain_over(rival), difference, rival)

        comparison = look(parts := 1)
        while parts < len(self._looks) and not comparison.gain.is_decided:
            comparison = look(parts := parts + 1)
        return comparison

    def visits(self, mask: Mask) -> FloatArray:
        """How often the policy of a mask meets each pair n * A + a in an episode, discounted.

        Shape (N * A,), or (0,) where there are too many pairs to count.
        """
        trial = self.plan(mask)
        return trial.visits / len(self._returns(trial, max(1, len(trial.returns))))

    def as_played(self, known: Objective) -> Objective:
        """The same with returns of the environment itself, if the model was made of one.

        Raises:
            OutOfTimeError: it was cut short before an episode was played.
        """
        original = checked(self.mdp).original
        if original is None or known.claimed_returns is not None:
            return known
        seed = int(self.findings.rng("played").integers(2**63))
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

    def _on_shared(self, trial: PlannedMask, parts: int, **price: Any) -> Objective:
        returns = self._returns(trial, parts)
        rollouts = Played(self.mdp, tuple(self.scenarios(parts)), self.findings.memory)
        return Objective.of(returns, trial.plan, trial.reduced, **price, rollouts=rollouts)

    def _returns(self, trial: PlannedMask, parts: int) -> FloatArray:
        """The returns on the first parts of the trajectories; what was not played yet is."""
        for scenarios in self.scenarios(parts)[len(trial.returns) :]:
            returns, visits = np.zeros(len(scenarios)), np.zeros(self._num_pairs)
            steps = play(trial.plan.policy, self.mdp, scenarios, with_rewards=True)
            for t, step in enumerate(steps):
                weight = self.mdp.discount**t
                returns[step.lanes] += weight * step.rewards
                if len(visits):
                    n = joint_index(step.state.endogenous, self.mdp.endogenous_sizes)
                    pairs = n * self.mdp.num_actions + step.actions
                    visits += weight * np.bincount(pairs, minlength=len(visits))
            trial.returns.append(returns)
            trial.visits += visits
        return np.concatenate(trial.returns[:parts])


def make_plan(
    planner: Planner,
    model: ExoMDP,
    rng: np.random.Generator,
    time_limit: float | None,
    warm_start: Plan | None = None,
) -> tuple[Plan, float | None]:
    """Plan in a model; and the seconds given to the planner, which a clock above may cut short.

    Raises:
        OutOfTimeError: it was cut short by a clock above, so that nobody waits for the plan.
    """
    clock = Clock(None)  # has the time that is left of a clock above
    limit = min((own for own in (time_limit, clock.left()) if own is not None), default=None)
    start = warm_start_for(planner, warm_start)
    plan = check_plan(planner, planner.plan(model, rng=rng, time_limit=limit, **start))
    if not plan.converged and limit is not None and plan.seconds >= limit:
        plan = replace(plan, out_of_time=True)  # a planner need not say so itself
    if not plan.converged and clock.left() == 0.0:
        raise OutOfTimeError
    return plan, limit


def score(
    plan: Plan,
    reduced: ReducedMDP,
    mdp: ExoMDP,
    scenarios: Scenarios,
    memory: Memory | None,
    *,
    in_model: bool = False,
    **price: Any,
) -> Objective:
    """J of a mask that was planned with, on trajectories of the caller's choice.

    A policy for somebody else's environment also plays this environment itself, unless
    ``in_model``; the returns are then those of its episodes.
    """
    returns = returns_on(plan.policy, mdp, scenarios)
    original = None if in_model else checked(mdp).original
    if original is not None:
        price["claimed_returns"] = returns
        horizon, count = scenarios.exogenous.shape[:2]
        returns = _played(plan, original, count, scenarios.seed, horizon)
    rollouts = Played(mdp, (scenarios,), memory)
    return Objective.of(returns, plan, reduced, **price, rollouts=rollouts)


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

    try:
        with clock.above():
            if check:
                check_quickly(model)
            doing = "estimating the reduced model"
            known = Memory() if memory is None else memory
            reduced = ReducedMDP.estimate(model, names, rng=generator, memory=known, **estimation)
            doing = "planning (planning_time_limit leaves time to play the best plan by then)"
            start = warm_start.plan if warm_start else None
            own = DefaultPlanner() if planner is None else planner
            plan, _ = make_plan(own, reduced, generator, planning_time_limit, start)
            tick()  # planners that catch it return what they have
            if plan.out_of_time:
                warnings.warn(
                    f"the plan with {len(names)} variable{'' if len(names) == 1 else 's'} did not "
                    f"converge within planning_time_limit={planning_time_limit:g} seconds; with "
                    "more time its policy, and so J, might be better",
                    PlanCutShortWarning,
                    stacklevel=2,
                )
            doing = "playing the policy"
            plan = with_values(replace(plan, part=None), reduced)
            if scenarios is None:
                scenarios = Scenarios.sample(model, n_rollouts, generator)
            played = plan, reduced, model, scenarios, memory
            found = score(*played, cost_weight=cost_weight, cost=cost)
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
