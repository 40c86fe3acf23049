"""Masks of models with real variables: learned, planned with, saved and played."""

from itertools import pairwise

import numpy as np
import pytest
from real_models import BatteryMDP, DoorMDP

from exo_envs import ExoEnv, ExoVectorEnv
from planners import (
    UCT,
    DefaultPlanner,
    ForecastPlanner,
    Policy,
    Scenarios,
    ValueIteration,
    bracket,
    estimate_objective,
    evaluate,
)
from planners.bounds.bracketing import OffLatticeError
from wrappers import (
    AgentPolicy,
    BruteForceMaskLearner,
    CalibratedMaskLearner,
    CorrelationalMaskLearner,
    FlatObservation,
    FlatVectorObservation,
    LearnedMask,
    MaskedObservation,
    RewardVariableMaskLearner,
)

FEW = {"n_rollouts": 100, "n_data_rollouts": 1000}


@pytest.mark.parametrize("losses", [0.0, 0.1])
@pytest.mark.parametrize("reward", ["terms", "total"])
def test_price_and_wind_are_found(losses, reward):
    learner = CalibratedMaskLearner(**FEW, reward=reward).fit(BatteryMDP(losses=losses), 0)
    assert learner.mask_ == ("price", "wind")
    assert learner.doubts_ == ()


def test_thresholds_are_found_and_seen():
    learner = CalibratedMaskLearner(**FEW).fit(DoorMDP(), 0)
    assert learner.mask_ == ("price", "level")
    # Whoever knows the threshold goes exactly when it pays: (1 - 0.237) at each of 20 steps.
    best = (1 - DoorMDP.pays_from) * (1 - 0.9**20) / (1 - 0.9)
    assert learner.objective_.mean_return == pytest.approx(best, abs=0.4)


@pytest.mark.parametrize(
    "learner",
    [
        BruteForceMaskLearner(**FEW),
        CorrelationalMaskLearner(**FEW),
        CorrelationalMaskLearner(**FEW, transition_model="joint"),
        CalibratedMaskLearner(**FEW, cost_weight=3.0),
    ],
    ids=repr,
)
def test_other_learners_find_them_too(learner):
    assert learner.fit(BatteryMDP(), 0).mask_ == ("price", "wind")


def test_the_first_phase_finds_what_pays():
    assert RewardVariableMaskLearner(**FEW).fit(BatteryMDP(), 0).mask_ == ("price",)


def test_more_is_known_with_more_variables():
    mdp = BatteryMDP()
    scenarios = Scenarios.sample(mdp, 400, 5)
    worth = [
        estimate_objective(mdp, mask, rng=1, scenarios=scenarios)
        for mask in ([], ["price"], ["price", "wind"])
    ]
    for less, more in pairwise(worth):
        assert more.gain_over(less).interval(0.999)[0] > 0


@pytest.mark.parametrize(
    "planner",
    [ValueIteration(), ForecastPlanner(), DefaultPlanner(), UCT(simulations=16)],
    ids=repr,
)
def test_planners_take_models_with_real_variables(planner):
    mdp, idle = BatteryMDP(losses=0.05), lambda state: np.ones(len(state.endogenous), int)
    scenarios = Scenarios.sample(mdp, 50, 3)
    policy = planner.plan(mdp, rng=np.random.default_rng(0)).policy
    gain = evaluate(policy, mdp, scenarios=scenarios) - evaluate(idle, mdp, scenarios=scenarios)
    assert gain.mean() > 100


def test_policies_take_values_and_travel(tmp_path):
    mdp = BatteryMDP(losses=0.1)
    learner = CalibratedMaskLearner(**FEW).fit(mdp, 0)
    learner.save(tmp_path / "mask.zip", with_policy=True)
    policy = Policy.load(tmp_path / "mask.zip")
    state = mdp.sample_uniform(100, np.random.default_rng(0))
    np.testing.assert_array_equal(policy(state), learner.policy_(state))
    assert set(policy(state).tolist()) >= {0, 2}
    with pytest.raises(ValueError, match="variable 'price' cannot be nan"):
        policy({"endogenous": [1.0], "exogenous": [np.nan, 0.0]})


def test_masks_and_flat_views_of_real_observations():
    env = MaskedObservation(ExoEnv(BatteryMDP()), ["price", "day"])
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    flat = FlatObservation(env)
    values, _ = flat.reset(seed=0)
    charge, price, day = values
    assert flat.observation_space.contains(values)
    assert price == pytest.approx(observation["exogenous"][0] / 200)
    assert day == pytest.approx(observation["exogenous"][1] / 6)
    assert charge == pytest.approx(observation["endogenous"][0] / 10)
    with pytest.raises(ValueError, match="real variables are fractions"):
        FlatObservation(env, dtype="uint8")


def test_an_agent_sees_real_values():
    mdp = BatteryMDP()
    env = FlatVectorObservation(ExoVectorEnv(mdp, 4))
    assert env.single_observation_space.high.tolist() == [1.0, 1.0, 1.0, np.inf, 1.0]
    policy = AgentPolicy(lambda flat: np.where(flat[:, 1] > 0.35, 0, 2), env)
    assert evaluate(policy, mdp, 50, rng=0).mean() > 100


def test_learning_is_a_wrapper_here_too():
    env = LearnedMask(ExoEnv(BatteryMDP()), learner=CalibratedMaskLearner(**FEW), rng=0)
    observation, _ = env.reset(seed=0)
    assert observation["exogenous"].shape == (2,)
    assert env.policy(observation) in (0, 1, 2)
    low, high = env.cost_of_ignoring  # n is real, and its 11 values are a lattice
    assert 0 <= low <= high < 150


def test_where_n_is_real_for_good_there_is_no_bound():
    learner = CalibratedMaskLearner(**FEW).fit(BatteryMDP(losses=0.1), 0)
    assert learner.objective_.bracket is None
    assert learner.cost_of_ignoring_.high == np.inf
    with pytest.raises(OffLatticeError, match="between the points"):
        bracket(BatteryMDP(losses=0.1), learner.policy_, 20, rng=0)


def test_a_lattice_bounds_what_anybody_earns():
    mdp = BatteryMDP()
    policy = CalibratedMaskLearner(**FEW).fit(mdp, 0).policy_
    found = bracket(mdp, policy, 100, rng=0)
    assert found.lower.mean <= found.upper.mean <= found.hindsight.mean
    assert found.gap < 0.2
