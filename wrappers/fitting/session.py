"""One call of ``fit``: what is studied, at which prices, for how long, and who wants to know."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

from exo_envs.core.arguments import shown
from exo_envs.core.clock import Clock, OutOfTimeError
from exo_envs.core.errors import ArgumentTypeError
from exo_envs.core.mdp import FloatArray
from planners.core.evaluation import Estimate
from planners.core.policy import Mask
from planners.worth import Comparison, Objective
from wrappers.fitting.fitted import Prices
from wrappers.fitting.history import Action, Progress, Record
from wrappers.fitting.study import Study

#: The share of the time that is left for playing somebody else's environment with the result.
KEPT_FOR_PLAYING = 0.3
#: Seconds between two reports while a plan is made.
REPORT_EVERY = 1.0


class Session:
    """The study, the prices, the clock and the callback of one call of ``fit``."""

    def __init__(self, learner: Prices, study: Study, *, plans_later: bool = False) -> None:
        """Start the clock; with ``plans_later`` no plan is made that decides nothing."""
        self.plans_later = plans_later
        self.study = study
        self.evaluator = study.evaluator
        self.price: dict[str, Any] = {"cost_weight": learner.cost_weight, "cost": learner.cost}
        self.clock = Clock(learner.time_limit, wall=True, watch=self._watch)
        self._end_of_learning = math.inf  # by the clock, once there is something to play
        if learner.time_limit is not None and study.counted.original is not None:
            self._end_of_learning = (1 - KEPT_FOR_PLAYING) * learner.time_limit
        self._is_learning = False
        self.cut_short: set[Mask] = set()  # masks whose plans took longer than one plan may
        self.hurried: set[Mask] = set()  # those whose plans had less time, because learning had
        self._callback = learner.callback
        self._stage = ""
        self._reported = 0.0  # when the callback was told something, by the clock
        self.known: dict[Mask, Objective] = {}  # the last estimate for each mask
        self.doubts: list[str] = []  # about comparisons, for people
        self._estimates = count()  # that have trajectories of their own

    def carry_end(self) -> bool:
        """Go on with a study of the same model with its end in n; False if there is none."""
        study = self.study.with_carried_end()
        if study is None:
            return False
        self.study, self.evaluator = study, study.evaluator
        return True

    def end_learning(self) -> None:
        """From now on there is all of the time, that for playing included."""
        self._is_learning = False

    def report(
        self, stage: str, *, record: Record | None = None, done: int = 0, total: int | None = None
    ) -> None:
        """Tell the callback what goes on.

        Raises:
            OutOfTimeError: if the time limit has passed.
        """
        self._stage = stage
        self._tell(Progress(stage, self.clock.seconds(), record, done, total))
        self._is_learning |= record is not None
        self.clock.tick()

    def _tell(self, progress: Progress) -> None:
        self._reported = math.inf  # a callback that plans itself is not told about that
        if self._callback is not None:
            try:
                self._callback(progress)
            except TypeError as error:
                if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                    raise  # from within the callback, whose own affair it is
                raise ArgumentTypeError(
                    f"callback={shown(self._callback)} cannot be called with a Progress: {error}"
                ) from error
        self._reported = self.clock.seconds()

    def _watch(self, doing: Callable[[], str]) -> None:
        """Tell the callback how far a plan is, now and then; and leave time for playing."""
        seconds = self.clock.seconds()
        if self._is_learning and seconds >= self._end_of_learning:
            raise OutOfTimeError
        if seconds >= self._reported + REPORT_EVERY and (detail := doing()):
            self._tell(Progress(self._stage, seconds, detail=detail))

    def objective(
        self, mask: Mask, *, first_look: bool = False, independent: bool = False
    ) -> Objective:
        """*Estimate-Objective*, at the learner's prices and within its time.

        It is played on the shared trajectories, only on the first of them (``first_look``), or on
        trajectories that nothing else is played on (``independent``).
        """
        scenarios = None
        if independent:
            scenarios = self.evaluator.independent_scenarios(next(self._estimates))
        self._announce(mask)
        settings = {**self.price, "scenarios": scenarios, "first_look": first_look}
        settings |= {"time_limit": self.clock.left(), "in_model": True}
        self.known[mask] = found = self.evaluator.objective(mask, **settings)
        self._notice(found)
        return found

    def glance(self, mask: Mask, *, first_look: bool = False) -> Objective | None:
        """:meth:`objective` where it decides nothing; None if plans are made later."""
        return None if self.plans_later else self.objective(mask, first_look=first_look)

    def compare(self, mask: Mask, other: Mask) -> Comparison:
        """J of a mask against J of another one, at the learner's prices and within its time."""
        self._announce(mask)
        limit = self.clock.left()
        comparison = self.evaluator.compare(mask, other, **self.price, time_limit=limit)
        self.known[mask] = comparison.objective
        self._notice(comparison.objective, comparison.rival)
        return comparison

    def _notice(self, *objectives: Objective) -> None:
        """Remember which plans were cut short, and by which limit."""
        for found in objectives:
            if found.plan.out_of_time:
                is_own = self.evaluator.keeps(found.plan)
                (self.cut_short if is_own else self.hurried).add(found.mask)

    def conclude(self, mask: Mask) -> Objective:
        """*Estimate-Objective* of the result, planned as well as can be.

        It is played on trajectories that had no part in the choice, within the learner's time.
        """
        self._stage = "planning with the mask"
        fresh = self.evaluator.fresh_scenarios()
        settings = {**self.price, "scenarios": fresh, "thorough": True}
        found = self.evaluator.objective(mask, **settings, time_limit=self.clock.left())
        self._notice(found)
        self._doubt_claims(found)
        return found

    def as_played(self, mask: Mask, known: Objective | None) -> Objective | None:
        """What is known of J if learning was stopped.

        The policy plays somebody else's environment itself in what is left of the time, and is
        planned first if there is none; None if there is no time for that.
        """
        if self.study.counted.original is None:
            return known
        self._stage = "playing the environment itself"
        try:
            found = known or self.objective(mask, first_look=True)
            found = self.evaluator.as_played(found)
        except OutOfTimeError:
            return None
        self._doubt_claims(found)
        return found

    def _doubt_claims(self, found: Objective) -> None:
        """Doubt a model that claims another return than was played."""
        with suppress(OutOfTimeError):
            if found.disagreement is not None:
                self.doubts.append(found.disagreement)

    def visits(self, mask: Mask) -> FloatArray:
        """How often the policy of a mask meets each (n, a), planned within the learner's time."""
        return self.evaluator.visits(mask, self.clock.left())

    def in_order(self, names: Any) -> Mask:
        """Variables in the order of the model."""
        wanted = set(names)
        return tuple(name for name in self.study.mdp.exogenous_names if name in wanted)

    def _announce(self, mask: Mask) -> None:
        self.report(f"planning with {len(mask)} variable{'' if len(mask) == 1 else 's'}")

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
                reason += "; its plan ran out of time"
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
