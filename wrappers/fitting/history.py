"""The steps of a learner, and its reports meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from typing import Any, Literal

from exo_envs.core.arguments import check_real
from exo_envs.core.errors import require
from planners.core.evaluation import Estimate
from planners.core.policy import Mask

Role = Literal["pays", "moves", "predicts"]
Action = Literal["find", "start", "add", "drop", "try"]

#: A part of the reason of a step whose plan was cut short.
OUT_OF_TIME = "ran out of time"
#: What is said where fewer variables win because more of them cannot be planned with exactly.
SWITCHED = "with these variables the planner had to switch from exact plans to forecasts"


@dataclass(frozen=True, kw_only=True)
class Record:
    """One step of a learner.

    Attributes:
        action: "find" if a test says that the candidate matters, "start" for the first mask whose
            worth is estimated, "add" and "drop" for a change of the mask, "try" for a mask looked
            at for its own sake.
        candidate: the variables it is about.
        accepted: whether the mask is now the one that was tried.
        reason: why, for people.
        role: what was found of the candidate: that it "pays", "moves" n or "predicts" another one;
            None if the step found nothing of the kind.
        target: the variable that the candidate predicts.
        mask: the learner's mask after the step.
        score: what spoke for the candidate: information in nats, a variance of rewards, or the
            share of pairs (n, a) that it moves.
        p_value: of the test that it passed, over all candidates.
        value: the estimate of J of the mask that was tried.
        half_width: half of the 95 % interval of J, and of the mean return.
        mean_return: of that mask's policy in the full model.
        gain: J of the tried mask less J of the mask before, paired where both played the same
            trajectories.
        gain_error: its standard error.
        plan_seconds: how long planning took.
        converged: whether that plan converged. If it did not because its time was up, ``reason``
            says so: the mask may be worth more than ``value`` says.
        samples: what the model had been asked for so far, in x', n' and rewards.
        seconds: since learning began.
    """

    action: Action
    candidate: Mask
    accepted: bool
    reason: str
    mask: Mask
    role: Role | None = None
    target: str | None = None
    score: float | None = None
    p_value: float | None = None
    value: float | None = None
    half_width: float | None = None
    mean_return: float | None = None
    gain: float | None = None
    gain_error: float | None = None
    plan_seconds: float | None = None
    converged: bool | None = None
    samples: int = 0
    seconds: float = 0.0

    def worth(self, cost_weight: float) -> Estimate:
        """The return that the candidates of "add" or "drop" bring, before λ is taken off for each.

        Records have the change of J; of what is dropped the worth is the loss. It is right if the
        cost of a mask is its size.
        """
        gain, error = self.gain or 0.0, self.gain_error or 0.0
        cost = check_real("cost_weight", cost_weight) * len(self.candidate)
        return Estimate(gain + cost if self.action == "add" else cost - gain, error)


@dataclass(frozen=True)
class Progress:
    """A report to the callback.

    Attributes:
        stage: what goes on, for people.
        seconds: since learning began.
        record: the step that was just finished, or None within a step.
        done: of ``total`` parts of the stage, where they can be counted.
        total: how many there are; None if that is not known.
        detail: how far a plan is that takes more than a second, for people.
    """

    stage: str
    seconds: float
    record: Record | None = None
    done: int = 0
    total: int | None = None
    detail: str = ""


Callback = Callable[[Progress], object]


class History(list[Record]):
    """The steps of a learner, in order."""

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` with one row for each step (needs pandas)."""
        pd = require("pandas", "history_.to_pandas() needs pandas: pip install pandas")
        names = [field.name for field in fields(Record)]
        return pd.DataFrame([astuple(step) for step in self], None, names)
