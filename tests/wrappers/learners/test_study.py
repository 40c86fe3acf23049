"""What learners share, that it is estimated once, and what is left when learning is stopped."""

import dataclasses
import time
import warnings
from functools import cached_property

import numpy as np
import pytest
from scripted import Sites, Watched

from exo_envs.grid import GridMDP
from exo_envs.synthetic import SyntheticMDP, SyntheticParameters
from planners import (
    DefaultPlanner,
    EndogenousSurvey,
    ExogenousData,
    MaskEvaluator,
    Scenarios,
    ValueIteration,
)
from wrappers import (
    BruteForceMaskLearner,
    CalibratedMaskLearner,
    CorrelationalMaskLearner,
    GreedyMaskLearner,
    LearningStoppedWarning,
    RewardVariableMaskLearner,
    Study,
)

SMALL = {"n_rollouts": 30, "n_data_rollouts": 60}
LEARNERS = {
    "brute force": BruteForceMaskLearner(cost_weight=2.0),
    "greedy": GreedyMaskLearner(trials=3),
    "phase one": RewardVariableMaskLearner(),
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


# --- the same seed, the same result -----------------------------------------------------------


@each_learner
def test_the_same_seed_gives_the_same_result(name):
    first, second = (fresh(name).fit(TINY, rng=5) for _ in range(2))
    assert first.mask_ == second.mask_
    assert steps(first) == steps(second)
    assert np.array_equal(first.objective_.returns, second.objective_.returns)


def test_another_seed_gives_another_result():
    first, second = (fresh("calibrated").fit(TINY, rng=seed) for seed in (5, 6))
    assert not np.array_equal(first.objective_.returns, second.objective_.returns)


def test_seeds_and_generators():
    mdp = GridMDP()
    assert Study(mdp).seed == Study(mdp, 0).seed == 0
    assert Study(mdp, np.int64(7)).seed == 7
    first, second = (Study(mdp, np.random.default_rng(7)).seed for _ in range(2))
    assert first == second
    rng = np.random.default_rng(7)
    assert Study(mdp, rng).seed != Study(mdp, rng).seed
    study = Study(mdp, 2**63 - 1)
    assert study.rng("a", 1).random() == study.rng("a", 1).random() != study.rng("a", 2).random()


@pytest.mark.parametrize("order", [list(LEARNERS), list(LEARNERS)[::-1]], ids=["there", "back"])
def test_learners_on_a_shared_study_do_not_disturb_each_other(order):
    """Each gets what it gets on a study of its own, whoever comes before it."""
    shared = Study(TINY, 5, **SMALL)
    for name in order:
        learner = fresh(name).fit(shared)
        alone = fresh(name).fit(TINY, rng=5)
        assert learner.mask_ == alone.mask_, name
        assert steps(learner, "samples") == steps(alone, "samples"), name
        assert np.array_equal(learner.objective_.returns, alone.objective_.returns), name


def test_the_worth_of_a_mask_does_not_depend_on_the_masks_before():
    """Not even by where planning starts from, if the planner is precise."""
    masks = [
        (),
        ("object",),
        ("object", "guard"),
        ("object", "carrier", "guard"),
        ("object", "carrier", "guard", "guard_intent"),
        ("guard",),
    ]
    settings = {"n_rollouts": 100, "n_data_rollouts": 200, "planner": DefaultPlanner()}
    there, back = (Study(GridMDP(), 0, **settings) for _ in range(2))
    returns = {mask: there.evaluator.objective(mask).returns for mask in masks}
    for mask in reversed(masks):
        assert np.array_equal(back.evaluator.objective(mask).returns, returns[mask]), mask


# --- estimated once ---------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch):
    """How often rollouts, surveys and scenarios are drawn."""
    calls = dict.fromkeys(("data", "survey", "scenarios"), 0)

    def count(what, cls, method):
        original = getattr(cls, method).__func__

        def wrapped(*arguments, **options):
            calls[what] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(cls, method, classmethod(wrapped))

    count("data", ExogenousData, "collect")
    count("survey", EndogenousSurvey, "collect")
    count("scenarios", Scenarios, "sample")
    return calls


def test_what_is_estimated_once_is_not_estimated_again(counted):
    watched = Watched(TINY)
    study = Study(watched, 0, **SMALL)
    names = ("brute force", "phase one", "calibrated", "priced")
    for name in names:
        fresh(name).fit(study)
    # Those that masks are compared on (so few are not played in parts), and the fresh ones.
    assert counted == {"data": 1, "survey": 1, "scenarios": 2}
    asked = watched.calls["exogenous"], watched.calls["initial"], study.samples
    before = watched.calls.copy()
    for name in names:
        fresh(name).fit(study)
    assert (watched.calls["exogenous"], watched.calls["initial"]) == asked[:2]
    # What is played again is the policy on the fresh trajectories: 30 rollouts of 20 steps, each of
    # which asks for a reward and for n'.
    assert watched.calls["endogenous"] - before["endogenous"] <= 20 * len(names)
    assert study.samples - asked[2] == 2 * 30 * 20 * len(names)


def test_the_paper_s_scores_and_variances_are_remembered():
    watched = Watched(GridMDP())
    study = Study(watched, 0, **SMALL)
    learner = fresh("paper").fit(study)
    first, samples = watched.calls.copy(), study.samples
    again = fresh("paper").fit(study)
    assert steps(again, "samples") == steps(learner, "samples")
    estimates = sum(record.value is not None for record in learner.history_) + 2
    # Independent trajectories for each estimate of J, and nothing else.
    assert study.samples - samples <= estimates * 2 * 30 * 40
    assert watched.calls["exogenous"] - first["exogenous"] <= estimates * 40


@each_learner
def test_samples_count_what_the_model_was_asked(name):
    """Exactly: a user decides by them what a learner costs."""
    mdp = Watched(TINY)
    learner = fresh(name).fit(mdp, rng=0)
    counted = learner.study_.counted
    assert counted.exogenous_samples == mdp.states["exogenous"] > 0
    assert counted.endogenous_samples == mdp.states["endogenous"] > 0
    assert counted.reward_samples == mdp.states["reward"] > 0
    assert learner.study_.samples == sum(mdp.states.values())
    billed = [record.samples for record in learner.history_]
    assert billed == sorted(billed)
    assert billed[-1] <= learner.study_.samples


def test_looking_asks_the_model_nothing():
    """Properties of a study, a learner and its reduced model change nothing."""
    learner = fresh("priced").fit(Watched(TINY), rng=0)
    study, reduced = learner.study_, learner.objective_.reduced
    asked, billed = study.mdp.calls.copy(), study.samples
    for thing in (study, study.evaluator, learner, learner.objective_, learner.policy_, reduced):
        for attribute in dir(thing):
            if isinstance(getattr(type(thing), attribute, None), (property, cached_property)):
                getattr(thing, attribute)
    assert reduced.parents.keys() == set(learner.mask_)
    assert study.mdp.calls == asked
    assert study.samples == billed


def test_masks_play_the_same_trajectories():
    """So rewards that no mask changes cancel: the noise of the rain is that of all returns."""
    study = Study(Sites(coins=2), 0, n_rollouts=50, n_data_rollouts=50)
    both, one = (
        study.evaluator.objective(("coin_0", "coin_1")),
        study.evaluator.objective(("coin_0",)),
    )
    gain = both.gain_over(one)
    assert gain.standard_error < 0.2 * both.standard_error
    assert gain.mean > 4 * gain.standard_error
    assert len(study.evaluator.independent_scenarios(0)) == 50
    first, second = (study.evaluator.independent_scenarios(k).exogenous for k in (0, 1))
    assert not np.array_equal(first, second)
    assert np.array_equal(first, study.evaluator.independent_scenarios(0).exogenous)


@pytest.mark.parametrize("n_rollouts", [1, 2, 3, 10, 11])
def test_any_number_of_rollouts_works(n_rollouts):
    study = Study(Sites(coins=2), 0, n_rollouts=n_rollouts, n_data_rollouts=20)
    assert sum(map(len, study.evaluator.scenarios())) == n_rollouts
    assert len(study.evaluator.objective(("coin_0",)).returns) == n_rollouts
    learner = CalibratedMaskLearner(cost_weight=1.0).fit(study)
    assert set(learner.mask_) <= set(study.mdp.exogenous_names)


def test_visits_are_discounted_steps():
    study = Study(Sites(coins=2), 0, n_rollouts=7, n_data_rollouts=20)
    visits = study.evaluator.visits(("coin_0",))
    assert visits.shape == (4,)
    assert visits.sum() == pytest.approx(sum(0.99**t for t in range(24)))


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
    mdp = GridMDP()
    planner = ValueIteration(tolerance=1e-9)
    study = Study(mdp, 0, planner=planner, **SMALL)
    mask = mdp.exogenous_names
    hurried = study.evaluator.objective(mask, time_limit=1e-9)
    assert not hurried.plan.converged
    assert study.evaluator.objective(mask).plan.converged
