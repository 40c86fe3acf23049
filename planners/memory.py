"""What is remembered between masks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exo_envs import State
    from exo_envs.mdp import FloatArray
    from planners.information.parents import Evidence
    from planners.information.rollouts import ExogenousData
    from planners.objective import Trial
    from planners.policy import Mask
    from planners.reduction.survey import EndogenousSurvey


@dataclass(eq=False)
class Memory:
    """Temporary."""

    data: ExogenousData | None = None
    survey: EndogenousSurvey | None = None
    #: variable -> what predicts it, with the evidence.
    parents: dict[str, dict[str, Evidence]] = field(default_factory=dict)
    #: mask -> its plan, and what the policy met and earned.
    trials: dict[Mask, Trial] = field(default_factory=dict)
    #: (n1, n2, sampling, mask) -> how much the reward varies with each variable, (m,).
    reward_variances: dict[tuple[int, int, str, Mask], FloatArray] = field(default_factory=dict)
    #: mask -> states and actions that the policy of its relaxed problem meets.
    visited: dict[Mask, tuple[State, Any]] = field(default_factory=dict)
    #: mask -> the paper's score of each variable outside of it.
    divergences: dict[Mask, FloatArray] = field(default_factory=dict)
