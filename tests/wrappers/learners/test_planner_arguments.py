"""Planners and time limits that make no sense: named before anything is asked of the model."""

import dataclasses
import math

import numpy as np
import pytest
from learners import SMALL
from scripted import Watched

from exo_envs.domains.grid import GridMDP
from planners import (
    UCT,
    DefaultPlanner,
    ForecastPlanner,
    Policy,
    ValueIteration,
    estimate_objective,
)
from wrappers import CalibratedMaskLearner, Study


class NoArguments:
    def plan(self, mdp):
        raise AssertionError("not called")


NO_PLANNERS = [
    ("vi", "planner='vi' has none"),
    (3, "planner=3 has none"),
    (ValueIteration, r"planner=ValueIteration is a class, did you mean ValueIteration\(\)"),
    ([UCT()], "has none"),
    (False, "planner=False has none"),
    (NoArguments(), "NoArguments .* differs: got an unexpected keyword argument 'rng'"),
]
NO_LIMITS = [
    ("60", TypeError),
    (True, TypeError),
    (math.nan, ValueError),
    (-1, ValueError),
]


@pytest.mark.parametrize(("planner", "message"), NO_PLANNERS)
def test_what_is_no_planner(planner, message):
    mdp = Watched(GridMDP())
    for call in (
        lambda: CalibratedMaskLearner(planner=planner).fit(mdp),
        lambda: Study(mdp, planner=planner),
        lambda: estimate_objective(mdp, ["object"], planner=planner),
    ):
        with pytest.raises(TypeError, match=message):
            call()
    assert not mdp.calls


@pytest.mark.parametrize(("limit", "error"), NO_LIMITS)
def test_what_is_no_time_limit(limit, error):
    mdp = Watched(GridMDP())
    calls = {
        "time_limit": [
            lambda: CalibratedMaskLearner(time_limit=limit).fit(mdp),
            lambda: estimate_objective(mdp, ["object"], time_limit=limit),
            *(
                lambda planner=planner: planner.plan(mdp, time_limit=limit)
                for planner in (ValueIteration(), ForecastPlanner(), DefaultPlanner(), UCT())
            ),
        ],
        "planning_time_limit": [
            lambda: CalibratedMaskLearner(planning_time_limit=limit).fit(mdp),
            lambda: Study(mdp, planning_time_limit=limit),
            lambda: estimate_objective(mdp, ["object"], planning_time_limit=limit),
        ],
    }
    for name, several in calls.items():
        for call in several:
            with pytest.raises(error, match=f"^{name} is a number of seconds"):
                call()
    assert not mdp.calls


@pytest.mark.parametrize("limit", [None, math.inf, np.float32(60), np.int64(60), 60])
def test_time_limits_of_all_kinds(limit):
    learner = CalibratedMaskLearner(time_limit=limit, planning_time_limit=limit, **SMALL)
    assert learner.fit(GridMDP(), 0).status_ == "finished"


class Wrong:
    """A planner whose plans are changed into what is no plan."""

    def __init__(self, change):
        self.change = change

    def plan(self, mdp, *, rng=None, time_limit=None):
        return self.change(DefaultPlanner().plan(mdp, rng=rng, time_limit=time_limit))


class WrongActions(Policy):
    def __init__(self, policy, actions):
        super().__init__(policy.mask, policy.full, policy.endogenous_size)
        self.actions = actions

    def act(self, endogenous, exogenous):
        return self.actions(len(endogenous))


def acting(actions):
    return lambda plan: dataclasses.replace(plan, policy=WrongActions(plan.policy, actions))


NO_PLANS = [
    (lambda plan: None, TypeError, "planner.plan of Wrong returned is no Plan: None"),
    (lambda plan: plan.policy, TypeError, "is no Plan"),
    (
        lambda plan: dataclasses.replace(plan, policy=None),
        TypeError,
        "planner.plan of Wrong returned has a policy that is no Policy: None",
    ),
    (
        lambda plan: dataclasses.replace(plan, policy=lambda observation: 0),
        TypeError,
        "no Policy",
    ),
    (lambda plan: dataclasses.replace(plan, seconds=None), ValueError, "Plan.seconds"),
    (acting(lambda size: np.full(size, 99)), ValueError, "there is no action 99; actions are 0"),
    (acting(lambda size: np.full(size, -1)), ValueError, "there is no action -1"),
    (acting(lambda size: np.full(size, np.nan)), ValueError, "actions holds nan"),
    (acting(lambda size: np.full(size, "up")), TypeError, "actions has dtype <U2"),
]


@pytest.mark.parametrize(("change", "error", "message"), NO_PLANS)
def test_what_is_no_plan(change, error, message):
    for call in (
        lambda: CalibratedMaskLearner(planner=Wrong(change), **SMALL).fit(GridMDP()),
        lambda: estimate_objective(GridMDP(), ["object"], planner=Wrong(change), n_rollouts=10),
    ):
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize(
    ("planner", "arguments"),
    [
        (ValueIteration, {"tolerance": "small"}),
        (ValueIteration, {"tolerance": math.nan}),
        (ValueIteration, {"memory_limit": math.inf}),
        (ValueIteration, {"memory_limit": None}),
        (ValueIteration, {"dtype": "double precision"}),
        (ValueIteration, {"dtype": None}),
        (ValueIteration, {"inner_sweeps": 2.5}),
        (ForecastPlanner, {"level": 0.0}),
        (ForecastPlanner, {"level": "low"}),
        (ForecastPlanner, {"max_parents": -1}),
        (ForecastPlanner, {"recourse": "no"}),
        (ForecastPlanner, {"additive": None}),
        (ForecastPlanner, {"horizon": math.inf}),
        (DefaultPlanner, {"max_states": 0}),
        (DefaultPlanner, {"max_states": "all"}),
        (DefaultPlanner, {"max_endogenous_pairs": math.nan}),
        (DefaultPlanner, {"memory_limit": -1}),
        (DefaultPlanner, {"tolerance": 0.0}),
        (DefaultPlanner, {"dtype": int}),
        (DefaultPlanner, {"thorough": "yes"}),
        (UCT, {"exploration": -1.0}),
        (UCT, {"exploration": "much"}),
        (UCT, {"simulations": True}),
        (UCT, {"depth": 0}),
    ],
)
def test_hyper_parameters_are_named(planner, arguments):
    (name,) = arguments
    with pytest.raises((TypeError, ValueError), match=f"^{name} is "):
        planner(**arguments)


@pytest.mark.parametrize("planner", [ValueIteration(), ForecastPlanner(), DefaultPlanner(), UCT()])
def test_a_seed_is_as_good_as_a_generator(planner):
    mdp = GridMDP()
    state = mdp.sample_uniform(20, np.random.default_rng(1))
    first = planner.plan(mdp, rng=5).policy(state)
    np.testing.assert_array_equal(
        first, planner.plan(mdp, rng=np.random.default_rng(5)).policy(state)
    )
