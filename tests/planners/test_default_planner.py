"""What the planner that picks a planner says about itself."""

import time

import pytest
from workshop import Workshop

from exo_envs.grid import GridMDP
from planners import UCT, DefaultPlanner, ReducedMDP, default_planner, estimate_objective


def test_seconds_cover_choosing_and_estimating(monkeypatch):
    """Otherwise a mask that is costly to estimate would be cheap under ``cost="time"``."""
    tabulate, choose = default_planner.tabulate, DefaultPlanner.choose

    def slow_tabulate(mdp, rng):
        time.sleep(0.3)
        return tabulate(mdp, rng)

    def slow_choose(self, mdp):
        time.sleep(0.1)
        return choose(self, mdp)

    monkeypatch.setattr(default_planner, "tabulate", slow_tabulate)
    monkeypatch.setattr(DefaultPlanner, "choose", slow_choose)
    assert DefaultPlanner().plan(GridMDP()).seconds >= 0.5  # it chooses again once it has tables
    reduced = ReducedMDP.estimate(GridMDP(), ["object"], rng=0, num_rollouts=20)
    assert DefaultPlanner().plan(reduced).seconds >= 0.1
    objective = estimate_objective(
        GridMDP(), ["object"], rng=0, num_rollouts=20, n_rollouts=2, cost="time", cost_weight=2.0
    )
    assert objective.cost == objective.plan.seconds >= 0.1
    assert objective.value == pytest.approx(objective.mean_return - 2.0 * objective.plan.seconds)


def test_the_time_limit_covers_them_too(monkeypatch):
    left = []

    class Watch:
        def plan(self, mdp, *, rng=None, time_limit=None):
            left.append(time_limit)
            return DefaultPlanner().value_iteration.plan(mdp, rng=rng, time_limit=time_limit)

    def slow_choose(self, mdp):
        time.sleep(0.2)
        return Watch()

    reduced = ReducedMDP.estimate(GridMDP(), ["object"], rng=0, num_rollouts=20)
    monkeypatch.setattr(DefaultPlanner, "choose", slow_choose)
    DefaultPlanner().plan(reduced, time_limit=10.0)
    assert left[0] <= 9.8


def test_a_model_that_cannot_be_tabulated_is_searched_whatever_the_limit():
    """More pairs (n, a) are allowed than a survey asks about."""
    planner = DefaultPlanner(max_endogenous_pairs=10**9)
    assert isinstance(planner.choose(Workshop()), UCT)
    plan = planner.plan(Workshop())
    assert plan.policy.mask == Workshop().exogenous_names
