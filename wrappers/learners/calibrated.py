"""Our mask learner: the aim of the paper's algorithm, by tests and paired comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from exo_envs.core.arguments import Constraints, check_level, whole
from planners.core.policy import Mask
from wrappers.fitting.history import Record
from wrappers.fitting.relevance import Relevance
from wrappers.fitting.session import Session
from wrappers.learners.base import MaskLearner
from wrappers.learners.selection import Selection
from wrappers.reports.doubts import cannot_tell


@dataclass(kw_only=True)
class CalibratedMaskLearner(MaskLearner):
    """Finds what matters by tests that state their level, and keeps what pays its price.

    First all variables that matter are found (:mod:`wrappers.fitting.relevance`): what
    pays, what moves n, and what predicts the mask, XOR pairs included. With ``cost_weight=0`` that
    is the mask. Otherwise a variable stays only if it pays its price, by comparisons of J on shared
    trajectories (:mod:`wrappers.learners.selection`).

    :class:`CorrelationalMaskLearner` is the paper's algorithm with the same aim.

    Args:
        level: of the tests, over all variables and candidates, and of the comparisons of J by
            which variables are added.
        patience: stop trying to drop variables after so many groups of them had to stay.
    """

    level: float = 0.05
    patience: int = 4

    constraints: ClassVar[Constraints] = {
        "patience": whole(1),
        "level": check_level,
    }

    def _study_settings(self) -> dict[str, Any]:
        return {**super()._study_settings(), "level": self.level}

    def _steps(self, session: Session) -> Iterator[Record]:
        mask: Mask = ()
        relevance = Relevance()
        for finding in relevance.search(session.study, session.report):
            mask = session.in_order((*mask, finding.name))
            yield session.record(
                "find",
                (finding.name,),
                reason=finding.reason,
                role=finding.role,
                target=finding.target,
                mask=mask,
                score=finding.score,
                p_value=finding.p_value,
            )
        session.doubts += cannot_tell(session.study, relevance.findings)
        if self.cost_weight > 0:
            selection = Selection(session, relevance, level=self.level, patience=self.patience)
            yield from selection.steps()
        else:
            yield session.record(
                "start",
                mask,
                reason="all that matters",
                mask=mask,
                objective=session.glance(mask, first_look=True),
            )
