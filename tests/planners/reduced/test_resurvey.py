"""A survey of another task, made from the survey of the task before."""

import numpy as np
import pytest

from exo_envs import ExoMDP, State, Variable
from exo_envs.domains.crowd import CrowdMDP, CrowdParameters
from exo_envs.domains.factory import FactoryMDP, FactoryParameters
from exo_envs.domains.grid import GridMDP, GridParameters
from planners.reduced.survey import EndogenousSurvey, survey_again
from planners.samples.rollouts import ExogenousData

SMALL = {"grid_size": 5, "num_agents": 4, "num_porters": 3, "num_objects": 5, "num_tables": 3}


def surveyed(mdp, reward="terms"):
    data = ExogenousData.collect(mdp, 100, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    return data, EndogenousSurvey.collect(mdp, data, rng, reward=reward)


def again(before, after, reward="terms", data=None):
    """The survey that was made from the one before, and the one made from nothing."""
    _, known = surveyed(before, reward)
    own, fresh = surveyed(after, reward)
    rng = np.random.default_rng(1)
    data = own if data is None else data
    return survey_again(known, before, after, data, rng, reward=reward), fresh


def assert_same(survey, fresh):
    """Everything but how often the model was asked."""
    assert np.array_equal(survey.relevant, fresh.relevant)
    assert survey.paying == fresh.paying
    assert np.array_equal(survey.base_reward, fresh.base_reward)
    for scope, table in fresh.scoped_terms.items():
        assert np.array_equal(survey.scoped_terms[scope], table)
    keys = [[[rule.key for rule in rules] for rules in each.lists] for each in (survey, fresh)]
    assert keys[0] == keys[1]
    for part in ("rollout", "step"):
        one, other = (getattr(each.backgrounds, part) for each in (survey, fresh))
        assert np.array_equal(one, other)
    assert survey.reward_samples == fresh.reward_samples
    assert survey.endogenous_samples <= fresh.endogenous_samples / 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (CrowdMDP(CrowdParameters(**SMALL)), CrowdMDP(CrowdParameters(**SMALL, goal="fixed"))),
        (FactoryMDP(), FactoryMDP(FactoryParameters(order_reward=7.0, down_cost=-3.0))),
    ],
    ids=["crowd", "factory"],
)
def test_what_pays_is_asked_anew_and_moves_are_kept(before, after):
    survey, fresh = again(before, after)
    assert_same(survey, fresh)


def test_a_black_box_is_asked_anew_what_pays():
    grids = GridMDP(), GridMDP(GridParameters(goal_reward=7.0))
    survey, fresh = again(*grids, reward="total")
    assert survey.paying == fresh.paying
    assert all(np.array_equal(survey.scoped_terms[j], own) for j, own in fresh.scoped_terms.items())


def test_noisy_moves_are_kept_as_they_were_estimated():
    grid = GridMDP()
    _, known = surveyed(grid)
    survey, _ = again(grid, GridMDP(GridParameters(crash_cost=1.0)))
    assert [[rule.key for rule in rules] for rules in survey.lists] == [
        [rule.key for rule in rules] for rules in known.lists
    ]


@pytest.mark.parametrize(
    "after",
    [
        GridMDP(GridParameters(slip=0.11)),
        CrowdMDP(CrowdParameters(**SMALL)),
        FactoryMDP(FactoryParameters(rows=4)),
    ],
    ids=["slip", "other n", "other values of n"],
)
def test_other_moves_are_asked_anew(after):
    before = FactoryMDP() if isinstance(after, FactoryMDP) else GridMDP()
    _, known = surveyed(before)
    data, _ = surveyed(after)
    assert survey_again(known, before, after, data, np.random.default_rng(1)) is None


class Doors(ExoMDP):
    """n is whether the agent is out; the door opens if all bits are on, which is rare by chance."""

    endogenous_variables = (Variable("out", 2),)
    exogenous_variables = tuple(Variable(f"bit_{k}", 2) for k in range(12))
    num_actions, discount, horizon = 1, 0.9, 10

    def __init__(self, on=False, ends=False):
        self.on, self.ends = on, ends

    def sample_initial(self, size, rng):
        x = np.repeat(rng.integers(2, size=(size, 1)), 12, axis=1) if self.on else 0
        return State(np.zeros((size, 1), int), np.zeros((size, 12), int) + x)

    def sample_exogenous(self, exogenous, rng):
        return exogenous.copy()

    def sample_endogenous(self, state, action, rng):
        return (state.exogenous.all(axis=-1, keepdims=True) | (state.endogenous > 0)).astype(int)

    def reward_terms(self, state, action):
        return np.zeros(state.exogenous.shape)

    def is_terminal(self, state):
        return (state.endogenous[..., 0] > 0) & self.ends


def test_what_mattered_nowhere_before_is_noticed_where_it_does():
    """In one state of 4,096 at random; in every other one of the rollouts of the second task."""
    before, after = Doors(), Doors(on=True)
    _, known = surveyed(before)
    assert not known.relevant.any()
    data, fresh = surveyed(after)
    assert fresh.relevant[0].any()
    assert survey_again(known, before, after, data, np.random.default_rng(1)) is None


def test_another_end_is_asked_anew():
    before, after = Doors(), Doors(ends=True)
    _, known = surveyed(before)
    data, _ = surveyed(after)
    assert survey_again(known, before, after, data, np.random.default_rng(1)) is None
