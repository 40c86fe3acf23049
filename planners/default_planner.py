"""A planner that picks a planner, or the best of several plans."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from exo_envs.core.arguments import (
    Constraints,
    as_generator,
    check_fields,
    check_flag,
    real,
)
from exo_envs.core.clock import Clock, OutOfTimeError
from exo_envs.core.mdp import ExoMDP, FloatArray
from planners.core.evaluation import Estimate, Scenarios, evaluate, paired_difference
from planners.core.planner import Candidate, Plan, Planner, check_problem, warm_start_for
from planners.core.policy import Mask, Policy
from planners.discretization.bins import fewest_endogenous_states
from planners.discretization.coarse import with_values
from planners.forecasting.planner import ForecastPlanner
from planners.reduced.reduced_mdp import ReducedMDP, TabulatedReducedMDP, tabulate
from planners.reduced.survey import can_enumerate
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.indexing import Affordable, along
from planners.tree_search import UCT
from planners.value_iteration.planner import ValueIteration
from planners.value_iteration.tabular_policy import TabularPolicy

#: Trajectories of the model that is planned in, on which plans are compared, at most.
NUM_SCENARIOS = 800
#: Trajectories at least; if the model's data has fewer, they are drawn from its tables.
MIN_SCENARIOS = 100
#: Trajectories that are played before looking whether the plans are decided or the time is up.
PLAYED_TOGETHER = 100
#: A part that leaves out something that pays or moves n may have this share of the states.
SMALL_PART_SHARE = 0.1


@dataclass(kw_only=True, eq=False)
class DefaultPlanner:
    """Exact plans where they fit; where only n can be enumerated, the best of several plans.

    * If all joint values of the mask fit, value iteration.
    * If only n can be enumerated: forecasts of each variable, with recourse and without, and value
      iteration with the part of the mask that fits. A policy for part of a mask is a policy for the
      mask. All are played in the model that is planned in, on the same exogenous trajectories, and
      the best one is taken: so a larger mask does not do worse because it is too large to plan with
      exactly. Playing ends once one plan leads every other one by four standard errors of their
      paired difference.
    * Else tree search.

    ``Plan.method`` says which it was, ``Plan.candidates`` what each of several earned.

    Args:
        max_states: how many states value iteration is asked to sweep at most.
        memory_limit: how many bytes it may take.
        max_endogenous_pairs: how many pairs (n, a) are enumerated at most.
        tolerance: of value iteration; by default its own. It is what the policy may lose in any
            state, so where a few hundred rollouts judge the policy, a good part of their standard
            error does.
        dtype: of value iteration; by default its own.
        thorough: whether to take the time for all forecasts, and for exact plans that leave out
            something that pays. Learners plan with many masks, and do so for the last one only.
    """

    max_states: int = 5_000_000
    memory_limit: float = 2e9
    max_endogenous_pairs: int = 100_000
    tolerance: float | None = None
    dtype: type[np.floating[Any]] | None = None
    thorough: bool = True

    constraints: ClassVar[Constraints] = {
        "max_states": real(1),
        "max_endogenous_pairs": real(1),
        "thorough": check_flag,
    }

    def __post_init__(self) -> None:
        check_fields(self)
        given: dict[str, Any] = {"tolerance": self.tolerance, "dtype": self.dtype}
        given = {name: value for name, value in given.items() if value is not None}
        self.value_iteration = ValueIteration(memory_limit=self.memory_limit, **given)

    def choose(self, mdp: ExoMDP) -> Planner:
        """The planner for a model of this size.

        Where that is a :class:`ForecastPlanner`, :meth:`plan` tries other ways, too.
        """
        pairs = fewest_endogenous_states(mdp) * mdp.num_actions
        has_tables = isinstance(mdp, FactoredMDP) or can_enumerate(mdp)
        if pairs > self.max_endogenous_pairs or not has_tables:
            return UCT()
        return self.value_iteration if self._fits(mdp) else ForecastPlanner()

    def _fits(self, mdp: ExoMDP) -> bool:
        exact = self.value_iteration
        fits = mdp.num_states <= self.max_states and mdp.discount < 1
        return fits and exact.bytes_needed(mdp) <= exact.memory_limit

    def plan(
        self,
        mdp: ExoMDP,
        *,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
        warm_start: Plan | None = None,
    ) -> Plan:
        """Plan with the planner that :meth:`choose` picks, or the best of several plans.

        ``Plan.seconds`` and ``time_limit`` cover choosing, estimating tables and comparing plans,
        but not the time that Numba takes to compile on the first use ever.
        Value iteration is given the ``warm_start``, also where it plans with part of the mask.
        """
        check_problem(mdp, warm_start)
        clock = Clock(time_limit)
        rng = as_generator("rng", rng, default=0)
        given, planner = mdp, self.choose(mdp)
        if not isinstance(mdp, FactoredMDP) and not isinstance(planner, UCT):
            mdp = tabulate(mdp, rng)
            planner = self.choose(mdp)  # what the tables need is only known now
        if isinstance(planner, ForecastPlanner):
            assert isinstance(mdp, FactoredMDP)
            plan = self._best(mdp, rng, clock, warm_start)
        else:
            start = warm_start_for(planner, warm_start)
            plan = planner.plan(mdp, rng=rng, time_limit=clock.left(), **start)
        plan = plan if mdp is given else with_values(plan, mdp)
        return replace(plan, seconds=clock.seconds())

    def _best(
        self, mdp: FactoredMDP, rng: np.random.Generator, clock: Clock, warm_start: Plan | None
    ) -> Plan:
        """The plan that earns most in ``mdp``, of all ways that there are."""
        plans, masks = zip(*self._ways(mdp, rng, clock, warm_start), strict=True)
        if len(plans) == 1:
            if _has_time(clock, plans[0].seconds):  # for other ways
                return plans[0]
            return replace(plans[0], converged=False, out_of_time=True)
        policies = [plan.policy for plan in plans]
        returns = _play(policies, mdp, _shared_scenarios(mdp, rng), clock)
        if not returns.shape[1]:
            remarks = ["taken: there was no time to compare", *["not compared"] * (len(plans) - 1)]
            tried = zip(plans, masks, remarks, strict=True)
            candidates = tuple(Candidate(plan.method, mask, None, why) for plan, mask, why in tried)
            return replace(plans[0], converged=False, out_of_time=True, candidates=candidates)
        order = np.argsort(-returns.mean(axis=1), kind="stable").tolist()
        best = order[0]
        candidates = tuple(
            Candidate(
                plans[k].method,
                masks[k],
                Estimate.of(returns[k]),
                "taken: it earns most"
                if k == best
                else f"earns {paired_difference(returns[best], returns[k])} less",
            )
            for k in order
        )
        return replace(plans[best], candidates=candidates, part=plans[-1].part)

    def _ways(
        self, mdp: FactoredMDP, rng: np.random.Generator, clock: Clock, warm_start: Plan | None
    ) -> Iterator[tuple[Plan, Mask]]:
        """Plans and the variables that they look at, as long as there is time for another one."""
        everything = mdp.exogenous_names
        planner = ForecastPlanner(additive=self.thorough)
        first = planner.plan(mdp, rng=rng, time_limit=_share(clock, 0.4))
        yield first, everything
        if self.thorough and _has_time(clock, first.seconds):
            planner = ForecastPlanner(recourse=False, additive=False)
            plan = planner.plan(mdp, rng=rng, time_limit=_share(clock, 0.4))
            yield replace(plan, method="open-loop forecasts"), everything
        if not _has_time(clock, first.seconds):
            return
        part = self._part(mdp, rng) if mdp.discount < 1 else None
        if part is None:
            return
        limit = _share(clock, 0.6)
        plan = self.value_iteration.plan(part, rng=rng, time_limit=limit, warm_start=warm_start)
        assert isinstance(plan.policy, TabularPolicy)
        mask, full, _ = Policy.names_of(mdp)
        names = part.exogenous_names
        widened = replace(
            plan,
            policy=plan.policy.widened(mask, full),
            values=None,  # those of the part are not values of all states
            loss_bound=float("inf"),
            method=f"value iteration with {len(names)} of {len(everything)} variables",
            part=plan,
        )
        yield widened, names

    def _part(self, mdp: FactoredMDP, rng: np.random.Generator) -> ReducedMDP | None:
        """The largest part of the mask that fits and has all that pays or moves n.

        If that is too much and there is time to be thorough, a small part without some of it.
        """
        for smaller in (1, 4, 16):
            names = affordable_part(mdp, self.max_states / smaller, whole=True)
            if names is None:
                break
            part = _reduced(mdp, names, rng)
            if self._fits(part):
                return part
        if not self.thorough:
            return None
        part = _reduced(mdp, affordable_part(mdp, SMALL_PART_SHARE * self.max_states) or (), rng)
        return part if self._fits(part) else None


def _reduced(mdp: FactoredMDP, names: Mask, rng: np.random.Generator) -> ReducedMDP:
    if isinstance(mdp, TabulatedReducedMDP):
        return mdp.part(names)
    return ReducedMDP.estimate(mdp, names, rng=rng)


def _shared_scenarios(mdp: FactoredMDP, rng: np.random.Generator) -> Scenarios:
    """Trajectories of ``mdp`` to compare plans on.

    If the model was estimated from rollouts, x moves as in these: they show what its tables leave
    out of the joint dynamics. All plans were made from them, so none has an advantage. Without
    rollouts, or with too few, trajectories are drawn from the tables.
    """
    data = mdp.data
    if data is not None and data.num_steps >= mdp.horizon and data.num_rollouts >= MIN_SCENARIOS:
        exogenous = data.values[:NUM_SCENARIOS, : mdp.horizon].swapaxes(0, 1)
        start = data.initial_endogenous[:NUM_SCENARIOS]
        return Scenarios(start, np.ascontiguousarray(exogenous), int(rng.integers(2**63)))
    return Scenarios.sample(mdp, NUM_SCENARIOS, rng)


def _play(
    policies: Sequence[Policy], mdp: FactoredMDP, scenarios: Scenarios, clock: Clock
) -> FloatArray:
    """The returns of all policies, (policies, rollouts).

    Rollouts are played in parts, until one policy is clearly the best or the time is up.
    """
    returns = np.empty((len(policies), 0))
    with suppress(OutOfTimeError):
        for first in range(0, len(scenarios), PLAYED_TOGETHER):
            lanes = slice(first, first + PLAYED_TOGETHER)
            some = Scenarios(
                scenarios.endogenous[lanes], scenarios.exogenous[:, lanes], scenarios.seed + first
            )
            clock.tick()
            played = np.array([evaluate(policy, mdp, scenarios=some) for policy in policies])
            returns = np.concatenate([returns, played], axis=1)
            best = int(returns.mean(axis=1).argmax())
            leads = (
                paired_difference(returns[best], other) for other in np.delete(returns, best, 0)
            )
            if all(lead.is_decided for lead in leads):
                break
    return returns


def _has_time(clock: Clock, seconds: float) -> bool:
    left = clock.left()
    return left is None or left > seconds


def _share(clock: Clock, share: float) -> float | None:
    """Part of the time that is left; None if there is no limit."""
    left = clock.left()
    return None if left is None else share * left


def affordable_part(model: FactoredMDP, max_states: float, *, whole: bool = False) -> Mask | None:
    """The part of a mask that an exact planner can afford; a policy for it is one for the mask.

    It has what pays or moves n and, as long as there is room, what predicts that.

    If not even all that pays or moves n fits, it is those with most at stake that do, and no more.

    Args:
        model: a model that is too large.
        max_states: how many states the part may have.
        whole: accept no less than all that pays or moves n.

    Returns:
        The variables, or None if ``whole`` is too much.
    """
    sizes, room = model.exogenous_sizes.tolist(), max_states / model.num_endogenous_states
    stakes = _stakes(model)
    fits = math.prod(sizes[i] for i in stakes) <= room
    if whole and not fits:
        return None

    part = Affordable(sizes, room)
    newest = part.add(stakes)
    while newest and fits:
        told: Counter[int] = Counter()
        for i in newest:
            told.update(_information(model, i))
        newest = part.add(told)
    return tuple(model.exogenous_names[i] for i in sorted(part.chosen))


def _stakes(model: FactoredMDP) -> dict[int, float]:
    """The variables that pay or move n, with the most that each can change of a reward.

    One that moves n may change any reward.
    """
    spread: dict[int, float] = {}
    for scope, table in model.scoped_terms.items():
        for i in scope:
            own = along(table, scope, model.exogenous_sizes, i)
            spread[i] = spread.get(i, 0.0) + float(np.ptp(own, axis=0).max())
    spread = {i: stake for i, stake in spread.items() if stake > 0}
    most = max(spread.values(), default=0.0)
    return spread | dict.fromkeys(model.decision_lists.dependencies(), most)


def _information(model: FactoredMDP, i: int) -> dict[int, float]:
    """What each parent of a variable tells about x'_i that the others do not, in nats.

    All joint values of the parents count the same.
    """
    factor, sizes = model.factors[i], model.exogenous_sizes
    shape = [int(sizes[j]) for j in factor.parents]
    table = factor.to_table(int(sizes[i])).reshape(*shape, -1)
    entropy = _entropy(table)
    return {
        j: max(0.0, _entropy(table.mean(axis=k)) - entropy) for k, j in enumerate(factor.parents)
    }


def _entropy(table: np.ndarray) -> float:
    """The mean entropy of the rows of a table."""
    logs = np.log(table, out=np.zeros_like(table), where=table > 0)
    return float(-(table * logs).sum(axis=-1).mean())
