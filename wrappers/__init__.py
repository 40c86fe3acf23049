"""Masks as Gymnasium wrappers, and the learners that find them.

A mask names the exogenous variables worth reasoning about. :class:`MaskedObservation` shows an
agent the masked part of an observation only; a learner such as :class:`CalibratedMaskLearner`
chooses the mask; :class:`LearnedMask` does both, and :class:`RemaskingObservation` does so for
tasks that change. :class:`FlatObservation` turns observations into
what neural networks read, :class:`AgentPolicy` turns agents into policies, and ``wrappers.sb3``
turns our vector environments into those of Stable-Baselines3.
"""

from wrappers.fitting.session import LearningStoppedWarning, NotFittedError
from wrappers.fitting.study import Study
from wrappers.learners.base import MaskLearner
from wrappers.learners.brute_force import BruteForceMaskLearner
from wrappers.learners.calibrated import CalibratedMaskLearner
from wrappers.learners.correlational import CorrelationalMaskLearner
from wrappers.learners.greedy import GreedyMaskLearner
from wrappers.learners.reward_variables import RewardVariableMaskLearner
from wrappers.observation.agent_policy import AgentPolicy
from wrappers.observation.flat import FlatObservation, FlatVectorObservation
from wrappers.observation.masked import LearnedMask, MaskedObservation, MaskedVectorObservation
from wrappers.observation.remasking import RemaskingObservation
from wrappers.reports.certificate import Certificate, certify
from wrappers.reports.doubts import UndecidedWarning
from wrappers.reports.explanation import Explanation
from wrappers.reports.path import MaskPath

__all__ = [
    "AgentPolicy",
    "BruteForceMaskLearner",
    "CalibratedMaskLearner",
    "Certificate",
    "CorrelationalMaskLearner",
    "Explanation",
    "FlatObservation",
    "FlatVectorObservation",
    "GreedyMaskLearner",
    "LearnedMask",
    "LearningStoppedWarning",
    "MaskLearner",
    "MaskPath",
    "MaskedObservation",
    "MaskedVectorObservation",
    "NotFittedError",
    "RemaskingObservation",
    "RewardVariableMaskLearner",
    "Study",
    "UndecidedWarning",
    "certify",
]
