"""What rollouts hardly saw: found by asking the model, unless the policy gets out of its way."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from rough import Alarms

from benchmarks.coverage import measure
from benchmarks.rough_models import DamMDP, QuakeMDP
from exo_envs.domains.grid import GridMDP
from planners import Scenarios, estimate_objective, evaluate
from planners.samples.rollouts import ExogenousData
from planners.surprises import Surprise, at_most, find_surprises
from planners.worth import Objective, Played
from wrappers import Study


def go_out(state):
    return np.ones(len(state.endogenous), np.int64)


def stay_in(state):
    return np.zeros(len(state.endogenous), np.int64)


def heed_alarms(state):
    return 1 - state.exogenous[:, 2]


def look(mdp, policy, seed=0, count=300, data=True, **settings):
    scenarios = Scenarios.sample(mdp, count, seed)
    known = ExogenousData.collect(mdp, 4_000, np.random.default_rng(seed + 1)) if data else None
    half_width = 0.2
    return find_surprises(mdp, policy, scenarios, half_width=half_width, data=known, **settings)


@pytest.mark.parametrize("names", [None, ("demand", "quake")])
def test_a_loss_that_was_hardly_seen_is_found_with_its_size(names):
    mdp = QuakeMDP()
    (found,) = look(mdp, go_out, names=names)
    assert (found.variables, found.values) == (("quake",), (1,))
    # Who is always out is caught at any step but the first, which is discounted.
    expected = -mdp.loss * np.mean(mdp.discount ** np.arange(mdp.horizon) * (np.arange(12) > 0))
    assert found.effect == pytest.approx(expected, rel=0.15)
    assert found.rollouts == 300
    assert found.all_rollouts == 4_300
    assert found.seen < 3
    assert 0.3 < found.seen_at_all / (4_300 * mdp.horizon * 1e-4) < 3
    assert "the largest loss" in str(found)
    assert "where 'quake' is 1" in str(found)


def test_who_is_never_caught_has_nothing_to_fear():
    assert look(QuakeMDP(), stay_in) == []


def test_a_loss_by_way_of_n_is_found():
    (found,) = look(DamMDP(), go_out, data=False)
    assert (found.variables, found.values) == (("river",), (3,))
    assert found.effect < -1_000
    assert "was never seen in 300 episodes. Normal" in str(found)


def test_what_is_announced_is_no_surprise_to_who_listens():
    mdp = Alarms(rate=1e-3)
    assert [own.variables for own in look(mdp, go_out)] == [("storm",)]
    assert look(mdp, heed_alarms) == []


def test_what_comes_up_often_is_no_surprise():
    assert look(GridMDP(), stay_in) == []
    assert look(QuakeMDP(rate=0.05), go_out) == []


def test_what_is_small_does_not_matter():
    assert look(QuakeMDP(loss=1.0), go_out) == []


def test_nothing_is_asked_about_a_record():
    mdp = QuakeMDP()
    mdp.is_recorded = True
    scenarios = Scenarios.sample(QuakeMDP(), 50, 0)
    assert find_surprises(mdp, go_out, scenarios, half_width=0.1) == []


def test_of_what_never_came_up_the_worst_counts_once():
    def surprise(effect, seen):
        return Surprise(("a",), (0,), (1,), effect, 0, 500, seen, 1_000)

    one = surprise(-100.0, 0)
    assert at_most([one]) == pytest.approx(100 * 3.689 / 1_000, rel=1e-3)
    assert at_most([one, surprise(-50.0, 0)]) == at_most([one])
    assert at_most([one, surprise(-100.0, 4)]) > at_most([one])
    assert at_most([]) == 0.0
    assert surprise(-100.0, 4).needed == 5_000
    assert surprise(-100.0, 0).needed == 5_400


# --- objectives -----------------------------------------------------------------------------------


def test_an_objective_says_what_its_rollouts_hardly_saw():
    study = Study(QuakeMDP(), 0)
    objective = study.evaluator.objective(["demand", "quake"])
    low, high = objective.interval()
    assert low < objective.mean_return < high
    assert "'quake' is 1" in objective.caution
    assert objective.estimate is objective.estimate
    early = copy.copy(study.evaluator.objective(["demand", "quake"]))
    assert early.rollouts is None
    assert early.interval() == early.estimate.interval()
    kept = pickle.loads(pickle.dumps(objective))
    assert kept.interval() == (low, high)
    assert kept.caution == objective.caution


def test_the_same_seed_gives_the_same_interval():
    first, second = (
        estimate_objective(DamMDP(), ["demand"], rng=3, n_rollouts=200) for _ in range(2)
    )
    assert first.interval() == second.interval()


def test_ordinary_objectives_have_the_interval_by_normal_theory():
    objective = estimate_objective(GridMDP(), ["object", "guard"], rng=0)
    assert objective.caution is None
    half = 1.959963984540054 * objective.standard_error
    expected = (objective.mean_return - half, objective.mean_return + half)
    assert objective.interval() == pytest.approx(expected)


def test_too_few_returns_say_nothing():
    mdp = QuakeMDP()
    scenarios = Scenarios.sample(mdp, 5, 0)
    returns = evaluate(go_out, mdp, scenarios=scenarios)
    plan, reduced = SimpleNamespace(policy=go_out), SimpleNamespace(mask=())
    rollouts = Played(mdp, (scenarios,), None)
    found = Objective.of(returns, plan, reduced, cost_weight=0.0, cost="size", rollouts=rollouts)
    assert found.estimate.mixture is None


@pytest.mark.parametrize("name", ["a quake, 1e-4 a step", "a flood, 3e-4 an episode"])
def test_intervals_hold_where_a_rare_catastrophe_decides(name):
    """40 runs with coverage 95 % have fewer than 35 hits once in 300 times."""
    runs = measure(name, range(40))
    assert sum(run.ours.covers(run.truth) for run in runs) >= 35
    assert sum(run.normal.covers(run.truth) for run in runs) <= 25
    assert all(run.is_cautious for run in runs)
