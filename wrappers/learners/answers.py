"""What a fitted learner can be asked about its choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from exo_envs.core.inputs import check_flag
from wrappers.learners.results import Results

if TYPE_CHECKING:
    from wrappers.learners.base import MaskLearner
    from wrappers.learners.explanation import Explanation
    from wrappers.learners.path import MaskPath


class Answers(Results):
    """Why each variable was kept or dropped, and what would be kept at another price."""

    def explain(self, *, try_alone: bool = False) -> Explanation:
        """Why each variable was kept or dropped: one row for every exogenous variable.

        It tells what the learner found out, in tests at the study's level and in comparisons of
        masks. What the tests say of variables that they did not find is counted now. The model is
        asked only if the learner made no tests of its own. If learning was stopped, nothing is
        counted or asked, and the rows say so.

        Args:
            try_alone: plan once more for each variable that matters, with the mask but for this
                one (or with this one, too), so that each has a worth of its own.
        """
        from wrappers.learners.explaining import explain

        self._require_fit()
        try_alone = check_flag("try_alone", try_alone)
        return explain(cast("MaskLearner", self), try_alone=try_alone)

    def path(
        self, cost_weights: Sequence[float] | None = None, max_size: int | None = None
    ) -> MaskPath:
        """The price curve: which mask is best at which λ, and what it earns.

        It is made from this one fit: what was estimated and planned before is used again. Masks
        are chosen on the shared trajectories, and those that are best at some λ are played on
        fresh ones. That takes some plans more: one for each mask if there are few, or else about
        one for each quarter of the mask that is dropped and three for each of its last variables.

        Args:
            cost_weights: the λ to look at; by default all of them, and each mask that is best
                somewhere comes with the range of λ for which it is.
            max_size: the number of variables that a mask may have at most.
        """
        from wrappers.learners.path_search import find_path

        self._require_fit()
        return find_path(cast("MaskLearner", self), cost_weights, max_size)
