"""Gymnasium's toy texts: what is claimed of them is what is played."""

import gymnasium as gym

from exo_envs import AdaptedMDP
from exo_envs.sources.simulators.played import Agreement
from planners import estimate_objective
from wrappers import CalibratedMaskLearner


def test_frozen_lake_claims_what_is_played():
    """No return can exceed 1 there; frozen noise once claimed 1.32 where 0.44 was played."""
    mdp = AdaptedMDP.from_env(gym.make("FrozenLake-v1"))
    assert mdp.reward_samples > 20
    learner = CalibratedMaskLearner(n_rollouts=300).fit(mdp, rng=0)
    found = learner.objective_
    assert found.returns.max() <= 1.0
    assert found.claimed_returns.max() <= 1.0
    assert found.agreement.agrees
    assert learner.doubts_ == ()
    again = mdp.play(learner.policy_, 300, seed=99)
    assert Agreement.of(found.returns, again, 1e-6).agrees
    assert found.mean_return > 0.3  # a blind walk earns 0.01


def test_taxi_claims_what_is_played():
    mdp = AdaptedMDP.from_env(gym.make("Taxi-v3" if "Taxi-v4" not in gym.registry else "Taxi-v4"))
    found = estimate_objective(mdp, ["dest_idx"], rng=0, n_rollouts=100)
    assert found.agreement.agrees
    again = mdp.play(found.plan.policy, 100, seed=99)
    assert Agreement.of(found.returns, again, 1e-6).agrees
    assert found.mean_return > 5.0
