"""Mask learners: the paper's (section 5), and ours.

======================  =====================================================================
``brute_force.py``      *Mask-Learning-Brute-Force*
``greedy.py``           *Mask-Learning-Greedy*
``reward_variables.py`` *Estimate-Reward-Variables*: the first phase of the paper's algorithm
``correlational.py``    *Mask-Learning-Correlational*: the paper's algorithm
``divergence.py``       its score, line 3 of the algorithm
``calibrated/``         ours
``base.py``             what all learners share: ``fit``, results, hyper-parameters
``study.py``            what learners share: samples of the model, and what masks are worth
``session.py``          one call of ``fit``: prices, clock, callback
``doubts.py``           what the data cannot decide, for people
``history.py``          records of what a learner did
``ignoring.py``         what a mask gives up against everything
``saved.py``            masks as files
======================  =====================================================================
"""

from wrappers.learners.base import LearningStoppedWarning, MaskLearner, NotFittedError
from wrappers.learners.brute_force import BruteForceMaskLearner
from wrappers.learners.calibrated import CalibratedMaskLearner, find_relevance
from wrappers.learners.correlational import CorrelationalMaskLearner
from wrappers.learners.doubts import UndecidedWarning
from wrappers.learners.greedy import GreedyMaskLearner
from wrappers.learners.history import History, Progress, Record
from wrappers.learners.ignoring import CostOfIgnoring
from wrappers.learners.reward_variables import (
    RewardVariableMaskLearner,
    estimate_reward_variables,
)
from wrappers.learners.saved import SavedMask
from wrappers.learners.study import Study

__all__ = [
    "BruteForceMaskLearner",
    "CalibratedMaskLearner",
    "CorrelationalMaskLearner",
    "CostOfIgnoring",
    "GreedyMaskLearner",
    "History",
    "LearningStoppedWarning",
    "MaskLearner",
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
