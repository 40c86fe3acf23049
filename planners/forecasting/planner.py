"""An online planner for masks that cannot be enumerated."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs import ExoMDP
from exo_envs.inputs import check_whole
from exo_envs.mdp import BoolArray, IntArray
from planners.arrays import joint_index
from planners.evaluation import Scenarios
from planners.files import Saved
from planners.forecasting.additive import AdditiveForecasts, fit_additive, write_additive
from planners.forecasting.compiled_model import CompiledModel, needed_variables
from planners.forecasting.forecast_parents import ForecastParentSearch
from planners.forecasting.forecasts import Forecasts, Rollouts
from planners.forecasting.lookahead import Models, look_ahead
from planners.information import HOLD_OUT
from planners.memory import MaskMemory
from planners.planner import Clock, OutOfTimeError, Plan
from planners.policy import Policy
from planners.reduction import tabulate
from planners.tables import FactoredMDP


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
    dynamics is not lost here. From a model without rollouts they are drawn. One rollout in eight
    decides where the first steps are better forecast from all variables at once, by forecasts that
    are fitted to the others.

    Args:
        horizon: how far it looks ahead; by default as far as an episode goes.
        num_rollouts: how many trajectories are drawn from a model that has no rollouts.
        level: of the test for what a forecast looks at.
        max_parents: how many variables a forecast may look at besides its own.
        recourse: whether a later decision is taken to be made once the variables that its actions
            look at are seen, rather than now.
        additive: whether forecasts of the first steps may be sums over all variables, where that
            is better on held-out rollouts; without, all forecasts are tables.
    """

    horizon: int | None = None
    num_rollouts: int = 2000
    level: float = 1e-3
    max_parents: int = 4
    recourse: bool = True
    additive: bool = True

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
        clock, whole = Clock(None if time_limit is None else 0.5 * time_limit), Clock(time_limit)
        rng = np.random.default_rng(0) if rng is None else rng
        mdp = tabulate(mdp, rng)
        rollouts, held_out = self._rollouts(mdp, rng)
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
        models = Models(*CompiledModel.compile(mdp, recourse=self.recourse))
        forecasts = Forecasts.fit(rollouts, sizes, chosen, horizon, memory)
        additive = None
        if self.additive:
            with suppress(OutOfTimeError):
                additive = fit_additive(
                    rollouts, held_out, sizes, models.now, chosen, horizon, memory, whole
                )
        policy = ForecastPolicy(
            *Policy.names_of(mdp),
            sizes=tuple(int(size) for size in mdp.endogenous_sizes),
            models=models,
            forecasts=forecasts,
            discount=mdp.discount,
            additive=additive,
        )
        in_time = additive is not None or not self.additive
        converged, seconds = len(parents) == len(needed) and in_time, clock.seconds()
        return Plan(
            policy,
            None,
            converged=converged,
            residual=0.0,
            iterations=horizon,
            seconds=seconds,
            method="forecasts",
        )

    def _rollouts(self, mdp: FactoredMDP, rng: np.random.Generator) -> tuple[Rollouts, BoolArray]:
        """Those that forecasts are fitted to, and which of them are held out at first."""
        if mdp.data is not None:
            return mdp.data.values, mdp.data.held_out
        drawn = Scenarios.sample(mdp, self.num_rollouts, rng, horizon=mdp.horizon + 1)
        rollouts = np.ascontiguousarray(drawn.exogenous.swapaxes(0, 1))
        kept = len(rollouts) - len(rollouts) // HOLD_OUT
        return rollouts, np.arange(len(rollouts)) >= kept


class ForecastPolicy(Policy, Saved):
    """Looks ahead from each observation with the forecasts of a :class:`ForecastPlanner`."""

    records = (AdditiveForecasts, CompiledModel, Forecasts, Models)

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
        additive: AdditiveForecasts | None = None,
    ) -> None:
        super().__init__(mask, full, endogenous_size)
        self.sizes = sizes
        self.models = models
        self.forecasts = forecasts
        self.discount = discount
        none = AdditiveForecasts.none(forecasts.sizes)
        self.additive = none if additive is None else additive

    def act(self, endogenous: NDArray[np.int64], exogenous: NDArray[np.int64]) -> IntArray:
        """The first action of the best look-ahead."""
        return self.action_values(endogenous, exogenous).argmax(axis=1)

    def probabilities(self, exogenous: IntArray, which: int) -> NDArray[np.float32]:
        """The forecast of the which-th of the variables that are forecast, (B, horizon, size).

        From the tables; where an additive forecast says how probable some values are, the table's
        probabilities of the other values are scaled to what is left.
        """
        additive, tables = self.additive, self.forecasts.probabilities(exogenous, which)
        own = self.models.now.forecasts[additive.atoms] == which
        if not own.any():
            return tables
        x = np.asarray(exogenous, dtype=np.int64)
        steps, values = additive.steps[own], self.models.now.values[additive.atoms[own]]
        chances = np.zeros(
            (tables.shape[1] + 1, len(self.models.now.values), len(x)), dtype=np.float32
        )
        write_additive(additive.keep(own), x, chances)
        said = np.zeros(tables.shape, dtype=np.float32)
        said[:, steps - 1, values] = chances[steps, additive.atoms[own]].T
        others = tables.copy()
        others[:, steps - 1, values] = 0.0
        left = np.maximum(0.0, 1.0 - said.sum(axis=-1, keepdims=True))
        total = others.sum(axis=-1, keepdims=True)
        return said + others * np.where(total > 0, left / np.maximum(total, 1e-30), 0.0)

    def action_values(self, endogenous: Any, exogenous: Any) -> NDArray[np.float64]:
        """What each first action is expected to earn, (B, A).

        Values that a variable cannot have count as its nearest.
        """
        n = joint_index(np.clip(endogenous, 0, np.array(self.sizes) - 1), self.sizes)
        x = np.clip(exogenous, 0, self.forecasts.sizes - 1).astype(np.int64)
        return look_ahead(self.models, self.forecasts, self.discount, n, x, self.additive)
