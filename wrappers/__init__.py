"""Masks as Gymnasium wrappers, and the learners that find them.

A mask names the exogenous variables worth reasoning about. :class:`MaskedObservation` shows an
agent the masked part of an observation only; a learner such as :class:`CorrelationalMaskLearner`
chooses the mask; :class:`LearnedMask` does both. :class:`FlatObservation` turns observations into
what neural networks read, :class:`AgentPolicy` turns agents into policies, and ``wrappers.sb3``
turns our vector environments into those of Stable-Baselines3.
"""

from wrappers.agents.agent_policy import AgentPolicy
from wrappers.learners.base import LearningStoppedWarning, MaskLearner
from wrappers.learners.brute_force import BruteForceMaskLearner
from wrappers.learners.correlational import CorrelationalMaskLearner
from wrappers.learners.greedy import GreedyMaskLearner
from wrappers.learners.history import History, Progress, Record
from wrappers.learners.reward_variables import RewardVariableMaskLearner, estimate_reward_variables
from wrappers.learners.saved import SavedMask
from wrappers.learners.study import Study
from wrappers.observation.flat import Encoding, FlatObservation, FlatVectorObservation
from wrappers.observation.learned import LearnedMask
from wrappers.observation.masked import MaskedObservation, MaskedVectorObservation

__all__ = [
    "AgentPolicy",
    "BruteForceMaskLearner",
    "CorrelationalMaskLearner",
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
    "Progress",
    "Record",
    "RewardVariableMaskLearner",
    "SavedMask",
    "Study",
    "estimate_reward_variables",
]
