"""What is left when learning is stopped, by an interrupt or by a time limit."""

import time
import warnings
from contextlib import suppress

import numpy as np
import pytest
from harbour import Harbour
from learners import SMALL, TINY, each_learner, fresh, steps
from scripted import Watched

from exo_envs import AdaptedMDP
from exo_envs.core.clock import Clock, OutOfTimeError
from exo_envs.domains.grid import GridMDP
from planners import ValueIteration
from planners.objective import MaskEvaluator
from wrappers import CalibratedMaskLearner, LearningStoppedWarning, Study
from wrappers.fitting.session import Session
from wrappers.learners.reward_variables import VISITED, visited_sampler

# --- interrupts -------------------------------------------------------------------------------


class Stop:
    """A callback that raises an error after so many steps, or at the first report."""

    def __init__(self, error, after):
        self.error, self.after, self.records = error, after, []

    def __call__(self, progress):
        if progress.record is not None:
            self.records.append(progress.record)
        if len(self.records) >= self.after:
            raise self.error


@each_learner
def test_an_interrupt_keeps_the_best_mask_so_far(name):
    whole = fresh(name).fit(TINY, 0)
    for after in range(1, len(whole.history_), max(1, len(whole.history_) // 3)):
        stop = Stop(KeyboardInterrupt, after)
        with pytest.warns(LearningStoppedWarning, match=r"interrupted.* best so far") as caught:
            learner = fresh(name, callback=stop).fit(TINY, 0)
        assert caught[0].filename == __file__
        assert learner.status_ == "interrupted"
        assert steps(learner) == steps(whole)[:after]
        assert learner.mask_ == whole.history_[after - 1].mask
        assert learner.get_support().sum() == len(learner.mask_)
        if learner.objective_ is None:
            assert learner.policy_ is None
            assert all(record.value is None for record in learner.history_)
        else:
            assert learner.policy_.mask == learner.mask_


@each_learner
def test_before_anything_is_known_an_interrupt_is_an_interrupt(name):
    learner = fresh(name, callback=Stop(KeyboardInterrupt, 0))
    with pytest.raises(KeyboardInterrupt):
        learner.fit(TINY, 0)
    assert not hasattr(learner, "mask_")


@each_learner
def test_an_error_of_the_callback_is_the_user_s(name):
    for after in (0, 1):
        learner = fresh(name, callback=Stop(ZeroDivisionError, after))
        with pytest.raises(ZeroDivisionError):
            learner.fit(TINY, 0)
        assert not hasattr(learner, "mask_")


def fitted(learner, mdp):
    """``fit`` without the warning that it was stopped; an interrupt would end the tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningStoppedWarning)
        try:
            return learner.fit(mdp, 0)
        except KeyboardInterrupt:
            pytest.fail("the interrupt was not caught")


def test_an_interrupt_of_the_tests_keeps_what_pays():
    """The longest part of learning on a large model; what pays and moves is known by then."""

    def stop(progress):
        if progress.stage == "testing what predicts the mask" and progress.done >= 1:
            raise KeyboardInterrupt

    learner = fitted(fresh("calibrated", callback=stop), GridMDP())
    assert set(learner.mask_) >= {"object", "guard"}
    assert learner.status_ == "interrupted"


def test_an_interrupt_at_the_end_keeps_the_mask(monkeypatch):
    """While J of the result is estimated there is a mask already."""
    learner = fresh("phase one")

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(MaskEvaluator, "fresh_scenarios", interrupted)
    fitted(learner, TINY)
    assert learner.mask_ == ("pays_0",)
    assert learner.status_ == "interrupted"


# --- time limits ------------------------------------------------------------------------------


@each_learner
def test_a_tiny_time_limit(name):
    with pytest.warns(LearningStoppedWarning, match="time limit"):
        learner = fresh(name, time_limit=1e-9).fit(GridMDP(), 0)
    assert learner.status_ == "time limit"
    assert learner.mask_ == ()
    assert not learner.get_support().any()
    assert learner.objective_ is None
    assert learner.history_ == []


def test_after_a_time_limit_nothing_more_is_learned():
    with pytest.warns(LearningStoppedWarning):
        learner = CalibratedMaskLearner(time_limit=1e-9).fit(Watched(GridMDP()), 0)
    asked = learner.study_.mdp.calls.copy()
    assert learner.reasons_ == {}
    assert learner.study_.mdp.calls == asked


def test_a_time_limit_in_the_middle_keeps_what_was_found():
    def slow(progress):
        if progress.record is not None:
            time.sleep(0.2 * (len(progress.record.mask) > 1))

    study = Study(GridMDP(), 0, **SMALL)
    CalibratedMaskLearner().fit(study)  # everything is known
    with pytest.warns(LearningStoppedWarning, match="time limit"):
        learner = CalibratedMaskLearner(time_limit=0.15, callback=slow).fit(study)
    assert learner.mask_ == ("object", "guard")
    assert learner.status_ == "time limit"


def test_a_learner_in_a_hurry_does_not_spoil_the_study():
    """The plan of a mask that ran out of time is not that of the next learner."""

    class Hasty:
        """As if less than a minute were hardly any time."""

        def plan(self, mdp, *, rng=None, time_limit=None):
            exact = ValueIteration(tolerance=1e-9)
            return exact.plan(mdp, time_limit=1e-9 if time_limit < 60.0 else None)

    mdp = GridMDP()
    study = Study(mdp, 0, planner=Hasty(), **SMALL)
    mask = mdp.exogenous_names
    with Clock(50.0).above():
        hurried = study.evaluator.objective(mask)
    assert not hurried.plan.converged
    assert study.evaluator.objective(mask).plan.converged


def test_the_relaxed_plan_of_a_learner_in_a_hurry_is_forgotten():
    """Nor are the states that it led to those of the next learner."""
    study = Study(GridMDP(), 0, planner=ValueIteration(tolerance=1e-9), **SMALL)
    with Clock(1e-9).above(), suppress(OutOfTimeError):
        visited_sampler(study, ("object",))
    assert ("object",) not in study.memory.entries(VISITED)
    _, actions = visited_sampler(study, ("object",))(500, np.random.default_rng(0))
    assert len(np.unique(actions)) > 1  # a plan without a single sweep takes action 0 everywhere
    assert ("object",) in study.memory.entries(VISITED)


def test_a_mask_that_takes_longer_than_the_study_allows_is_planned_once():
    """Also by a learner that has a time limit of its own, if that is the longer one."""

    class Slow:
        plans = 0

        def plan(self, mdp, *, rng=None, time_limit=None):
            self.plans += 1
            assert time_limit == 1e-9
            return ValueIteration().plan(mdp, time_limit=time_limit)

    planner = Slow()
    study = Study(GridMDP(), 0, planner=planner, planning_time_limit=1e-9, **SMALL)
    for _ in range(3):
        with Clock(50.0).above():
            study.evaluator.compare(("object",), ("guard",))
    assert planner.plans == 2


# --- slow models ------------------------------------------------------------------------------


class SlowMDP(Watched):
    """A model whose answers take a while."""

    def __init__(self, mdp, seconds):
        super().__init__(mdp)
        self.seconds = seconds

    def sample_initial(self, size, rng):
        time.sleep(self.seconds)
        return super().sample_initial(size, rng)

    def sample_exogenous(self, exogenous, rng):
        time.sleep(self.seconds)
        return super().sample_exogenous(exogenous, rng)

    def sample_endogenous(self, state, action, rng):
        time.sleep(self.seconds)
        return super().sample_endogenous(state, action, rng)

    def reward_terms(self, state, action):
        time.sleep(self.seconds)
        return super().reward_terms(state, action)


@each_learner
@pytest.mark.parametrize("limit", [0.1, 0.4])
def test_a_time_limit_holds_within_one_answer_of_a_slow_model(name, limit):
    fresh(name).fit(TINY, 0)  # whatever is compiled is compiled
    model = SlowMDP(TINY, 0.01)
    start = time.perf_counter()
    with pytest.warns(LearningStoppedWarning, match="time limit"):
        learner = fresh(name, time_limit=limit).fit(model, 0)
    assert time.perf_counter() - start < limit + 2.0  # a busy machine
    assert learner.status_ == "time limit"


@pytest.mark.parametrize("calls", [3, 30, 100, 300, 1000])
def test_what_is_interrupted_is_not_remembered(calls):
    """A study that ran out of time somewhere gives the results of one that did not."""
    whole = fresh("priced").fit(Study(GridMDP(), 0, **SMALL))
    study, left = Study(GridMDP(), 0, **SMALL), [calls]

    def watch(_):
        left[0] -= 1
        if left[0] < 0:
            raise OutOfTimeError

    with Clock(None, watch=watch).above(), suppress(OutOfTimeError):
        for record in fresh("priced")._steps(Session(fresh("priced"), study)):
            study.evaluator.objective(record.mask)
    again, expected = steps(fresh("priced").fit(study)), steps(whole)
    for step in (*again, *expected):
        step.pop("samples")  # those of the interrupted work count, too
    assert again == expected


def test_an_adapted_environment_is_stopped_between_its_steps():
    class Slow(Harbour):
        def step(self, action):
            time.sleep(0.005)
            return super().step(action)

    mdp = AdaptedMDP(Slow(), discount=0.95, horizon=20)
    start = time.perf_counter()
    with pytest.warns(LearningStoppedWarning, match="time limit"):
        CalibratedMaskLearner(time_limit=0.5, check=False).fit(mdp, 0)
    assert time.perf_counter() - start < 2.0  # 500 rollouts: one question takes 2.5 s
    mdp.sample_initial(3, np.random.default_rng(0))  # not stopped any more


def test_the_final_estimate_is_within_the_time_limit():
    """The mask is found; what is known of its J by then is kept."""

    def slow(progress):
        if progress.record is not None and progress.record.action == "start":
            time.sleep(0.6)

    study = Study(GridMDP(), 0, **SMALL)
    CalibratedMaskLearner().fit(study)
    with pytest.warns(LearningStoppedWarning, match="time limit"):
        learner = CalibratedMaskLearner(time_limit=0.5, callback=slow).fit(study)
    assert set(learner.mask_) >= {"object", "guard"}
    assert learner.objective_.mean_return == learner.history_[-1].mean_return
    assert learner.policy_.mask == learner.mask_
