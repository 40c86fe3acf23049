"""An objective knows what no policy can exceed: when asked, once, on its own trajectories."""

import copy
import math
import pickle
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from workshop import Workshop

import planners.worth
from exo_envs.contract.checked_mdp import unchecked
from exo_envs.domains.factory import FactoryMDP
from exo_envs.domains.grid import GridMDP
from planners import UCT, Estimate, Memory, Scenarios, bracket, estimate_objective, evaluate
from planners.bounds.bracketing import Budget
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from planners.worth import Objective, Played
from wrappers import Study
from wrappers.reports.ignoring import CostOfIgnoring

SMALL = {"n_rollouts": 40, "num_rollouts": 100}


@pytest.fixture
def asked(monkeypatch):
    """What the bracket of an objective was asked with, each time it was worked out."""
    calls = []

    def noted(*arguments, **settings):
        calls.append((arguments, settings))
        return bracket(*arguments, **settings)

    monkeypatch.setattr(planners.worth, "bracket", noted)
    return calls


def test_it_is_worked_out_when_it_is_first_read_and_then_remembered(asked):
    objective = estimate_objective(GridMDP(), ["object", "guard"], **SMALL)
    assert not asked
    first = objective.bracket
    assert objective.bracket is first
    assert len(asked) == 1
    assert first.lower.mean <= first.upper.mean


def test_it_is_about_the_policy_on_the_trajectories_of_the_objective(asked):
    mdp = GridMDP(replace(GridMDP().parameters, slip=0.0))
    scenarios = Scenarios.sample(mdp, 30, 0)
    objective = estimate_objective(mdp, mdp.exogenous_names, num_rollouts=200, scenarios=scenarios)
    found = objective.bracket
    ((model, policy), settings) = asked[0]
    assert unchecked(model) is mdp
    assert policy is objective.plan.policy
    assert settings["returns"] is objective.returns
    np.testing.assert_array_equal(settings["scenarios"].exogenous, scenarios.exogenous)
    assert len(found.upper_values) == 30
    hindsight = bracket(mdp, policy, scenarios=scenarios, values=())
    assert found.hindsight.mean == pytest.approx(hindsight.hindsight.mean)


def test_parts_of_shared_trajectories_are_joined():
    study = Study(GridMDP(), 0, n_rollouts=60, n_data_rollouts=100)
    objective = study.evaluator.objective(["object"])
    parts = study.evaluator.scenarios()
    assert len(parts) > 1
    joined = Scenarios.join(parts)
    assert len(joined) == len(objective.returns) == 60
    np.testing.assert_array_equal(joined.exogenous[:, : len(parts[0])], parts[0].exogenous)
    assert len(objective.bracket.upper_values) == 60
    first = study.evaluator.objective(["object"], first_look=True)
    assert len(first.bracket.upper_values) == len(parts[0])


def test_what_was_collected_before_is_not_collected_again(monkeypatch):
    mdp, rng = FactoryMDP(), np.random.default_rng(0)
    data = ExogenousData.collect(mdp, 200, rng)
    survey = EndogenousSurvey.collect(mdp, data, rng)
    given = ({"data": data, "survey": survey}, {"memory": Memory(data=data, survey=survey)})
    objectives = [estimate_objective(mdp, ["order_0"], n_rollouts=5, **known) for known in given]
    study = Study(mdp, 0, n_rollouts=5, n_data_rollouts=200)
    objectives.append(study.evaluator.objective(["order_0"]))

    def fail(*_, **__):
        raise AssertionError("the model is asked again")

    monkeypatch.setattr(ExogenousData, "collect", fail)
    monkeypatch.setattr(EndogenousSurvey, "collect", fail)
    for objective in objectives:
        assert math.isfinite(objective.bracket.upper.mean)
    assert objectives[0].bracket.upper == objectives[1].bracket.upper


def test_there_is_none_where_n_cannot_be_enumerated():
    settings = {"planner": UCT(simulations=5, depth=2), "n_rollouts": 3, "num_rollouts": 50}
    assert estimate_objective(Workshop(), ["demand"], **settings).bracket is None


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))]
)
def test_copies_have_the_bracket_that_was_read_and_not_the_model(duplicate):
    objective = estimate_objective(GridMDP(), ["object"], **SMALL)
    early = duplicate(objective)
    np.testing.assert_array_equal(early.returns, objective.returns)
    assert early.value == objective.value
    with pytest.raises(ValueError, match="this objective is a copy"):
        _ = early.bracket
    upper = objective.bracket.upper
    assert duplicate(objective).bracket.upper == upper
    assert replace(objective, cost_weight=2.0).bracket.upper == upper


def test_the_trajectories_are_not_shown_to_people():
    assert "rollouts" not in repr(estimate_objective(GridMDP(), ["object"], **SMALL))


class Slow(GridMDP):
    is_batched = False


def test_what_a_poor_policy_earns_is_what_the_objective_says():
    """It earns exactly nothing, and the coupled returns have noise."""
    mdp = GridMDP()
    parts = tuple(Scenarios.sample(mdp, 30, seed) for seed in range(2))

    def stay(state):
        return np.zeros(len(state.endogenous), int)

    returns = np.concatenate([evaluate(stay, mdp, scenarios=part) for part in parts])
    plan, reduced = SimpleNamespace(policy=stay), SimpleNamespace(mask=())
    rollouts = Played(mdp, parts, None)
    price = {"cost_weight": 0.0, "cost": "size"}
    found = Objective.of(returns, plan, reduced, **price, rollouts=rollouts).bracket
    assert found.lower == Estimate.of(returns)
    assert found.lower.standard_error < Estimate.of(found.lower_returns).standard_error


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_a_slow_model_is_asked_about_as_many_trajectories_as_can_be_afforded(monkeypatch, share):
    objective = estimate_objective(Slow(), ["object"], **SMALL)
    needed = Budget.of(Slow(), Slow().horizon, penalty=False).questions(40)
    monkeypatch.setattr(planners.worth, "MAX_QUESTIONS", share * needed)
    everything = estimate_objective(Slow(), ["object", "guard"], **SMALL)
    if share == 0.1:  # fewer than 10
        assert objective.bracket is None
        assert math.isinf(CostOfIgnoring.of(objective, everything).high)
        return
    found = objective.bracket
    assert found.weights == ()
    assert len(found.upper_values) == len(found.lower_returns) == 20
    cost = CostOfIgnoring.of(objective, everything)
    assert cost.possible == found.difference
    assert cost.low <= cost.high < math.inf


def test_a_slow_model_that_is_small_has_everything(monkeypatch):
    monkeypatch.setattr(planners.worth, "MAX_QUESTIONS", 1e9)
    monkeypatch.setattr(planners.worth, "bracket", partial(bracket, max_questions=1e9))
    found = estimate_objective(Slow(), ["object"], **SMALL).bracket
    assert len(found.upper_values) == 40
    assert len(found.weights) == 1
