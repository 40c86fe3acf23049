"""Learners on a model whose n cannot be enumerated: tree search plans, and masks still come."""

import pytest
from workshop import Workshop

from planners import UCT
from planners.reduced.reduced_mdp import SimulatedReducedMDP
from planners.tree_search import UCTPolicy
from wrappers import (
    BruteForceMaskLearner,
    CalibratedMaskLearner,
    CorrelationalMaskLearner,
    GreedyMaskLearner,
    RewardVariableMaskLearner,
    UndecidedWarning,
)

#: 2,000 n at most, of which some are met or drawn twice.
says_so = pytest.warns(UndecidedWarning, match=r"n was sampled: [12],\d{3} of its 2,560,000 values")

SMALL = {
    "n_rollouts": 10,
    "n_data_rollouts": 100,
    "planner": UCT(simulations=20, depth=4),
}


def test_what_matters_is_found_in_a_sample_of_n():
    with says_so:
        learner = CalibratedMaskLearner(**SMALL).fit(Workshop(), rng=0)
    assert learner.mask_ == ("demand", "belt", "forecast")
    roles = {name: record.role for name, record in learner.reasons_.items()}
    assert roles == {"demand": "pays", "belt": "moves", "forecast": "predicts"}
    assert learner.reasons_["forecast"].target == "demand"
    assert isinstance(learner.objective_.reduced, SimulatedReducedMDP)
    # Who hits the demand of all six steps earns 5.3; chance hits a quarter of them.
    assert learner.objective_.mean_return > 4.0


def test_what_is_lost_by_a_sample_is_said():
    with says_so:
        learner = CalibratedMaskLearner(**SMALL).fit(Workshop(), rng=0)
    (doubt,) = learner.doubts_
    assert "pays or moves n only elsewhere may be missing" in doubt
    assert "nothing bounds what the plan loses" in doubt
    plan = learner.objective_.plan
    assert (plan.converged, plan.out_of_time, plan.loss_bound) == (False, False, float("inf"))
    assert plan.method == "tree search"


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
    with says_so:
        learner.fit(Workshop(), rng=0)
    assert "demand" in learner.mask_
    assert isinstance(learner.policy_, UCTPolicy)


def test_brute_force_and_the_default_planner():
    class Small(Workshop):
        exogenous_variables = Workshop.exogenous_variables[:3]
        horizon = 3

    with says_so:
        learner = BruteForceMaskLearner(n_rollouts=5, n_data_rollouts=50).fit(Small(), rng=0)
    assert "demand" in learner.mask_
    assert isinstance(learner.policy_, UCTPolicy)
