"""Learners on a model whose n cannot be enumerated: tree search plans, and masks still come."""

import pytest
from workshop import Workshop

from planners import UCT, SimulatedReducedMDP, UCTPolicy
from wrappers import (
    BruteForceMaskLearner,
    CalibratedMaskLearner,
    CorrelationalMaskLearner,
    GreedyMaskLearner,
    RewardVariableMaskLearner,
)

SMALL = {
    "n_rollouts": 10,
    "n_data_rollouts": 100,
    "planner": UCT(simulations=20, depth=4),
}


def test_what_matters_is_found_in_a_sample_of_n():
    learner = CalibratedMaskLearner(**SMALL).fit(Workshop(), rng=0)
    assert learner.mask_ == ("demand", "belt", "forecast")
    roles = {name: record.role for name, record in learner.reasons_.items()}
    assert roles == {"demand": "pays", "belt": "moves", "forecast": "predicts"}
    assert learner.reasons_["forecast"].target == "demand"
    assert isinstance(learner.objective_.reduced, SimulatedReducedMDP)
    # Who hits the demand of all six steps earns 5.3; chance hits a quarter of them.
    assert learner.objective_.mean_return > 4.0


@pytest.mark.parametrize(
    "learner",
    [
        CalibratedMaskLearner(cost_weight=0.1, **SMALL),
        CorrelationalMaskLearner(**SMALL),
        RewardVariableMaskLearner(sampling="visited", **SMALL),
        GreedyMaskLearner(initial_mask=["demand"], **SMALL),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_each_learner_keeps_what_pays(learner):
    learner.fit(Workshop(), rng=0)
    assert "demand" in learner.mask_
    assert isinstance(learner.policy_, UCTPolicy)


def test_brute_force_and_the_default_planner():
    class Small(Workshop):
        exogenous_variables = Workshop.exogenous_variables[:3]
        horizon = 3

    learner = BruteForceMaskLearner(n_rollouts=5, n_data_rollouts=50).fit(Small(), rng=0)
    assert "demand" in learner.mask_
    assert isinstance(learner.policy_, UCTPolicy)
