"""What learners share, and that it is estimated once."""

from functools import cached_property

import numpy as np
import pytest
from learners import LEARNERS, SMALL, TINY, each_learner, fresh, steps
from scripted import Sites, Watched

from exo_envs.core.clock import Clock
from exo_envs.domains.grid import GridMDP
from planners import DefaultPlanner, Scenarios
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from wrappers import CalibratedMaskLearner, Study
from wrappers.fitting.session import Session

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
    rules = ("average", "zero")
    shared = {rule: Study(TINY, 5, ignored_rewards=rule, **SMALL) for rule in rules}
    for name in order:
        learner = fresh(name).fit(shared[LEARNERS[name].ignored_rewards])
        alone = fresh(name).fit(TINY, rng=5)
        assert learner.mask_ == alone.mask_, name
        assert steps(learner, "samples") == steps(alone, "samples"), name
        assert np.array_equal(learner.objective_.returns, alone.objective_.returns), name


@each_learner
def test_the_paper_forgets_what_is_ignored_and_others_average_it(name):
    learner = fresh(name)
    rule = "average" if isinstance(learner, CalibratedMaskLearner) else "zero"
    assert (learner.ignored_rewards, learner.get_params()["ignored_rewards"]) == (rule, rule)
    learner.fit(TINY)
    assert learner.study_.ignored_rewards == learner.objective_.reduced.ignored_rewards == rule
    assert learner.saved().learner["ignored_rewards"] == rule


def test_the_rule_of_a_study_is_that_of_its_learners():
    """And that is what a file says."""
    study = Study(TINY, 5, ignored_rewards="zero", **SMALL)
    learner = fresh("calibrated").fit(study)
    assert learner.objective_.reduced.ignored_rewards == "zero"
    assert learner.saved().learner["ignored_rewards"] == "zero"
    assert Study(TINY).ignored_rewards == "average"
    assert study.evaluator.reduce((), study.rng("any")).ignored_rewards == "zero"
    assert (
        study.evaluator.reduce((), study.rng("any"), relaxed=True).ignored_rewards == "optimistic"
    )
    with pytest.raises(ValueError, match="unknown rule for ignored_rewards 'nothing'"):
        Study(TINY, ignored_rewards="nothing")


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


#: Attributes that are worked out when they are first read, and ask the model for it.
LAZY = {"bracket", "cost_of_ignoring_"}


def test_looking_asks_the_model_nothing():
    """Properties of a study, a learner and its reduced model change nothing, but for two."""
    learner = fresh("priced").fit(Watched(TINY), rng=0)
    study, reduced = learner.study_, learner.objective_.reduced
    asked, billed = study.mdp.calls.copy(), study.samples
    for thing in (study, study.evaluator, learner, learner.objective_, learner.policy_, reduced):
        for attribute in set(dir(thing)) - LAZY:
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


@pytest.mark.parametrize("n_rollouts", [20, 40, 100])
def test_trajectories_are_drawn_when_a_look_needs_them_and_are_the_same(n_rollouts):
    study, other = (
        Study(Sites(coins=2), 0, n_rollouts=n_rollouts, n_data_rollouts=20) for _ in range(2)
    )
    everything = other.evaluator.scenarios()
    study.evaluator.objective(("coin_0",), first_look=True)  # plans, too
    asked = study.counted.exogenous_samples
    assert len(study.evaluator.scenarios(1)) == 1
    assert study.counted.exogenous_samples == asked
    later = study.evaluator.scenarios()
    rest = sum(map(len, later[1:])) * study.mdp.horizon
    assert study.counted.exogenous_samples == asked + rest
    assert len(later) == len(everything)
    for one, two in zip(later, everything, strict=True):
        np.testing.assert_array_equal(one.exogenous, two.exogenous)
        assert one.seed == two.seed


def test_visits_are_discounted_steps():
    study = Study(Sites(coins=2), 0, n_rollouts=7, n_data_rollouts=20)
    visits = study.evaluator.visits(("coin_0",))
    assert visits.shape == (4,)
    assert visits.sum() == pytest.approx(sum(0.99**t for t in range(24)))


# --- the learner's planner and its time ---------------------------------------------------------


class Recording:
    """A planner that remembers what it was asked, and for how long."""

    def __init__(self):
        self.asked = []

    def plan(self, mdp, *, rng=None, time_limit=None):
        self.asked.append((mdp, time_limit))
        return DefaultPlanner().plan(mdp, rng=rng, time_limit=time_limit)


def test_the_relaxed_problem_is_planned_by_the_learner_s_planner():
    planner = Recording()
    learner = fresh("visited", planner=planner, time_limit=50.0, planning_time_limit=70.0)
    learner.fit(GridMDP(), rng=0)
    relaxed, limit = planner.asked[0]
    assert all(set(parents) <= {name} for name, parents in relaxed.parents.items())
    assert limit <= 50.0
    assert len(planner.asked) == 2  # and the mask that was found


def test_looking_where_a_policy_goes_takes_no_more_than_the_learner_s_time():
    planner = Recording()
    study = Study(GridMDP(), 0, planner=planner, planning_time_limit=70.0, **SMALL)
    with Clock(40.0).above():
        study.evaluator.visits(("object",))
    study.evaluator.visits(("guard",))
    first, second = (limit for _, limit in planner.asked)
    assert first <= 40.0
    assert second == 70.0
    session = Session(fresh("priced", time_limit=50.0), study)
    with session.clock.above():
        study.evaluator.visits(("object", "guard"))
    assert planner.asked[-1][1] <= 50.0
