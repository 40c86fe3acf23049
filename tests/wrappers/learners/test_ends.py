"""Learners on models whose episodes end by what x is."""

import numpy as np
import pytest
from closing import Closing, tide_moves, values_of

from exo_envs import ExoEnv, State, carry_end
from exo_envs.core.ends import CarriedEnd
from planners import bracket, estimate_objective
from wrappers import (
    CalibratedMaskLearner,
    CorrelationalMaskLearner,
    GreedyMaskLearner,
    LearnedMask,
    LearningStoppedWarning,
    Study,
)
from wrappers.fitting.study import EndCarriedWarning

carries = pytest.warns(EndCarriedWarning, match=r"depends on 'tide'.*exo_envs.carry_end\(mdp\)")


def lost_by(policy):
    """What a policy loses in the model itself, at most in any state of the tide and the moon.

    It may look at the radio; here it hears the first station.
    """
    place, pair = np.indices((3, 6))
    x = np.stack([pair // 2, pair % 2, np.zeros_like(pair)], axis=-1)
    actions = policy(State(place[..., None], x))
    chosen = values_of(lambda q: np.take_along_axis(q, actions[..., None], axis=-1)[..., 0])
    return (values_of(lambda q: q.max(axis=-1)) - chosen).max()


def test_the_tables_of_the_test_are_right():
    rng, state = np.random.default_rng(0), np.array([[1, 0, 2]])
    x = Closing().sample_exogenous(np.repeat(state, 20_000, axis=0), rng)
    counted = np.bincount(2 * x[:, 0] + x[:, 1], minlength=6) / len(x)
    assert np.abs(counted - tide_moves()[2]).max() < 0.02  # five standard errors
    assert lost_by(lambda state: np.zeros(state.endogenous.shape[:-1], dtype=int)) > 5


def test_fit_carries_the_end_and_says_so():
    with carries:
        learner = CalibratedMaskLearner(n_rollouts=200).fit(Closing(), rng=0)
    assert learner.mask_ == ("tide", "moon")
    assert isinstance(learner.study_.mdp, CarriedEnd)
    assert lost_by(learner.policy_) < 0.02
    assert learner.objective_.mean_return > 20


def test_nothing_is_said_to_those_who_carry_it_themselves():
    learner = CalibratedMaskLearner(n_rollouts=200).fit(carry_end(Closing()), rng=0)
    assert learner.mask_ == ("tide", "moon")
    assert lost_by(learner.policy_) < 0.02


@pytest.mark.parametrize("kind", [GreedyMaskLearner, CorrelationalMaskLearner])
def test_all_learners_do_so(kind):
    with carries:
        learner = kind(n_rollouts=100, n_data_rollouts=200).fit(Closing(), rng=0)
    assert isinstance(learner.study_.mdp, CarriedEnd)
    assert learner.policy_ is not None


def test_the_samples_before_that_are_counted():
    with carries:
        first = CalibratedMaskLearner(n_rollouts=100).fit(Closing(), rng=0)
    second = CalibratedMaskLearner(n_rollouts=100).fit(carry_end(Closing()), rng=0)
    assert first.study_.samples > second.study_.samples


def test_a_study_is_replaced_and_a_task_is_learned_again():
    study = Study(Closing(), 0, n_rollouts=100)
    with carries:
        learner = CalibratedMaskLearner().fit(study)
    assert learner.study_ is not study
    with carries:
        again = learner.refit(Closing())
    assert again.mask_ == learner.mask_


def test_a_wrapper_acts_on_what_its_environment_shows():
    learner = CalibratedMaskLearner(n_rollouts=100)
    with carries:
        env = LearnedMask(ExoEnv(Closing()), learner=learner, rng=0)
    observation, _ = env.reset(seed=0)
    assert observation["endogenous"].shape == (1,)
    total, ended = 0.0, False
    while not ended:
        observation, reward, terminated, truncated, _ = env.step(env.policy(observation))
        total, ended = total + reward, terminated or truncated
    assert truncated
    assert total > 40  # of 40 steps, of which those in the harbour at low tide pay nothing


def test_whoever_does_not_do_so_names_the_helper():
    with pytest.raises(ValueError, match=r"depends on x.*exo_envs.carry_end\(mdp\)"):
        estimate_objective(Closing(), ["tide"], rng=0, n_rollouts=10)
    policy = estimate_objective(carry_end(Closing()), ["tide"], rng=0, n_rollouts=10).plan.policy
    earned = bracket(carry_end(Closing()), policy, n_rollouts=50, rng=np.random.default_rng(0))
    assert earned.lower.mean <= earned.upper.mean


def test_a_study_that_was_stopped_at_the_door_asks_again():
    study = Study(Closing(), 0, n_rollouts=50)
    with pytest.warns(LearningStoppedWarning):
        stopped = CalibratedMaskLearner(time_limit=1e-9, check=False).fit(study)
    assert stopped.study_ is study
    with carries:
        assert CalibratedMaskLearner().fit(study).mask_ == ("tide", "moon")
