"""Plans that ran out of time: what they decide, and who is told."""

import dataclasses
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from learners import SMALL, TINY, each_learner, fresh
from scripted import ScriptedStudy, Sites

from exo_envs.domains.grid import GridMDP
from exo_envs.domains.synthetic import SyntheticMDP, SyntheticParameters
from planners import Clock, PlanCutShortWarning, ValueIteration, estimate_objective
from planners.objective import MaskEvaluator
from wrappers import (
    BruteForceMaskLearner,
    CalibratedMaskLearner,
    GreedyMaskLearner,
    LearningStoppedWarning,
    Study,
    UndecidedWarning,
)
from wrappers.fitting import session

COLD = """
import dataclasses, json
from exo_envs.domains.grid import GridMDP
from planners import Clock
from wrappers import CalibratedMaskLearner

found = []
for _ in range(2):
    own, wall = Clock(None), Clock(None, wall=True)
    learner = CalibratedMaskLearner(cost_weight=1, planning_time_limit=2).fit(GridMDP(), 0)
    steps = [dataclasses.asdict(record) for record in learner.history_]
    times = [[record.pop("seconds"), record.pop("plan_seconds")] for record in steps]
    found.append({
        "result": [learner.mask_, learner.status_, learner.objective_.value, steps],
        "own": own.seconds(),
        "wall": wall.seconds(),
        "plan": max(seconds or 0 for _, seconds in times),
    })
print(json.dumps(found))
"""


def test_an_empty_cache_changes_nothing(tmp_path):
    """Compiling takes longer than a plan may; the second time everything is compiled."""
    root = Path(__file__).parents[3]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(root)}
    run = subprocess.run(
        [sys.executable, "-c", COLD],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    cold, warm = json.loads(run.stdout)
    assert cold["wall"] > 2 * 2 > cold["own"]
    assert cold["plan"] < 2
    assert cold["result"] == warm["result"]
    mask, status, value, _ = cold["result"]
    assert (mask, status) == (["object", "guard"], "finished")
    assert value > 70


# --- decisions ------------------------------------------------------------------------------------


def test_no_variable_is_dropped_because_time_was_up():
    """Without a sweep all plans do the same, and a smaller mask would be as good and cheaper."""
    learner = CalibratedMaskLearner(cost_weight=1.0, planning_time_limit=1e-9, **SMALL)
    with pytest.warns(PlanCutShortWarning, match=r"plans with \d+ of the masks .*=1e-09") as caught:
        learner.fit(GridMDP(), 0)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert learner.status_ == "plans cut short"
    assert set(learner.mask_) >= {"object", "guard"}
    tried = [record for record in learner.history_ if record.value is not None]
    assert all("ran out of time" in record.reason for record in tried)
    table = learner.history_.to_pandas()
    assert not table["converged"].dropna().any()
    assert len(table["converged"].dropna()) == len(tried)
    assert learner.objective_.plan.policy is learner.policy_
    assert learner.saved().status == "plans cut short"


def priced(worth, cut_short, **settings):
    """Our learner; ``worth`` says what a mask is worth, and some are not planned with in time."""
    study = ScriptedStudy(Sites(rain=False), worth)
    study.evaluator.cut_short = cut_short
    learner = CalibratedMaskLearner(cost_weight=1.0, **settings)
    with pytest.warns(PlanCutShortWarning):
        return learner.fit(study)


def test_the_mask_that_is_behind_decides_nothing_if_its_plan_was_cut_short():
    everything = Sites(rain=False).exogenous_names
    learner = priced(lambda mask: 0.0, {everything})
    assert learner.mask_ == everything
    reasons = [record.reason for record in learner.history_ if record.action == "drop"]
    assert set(reasons) == {"not decided: the plan with the mask before ran out of time"}
    assert not any(record.accepted for record in learner.history_ if record.action == "drop")


def test_the_mask_that_is_ahead_may_have_been_cut_short():
    """Its policy earns what it earns."""
    everything = Sites(rain=False).exogenous_names
    smaller = {everything[:2], everything[1:], everything[::2]}
    learner = priced(lambda mask: 0.0, smaller)
    first, *later = (record for record in learner.history_ if record.action == "drop")
    assert first.accepted
    assert first.reason == "J does not fall; its plan ran out of time"
    assert first.converged is False
    assert learner.mask_ == first.mask  # now it would be behind
    assert not any(record.accepted for record in later)


def test_groups_that_cannot_be_planned_with_in_time_are_halved():
    """Two variables predict what pays, each is worth its price, and both are too many."""
    mdp = SyntheticMDP(
        SyntheticParameters(
            num_paying=2,
            num_xor_pairs=0,
            generations=1,
            num_moving=0,
            num_copies=0,
            num_noise=1,
            num_correlated=0,
            horizon=20,
        )
    )
    everything = CalibratedMaskLearner(**SMALL).fit(mdp, 0).mask_
    assert len(everything) == 4
    study = ScriptedStudy(
        mdp, lambda mask: 0.0 if mask == everything else 10.0 * len(mask), n_data_rollouts=60
    )
    study.evaluator.cut_short = {everything}
    with pytest.warns(PlanCutShortWarning):
        learner = CalibratedMaskLearner(cost_weight=1.0).fit(study)
    added = [record for record in learner.history_ if record.action == "add"]
    assert [len(record.candidate) for record in added] == [2, 1]
    assert [record.reason for record in added] == [
        "not decided; its plan ran out of time",
        "J rises",
    ]
    assert len(learner.mask_) == 3


def test_a_plan_that_was_cut_short_does_not_end_a_greedy_trial():
    names = Sites().exogenous_names
    study = ScriptedStudy(Sites(), lambda mask: 10.0 * ("coin_1" in mask))
    study.evaluator.cut_short = {(name,) for name in names if name != "coin_1"}
    with pytest.warns(PlanCutShortWarning):
        learner = GreedyMaskLearner(trials=4).fit(study)
    assert learner.mask_ == ("coin_1",)


@each_learner
def test_every_learner_says_so(name):
    with pytest.warns(PlanCutShortWarning):
        learner = fresh(name, planning_time_limit=1e-9).fit(TINY, 0)
    assert learner.status_ == "plans cut short"
    assert any(record.converged is False for record in learner.history_)


@each_learner
def test_nothing_is_said_of_plans_that_had_enough_time(name):
    learner = fresh(name).fit(TINY, 0)
    assert learner.status_ == "finished"
    assert all(record.converged in (True, None) for record in learner.history_)


def test_a_shared_study_remembers_what_was_cut_short():
    study = Study(GridMDP(), 0, planning_time_limit=1e-9, **SMALL)
    for _ in range(2):
        with pytest.warns(PlanCutShortWarning):
            assert BruteForceMaskLearner().fit(study).status_ == "plans cut short"


def test_plans_that_rounding_limits_are_plans():
    """There was time enough, and more would not help."""
    planner = ValueIteration(tolerance=1e-12, dtype="float32")
    learner = CalibratedMaskLearner(cost_weight=1.0, planner=planner, **SMALL).fit(GridMDP(), 0)
    assert not learner.objective_.plan.converged
    assert learner.status_ == "finished"
    assert learner.mask_ == ("object", "guard")


def test_an_estimate_of_j_says_so():
    message = "plan with 1 variable.*planning_time_limit=0 "
    with pytest.warns(PlanCutShortWarning, match=message) as caught:
        objective = estimate_objective(GridMDP(), ["object"], planning_time_limit=0, n_rollouts=10)
    assert caught[0].filename == __file__
    assert objective.plan.out_of_time


class Silent:
    """A planner that does not say why it has not converged."""

    def plan(self, mdp, *, rng=None, time_limit=None):
        plan = ValueIteration().plan(mdp, rng=rng, time_limit=0)
        return dataclasses.replace(plan, out_of_time=False, seconds=time_limit)


def test_planners_need_not_say_so():
    settings = {"planner": Silent(), "planning_time_limit": 5}
    with pytest.warns(PlanCutShortWarning):
        estimate_objective(GridMDP(), ["object"], n_rollouts=10, **settings)


# --- the time for learning ------------------------------------------------------------------------


class Slow:
    """A planner that is never done, and says what it does."""

    def plan(self, mdp, *, rng=None, time_limit=None):
        clock = Clock(time_limit)
        while clock.left() > 0:
            time.sleep(0.01)
            clock.tick(lambda: "thinking hard") if clock.left() else None
        return ValueIteration().plan(mdp, time_limit=0)


def test_a_plan_that_learning_had_no_time_for_decides_nothing():
    learner = CalibratedMaskLearner(cost_weight=1.0, planner=Slow(), time_limit=1.5, **SMALL)
    with pytest.warns(LearningStoppedWarning):
        learner.fit(GridMDP(), 0)
    assert learner.status_ == "time limit"
    assert {record.action for record in learner.history_} == {"find"}
    assert set(learner.mask_) >= {"object", "guard"}
    assert learner.objective_ is None
    assert not learner.study_.evaluator.trials


class Cut:
    """A planner that ends a little before its time, and says that it has not had enough."""

    def plan(self, mdp, *, rng=None, time_limit=None):
        time.sleep(0.9 * time_limit)
        return dataclasses.replace(ValueIteration().plan(mdp, time_limit=0), out_of_time=True)


@pytest.mark.parametrize("name", ["calibrated", "paper", "greedy"])
def test_what_the_time_for_learning_cut_short_is_not_blamed_on_the_time_for_plans(name):
    learner = fresh(name, planner=Cut(), time_limit=0.8, planning_time_limit=60.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner.fit(GridMDP(), 0)
    assert not [warning for warning in caught if "planning_time_limit" in str(warning.message)]
    if learner.status_ == "time limit":
        told = {warning.category for warning in caught}
        assert LearningStoppedWarning in told
        assert told <= {LearningStoppedWarning, UndecidedWarning}
    else:  # each plan leaves the next one a tenth of the time
        assert learner.status_ == "plans cut short"
        (told,) = (warning for warning in caught if warning.category is PlanCutShortWarning)
        assert "did not converge within what was left of time_limit=0.8 seconds" in str(told)


# --- reports --------------------------------------------------------------------------------------


def test_plans_that_take_long_report(monkeypatch):
    monkeypatch.setattr(session, "REPORT_EVERY", 0.05)
    told = []
    learner = fresh("phase one", planner=Slow(), planning_time_limit=0.3, callback=told.append)
    with pytest.warns(PlanCutShortWarning):
        learner.fit(TINY, 0)
    details = [progress for progress in told if progress.detail]
    assert "thinking hard" in {progress.detail for progress in details}  # and the last sweep
    assert {progress.stage for progress in details} == {"planning with 1 variable"}
    assert len(details) <= 0.3 / 0.05 + 1
    assert all(progress.record is None for progress in details)


def test_the_last_plan_reports_too(monkeypatch):
    monkeypatch.setattr(session, "REPORT_EVERY", 0.05)
    told = []
    monkeypatch.setattr(MaskEvaluator, "planner", lambda self, thorough=False: Slow())
    study = Study(TINY, 0, planning_time_limit=0.2, **SMALL)
    with pytest.warns(PlanCutShortWarning):
        fresh("phase one", callback=told.append).fit(study)
    details = [progress for progress in told if progress.detail]
    assert details[-1].stage == "planning with the mask"


@pytest.mark.parametrize("planner", [ValueIteration(), None])
def test_what_planners_say(monkeypatch, planner):
    monkeypatch.setattr(session, "REPORT_EVERY", 0.0)
    told = []
    fresh("calibrated", planner=planner, callback=told.append).fit(GridMDP(), 0)
    assert any(progress.detail.startswith("sweep 2, the policy may lose") for progress in told)


def test_an_interrupt_within_a_plan_keeps_the_mask(monkeypatch):
    monkeypatch.setattr(session, "REPORT_EVERY", 0.0)

    def stop(progress):
        if progress.detail:
            raise KeyboardInterrupt

    learner = fresh("calibrated", callback=stop)
    with pytest.warns(LearningStoppedWarning, match="interrupted"):
        learner.fit(GridMDP(), 0)
    assert set(learner.mask_) >= {"object", "guard"}
    assert learner.status_ == "interrupted"
