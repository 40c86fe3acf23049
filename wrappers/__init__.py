"""Masks as Gymnasium wrappers, and the learners that find them.

A mask names the exogenous variables worth reasoning about. :class:`MaskedObservation` shows an
agent the masked part of an observation only; a learner such as :class:`CalibratedMaskLearner`
chooses the mask; :class:`LearnedMask` does both, and :class:`RemaskingObservation` does so for
tasks that change. :class:`FlatObservation` turns observations into
what neural networks read, :class:`AgentPolicy` turns agents into policies, and ``wrappers.sb3``
turns our vector environments into those of Stable-Baselines3.
"""

from wrappers.agents import AgentPolicy
from wrappers.certificate import Certificate, Check, certify
from wrappers.learners import (
    BruteForceMaskLearner,
    CalibratedMaskLearner,
    CorrelationalMaskLearner,
    CostOfIgnoring,
    EndCarriedWarning,
    ExplainedVariable,
    Explanation,
    GreedyMaskLearner,
    History,
    LearningStoppedWarning,
    MaskLearner,
    MaskPath,
    NotFittedError,
    PathPoint,
    Progress,
    Record,
    RewardVariableMaskLearner,
    SavedMask,
    Study,
    UndecidedWarning,
    estimate_reward_variables,
    find_relevance,
)
from wrappers.observation import (
    Encoding,
    FlatObservation,
    FlatVectorObservation,
    LearnedMask,
    MaskedObservation,
    MaskedVectorObservation,
    RemaskingObservation,
)

__all__ = [
    "AgentPolicy",
    "BruteForceMaskLearner",
    "CalibratedMaskLearner",
    "Certificate",
    "Check",
    "CorrelationalMaskLearner",
    "CostOfIgnoring",
    "Encoding",
    "EndCarriedWarning",
    "ExplainedVariable",
    "Explanation",
    "FlatObservation",
    "FlatVectorObservation",
    "GreedyMaskLearner",
    "History",
    "LearnedMask",
    "LearningStoppedWarning",
    "MaskLearner",
    "MaskPath",
    "MaskedObservation",
    "MaskedVectorObservation",
    "NotFittedError",
    "PathPoint",
    "Progress",
    "Record",
    "RemaskingObservation",
    "RewardVariableMaskLearner",
    "SavedMask",
    "Study",
    "UndecidedWarning",
    "certify",
    "estimate_reward_variables",
    "find_relevance",
]
