"""Every learner with small settings, on a model with four variables of which two matter."""

import dataclasses

import pytest

from exo_envs.domains.synthetic import SyntheticMDP, SyntheticParameters
from wrappers import (
    BruteForceMaskLearner,
    CalibratedMaskLearner,
    CorrelationalMaskLearner,
    GreedyMaskLearner,
    RewardVariableMaskLearner,
)

SMALL = {"n_rollouts": 30, "n_data_rollouts": 60}
LEARNERS = {
    "brute force": BruteForceMaskLearner(cost_weight=2.0),
    "greedy": GreedyMaskLearner(trials=3),
    "phase one": RewardVariableMaskLearner(sampling="uniform"),
    "visited": RewardVariableMaskLearner(sampling="visited"),
    "paper": CorrelationalMaskLearner(),
    "calibrated": CalibratedMaskLearner(),
    "priced": CalibratedMaskLearner(cost_weight=2.0),
}
#: Of four variables two matter: the others are a copy and noise.
TINY = SyntheticMDP(
    SyntheticParameters(
        num_paying=1,
        num_xor_pairs=0,
        generations=1,
        num_moving=0,
        num_copies=1,
        num_noise=1,
        num_correlated=0,
        horizon=20,
    )
)
each_learner = pytest.mark.parametrize("name", LEARNERS)


def fresh(name, **changes):
    return type(LEARNERS[name])(**LEARNERS[name].get_params() | SMALL | changes)


def steps(learner, *but):
    """A history without what it took; floats to the bit."""
    left_out = {"seconds", "plan_seconds", *but}
    return [
        {k: v for k, v in dataclasses.asdict(record).items() if k not in left_out}
        for record in learner.history_
    ]
