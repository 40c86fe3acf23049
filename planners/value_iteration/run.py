"""One run of value iteration: its sweeps, its bounds, and its clock.

The bounds are those of MacQueen and Porteus, for each x apart. Let ``V' = T V`` be a sweep with the
best actions, pi the policy that took them, and ``d = V' - V``. Between least(x) and largest(x) lie
the d of all states (x, n). Then in every state

    V' + G least <= V^pi <= V* <= V' + G largest,    G = discount P + discount^2 P^2 + ...,

because x moves by P(x'|x) whatever is done. So pi loses at most ``G (largest - least)``, and
the middle of the two bounds is within half of that of V*. Changes that are the same for all n make
no difference (``exogenous_part``). A terminal state is a state like the others, one that pays
nothing and leads to itself: its d is zero and counts.

Rounding is part of it: where a sweep is off by up to r, everything above is by r / (1 - discount).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

from exo_envs.core.clock import Clock
from exo_envs.core.mdp import ExoMDP
from planners.core.arrays import Floats
from planners.core.planner import Plan
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.indexing import num_exogenous_states
from planners.value_iteration.endogenous_part import MAX_ENDOGENOUS, Snapshot, part_ahead
from planners.value_iteration.exogenous_part import MORE_ARRAYS, most_ahead, sum_ahead
from planners.value_iteration.extrapolation import extrapolate
from planners.value_iteration.preparation import prepare, reward_sizes
from planners.value_iteration.sweeps import Change, Drift, KeptActions, sweep, sweep_kept
from planners.value_iteration.tabular_policy import TabularPolicy
from planners.value_iteration.team import Team
from planners.value_iteration.warm_start import values_over

if TYPE_CHECKING:
    from planners.value_iteration.planner import ValueIteration

#: Sweeps with fixed actions end once the span of their changes is below this share of the span
#: that the last sweep with the best actions had.
SPAN_SHARE = 0.2

#: Sweeps with fixed actions also end once the span of their changes is below this share of the span
#: that meets the tolerance, since the next sweep with the best actions may enlarge it a little.
TOLERANCE_SHARE = 0.7

#: If more than this share of the states got other actions, so many sweeps with fixed actions
#: follow at most: V of actions that do not last need not be exact.
FEW_SWEEPS = (0.1, 1), (0.01, 3)

#: If a sweep with fixed actions changes V by more than this share of what the last one did, it is
#: looked for a part of the changes that depends on n alone.
SLOW = 0.7

#: Most sweeps with fixed actions from one extrapolation to the next.
LONGEST_CYCLE = 8

#: Fewest sweeps between two extrapolations. V is not extrapolated if there is no memory to record
#: the changes of that many sweeps.
SHORTEST_CYCLE = 3

#: A run that another one goes on from ends once the span of the changes is this many times the
#: distance between neighbouring numbers of its type, which rounding keeps it from going far below.
ROUGH_STEPS = 32

#: States from which on a sweep takes long enough to be shared by threads.
THREADED_STATES = 1 << 18

#: Sweeps with the best actions in a row without a new smallest residual, after which extrapolation
#: pauses until there is one.
MAX_SETBACKS = 3


def action_type(mdp: ExoMDP) -> np.dtype[Any]:
    """The smallest type that holds the actions."""
    return np.min_scalar_type(mdp.num_actions - 1)


@dataclass(eq=False)
class Run:
    """One plan in the making.

    The middle of the bounds is V plus a number for each x, the ``offset`` plus what is in
    ``exogenous_part``. Without terminal states, whose
    value is known, the ``offset`` need not be added to V: subtracting ``shift`` from every reward
    lowers V* by ``shift / (1 - discount)``, so changing the shift does the same. That keeps
    V near zero, where floating-point numbers are densest.
    """

    mdp: FactoredMDP
    clock: Clock
    settings: ValueIteration
    spare_bytes: float
    warm_start: Plan | None = None
    sweeps: int = 0
    rough: bool = False  # whether another run goes on from here in a wider type
    offset: float = 0.0
    shift: float = 0.0
    drift: float = 0.0  # see the Drift of the sweeps
    reach: float = 0.0  # what no V has exceeded so far
    blank: bool = True  # V is zero everywhere
    size: float = 0.0  # of the largest V
    converged: bool = False
    out_of_time: bool = False
    policy: NDArray[Any] | None = None  # the actions of the last whole sweep
    others: float = 1.0  # the share of states that got other actions
    exogenous_part: Floats | None = None  # (X,), once it is known

    def __post_init__(self) -> None:
        self.dtype = self.settings.dtype
        self.max_sweeps = self.settings.max_iterations or math.inf
        self.reward_range, self.reward_size = reward_sizes(self.mdp)
        if not self.mdp.terminal.any():
            self.shift = float(self.dtype.type(sum(self.reward_range) / 2.0))
        # Before the first sweep: V = 0, and any policy at all.
        self.residual = self.reward_range[1] - self.reward_range[0]
        self.loss_bound = self.residual / (1.0 - self.mdp.discount)

    def build(self) -> None:
        """Allocate, and bring the tables into the form in which the sweeps read them."""
        self.model, self.elimination, self.expectation = prepare(self.mdp, self.dtype, self._tick)
        self.rows = self.model.successors

    def iterate(self) -> None:
        """Sweep until the tolerance is reached, or nothing more can be."""
        with Team(self._threads()) as self.team:
            self._iterate()

    def _threads(self) -> int:
        """How many threads share a sweep: one if it is short, or without room for more."""
        if math.prod(self.model.sizes.tolist()) * len(self.model.terminal) < THREADED_STATES:
            return 1
        each = self.expectation.thread_bytes
        threads = min(get_num_threads(), 1 + int(max(self.spare_bytes, 0.0) // max(each, 1)))
        self.spare_bytes -= (threads - 1) * each
        self.expectation.make_room(threads)
        return threads

    def _iterate(self) -> None:
        actions, tolerance = self._allocate(), self.settings.tolerance
        gain = self.mdp.discount / (1.0 - self.mdp.discount)
        best, since, converged = math.inf, 0, False
        # Without rounding the span shrinks by the discount with every sweep, or faster.
        patience = MAX_SETBACKS if self.rough else 10 + 3.0 / (1.0 - self.mdp.discount)
        while self.sweeps < self.max_sweeps:
            # Two action arrays are written in turn: one is whole if time runs out in a sweep.
            actions.reverse()
            change = self._sweep(actions, improving=True)
            self.policy = actions[0]
            span = change.widest
            before = self.size + max(-change.least, change.largest)  # the largest V, at most
            rounding = 2.0 * self.rounding(before) / (1.0 - self.mdp.discount)
            self.residual = span
            self.loss_bound = self._most_ahead(span, tolerance - rounding) + rounding
            converged = self.loss_bound <= tolerance
            best, since = (span, 0) if span < best else (best, since + 1)
            goal, stop = tolerance - rounding, rounding
            if self.rough:  # what another run goes on from may be better than this one can prove
                goal = stop = max(tolerance, gain * ROUGH_STEPS * self._step())
            if converged or gain * span <= stop or since > patience:
                break
            enough = max(SPAN_SHARE * span, TOLERANCE_SHARE * goal / gain)
            self._evaluate(actions, enough, extrapolating=since < MAX_SETBACKS)
        if not self.rough:
            self._add_exogenous_part()
        self.converged = converged

    def _most_ahead(self, span: float, enough: float) -> float:
        """What the policy loses at most, without rounding, when the widest range is ``span``."""
        gain = self.mdp.discount / (1.0 - self.mdp.discount)
        if gain * span > enough:
            widths = self.ranges[1] - self.ranges[0]
            if gain * float(widths.mean()) < enough:
                return most_ahead(widths, self.expectation, self.mdp.discount, enough)
        return gain * span

    def _add_exogenous_part(self) -> None:
        """Find the middle of the bounds, as closely as the bounds are close to the tolerance."""
        middle = self.ranges.mean(axis=0, dtype=np.float64)
        middle -= self.middle
        tolerance = self.settings.tolerance
        self.exogenous_part = sum_ahead(
            middle,
            self.expectation,
            self.mdp.discount,
            max(abs(tolerance - self.loss_bound) / 4.0, 1e-6 * tolerance),
            self._tick,
            roomy=self.changes.size > 0 or self.spare_bytes > 8 * MORE_ARRAYS * len(middle),
        )

    def _allocate(self) -> list[NDArray[Any]]:
        """Arrays for all states; returned are two for actions."""
        shape = (num_exogenous_states(self.mdp), self.mdp.num_endogenous_states)
        states, nothing = math.prod(shape), (0, shape[1])
        self.values = np.zeros(shape, dtype=self.dtype)
        self.ranges = np.zeros((2, shape[0]), dtype=self.dtype)
        if self.warm_start is not None:
            self._warm_up(self.warm_start)
            self._tick()
        # What makes sweeps with fixed actions faster, then fewer, is kept if there is room.
        useful = self.settings.inner_sweeps and self.rows.longest_list == 1
        room = self.spare_bytes if useful else 0.0
        room -= states * (self.dtype.itemsize + 4)
        kept = shape if room >= 0 else nothing
        certain = shape if room >= 4 * states else nothing
        room -= 4 * math.prod(certain)
        found = np.empty(kept, self.dtype), np.empty(kept, np.uint32), np.zeros(certain, np.float32)
        entries: Any = (self.rows.entry_starts, self.rows.targets, self.rows.probabilities)
        self.kept = KeptActions(self.model.discount, self.model.terminal, *found, *entries)
        self.cycle = min(LONGEST_CYCLE, int(room // (states * self.dtype.itemsize)))
        recorded = shape if self.cycle >= SHORTEST_CYCLE else nothing
        self.cycle = max(self.cycle, SHORTEST_CYCLE)
        self.changes = np.empty((self.cycle, *recorded), dtype=self.dtype)
        return [np.zeros(shape, dtype=action_type(self.mdp)) for _ in range(2)]

    def _warm_up(self, plan: Plan) -> None:
        """Start from the values of another plan, if they fit, instead of from zero."""
        mdp, values = self.mdp, self.values
        known = values_over(mdp, plan)
        if known is None:
            return
        self.blank = False
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
        elif mdp.terminal.any():
            values[:, mdp.terminal] = 0.0
        else:
            self.shift = float(self.dtype.type((1.0 - mdp.discount) * (low + high) / 2.0))
            values -= self.dtype.type(self.shift / (1.0 - mdp.discount))
        self.reach = max(-low, high, high - low, 0.0)

    def _evaluate(self, actions: list[NDArray[Any]], enough: float, *, extrapolating: bool) -> None:
        """Sweeps with these actions, until the span of their changes is small enough."""
        place, last, snapshot = 0, math.inf, None
        patient = not (extrapolating and self.kept.rows.size and self._has_endogenous_part())
        for _ in range(self._worthwhile()):
            if self.sweeps >= self.max_sweeps:
                return
            change = self._sweep(actions, improving=False, place=place)
            if change.widest <= enough:
                return
            place = (place + 1) % self.cycle
            if snapshot is not None:
                patient = not self._add_endogenous_part(snapshot)
                snapshot, last, place = None, math.inf, 0
                continue
            if extrapolating and self.changes.size and place == 0:
                self._tick()
                added = extrapolate(
                    self.values,
                    self.changes,
                    up_to_functions_of_x=not self.mdp.terminal.any(),
                )
                self._move_by(Change(*added))
            elif change.widest > SLOW * last and not patient:
                snapshot = Snapshot.take(self.values)
            last = change.widest

    def _has_endogenous_part(self) -> bool:
        """Whether changes that depend on n alone can be worked out."""
        return self.values.shape[1] <= MAX_ENDOGENOUS and not self.mdp.terminal.any()

    def _add_endogenous_part(self, before: Snapshot) -> bool:
        """Add what depends on n alone of all changes to come; whether there is such a thing."""
        part = part_ahead(before, self.values, self.kept)
        if part is None:
            return False
        self._tick()
        self.values += part.astype(self.dtype)
        least, largest = float(part.min()), float(part.max())
        self._move_by(Change(least, largest, 1.001 * (largest - least)))
        return True

    def _worthwhile(self) -> int:
        """How many sweeps with fixed actions: few while many states get other actions."""
        limits = (limit for share, limit in FEW_SWEEPS if self.others > share)
        return min([self.settings.inner_sweeps, *limits])

    def _sweep(self, actions: list[NDArray[Any]], *, improving: bool, place: int = 0) -> Change:
        """One sweep: the changes of V."""
        values = self.values
        least, largest, widest, others = math.inf, -math.inf, 0.0, 0
        lowest, highest = math.inf, -math.inf
        shift = self.dtype.type(self.shift)
        model, kept, ranges = self.model, self.kept, self.ranges
        # Each of the two values that are compared may have been off then, and may be now.
        drift = Drift(self.drift, self.drift + 4.0 * self.rounding(self.reach))
        best_of = (improving, self.blank, *drift)

        def work(thread: int, units: tuple[int, int]) -> Any:
            chunk = self._expected(thread, units)
            if improving or not kept.rows.size:
                return sweep(model, kept, best_of, shift, chunk, values, tuple(actions), ranges)
            return sweep_kept(tuple(kept), shift, chunk, values, self.changes[place], ranges)

        if not self.blank:
            self.expectation.begin(values, self._tick, self.team)
        for found in self.team.share(self.expectation.units(), work, self._tick):
            least, largest = min(least, float(found[0])), max(largest, float(found[1]))
            widest = max(widest, float(found[2]))
            if improving:
                others += int(found[5])
                lowest, highest = min(lowest, float(found[3])), max(highest, float(found[4]))
        self.blank = False
        self.sweeps += 1
        if improving:
            self.others = others / values.size
        self.size = max(-lowest, highest)  # of a sweep with the best actions
        change = Change(least, largest, widest)
        self._move_by(change)
        self.middle = (least + largest) / 2.0
        correction = self.mdp.discount * self.middle
        if self.mdp.terminal.any():
            self.offset = correction / (1.0 - self.mdp.discount)
        else:
            self.shift = float(self.dtype.type(self.shift + correction))
            self.offset = self.shift / (1.0 - self.mdp.discount)
        return change

    def _move_by(self, change: Change) -> None:
        """Take note of a change of V."""
        self.drift += self.mdp.discount * change.widest
        self.reach += max(-change.least, change.largest)

    def _expected(self, thread: int, units: tuple[int, int]) -> tuple[int, Floats]:
        """A chunk of W; that of a V that is zero everywhere needs no work."""
        if self.blank:
            first, last = (
                unit * (len(self.values) // self.elimination.num_units) for unit in units
            )
            return first, self.values[first:last]
        return self.expectation.chunk(thread, units)

    def _tick(self) -> None:
        self.clock.tick(self._doing)

    def _doing(self) -> str:
        """How far it has come, for people."""
        return f"sweep {self.sweeps + 1}, the policy may lose {self.loss_bound:.2g}"

    def rounding(self, size: float) -> float:
        """How far off a sweep can be when no V is larger than ``size``.

        Each sum of k products is off by at most k + 2 roundings of its largest summand; this
        adds them up along everything that goes into one element.
        """
        sums = sum(step.entries + 2 for step in self.elimination.steps)
        sums += self.rows.longest_list * (self.rows.longest_row + 3) + 4
        rewards = (len(self.mdp.scoped_terms) + 3) * (self.reward_size + abs(self.shift))
        return float(np.finfo(self.dtype).eps / 2) * (sums * size + rewards)

    def _step(self) -> float:
        """The distance between the largest V and the number next to it."""
        return float(np.finfo(self.dtype).eps) * self.size

    def finish(self) -> Plan:
        """What there is to show."""
        mdp = self.mdp
        values: Any = None
        if self.policy is None:  # not one sweep
            shape = (num_exogenous_states(mdp), mdp.num_endogenous_states)
            self.policy = np.zeros(shape, dtype=action_type(mdp))
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
            iterations=self.sweeps,
            seconds=self.clock.seconds(),
            loss_bound=self.loss_bound,
            method="value iteration",
            out_of_time=self.out_of_time,
        )
