"""What is reported of an adapted environment is what is played there."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from walks import Exhausted, Jackpot, Pushed, Walk

from exo_envs import AdaptedMDP, PlayedDifferentlyError, PlayedDifferentlyWarning
from exo_envs.contract.original import HasOriginal
from exo_envs.sources.simulators.played import Agreement
from planners import Scenarios, estimate_objective, evaluate
from wrappers import CalibratedMaskLearner

#: Standard errors between two means: by chance with a probability below 1e-6.
FAR = 5.0


def frozen_lake():
    return AdaptedMDP.from_env(gym.make("FrozenLake-v1"))


def test_a_jackpot_by_chance_far_away_is_found():
    """One seed hides it, so that a policy which believes it earns nothing."""
    mdp = AdaptedMDP.from_env(Jackpot(), horizon=60)
    assert mdp.reward_samples == 100
    found = estimate_objective(mdp, [], rng=0, n_rollouts=100)
    assert found.agreement.agrees
    assert found.mean_return > 80.0


def test_evaluate_plays_the_environment():
    mdp = frozen_lake()
    watched = []

    def right(state):
        return np.full(len(state.endogenous), 2)

    returns = evaluate(
        right, mdp, 40, 3, watch=lambda t, state, a: watched.append((t, len(a), state))
    )
    seed = int(np.random.default_rng(3).integers(2**63))
    np.testing.assert_array_equal(returns, mdp.play(lambda state: 2, 40, seed))
    assert [t for t, _, _ in watched] == list(range(len(watched)))
    lanes = [count for _, count, _ in watched]
    assert lanes[0] == 40
    assert lanes == sorted(lanes, reverse=True)
    assert all(len(state.endogenous) == count for _, count, state in watched)


def test_evaluate_on_scenarios_is_in_the_model_which_is_looked_at_first():
    mdp = AdaptedMDP.from_env(Walk(), horizon=20)
    scenarios = Scenarios.sample(mdp, 60, 0)
    policy = np.full(60, 2)

    def up(state):
        return policy[: len(state.endogenous)]

    in_model = evaluate(up, mdp, scenarios=scenarios)
    assert mdp.is_played_as_claimed
    assert Agreement.of(in_model, mdp.play(lambda state: 2, 60), 1e-6).agrees
    pushed = AdaptedMDP.from_env(Pushed(), horizon=20, endogenous=["observation_0"])
    with pytest.raises(PlayedDifferentlyError):
        evaluate(up, pushed, scenarios=Scenarios.sample(pushed, 60, 0))


def test_noise_is_drawn_anew_in_each_step_of_the_model():
    """Rewards of one state differ from rollout to rollout, and their mean is right."""

    class Noisy(Walk):
        def pay(self, action, place, level):
            return self.np_random.normal(), False

    mdp = AdaptedMDP.from_env(Noisy(), horizon=1, discount=1.0)
    scenarios = Scenarios.sample(mdp, 400, 0)
    returns = evaluate(
        lambda state: np.ones(len(state.endogenous), dtype=int), mdp, scenarios=scenarios
    )
    assert returns.std() == pytest.approx(1.0, abs=0.25)
    assert abs(returns.mean()) < FAR / np.sqrt(400)


def test_a_claim_that_is_not_played_is_said_with_its_reason():
    """Random actions never come to the end of the way; the policy does."""
    mdp = AdaptedMDP.from_env(Exhausted(), horizon=60)
    with pytest.warns(PlayedDifferentlyWarning, match="reason: hidden state"):
        found = estimate_objective(mdp, [], rng=0, n_rollouts=20)
    assert found.claimed.mean > 50.0
    assert found.mean_return < 20.0
    assert found.mean_return == pytest.approx(found.returns.mean())
    assert not found.agreement.agrees
    with pytest.warns(UserWarning, match="which is what is reported"):
        learner = CalibratedMaskLearner(n_rollouts=20).fit(mdp, rng=0)
    assert learner.objective_.mean_return < 20.0
    assert any("hidden state" in doubt for doubt in learner.doubts_)


def test_a_model_of_its_own_has_nothing_else_to_play():
    from exo_envs.domains.grid import GridMDP

    found = estimate_objective(GridMDP(), ["object"], rng=0, n_rollouts=20, num_rollouts=50)
    assert found.agreement is None
    assert found.disagreement is None
    assert found.claimed.mean == found.mean_return
    assert not isinstance(GridMDP(), HasOriginal)
    assert isinstance(frozen_lake(), HasOriginal)


def test_copies_know_what_was_claimed():
    found = estimate_objective(frozen_lake(), [], rng=0, n_rollouts=20)
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        np.testing.assert_array_equal(other.returns, found.returns)
        assert other.agreement == found.agreement


def test_agreement_is_a_matter_of_standard_errors():
    rng = np.random.default_rng(0)
    one = rng.normal(size=500)
    assert Agreement.of(one, rng.normal(size=500)).agrees
    assert not Agreement.of(one, 0.5 + rng.normal(size=500)).agrees
    # Five episodes without the one in twenty that pays say little.
    rare = (np.arange(100) % 20 == 0).astype(float)
    assert Agreement.of(rare, np.zeros(5)).agrees
    with pytest.raises(ValueError, match="two returns are needed"):
        Agreement.of(one, one[:1])
    assert "the model claims" in str(Agreement.of(one, rare))
