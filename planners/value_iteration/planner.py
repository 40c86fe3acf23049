"""Exact planning in models that can be enumerated.

Modified policy iteration on V(x, n): the expectation over x' is applied factor by factor
(``expectation``), the backup over n' and the maximum over actions in one kernel (``sweeps``); in
between, sweeps with fixed actions are extrapolated (``extrapolation``), until the bounds of ``run``
are close enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from exo_envs.core.arguments import (
    Constraints,
    as_generator,
    check_fields,
    check_positive,
    optional,
    whole,
)
from exo_envs.core.clock import Clock, OutOfTimeError
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import ExoMDP
from planners.core.planner import Plan, check_problem
from planners.discretization.binned_policy import with_values
from planners.discretization.coarse import MANY_VALUES
from planners.reduced.reduced_mdp import tabulate
from planners.reduced.survey import can_enumerate
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.indexing import (
    TooLargeError,
    format_count,
    num_endogenous_states,
    num_exogenous_states,
)
from planners.value_iteration.elimination import eliminate
from planners.value_iteration.exogenous_part import ARRAYS
from planners.value_iteration.run import Run, action_type
from planners.value_iteration.successors import rows_bytes
from planners.value_iteration.tabular_policy import TabularPolicy

#: States from which on a plan in float64 begins with one in float32.
ROUGH_STATES = 1 << 24


@dataclass(kw_only=True, eq=False)
class ValueIteration:
    """Exact planning by modified policy iteration.

    Plans in any :class:`~planners.FactoredMDP`, and in any other model once its tables have been
    estimated from samples, as long as V fits into memory.

    Args:
        tolerance: the policy may lose this much, in any state, against the best one. The values
            of a plan that converged are right to half of it.
        memory_limit: bytes that a plan may take. What needs more is refused before anything is
            allocated; what is left over makes sweeps faster and fewer.
        dtype: of V, float64 or float32. Sweeps over very many states begin in float32 in any case
            and end in this type. The latter takes half the memory and is a little faster;
            how far it gets is limited by rounding, see :meth:`attainable_tolerance`. A plan
            that cannot reach its tolerance for that reason stops when it can get no further,
            and says so.
        inner_sweeps: after each sweep with the best actions, at most so many with these actions
            fixed, which are cheaper; none gives plain value iteration.
        max_iterations: sweeps of both kinds, at most.
    """

    tolerance: float = 1e-4
    memory_limit: float = 4e9
    dtype: Any = np.float64
    inner_sweeps: int = 32
    max_iterations: int | None = None

    constraints: ClassVar[Constraints] = {
        "tolerance": check_positive,
        "memory_limit": partial(check_positive, unit="bytes"),
        "inner_sweeps": whole(0),
        "max_iterations": optional(whole(1)),
    }

    def __post_init__(self) -> None:
        self.dtype = _float_type(self.dtype)
        check_fields(self)

    def bytes_needed(self, mdp: ExoMDP) -> int:
        """The memory that a plan in ``mdp`` takes at least, in bytes, found without taking it.

        If already V and what has its shape need more than the limit, or if the tables of the model
        are not known yet, that is all that is counted.
        """
        states = num_exogenous_states(mdp) * num_endogenous_states(mdp)
        item = self.dtype.itemsize
        actions = 2 * states * action_type(mdp).itemsize
        at_least = 2 * states * item + actions
        if at_least > self.memory_limit or not isinstance(mdp, FactoredMDP):
            return at_least
        elimination = eliminate(mdp.exogenous_sizes, mdp.factors, mdp.num_endogenous_states)
        rewards = max(1, sum(map(len, mdp.scoped_terms.values()))) * mdp.base_reward.size
        tables = elimination.nbytes(mdp.num_endogenous_states, item)
        tables += rows_bytes(mdp.decision_lists, item)
        largest = max((elimination.size(step.after) for step in elimination.steps), default=0)
        over_x = (2 * item + 8 * ARRAYS) * num_exogenous_states(mdp) + 16 * largest
        return (states + rewards) * item + actions + tables + over_x

    def attainable_tolerance(self, mdp: FactoredMDP) -> float:
        """A tolerance that rounding in this ``dtype`` lets a plan reach, whatever V may be.

        Plans may do better, as V is rarely as large as the rewards allow: ``Plan.loss_bound``.
        """
        run = Run(mdp, Clock(None), self, self.memory_limit - self._refuse_large(mdp))
        run.build()
        size = (run.reward_range[1] - run.reward_range[0]) / (1.0 - mdp.discount)
        return 4.0 * run.rounding(size) / (1.0 - mdp.discount)

    def plan(
        self,
        mdp: ExoMDP,
        *,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
        warm_start: Plan | None = None,
    ) -> Plan:
        """Plan in ``mdp`` for at most ``time_limit`` seconds, everything included but compiling.

        Args:
            mdp: what to plan in; if it is not a FactoredMDP, its tables are estimated first.
            rng: for that estimate.
            time_limit: at the limit the last policy comes back, not converged. If not even one
                sweep was completed, that is action 0 everywhere, without values. The time that
                Numba takes to compile, on the first use ever, does not count.
            warm_start: a plan of value iteration in a similar model, mostly one of a mask that
                has a few variables more or less. V starts from its values: the same for all values
                of a variable that it does not know, the mean over those of a variable that
                ``mdp`` does not have. That only saves sweeps; what is said about the result is
                proven by the last sweep. A plan that does not fit is ignored: one without values,
                or with other sizes of the endogenous variables or of one that both know.

        Raises:
            TooLargeError: it does not fit into ``memory_limit``; nothing was allocated.
            ValueError: the discount is 1, so that V may be infinite.
        """
        check_problem(mdp, warm_start)
        clock = Clock(time_limit)
        if not mdp.discount < 1:
            raise ArgumentError(
                f"value iteration needs a discount below 1, not {mdp.discount!r}; "
                "ForecastPlanner plans up to the horizon and takes any"
            )
        if not isinstance(mdp, FactoredMDP) and (mdp.exogenous_sizes <= MANY_VALUES).all():
            self._refuse_large(mdp)  # before anything is estimated
        model = tabulate(mdp, as_generator("rng", rng, default=0))
        spare_bytes = self.memory_limit - self._refuse_large(model)
        rough = self._plan_roughly(model, clock, spare_bytes, warm_start)
        if rough is None:
            plan = self._run(model, clock, spare_bytes, warm_start)
        else:
            policy = rough.policy
            assert rough.values is not None
            assert isinstance(policy, TabularPolicy)
            taken = rough.values.nbytes + policy.actions.nbytes
            plan = rough
            if not rough.out_of_time:
                room, sweeps = spare_bytes - taken, rough.iterations
                plan = self._run(model, clock, room, rough, sweeps=sweeps)
            if plan.values is None or plan is rough:  # there was no time for a sweep
                values = rough.values.astype(self.dtype)
                plan = replace(rough, values=values, out_of_time=True, seconds=clock.seconds())
        return plan if model is mdp else with_values(plan, model)

    def _run(
        self,
        mdp: FactoredMDP,
        clock: Clock,
        spare_bytes: float,
        warm_start: Plan | None,
        *,
        sweeps: int = 0,
        rough: bool = False,
    ) -> Plan:
        """Sweep until the plan is good enough, or until the time is up."""
        run = Run(mdp, clock, self, spare_bytes, warm_start, sweeps, rough)
        try:
            run.build()
            run.iterate()
        except OutOfTimeError:
            run.out_of_time = True
        return run.finish()

    def _plan_roughly(
        self, mdp: FactoredMDP, clock: Clock, spare_bytes: float, warm_start: Plan | None
    ) -> Plan | None:
        """A large model planned in as far as float32 gets; None if that is not worth it.

        Its sweeps take half the time and half the memory, so that V can be extrapolated where
        there is no room for it in float64.
        """
        states = num_exogenous_states(mdp) * mdp.num_endogenous_states
        taken = states * (4 + action_type(mdp).itemsize)
        if (
            states < ROUGH_STATES
            or self.dtype != np.float64
            or self.max_iterations is not None
            or taken > spare_bytes
        ):
            return None
        rough = replace(self, dtype=np.float32)
        room = self.memory_limit - rough.bytes_needed(mdp)
        plan = rough._run(mdp, clock, room, warm_start, rough=True)
        return None if plan.values is None else replace(plan, converged=False)

    def _refuse_large(self, mdp: ExoMDP) -> int:
        needed = self.bytes_needed(mdp)
        if needed > self.memory_limit:
            raise TooLargeError(
                f"value iteration over X = {format_count(num_exogenous_states(mdp))} joint values "
                f"of x times N = {format_count(num_endogenous_states(mdp))} of n needs "
                f"{format_count(needed)} bytes or more; memory_limit is "
                f"{format_count(int(self.memory_limit))}. Plan with "
                f"{'ForecastPlanner' if can_enumerate(mdp) else 'UCT'}; DefaultPlanner chooses by "
                "size"
            )
        return needed


def _float_type(dtype: Any) -> np.dtype[Any]:
    """One of the two types that V may have."""
    try:
        found = None if dtype is None else np.dtype(dtype)
    except TypeError:
        found = None
    # NumPy takes None, and so a comparison with None, for float64.
    if found is None or found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ArgumentError(f"dtype is float64 or float32, not {found or repr(dtype)}")
    return found
