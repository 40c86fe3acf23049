"""What reports ask of a learner, whatever its class."""

from __future__ import annotations

from typing import Protocol

from planners.core.policy import Mask
from planners.worth import Cost
from wrappers.fitting.history import Callback, History
from wrappers.fitting.study import Study


class Prices(Protocol):
    """The hyper-parameters that one fit looks at."""

    cost_weight: float
    cost: Cost
    time_limit: float | None
    callback: Callback | None


class FittedLearner(Prices, Protocol):
    """A learner after ``fit``: its prices and what it found; see :class:`wrappers.MaskLearner`."""

    mask_: Mask
    history_: History
    status_: str
    study_: Study
    feature_names_in_: tuple[str, ...]
