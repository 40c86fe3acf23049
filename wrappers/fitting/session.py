"""One call of ``fit``: its study and prices, its deadline and callback, and its records."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

from exo_envs.core.batches import as_mask
from exo_envs.core.clock import Clock, OutOfTimeError
from exo_envs.core.errors import ExoError
from planners.core.evaluation import Estimate
from planners.core.planner import PlanCutShortWarning
from planners.core.policy import Mask, Policy
from planners.worth import Cost, MaskComparison, Objective
from wrappers.fitting.history import OUT_OF_TIME, Action, Callback, History, Progress, Record
from wrappers.fitting.study import Study

#: The share of the time that is left for playing somebody else's environment with the result.
KEPT_FOR_PLAYING = 0.3
#: Seconds between two reports while a plan is made.
REPORT_EVERY = 1.0


class NotFittedError(ExoError, ValueError, AttributeError):
    """A learner was asked for what it found before it was fitted, as in scikit-learn."""


class FittedLearner:
    """The prices of a learner, the limits of one fit, and what it found.

    :class:`wrappers.MaskLearner` says what each of them is.
    """

    cost_weight: float
    cost: Cost
    time_limit: float | None
    callback: Callback | None

    mask_: Mask
    objective_: Objective | None
    policy_: Policy | None
    history_: History
    status_: str
    doubts_: tuple[str, ...]
    seconds_: float
    study_: Study
    feature_names_in_: tuple[str, ...]
    n_features_in_: int


class LearningStoppedWarning(UserWarning):
    """Learning was stopped before it had finished; the mask is the best so far."""


class Session:
    """What the steps of a learner ask and tell, at the learner's prices and within its time.

    The learner takes its steps itself, and tells what they found (:meth:`keep`).

    Attributes:
        study: what is known of the model and its masks.
        history: the steps so far.
        status: "finished" until something else happens; see :class:`wrappers.MaskLearner`.
        known: the last estimate of J for each mask that was looked at.
        doubts: about comparisons, for people.
        warnings: about plans, and about a learner that was stopped.
        cut_short: masks whose plans took longer than one plan may.
        hurried: masks whose plans had less time than that, because learning had.
    """

    def __init__(self, learner: FittedLearner, study: Study, *, plans_later: bool = False) -> None:
        """Start the clock; with ``plans_later`` no plan is made that decides nothing."""
        self.study = study
        self.history, self.status = History(), "finished"
        self.known: dict[Mask, Objective] = {}
        self.doubts: list[str] = []
        self.warnings: list[Warning] = []
        self.cut_short: set[Mask] = set()
        self.hurried: set[Mask] = set()
        self.plans_later = plans_later
        self._time_limit, self._callback = learner.time_limit, learner.callback
        self._price: dict[str, Any] = {"cost_weight": learner.cost_weight, "cost": learner.cost}
        watch = None if self._callback is None else self._watch
        self.clock = Clock(self._time_limit, wall=True, watch=watch)
        self._stage = ""
        self._reported = 0.0  # when the callback was told something, by the clock
        self._estimates = count()  # that have trajectories of their own

    def keep(self, record: Record) -> None:
        """Be told of a step: what it found is the result if learning is stopped from now on."""
        self.history.append(record)
        if self._time_limit is not None and self.study.counted.original is not None:
            self.clock.ends = (1 - KEPT_FOR_PLAYING) * self._time_limit
        self.report(record.reason, record=record)

    # --- what steps ask ---------------------------------------------------------------------

    def objective(
        self, mask: Mask, *, first_look: bool = False, independent: bool = False
    ) -> Objective:
        """*Estimate-Objective* of a mask.

        It is played on the shared trajectories, only on the first of them (``first_look``), or on
        trajectories that nothing else is played on (``independent``).
        """
        evaluator = self.study.evaluator
        scenarios = evaluator.independent_scenarios(next(self._estimates)) if independent else None
        self._announce(mask)
        found = self.known[mask] = evaluator.objective(
            mask, **self._price, scenarios=scenarios, first_look=first_look, in_model=True
        )
        self._notice(found)
        return found

    def glance(self, mask: Mask, *, first_look: bool = False) -> Objective | None:
        """:meth:`objective` where it decides nothing; None if plans are made later."""
        return None if self.plans_later else self.objective(mask, first_look=first_look)

    def compare(self, mask: Mask, other: Mask) -> MaskComparison:
        """J of a mask against J of another one, on the same trajectories."""
        self._announce(mask)
        comparison = self.study.evaluator.compare(mask, other, **self._price)
        self.known[mask] = comparison.objective
        self._notice(comparison.objective, comparison.rival)
        return comparison

    def in_order(self, names: Any) -> Mask:
        return as_mask(self.study.mdp, set(names))

    def _notice(self, *objectives: Objective) -> None:
        """Remember which plans were cut short, and by which limit."""
        for found in objectives:
            if found.plan.out_of_time:
                is_own = self.study.evaluator.keeps(found.plan)
                (self.cut_short if is_own else self.hurried).add(found.mask)

    # --- what is told -----------------------------------------------------------------------

    def report(
        self, stage: str, *, record: Record | None = None, done: int = 0, total: int | None = None
    ) -> None:
        """Tell the callback what goes on.

        Raises:
            OutOfTimeError: if the time limit has passed.
        """
        self._stage = stage
        self._tell(Progress(stage, self.clock.seconds(), record, done, total))
        self.clock.tick()

    def _announce(self, mask: Mask) -> None:
        self.report(f"planning with {len(mask)} variable{'' if len(mask) == 1 else 's'}")

    def _tell(self, progress: Progress) -> None:
        self._reported = math.inf  # a callback that plans itself is not told about that
        if self._callback is not None:
            self._callback(progress)
        self._reported = self.clock.seconds()

    def _watch(self, doing: Callable[[], str]) -> None:
        """Tell the callback how far a plan is, now and then."""
        seconds = self.clock.seconds()
        if seconds >= self._reported + REPORT_EVERY and (detail := doing()):
            self._tell(Progress(self._stage, seconds, detail=detail))

    def record(
        self,
        action: Action,
        candidate: Mask,
        *,
        reason: str,
        mask: Mask,
        accepted: bool = True,
        objective: Objective | None = None,
        gain: Estimate | None = None,
        **evidence: Any,
    ) -> Record:
        """A step; the estimate of J that it made, and its gain over another one, are filled in."""
        if objective is not None:
            # By normal theory: a step is one of many, and the model is not asked for it.
            low, high = Estimate(objective.mean_return, objective.standard_error).interval()
            evidence |= {
                "value": objective.value,
                "half_width": (high - low) / 2,
                "mean_return": objective.mean_return,
                "plan_seconds": objective.plan.seconds,
                "converged": objective.plan.converged,
            }
            if objective.plan.out_of_time:
                reason += f"; its plan {OUT_OF_TIME}"
        if gain is not None:
            evidence |= {"gain": gain.mean, "gain_error": gain.standard_error}
        return Record(
            action=action,
            candidate=candidate,
            accepted=accepted,
            reason=reason,
            mask=mask,
            samples=self.study.samples,
            seconds=self.clock.seconds(),
            **evidence,
        )

    # --- the result -------------------------------------------------------------------------

    def conclude(self, mask: Mask) -> Objective | None:
        """J of the result, within the time that is left; None if nothing is known of it.

        It is planned as well as can be, and played on trajectories that had no part in the choice.
        If learning was stopped, it is what was known by then.
        """
        try:
            found = self._final(mask) if self.status == "finished" else self._as_known(mask)
        except (KeyboardInterrupt, OutOfTimeError) as stopped:
            in_time = isinstance(stopped, KeyboardInterrupt)
            self.status = "interrupted" if in_time else "time limit"
            found = self._as_known(mask)
        with suppress(OutOfTimeError):  # a model may claim another return than was played
            if found is not None and found.disagreement is not None:
                self.doubts.append(found.disagreement)
        self._warn(mask)
        return found

    def _final(self, mask: Mask) -> Objective:
        self._stage = "planning with the mask"
        evaluator, fresh = self.study.evaluator, self.study.evaluator.fresh_scenarios()
        found = evaluator.objective(mask, **self._price, scenarios=fresh, thorough=True)
        self._notice(found)
        return found

    def _as_known(self, mask: Mask) -> Objective | None:
        """J as far as it is known of a mask at which learning was stopped.

        The policy plays somebody else's environment itself in what is left of the time, and is
        planned first if there is none.
        """
        evaluator = self.study.evaluator
        found = self.known.get(mask) or evaluator.known_objective(mask, **self._price)
        if self.study.counted.original is None:
            return found
        self._stage = "playing the environment itself"
        try:
            return evaluator.as_played(found or self.objective(mask, first_look=True))
        except OutOfTimeError:
            return None

    def _warn(self, mask: Mask) -> None:
        own = f"planning_time_limit={self.study.evaluator.time_limit}"
        limits = [(self.cut_short, own)]
        if self.status != "finished":
            self.warnings.append(
                LearningStoppedWarning(
                    f"learning was stopped ({self.status}) after {self.clock.seconds():.1f} s and "
                    f"{len(self.history)} steps; mask_ is the best so far, of {len(mask)} variables"
                )
            )
        if self.status != "time limit":  # else it was said
            limits.append((self.hurried, f"what was left of time_limit={self._time_limit}"))
        for masks, limit in limits:
            if not masks:
                continue
            if self.status == "finished":
                self.status = "plans cut short"
            self.warnings.append(
                PlanCutShortWarning(
                    f"the plans with {len(masks)} of the masks did not converge within {limit} "
                    "seconds; what those masks are worth is not known, so mask_ may have more "
                    "variables than it needs, or lack some"
                )
            )
