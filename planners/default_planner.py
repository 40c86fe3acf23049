"""A planner that picks a planner."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exo_envs import ExoMDP
from planners.forecasting import ForecastPlanner
from planners.planner import Clock, Plan, Planner, warm_start_for
from planners.reduction import can_enumerate, tabulate
from planners.tables import FactoredMDP, num_endogenous_states
from planners.tree_search import UCT
from planners.value_iteration import ValueIteration


@dataclass(kw_only=True, eq=False)
class DefaultPlanner:
    """Value iteration where it fits, forecasts where only n can be enumerated, else tree search.

    Args:
        max_states: how many states value iteration is asked to sweep at most.
        memory_limit: how many bytes it may take.
        max_endogenous_pairs: how many pairs (n, a) are enumerated at most.
        tolerance: of value iteration; by default its own. It is what the policy may lose in any
            state, so where a few hundred rollouts judge the policy, a good part of their standard
            error does.
        dtype: of value iteration; by default its own.
    """

    max_states: int = 5_000_000
    memory_limit: float = 2e9
    max_endogenous_pairs: int = 100_000
    tolerance: float | None = None
    dtype: type[np.floating[Any]] | None = None

    def __post_init__(self) -> None:
        given: dict[str, Any] = {"tolerance": self.tolerance, "dtype": self.dtype}
        given = {name: value for name, value in given.items() if value is not None}
        self.value_iteration = ValueIteration(memory_limit=self.memory_limit, **given)

    def choose(self, mdp: ExoMDP) -> Planner:
        """The planner for a model of this size."""
        pairs = num_endogenous_states(mdp) * mdp.num_actions
        has_tables = isinstance(mdp, FactoredMDP) or can_enumerate(mdp)
        if pairs > self.max_endogenous_pairs or not has_tables:
            return UCT()
        exact = self.value_iteration
        fits = mdp.num_states <= self.max_states and mdp.discount < 1
        if fits and exact.bytes_needed(mdp) <= exact.memory_limit:
            return exact
        return ForecastPlanner()

    def plan(
        self,
        mdp: ExoMDP,
        *,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
        warm_start: Plan | None = None,
    ) -> Plan:
        """Plan with the planner that :meth:`choose` picks, which is given the ``warm_start``.

        ``Plan.seconds`` and ``time_limit`` cover choosing it and estimating tables, too.
        """
        clock = Clock(time_limit)
        rng = np.random.default_rng(0) if rng is None else rng
        planner = self.choose(mdp)
        if not isinstance(mdp, FactoredMDP) and not isinstance(planner, UCT):
            mdp = tabulate(mdp, rng)
            planner = self.choose(mdp)  # what the tables need is only known now
        start = warm_start_for(planner, warm_start)
        plan = planner.plan(mdp, rng=rng, time_limit=clock.left(), **start)
        return replace(plan, seconds=clock.seconds())
