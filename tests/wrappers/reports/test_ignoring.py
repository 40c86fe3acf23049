"""What a mask gives up against everything: an interval, worked out when it is asked for."""

import copy
import math
import pickle

import gymnasium as gym
import numpy as np
import pytest
from workshop import Workshop

from exo_envs.domains.grid import GridMDP
from planners import UCT, Estimate
from planners.objective import MaskEvaluator
from wrappers import (
    CalibratedMaskLearner,
    GreedyMaskLearner,
    LearnedMask,
    LearningStoppedWarning,
    RewardVariableMaskLearner,
    Study,
    UndecidedWarning,
)
from wrappers.reports.ignoring import CostOfIgnoring

SMALL = {"n_rollouts": 200, "n_data_rollouts": 400}


@pytest.fixture(scope="module")
def study():
    return Study(GridMDP(), 0, **SMALL)


def test_who_keeps_everything_gives_up_next_to_nothing(study):
    learner = GreedyMaskLearner(initial_mask=GridMDP().exogenous_names).fit(study)
    assert learner.mask_ == GridMDP().exogenous_names
    cost = learner.cost_of_ignoring_
    assert cost.low == 0.0
    assert cost.everything == Estimate(0.0, 0.0)
    assert 0 <= cost.high < 1.5  # the best policy of all earns 77


def test_who_ignores_the_guard_gives_up_something_for_certain():
    """Object alone, planned as in the paper, earns 45; all variables earn 77."""
    paper = Study(GridMDP(), 0, **SMALL, ignored_rewards="zero")
    fresh = paper.evaluator.fresh_scenarios()
    objective = paper.evaluator.objective(("object",), scenarios=fresh)
    everything = paper.evaluator.objective(GridMDP().exogenous_names, scenarios=fresh)
    cost = CostOfIgnoring.of(objective, everything)
    assert tuple(cost) == (cost.low, cost.high)
    assert 10 < cost.low < 32 < cost.high < 45
    assert cost.low == pytest.approx(cost.everything.interval()[0])
    assert cost.high == pytest.approx(cost.possible.interval()[1])
    wider = CostOfIgnoring.of(objective, everything, level=0.999)
    assert wider.low < cost.low < cost.high < wider.high
    with pytest.raises(ValueError, match="level is a probability"):
        CostOfIgnoring.of(objective, everything, level=2.0)


def test_it_is_worked_out_once_on_trajectories_without_a_part_in_the_choice(monkeypatch, study):
    learner = CalibratedMaskLearner(cost_weight=1.0).fit(study)
    played = []
    objective = MaskEvaluator.objective

    def noted(self, mask, **settings):
        played.append((tuple(mask), settings["scenarios"]))
        return objective(self, mask, **settings)

    monkeypatch.setattr(MaskEvaluator, "objective", noted)
    cost = learner.cost_of_ignoring_
    assert learner.cost_of_ignoring_ is cost
    assert played == [(learner.feature_names_in_, study.evaluator.fresh_scenarios())]
    assert 0 <= cost.low <= cost.high
    assert cost.level == 0.95
    learner.fit(study)
    assert learner.cost_of_ignoring_ is not cost
    assert learner.cost_of_ignoring_ == cost


def test_nothing_is_known_at_most_where_n_cannot_be_enumerated():
    planner = UCT(simulations=10, depth=3)
    learner = RewardVariableMaskLearner(n_rollouts=4, n_data_rollouts=50, planner=planner)
    with pytest.warns(UndecidedWarning, match="n was sampled"):
        learner.fit(Workshop(), rng=0)
    cost = learner.cost_of_ignoring_
    assert 0 <= cost.low < cost.high == math.inf
    assert cost.possible is None
    assert "not known" in str(cost)


def test_a_stopped_learner_is_judged_on_the_same_trajectories_or_says_why_not():
    learner = CalibratedMaskLearner(time_limit=1e-9)
    with pytest.warns(LearningStoppedWarning):
        learner.fit(Study(GridMDP(), 0, **SMALL))
    assert learner.objective_ is None
    with pytest.raises(ValueError, match=r"stopped \(time limit\) before there was a policy"):
        _ = learner.cost_of_ignoring_
    known = Study(GridMDP(), 0, **SMALL)
    known.evaluator.objective(())
    with pytest.warns(LearningStoppedWarning):
        learner.fit(known)
    assert learner.mask_ == learner.objective_.mask == ()
    cost = learner.cost_of_ignoring_
    assert 0 <= cost.low <= cost.high
    assert len(learner.objective_.returns) == SMALL["n_rollouts"]
    with pytest.raises(AttributeError, match="call fit first"):
        _ = CalibratedMaskLearner().cost_of_ignoring_


def test_it_reads_well():
    gain, left = Estimate(3.0, 1.0), Estimate(9.0, 1.0)
    assert str(CostOfIgnoring(1.04, 10.96, 0.95, gain, left)) == "at least 1.0, at most 11.0 (95%)"
    assert str(CostOfIgnoring(0.0, 2.0, 0.9, gain, left)) == "perhaps nothing, at most 2.0 (90%)"


def test_the_wrapper_passes_it_on_and_copies_say_that_they_have_no_learner():
    settings = {"n_rollouts": 20, "n_data_rollouts": 40}
    make = gym.make("exo_envs:ExoGrid-v0")
    env = LearnedMask(make, learner=RewardVariableMaskLearner(**settings), rng=1)
    assert env.cost_of_ignoring is env.learner.cost_of_ignoring_
    for other in (
        copy.deepcopy(env),
        pickle.loads(pickle.dumps(env)),
        LearnedMask(make, mask=np.array([True, False, False, False, False])),
    ):
        with pytest.raises(ValueError, match="was not learned here"):
            _ = other.cost_of_ignoring
