"""The paper's *Estimate-Objective* (section 5.1): what a mask is worth.

J(mask) = E[return of the reduced policy in the full model] - lambda * Cost(mask)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from exo_envs import ExoMDP, as_mdp
from exo_envs.errors import unknown_name
from exo_envs.inputs import as_mask
from exo_envs.mdp import FloatArray
from planners.default_planner import DefaultPlanner
from planners.evaluation import Estimate, Scenarios, evaluate, paired_difference
from planners.planner import Plan, Planner, warm_start_for
from planners.reduction import ReducedMDP

CostFunction = Callable[[tuple[str, ...], Plan], float]
Cost = Literal["size", "time"] | CostFunction

COSTS: dict[str, CostFunction] = {
    "size": lambda mask, plan: float(len(mask)),
    "time": lambda mask, plan: plan.seconds,
}


def cost_function(cost: Cost) -> CostFunction:
    """The function that a cost stands for, or an error that names the choices."""
    if callable(cost):
        return cost
    if cost in COSTS:
        return COSTS[cost]
    raise unknown_name("cost", cost, COSTS)


@dataclass(frozen=True)
class Objective:
    """An estimate of J(mask).

    Attributes:
        value: the mean return less the weighted cost.
        mean_return: of the reduced policy in the full model.
        standard_error: of the mean return.
        cost: Cost(mask), before it is weighted with lambda.
        plan: the plan whose policy was rolled out.
        returns: one for each rollout, shape (n_rollouts,).
        cost_weight: lambda.
        reduced: the reduced model that was planned in.
    """

    value: float
    mean_return: float
    standard_error: float
    cost: float
    plan: Plan
    returns: FloatArray = field(repr=False)
    cost_weight: float
    reduced: ReducedMDP = field(repr=False)

    @classmethod
    def of(
        cls,
        returns: FloatArray,
        plan: Plan,
        reduced: ReducedMDP,
        *,
        cost_weight: float = 0.0,
        cost: Cost = "size",
    ) -> Objective:
        """J, from the returns of a plan."""
        estimate = Estimate.of(returns)
        price = cost_function(cost)(reduced.mask, plan)
        return cls(
            value=estimate.mean - cost_weight * price,
            mean_return=estimate.mean,
            standard_error=estimate.standard_error,
            cost=price,
            plan=plan,
            returns=returns,
            cost_weight=cost_weight,
            reduced=reduced,
        )

    @property
    def mask(self) -> tuple[str, ...]:
        """The mask."""
        return self.plan.policy.mask

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval of the mean return."""
        return Estimate(self.mean_return, self.standard_error).interval(level)

    def gain_over(self, other: Objective) -> Estimate:
        """J of this mask less J of the other one, paired: both were run on the same scenarios."""
        difference = paired_difference(self.returns, other.returns)
        costs = self.cost_weight * self.cost - other.cost_weight * other.cost
        return Estimate(difference.mean - costs, difference.standard_error)


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
    """*Estimate-Objective*: build the reduced model, plan in it, roll the policy out.

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
            :class:`~planners.planner.Planner`.
        **estimation: what :meth:`ReducedMDP.estimate` takes, data to share among them.
    """
    cost_function(cost)  # an unknown one is refused before anything is computed
    rng = np.random.default_rng(0 if rng is None else rng)
    mdp = as_mdp(mdp)
    names = as_mask(mdp, mask)
    reduced = ReducedMDP.estimate(mdp, names, rng=rng, **estimation)
    planner = planner or DefaultPlanner()
    start = warm_start_for(planner, warm_start.plan if warm_start else None)
    plan = planner.plan(reduced, rng=rng, time_limit=time_limit, **start)
    returns = evaluate(plan.policy, mdp, n_rollouts, rng, scenarios=scenarios)
    return Objective.of(returns, plan, reduced, cost_weight=cost_weight, cost=cost)
