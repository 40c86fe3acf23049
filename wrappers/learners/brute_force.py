"""*Mask-Learning-Brute-Force* (section 5.1 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from typing import ClassVar

from exo_envs.core.arguments import Constraints, whole
from exo_envs.core.errors import ArgumentError
from planners.core.policy import Mask
from planners.reduced.ignored_rewards import IgnoredRewards
from planners.worth import Objective
from wrappers.fitting.history import Record
from wrappers.fitting.session import Session
from wrappers.learners.base import MaskLearner


@dataclass(kw_only=True)
class BruteForceMaskLearner(MaskLearner):
    """*Mask-Learning-Brute-Force*: estimate J of every mask, return the best one.

    All masks play the same trajectories, so they are compared without the noise that they share.
    Of masks that are equally good the smallest is kept.

    Args:
        max_variables: with m variables there are 2 ** m masks; more than this are refused.
    """

    ignored_rewards: IgnoredRewards = "zero"
    max_variables: int = 12

    constraints: ClassVar[Constraints] = {"max_variables": whole(0)}

    def _steps(self, session: Session) -> Iterator[Record]:
        names = session.study.mdp.exogenous_names
        if len(names) > self.max_variables:
            raise ArgumentError(
                f"{len(names)} exogenous variables have 2 ** {len(names)} masks; brute force is "
                f"for up to max_variables={self.max_variables}. Use CalibratedMaskLearner"
            )
        best: Objective | None = None
        mask: Mask = ()
        for tried in chain.from_iterable(combinations(names, k) for k in range(len(names) + 1)):
            objective = session.objective(tried)
            accepted = best is None or objective.value > best.value
            before = best
            if accepted:
                best, mask = objective, tried
            yield session.record(
                "try",
                tried,
                accepted=accepted,
                reason=f"J of {', '.join(tried) or 'the empty mask'}",
                mask=mask,
                objective=objective,
                gain=None if before is None else objective.gain_over(before),
            )
