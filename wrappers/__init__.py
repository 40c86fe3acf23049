"""Masks as Gymnasium wrappers, and the learners that find them.

A mask names the exogenous variables worth reasoning about. :class:`MaskedObservation` shows an
agent the masked part of an observation only; a learner such as :class:`CorrelationalMaskLearner`
chooses the mask; :class:`LearnedMask` does both. :class:`FlatObservation` turns observations into
what neural networks read, :class:`AgentPolicy` turns agents into policies, and ``wrappers.sb3``
turns our vector environments into those of Stable-Baselines3.
"""

from wrappers.agent import AgentPolicy
from wrappers.brute_force import BruteForceMaskLearner
from wrappers.correlational import CorrelationalMaskLearner
from wrappers.flat import Encoding, FlatObservation, FlatVectorObservation
from wrappers.greedy import GreedyMaskLearner
from wrappers.history import History, Progress, Record
from wrappers.learned import LearnedMask
from wrappers.learner import LearningStoppedWarning, MaskLearner
from wrappers.masked import MaskedObservation, MaskedVectorObservation
from wrappers.reward_variables import RewardVariableMaskLearner, estimate_reward_variables
from wrappers.saved import SavedMask
from wrappers.study import Study

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
