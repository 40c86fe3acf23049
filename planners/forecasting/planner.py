"""An online planner for masks that cannot be enumerated."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs import ExoMDP
from exo_envs.inputs import check_whole
from exo_envs.mdp import IntArray
from planners.arrays import joint_index
from planners.evaluation import Scenarios
from planners.files import Saved
from planners.forecasting.compiled_model import CompiledModel, needed_variables
from planners.forecasting.forecast_parents import ForecastParentSearch
from planners.forecasting.forecasts import Forecasts, Rollouts
from planners.forecasting.lookahead import Models, look_ahead
from planners.memory import MaskMemory
from planners.planner import Clock, OutOfTimeError, Plan
from planners.policy import Policy
from planners.reduction import tabulate


@dataclass(kw_only=True, eq=False)
class ForecastPlanner:
    """Plans anew at every step, with forecasts of each variable instead of the joint dynamics.

    Where value iteration would need the product of all variables, this planner forecasts each of
    those that pay or move the agent by itself, up to ``horizon`` steps ahead, turns the forecasts
    into expected rewards and moves, and runs backward induction over (steps ahead, n). A later
    decision is made once the variables are seen that its actions look at
    (:mod:`planners.forecasting.recourse`); what the planner neglects is all else that will be known
    by then.

    Forecasts are counted in the rollouts that are part of the model, :attr:`FactoredMDP.data`. An
    estimated model has those that it was estimated from, so what its tables leave out of the joint
    dynamics is not lost here. From a model without rollouts they are drawn.

    Args:
        horizon: how far it looks ahead; by default as far as an episode goes.
        num_rollouts: how many trajectories are drawn from a model that has no rollouts.
        level: of the test for what a forecast looks at.
        max_parents: how many variables a forecast may look at besides its own.
        recourse: whether a later decision is taken to be made once the variables that its actions
            look at are seen, rather than now.
    """

    horizon: int | None = None
    num_rollouts: int = 2000
    level: float = 1e-3
    max_parents: int = 4
    recourse: bool = True

    def __post_init__(self) -> None:
        check_whole("horizon", self.horizon, 1, optional=True)
        check_whole("num_rollouts", self.num_rollouts, 1)

    def plan(
        self,
        mdp: ExoMDP,
        *,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
    ) -> Plan:
        """Fit the forecasts; at the time limit, variables not yet examined forecast themselves."""
        # Counting takes about as long again as choosing what to count.
        clock = Clock(None if time_limit is None else 0.5 * time_limit)
        rng = np.random.default_rng(0) if rng is None else rng
        mdp = tabulate(mdp, rng)
        if mdp.data is not None:
            rollouts: Rollouts = mdp.data.values
        else:
            drawn = Scenarios.sample(mdp, self.num_rollouts, rng, horizon=mdp.horizon + 1)
            rollouts = np.ascontiguousarray(drawn.exogenous.swapaxes(0, 1))
        horizon = min(self.horizon or mdp.horizon, rollouts.shape[1] - 1)
        sizes, needed = mdp.exogenous_sizes, needed_variables(mdp)
        memory = mdp.memory or MaskMemory.fresh(len(sizes))
        search = ForecastParentSearch(rollouts, sizes, self.level, self.max_parents, memory)
        parents: dict[int, tuple[int, ...]] = {}
        with suppress(OutOfTimeError):
            for i in needed:
                clock.tick()
                parents[i] = search.parents(i)
        chosen = {i: parents.get(i, ()) for i in needed}
        policy = ForecastPolicy(
            *Policy.names_of(mdp),
            sizes=tuple(int(size) for size in mdp.endogenous_sizes),
            models=Models(*CompiledModel.compile(mdp, recourse=self.recourse)),
            forecasts=Forecasts.fit(rollouts, sizes, chosen, horizon, memory),
            discount=mdp.discount,
        )
        converged, seconds = len(parents) == len(needed), clock.seconds()
        return Plan(
            policy,
            None,
            converged=converged,
            residual=0.0,
            iterations=horizon,
            seconds=seconds,
            method="forecasts",
        )


class ForecastPolicy(Policy, Saved):
    """Looks ahead from each observation with the forecasts of a :class:`ForecastPlanner`."""

    records = (CompiledModel, Forecasts, Models)

    def __init__(
        self,
        mask: tuple[str, ...],
        full: tuple[str, ...],
        endogenous_size: int,
        *,
        sizes: tuple[int, ...],
        models: Models,
        forecasts: Forecasts,
        discount: float,
    ) -> None:
        super().__init__(mask, full, endogenous_size)
        self.sizes = sizes
        self.models = models
        self.forecasts = forecasts
        self.discount = discount

    def act(self, endogenous: NDArray[np.int64], exogenous: NDArray[np.int64]) -> IntArray:
        """The first action of the best look-ahead."""
        return self.action_values(endogenous, exogenous).argmax(axis=1)

    def action_values(self, endogenous: Any, exogenous: Any) -> NDArray[np.float64]:
        """What each first action is expected to earn, (B, A).

        Values that a variable cannot have count as its nearest.
        """
        n = joint_index(np.clip(endogenous, 0, np.array(self.sizes) - 1), self.sizes)
        x = np.clip(exogenous, 0, self.forecasts.sizes - 1).astype(np.int64)
        return look_ahead(self.models, self.forecasts, self.discount, n, x)
