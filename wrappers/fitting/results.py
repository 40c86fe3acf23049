"""What learners leave behind, and what is said of it before there is anything."""

from __future__ import annotations

from typing import Any

from exo_envs.core.errors import ExoError
from planners.core.policy import Mask, Policy
from planners.worth import Objective
from wrappers.fitting.history import History
from wrappers.fitting.study import Study

#: Results that are worked out when they are read.
WORKED_OUT = ("cost_of_ignoring_", "reasons_")
#: Results that ``refit`` leaves to whoever reads them.
OF_THE_PLAN = ("objective_", "policy_")


class LearningStoppedWarning(UserWarning):
    """Learning was stopped before it had finished; the mask is the best so far."""


class NotFittedError(ExoError, ValueError, AttributeError):
    """A learner was asked for what it found before it was fitted, as in scikit-learn."""


class Results:
    """What ``fit`` leaves behind."""

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
    _plans_later: bool

    def __getattr__(self, name: str) -> Any:
        """Plan if that was left for later, or say what to do about results that are not there."""
        if name in OF_THE_PLAN and self.__dict__.get("_plans_later", False):
            self._plan_now()
            return self.__dict__[name]
        if name in Results.__annotations__ or name in WORKED_OUT:
            raise NotFittedError(f"{type(self).__name__} has no {name} yet: call fit first")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _plan_now(self) -> None:
        """Work out ``objective_`` and ``policy_``, which were left for later."""
        raise NotImplementedError

    def _require_fit(self) -> None:
        if "mask_" not in self.__dict__:
            raise NotFittedError(f"{type(self).__name__} has no mask yet: call fit first")
