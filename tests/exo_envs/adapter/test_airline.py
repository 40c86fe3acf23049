"""An airline's seats: real values, noise in the reward, and a product of two variables."""

import time

import pytest
from airline import Airline, adapt_as_it_is, adapt_by_hand

from exo_envs import AdaptedMDP, PlayedDifferentlyError
from planners import estimate_objective, evaluate
from wrappers import CalibratedMaskLearner, LearningStoppedWarning

#: With six bins it is said that what demand does differs within them, which is true.
IN_BINS = pytest.mark.filterwarnings("ignore:'demand' is real, seen in")
SMALL = {"n_rollouts": 100, "n_data_rollouts": 100}


def test_bins_by_hand_are_refused_and_played_as_they_are():
    mdp = adapt_by_hand()
    with pytest.raises(PlayedDifferentlyError, match="finer bins") as caught:
        CalibratedMaskLearner(n_rollouts=50).fit(mdp, rng=0)
    assert caught.value.reason == "coarse state"
    # What it earns can be known all the same: the environment says so.
    returns = evaluate(lambda state: [1] * len(state.endogenous), mdp, 30, 0)
    assert 500 < returns.mean() < 5000


def test_its_product_is_found():
    mdp = AdaptedMDP.from_env(Airline(), horizon=20)
    assert set(mdp.exogenous_names) == {f"observation_{i}" for i in (1, 2, 3)}
    assert ("observation_1", "observation_2") in mdp.reward_scopes
    assert mdp.reward_samples > 1


def test_as_it_is_the_claim_is_what_is_played():
    mdp = adapt_as_it_is(reward_samples=4, differences="warn")
    found = estimate_objective(
        mdp, ["fare", "demand"], rng=0, n_rollouts=200, num_rollouts=100, check=False
    )
    assert found.agreement.agrees
    assert len(found.returns) == 200
    # Always the middle price earns about 2000.
    assert found.mean_return > 2000


@IN_BINS
def test_the_mask_is_what_pays_and_the_return_is_played():
    mdp = adapt_as_it_is(reward_samples=2, differences="warn")
    learner = CalibratedMaskLearner(**SMALL, check=False).fit(mdp, rng=0)
    assert learner.mask_ == ("fare", "demand")
    assert learner.objective_.claimed_returns is not None
    assert learner.objective_.agreement.agrees


@IN_BINS
def test_a_time_limit_leaves_time_to_play():
    """Learning stops once there is a mask and most of the time is over; the rest is for playing."""
    mdp = adapt_as_it_is(reward_samples=1, differences="warn")
    study = CalibratedMaskLearner(**SMALL, check=False).fit(mdp, rng=0).study_

    def slow(progress):
        if progress.record is not None and progress.record.action == "start":
            time.sleep(4.5)  # more than is left for learning, less than there is in all

    with pytest.warns(LearningStoppedWarning, match="time limit"):
        learner = CalibratedMaskLearner(time_limit=6.0, callback=slow, check=False).fit(study)
    assert learner.status_ == "time limit"
    assert learner.policy_.mask == learner.mask_ == ("fare", "demand")
    assert learner.objective_.claimed_returns is not None
    assert len(learner.objective_.returns) >= 1
