"""Exact planning in models that can be enumerated.

Modified policy iteration on V(x, n): the expectation over x' is applied factor by factor
(``expectation``), the backup over n' and the maximum over actions in one kernel (``sweeps``); in
between, sweeps with fixed actions are extrapolated (``convergence``), until the bounds are close
enough.

The bounds are those of MacQueen and Porteus, for each x apart. Let ``V' = T V`` be a sweep with the
best actions, pi the policy that took them, and ``d = V' - V``. Between least(x) and largest(x) lie
the d of all states (x, n). Then in every state

    V' + G least <= V^pi <= V* <= V' + G largest,    G = discount P + discount^2 P^2 + ...,

because x moves by P(x'|x) whatever is done. So pi loses at most ``G (largest - least)``, and
the middle of the two bounds is within half of that of V*. Changes that are the same for all n make
no difference (``convergence``). A terminal state is a state like the others, one that pays
nothing and leads to itself: its d is zero and counts.

Rounding is part of it: where a sweep is off by up to r, everything above is by r / (1 - discount).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

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
from planners.core.arrays import Floats
from planners.core.planner import Plan, check_problem
from planners.discretization.bins import MAX_SINGLE_VALUES
from planners.discretization.coarse import with_values
from planners.reduced.reduced_mdp import tabulate
from planners.reduced.survey import can_enumerate
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.indexing import (
    TooLargeError,
    format_count,
    num_endogenous_states,
    num_exogenous_states,
)
from planners.value_iteration.convergence import (
    EXTRAPOLATION_ARRAYS,
    SUM_ARRAYS,
    extrapolate,
    most_ahead,
    sum_ahead,
)
from planners.value_iteration.elimination import eliminate
from planners.value_iteration.successors import rows_bytes
from planners.value_iteration.sweeps import Sweeps, action_type
from planners.value_iteration.tabular_policy import TabularPolicy

#: Sweeps with fixed actions end once the span of their changes is below this share of the span
#: that the last sweep with the best actions had.
SPAN_SHARE = 0.2

#: Sweeps with fixed actions also end once the span of their changes is below this share of the span
#: that meets the tolerance, since the next sweep with the best actions may enlarge it a little.
TOLERANCE_SHARE = 0.7

#: If more than this share of the states got other actions, so many sweeps with fixed actions
#: follow at most: V of actions that do not last need not be exact.
FEW_SWEEPS = (0.1, 1), (0.01, 3)

#: Most sweeps with fixed actions from one extrapolation to the next.
LONGEST_CYCLE_SWEEPS = 5

#: Fewest sweeps between two extrapolations. V is not extrapolated if there is no memory to record
#: the changes of that many sweeps.
SHORTEST_CYCLE_SWEEPS = 3

#: States from which on a sweep takes long enough to be shared by threads.
THREADED_STATES = 1 << 18

#: Sweeps with the best actions in a row without a new smallest residual, after which extrapolation
#: pauses until there is one.
MAX_SETBACKS = 3

#: Exogenous variables that a model and its warm start may have together: NumPy limits the axes of
#: an array, and a model with more could not be enumerated anyway.
MAX_WARM_VARIABLES = 30


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
        dtype: of V, float64 or float32. The latter takes half the memory and is a little faster;
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
        over_x = (2 * item + 8 * SUM_ARRAYS) * num_exogenous_states(mdp) + 16 * largest
        return (states + rewards) * item + actions + tables + over_x

    def attainable_tolerance(self, mdp: FactoredMDP) -> float:
        """A tolerance that rounding in this ``dtype`` lets a plan reach, whatever V may be.

        Plans may do better, as V is rarely as large as the rewards allow: ``Plan.loss_bound``.
        """
        run = _Run(self, mdp, Clock(None), self.memory_limit - self._refuse_large(mdp))
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
        if not isinstance(mdp, FactoredMDP) and (mdp.exogenous_sizes <= MAX_SINGLE_VALUES).all():
            self._refuse_large(mdp)  # before anything is estimated
        model = tabulate(mdp, as_generator("rng", rng, default=0))
        run = _Run(self, model, clock, self.memory_limit - self._refuse_large(model))
        try:
            with clock.above():
                run.build()
                run.iterate(warm_start)
        except OutOfTimeError:
            run.out_of_time = True
        plan = run.finish()
        return plan if model is mdp else with_values(plan, model)

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
    try:
        found = None if dtype is None else np.dtype(dtype)
    except TypeError:
        found = None
    # NumPy takes None, and so a comparison with None, for float64.
    if found is None or found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ArgumentError(f"dtype is float64 or float32, not {found or repr(dtype)}")
    return found


class _Run:
    """One plan in the making.

    The middle of the bounds is V plus a number for each x, the ``offset`` plus what is in
    ``exogenous_part``. Without terminal states, whose value is known, the ``offset`` need not be
    added to V: subtracting ``shift`` from every reward lowers V* by ``shift / (1 - discount)``, so
    changing the shift does the same. That keeps V near zero, where floating-point numbers are
    densest.
    """

    def __init__(
        self, settings: ValueIteration, mdp: FactoredMDP, clock: Clock, spare_bytes: float
    ) -> None:
        self.settings, self.mdp, self.clock = settings, mdp, clock
        self.spare_bytes, self.dtype = spare_bytes, settings.dtype
        self.shape = (num_exogenous_states(mdp), mdp.num_endogenous_states)
        self.has_ends = bool(mdp.terminal.any())
        self.gain = mdp.discount / (1.0 - mdp.discount)
        self.reward_range, self.reward_size = _reward_sizes(mdp)
        self.shift = 0.0 if self.has_ends else self._rounded(sum(self.reward_range) / 2.0)
        self.offset = 0.0
        self.middle = 0.0  # of the changes of the last sweep
        self.iterations = 0
        self.policy: NDArray[Any] | None = None  # the actions of the last whole sweep
        self.exogenous_part: Floats | None = None  # (X,), once it is known
        self.converged = self.out_of_time = False
        # Before the first sweep: V = 0, and any policy at all.
        self.residual = self.reward_range[1] - self.reward_range[0]
        self.loss_bound = self.residual / (1.0 - mdp.discount)

    def build(self) -> None:
        """Bring the tables into the form in which the sweeps read them."""
        # Threads share a sweep if it is long.
        threads = get_num_threads() if math.prod(self.shape) >= THREADED_STATES else 1
        self.sweeps = Sweeps(self.mdp, self.dtype, threads)
        self.values, self.ranges = self.sweeps.values, self.sweeps.ranges

    def iterate(self, warm_start: Plan | None) -> None:
        """Sweep until the tolerance is reached, or nothing more can be."""
        actions, tolerance = self._allocate(warm_start), self.settings.tolerance
        max_sweeps = self.settings.max_iterations or math.inf
        best, since, converged = math.inf, 0, False
        # Without rounding the span shrinks by the discount with every sweep, or faster.
        patience = 10 + 3.0 / (1.0 - self.mdp.discount)
        while self.iterations < max_sweeps:
            # Two action arrays are written in turn: one is whole if time runs out in a sweep.
            actions.reverse()
            self._tick()
            self.sweeps.improve(self.shift, actions[0])
            span = self._swept()
            self.policy = actions[0]
            size = max(-float(self.values.min()), float(self.values.max()))
            size += float(np.abs(self.ranges).max())  # of the largest V before, at most
            rounding = 2.0 * self.rounding(size) / (1.0 - self.mdp.discount)
            self.residual = span
            self.loss_bound = rounding + most_ahead(
                self.ranges[1] - self.ranges[0],
                self.sweeps.expectation,
                self.mdp.discount,
                tolerance - rounding,
            )
            converged = self.loss_bound <= tolerance
            best, since = (span, 0) if span < best else (best, since + 1)
            if converged or self.gain * span <= rounding or since > patience:
                break
            goal = TOLERANCE_SHARE * (tolerance - rounding) / self.gain
            # Few sweeps with fixed actions while many states get other actions.
            others = np.count_nonzero(actions[0] != actions[1]) / actions[0].size
            limits = (limit for share, limit in FEW_SWEEPS if others > share)
            count = min([self.settings.inner_sweeps, max_sweeps - self.iterations, *limits])
            enough = max(SPAN_SHARE * span, goal)
            self._evaluate(actions, int(count), enough, extrapolating=since < MAX_SETBACKS)
        self._add_exogenous_part()
        self.converged = converged

    def _add_exogenous_part(self) -> None:
        """Find the middle of the bounds, as closely as the bounds are close to the tolerance."""
        middle = self.ranges.mean(axis=0, dtype=np.float64)
        middle -= self.middle
        tolerance = self.settings.tolerance
        self.exogenous_part = sum_ahead(
            middle,
            self.sweeps.expectation,
            self.mdp.discount,
            max(abs(tolerance - self.loss_bound) / 4.0, 1e-6 * tolerance),
            roomy=self.changes.size > 0
            or self.spare_bytes > 8 * EXTRAPOLATION_ARRAYS * len(middle),
        )

    def _allocate(self, warm_start: Plan | None) -> list[NDArray[Any]]:
        """Arrays for all states; returned are two for actions."""
        shape, states, nothing = self.shape, math.prod(self.shape), (0, self.shape[1])
        if warm_start is not None:
            self._warm_up(warm_start)
            self._tick()
        # What makes sweeps with fixed actions faster, then fewer, is kept if there is room.
        useful = self.settings.inner_sweeps and self.sweeps.model.successors.longest_list == 1
        room = self.spare_bytes if useful else 0.0
        room -= states * (self.dtype.itemsize + 4)
        if room >= 0:
            self.sweeps.keep()
        cycle = min(LONGEST_CYCLE_SWEEPS, int(room // (states * self.dtype.itemsize)))
        recorded = shape if cycle >= SHORTEST_CYCLE_SWEEPS else nothing
        self.changes = np.empty((max(cycle, SHORTEST_CYCLE_SWEEPS), *recorded), dtype=self.dtype)
        return [np.zeros(shape, dtype=action_type(self.mdp)) for _ in range(2)]

    def _warm_up(self, plan: Plan) -> None:
        """Start from the values of another plan, if they fit, instead of from zero."""
        mdp, values = self.mdp, self.values
        known = _values_over(mdp, plan)
        if known is None:
            return
        tensor = values.reshape(*(int(size) for size in mdp.exogenous_sizes), values.shape[1])
        dropped = tuple(range(known.ndim - tensor.ndim))
        with np.errstate(over="ignore", invalid="ignore"):
            if dropped and known.shape[len(dropped) :] == tensor.shape:
                np.mean(known, axis=dropped, dtype=self.dtype, out=tensor)  # without a copy
            else:
                tensor[...] = np.mean(known, axis=dropped, dtype=self.dtype) if dropped else known
        # V* lies between the extreme rewards over (1 - discount); clipping V there cannot hurt.
        low, high = (reward / (1.0 - mdp.discount) for reward in self.reward_range)
        np.clip(values, low, high, out=values)
        low, high = float(values.min()), float(values.max())
        if math.isnan(low):
            values[:] = 0.0
        elif self.has_ends:
            values[:, mdp.terminal] = 0.0
        else:
            self.shift = self._rounded((1.0 - mdp.discount) * (low + high) / 2.0)
            values -= self.dtype.type(self.shift / (1.0 - mdp.discount))

    def _evaluate(
        self, actions: list[NDArray[Any]], count: int, enough: float, *, extrapolating: bool
    ) -> None:
        """Sweeps with these actions, until the span of their changes is small enough."""
        for k in range(count):
            place = k % len(self.changes)
            self._tick()
            self.sweeps.follow(self.shift, actions[0], self.changes[place])
            if self._swept() <= enough:
                return
            if extrapolating and self.changes.size and place == len(self.changes) - 1:
                extrapolate(self.values, self.changes, up_to_functions_of_x=not self.has_ends)

    def _swept(self) -> float:
        """Correct V for the sweep that was made: the most that changes at the same x differ by."""
        ranges = self.ranges
        self.iterations += 1
        self.middle = (float(ranges[0].min()) + float(ranges[1].max())) / 2.0
        correction = self.mdp.discount * self.middle
        if self.has_ends:
            self.offset = correction / (1.0 - self.mdp.discount)
        else:
            self.shift = self._rounded(self.shift + correction)
            self.offset = self.shift / (1.0 - self.mdp.discount)
        return float((ranges[1] - ranges[0]).max())

    def _tick(self) -> None:
        self.clock.tick(
            lambda: f"sweep {self.iterations + 1}, the policy may lose {self.loss_bound:.2g}"
        )

    def _rounded(self, number: float) -> float:
        return float(self.dtype.type(number))

    def rounding(self, size: float) -> float:
        """How far off a sweep can be when no V is larger than ``size``.

        Each sum of k products is off by at most k + 2 roundings of its largest summand; this
        adds them up along everything that goes into one element.
        """
        rows = self.sweeps.model.successors
        sums = sum(step.entries + 2 for step in self.sweeps.expectation.elimination.steps)
        sums += rows.longest_list * (rows.longest_row + 3) + 4
        rewards = (len(self.mdp.scoped_terms) + 3) * (self.reward_size + abs(self.shift))
        return float(np.finfo(self.dtype).eps / 2) * (sums * size + rewards)

    def finish(self) -> Plan:
        mdp = self.mdp
        values: Any = None
        if self.policy is None:  # not one sweep
            self.policy = np.zeros(self.shape, dtype=action_type(mdp))
        else:
            values = self.values
            values += self.dtype.type(self.offset)
            if self.exogenous_part is not None:
                values += self.exogenous_part.astype(self.dtype)[:, None]
            values[:, mdp.terminal] = 0.0
        return Plan(
            policy=TabularPolicy.planned_in(mdp, self.policy),
            values=values,
            converged=self.converged,
            residual=self.residual,
            iterations=self.iterations,
            seconds=self.clock.seconds(),
            loss_bound=self.loss_bound,
            method="value iteration",
            out_of_time=self.out_of_time,
        )


def _values_over(mdp: FactoredMDP, plan: Plan) -> Floats | None:
    """The values of a plan, laid out for the states of ``mdp``; None if they do not fit.

    Returns:
        First an axis for each variable that ``mdp`` does not have, then one for each that it has,
        in its order and of length 1 where the plan does not know it, then one for n.
    """
    policy, values = plan.policy, plan.values
    if values is None or not isinstance(policy, TabularPolicy):
        return None
    known = dict(zip(policy.mask, policy.exogenous_sizes.tolist(), strict=True))
    wanted = dict(zip(mdp.exogenous_names, mdp.exogenous_sizes.tolist(), strict=True))
    if (
        policy.endogenous_sizes.tolist() != mdp.endogenous_sizes.tolist()
        or values.shape != policy.actions.shape
        or not np.issubdtype(values.dtype, np.floating)
        or len({*known, *wanted}) > MAX_WARM_VARIABLES
        or any(wanted.get(name, size) != size for name, size in known.items())
    ):
        return None
    dropped = [name for name in known if name not in wanted]
    order = [*dropped, *(name for name in wanted if name in known)]
    tensor = values.reshape(*known.values(), values.shape[1])
    tensor = tensor.transpose(*(list(known).index(name) for name in order), len(known))
    shape = [*(known[name] for name in dropped), *(known.get(name, 1) for name in wanted)]
    return tensor.reshape(*shape, values.shape[1])


def _reward_sizes(mdp: FactoredMDP) -> tuple[tuple[float, float], float]:
    """The least and the largest reward of any state, and the most that terms can add up to."""
    lows, highs = [], []  # (N, A) of each table
    for table in (mdp.base_reward[None], *mdp.scoped_terms.values()):
        lows.append(table.min(axis=0))
        highs.append(table.max(axis=0))
    size = float(np.maximum(-np.array(lows), highs).max(axis=(1, 2), initial=0.0).sum())
    if not math.isfinite(size):
        raise ArgumentError("the rewards are not all finite")
    alive = ~mdp.terminal
    ended = 0.0 if mdp.terminal.any() else math.inf  # a terminal state pays nothing
    low = np.sum(lows, axis=0)[alive].min(initial=ended)
    high = np.sum(highs, axis=0)[alive].max(initial=-ended)
    return (float(low), float(high)), size
