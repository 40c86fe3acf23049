"""An online planner for masks that cannot be enumerated."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import (
    Constraints,
    as_generator,
    check_fields,
    check_flag,
    check_kind,
    check_level,
    check_real,
    optional,
    whole,
    whole_numbers,
)
from exo_envs.core.clock import Clock, OutOfTimeError
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import BoolArray, ExoMDP, IntArray, Variable
from planners.core.arrays import joint_index
from planners.core.evaluation import Scenarios
from planners.core.files import Saved
from planners.core.memory import Memory
from planners.core.observer import as_names
from planners.core.planner import Plan, check_problem
from planners.core.policy import Policy
from planners.discretization.coarse import with_values
from planners.forecasting.additive import AdditiveForecasts, fit_additive, write_additive
from planners.forecasting.compiled_model import (
    Atoms,
    CompiledModel,
    Conditions,
    Lists,
    Models,
    Trees,
    needed_variables,
)
from planners.forecasting.forecast_parents import ForecastParentSearch
from planners.forecasting.forecasts import Forecasts, Rollouts
from planners.forecasting.lookahead import look_ahead
from planners.reduced.reduced_mdp import tabulate
from planners.samples.rollouts import HOLD_OUT
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.ragged import Ragged


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

    constraints: ClassVar[Constraints] = {
        "horizon": optional(whole(1)),
        "num_rollouts": whole(1),
        "max_parents": whole(0),
        "level": check_level,
        "recourse": check_flag,
        "additive": check_flag,
    }

    def __post_init__(self) -> None:
        check_fields(self)

    def plan(
        self,
        mdp: ExoMDP,
        *,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
    ) -> Plan:
        """Fit the forecasts; at the time limit, variables not yet examined forecast themselves.

        The time that Numba takes to compile, on the first use ever, does not count.
        """
        check_problem(mdp)
        whole = Clock(time_limit)
        # Counting takes about as long again as choosing what to count.
        clock = Clock(None if time_limit is None else 0.5 * time_limit)
        rng = as_generator("rng", rng, default=0)
        given, mdp = mdp, tabulate(mdp, rng)
        rollouts, held_out = self._rollouts(mdp, rng)
        horizon = min(self.horizon or mdp.horizon, rollouts.shape[1] - 1)
        sizes, needed = mdp.exogenous_sizes, needed_variables(mdp)
        memory = mdp.memory or Memory()
        search = ForecastParentSearch(rollouts, sizes, self.level, self.max_parents, memory)
        parents: dict[int, tuple[int, ...]] = {}
        with suppress(OutOfTimeError):
            for i in needed:
                clock.tick(lambda: f"forecasts of {len(parents)} of {len(needed)} variables")
                parents[i] = search.parents(i)
        chosen = {i: parents.get(i, ()) for i in needed}
        models = Models.of(mdp, recourse=self.recourse)
        forecasts = Forecasts.fit(rollouts, sizes, chosen, horizon, memory)
        additive, converged = AdditiveForecasts.none(sizes), not self.additive
        if self.additive:
            with suppress(OutOfTimeError), whole.above():
                additive = fit_additive(
                    rollouts, held_out, sizes, models.atoms, chosen, horizon, memory
                )
                converged = True
        policy = ForecastPolicy(
            *Policy.names_of(mdp),
            sizes=tuple(int(size) for size in mdp.endogenous_sizes),
            models=models,
            forecasts=forecasts,
            discount=mdp.discount,
            additive=additive,
            endogenous_names=tuple(variable.name for variable in mdp.endogenous_variables),
        )
        converged = converged and len(parents) == len(needed)
        plan = Plan(
            policy,
            None,
            converged=converged,
            residual=0.0,
            iterations=horizon,
            seconds=whole.seconds(),
            method="forecasts",
            out_of_time=not converged,
        )
        return plan if mdp is given else with_values(plan, mdp)

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

    records = (
        *(AdditiveForecasts, Atoms, CompiledModel, Conditions, Forecasts),
        *(Lists, Models, Ragged, Trees),
    )

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
        additive: AdditiveForecasts,
        endogenous_names: tuple[str, ...] | None = None,
    ) -> None:
        self.sizes = tuple(whole_numbers("sizes", sizes, 1, length=endogenous_size).tolist())
        self.endogenous_names = as_names(endogenous_names, len(self.sizes))
        check_real("discount", discount, 0.0)
        check_kind("models", models, Models)
        check_kind("forecasts", forecasts, Forecasts)
        forecasts.check()
        models.check(forecasts)
        states = math.prod(self.sizes)
        if len(models.now.trees.terminal) != states or discount > 1:
            raise ArgumentError(
                f"the models are not of {states} states, or the discount is above 1"
            )
        if len(forecasts.sizes) != len(mask):
            raise ArgumentError(f"forecasts of {len(forecasts.sizes)} variables, for {len(mask)}")
        variables = [
            *map(Variable, self.endogenous_names, self.sizes),
            *map(Variable, mask, forecasts.sizes.tolist()),
        ]
        super().__init__(mask, full, endogenous_size, variables=variables)
        self.models = models
        self.forecasts = forecasts
        self.discount = discount
        self.additive = additive
        check_kind("additive", self.additive, AdditiveForecasts)
        self.additive.check(forecasts.sizes, forecasts.horizon, len(models.atoms.values))

    def act(self, endogenous: NDArray[np.int64], exogenous: NDArray[np.int64]) -> IntArray:
        """The first action of the best look-ahead."""
        return self.action_values(endogenous, exogenous).argmax(axis=1)

    def probabilities(self, exogenous: IntArray, which: int) -> NDArray[np.float32]:
        """The forecast of the which-th of the variables that are forecast, (B, horizon, size).

        From the tables; where an additive forecast says how probable some values are, the table's
        probabilities of the other values are scaled to what is left.
        """
        anything = np.zeros((*exogenous.shape[:1], self.endogenous_size), dtype=np.int64)
        _, exogenous = self.as_batch(anything, exogenous)
        additive, atoms = self.additive, self.models.atoms
        tables = self.forecasts.probabilities(exogenous, which)
        own = atoms.forecasts[additive.atoms] == which
        if not own.any():
            return tables
        steps, values = additive.steps[own], atoms.values[additive.atoms[own]]
        chances = np.zeros((tables.shape[1] + 1, len(atoms.values), len(tables)), dtype=np.float32)
        write_additive(additive.keep(own), np.asarray(exogenous, dtype=np.int64), chances)
        said, others = np.zeros(tables.shape, dtype=np.float32), tables.copy()
        said[:, steps - 1, values] = chances[steps, additive.atoms[own]].T
        others[:, steps - 1, values] = 0.0
        left = np.maximum(0.0, 1.0 - said.sum(axis=-1, keepdims=True))
        total = others.sum(axis=-1, keepdims=True)
        return said + others * np.where(total > 0, left / np.maximum(total, 1e-30), 0.0)

    def action_values(self, endogenous: Any, exogenous: Any) -> NDArray[np.float64]:
        """What each first action is expected to earn, (B, A).

        Values that a variable cannot have count as its nearest.
        """
        endogenous, exogenous = self.as_batch(endogenous, exogenous)
        n = joint_index(np.clip(endogenous, 0, np.array(self.sizes) - 1), self.sizes)
        x = np.clip(exogenous, 0, self.forecasts.sizes - 1).astype(np.int64)
        return look_ahead(self.models, self.forecasts, self.discount, n, x, self.additive)
