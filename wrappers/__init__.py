"""Masks as Gymnasium wrappers, and the learners that find them.

A mask names the exogenous variables worth reasoning about. :class:`MaskedObservation` shows an
agent the masked part of an observation only; a learner such as :class:`CalibratedMaskLearner`
chooses the mask; :class:`LearnedMask` does both. :class:`FlatObservation` turns observations into
what neural networks read, :class:`AgentPolicy` turns agents into policies, and ``wrappers.sb3``
turns our vector environments into those of Stable-Baselines3.
"""

from wrappers.agents import AgentPolicy
from wrappers.learners import (
    BruteForceMaskLearner,
    CalibratedMaskLearner,
    CorrelationalMaskLearner,
    CostOfIgnoring,
    GreedyMaskLearner,
    History,
    LearningStoppedWarning,
    MaskLearner,
    NotFittedError,
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
)

__all__ = [
    "AgentPolicy",
    "BruteForceMaskLearner",
    "CalibratedMaskLearner",
    "CorrelationalMaskLearner",
    "CostOfIgnoring",
    "Encoding",
    "FlatObservation",
    "FlatVectorObservation",
    "GreedyMaskLearner",
    "History",
    "LearnedMask",
    "LearningStoppedWarning",
    "MaskLearner",
    "MaskedObservation",
    "MaskedVectorObservation",
    "NotFittedError",
    "Progress",
    "Record",
    "RewardVariableMaskLearner",
    "SavedMask",
    "Study",
    "UndecidedWarning",
    "estimate_reward_variables",
    "find_relevance",
]
