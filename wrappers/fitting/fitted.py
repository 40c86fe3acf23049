"""A learner after ``fit``, as reports and files read it, whatever its class."""

from __future__ import annotations

from exo_envs.core.errors import ExoError
from planners.core.policy import Mask, Policy
from planners.worth import Cost, Objective
from wrappers.fitting.history import Callback, History
from wrappers.fitting.study import Study


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
