"""What the planner that picks a planner says about itself."""

import re
import time

import gymnasium as gym
import numpy as np
import pytest
from workshop import Workshop

import exo_envs  # noqa: F401
from exo_envs.domains.crowd import CrowdMDP
from exo_envs.domains.factory import FactoryMDP, FactoryParameters
from exo_envs.domains.grid import GridMDP
from planners import (
    UCT,
    Clock,
    DefaultPlanner,
    Memory,
    ReducedMDP,
    Scenarios,
    default_planner,
    estimate_objective,
)
from planners.default_planner import affordable_part
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from planners.value_iteration.tabular_policy import TabularPolicy


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


@pytest.fixture(scope="module")
def factory():
    """All 22 variables of the factory, and the plan with them: too many to enumerate."""
    reduced = ReducedMDP.estimate(FactoryMDP(), FactoryMDP().exogenous_names, rng=0)
    return reduced, DefaultPlanner(tolerance=0.4, dtype=np.float32).plan(reduced)


def test_the_best_of_several_plans_is_taken_and_the_others_are_told(factory):
    _, plan = factory
    assert len(plan.candidates) == 3
    best, other, _ = plan.candidates
    assert plan.method == best.method
    assert best.earned.mean >= other.earned.mean
    assert "taken" in best.remark
    assert "less" in other.remark
    assert {candidate.method for candidate in plan.candidates} == {
        "forecasts",
        "open-loop forecasts",
        "value iteration with 9 of 22 variables",
    }
    assert "9 variables" in str(min(plan.candidates, key=lambda c: len(c.mask)))


@pytest.mark.parametrize(
    ("means", "played"),
    [
        ((0.0, 5.0, 1.0), 100),  # the second leads both others by far
        ((0.0, 5.0, 5.01), 800),  # it leads one of them only
        ((0.0, 0.45), 300),  # that takes a few parts
    ],
)
def test_plans_are_played_until_one_is_clearly_the_best(monkeypatch, means, played):
    mdp, noise = GridMDP(), np.random.default_rng(0).standard_normal((3, 800))

    def returns_of(policy, mdp, *, scenarios):
        lanes = slice(scenarios.seed, scenarios.seed + len(scenarios))
        return means[policy] + noise[policy, lanes]

    monkeypatch.setattr(default_planner, "evaluate", returns_of)
    drawn = Scenarios.sample(mdp, 800, 0, horizon=2)
    scenarios = Scenarios(drawn.endogenous, drawn.exogenous, seed=0)
    returns = default_planner._play(range(len(means)), mdp, scenarios, Clock(None))
    assert returns.shape == (len(means), played)
    np.testing.assert_array_equal(returns, np.array(means)[:, None] + noise[: len(means), :played])


def test_plans_that_earn_the_same_are_played_to_the_end(monkeypatch):
    """What makes a difference may be rare."""
    monkeypatch.setattr(
        default_planner, "evaluate", lambda policy, mdp, *, scenarios: np.ones(len(scenarios))
    )
    scenarios = Scenarios.sample(GridMDP(), 250, 0, horizon=2)
    assert default_planner._play(range(2), GridMDP(), scenarios, Clock(None)).shape == (2, 250)


def test_an_exact_plan_with_a_part_starts_warm_and_is_handed_out_with_its_values(factory):
    reduced, plan = factory
    planner = DefaultPlanner(tolerance=0.4, dtype=np.float32)
    again = planner.plan(reduced, warm_start=plan.part)
    names = min((candidate.mask for candidate in plan.candidates), key=len)
    for part in (plan.part, again.part):
        assert part.policy.mask == names
        assert part.values.size == reduced.part(names).num_states
    assert again.part.iterations < 0.2 * plan.part.iterations
    assert again.values is None


def test_a_plan_with_part_of_a_mask_is_a_policy_for_the_mask(factory, tmp_path):
    reduced, _ = factory
    part = affordable_part(reduced, 1e5, whole=True)
    assert part == ("order_0", "clock", *(f"machine_{k}" for k in range(5)))
    exact = DefaultPlanner().value_iteration.plan(reduced.part(part)).policy
    wide = exact.widened(reduced.mask, reduced.full_names)
    state = FactoryMDP().sample_uniform(50, np.random.default_rng(0))
    np.testing.assert_array_equal(wide(state), exact(state))
    wide.save(tmp_path / "policy")
    np.testing.assert_array_equal(TabularPolicy.load(tmp_path / "policy")(state), exact(state))


@pytest.mark.parametrize("limit", [0.0, 0.05, 0.5])
def test_several_plans_are_made_within_the_time_limit(factory, limit):
    reduced, _ = factory
    clock = Clock(None)
    plan = DefaultPlanner(dtype=np.float32).plan(reduced, time_limit=limit)
    assert clock.seconds() < limit + 1.0
    assert plan.seconds <= limit + 1.0
    state = FactoryMDP().sample_uniform(3, np.random.default_rng(0))
    assert plan.policy(state).shape == (3,)


def test_the_time_limit_holds_in_a_crowd():
    mdp = CrowdMDP()
    reduced = ReducedMDP.estimate(mdp, mdp.exogenous_names, rng=0)
    clock = Clock(None)
    plan = DefaultPlanner().plan(reduced, time_limit=0.5)
    assert clock.seconds() < 2.0  # 0.3 on an idle machine
    assert not plan.converged
    assert plan.out_of_time


def test_without_a_discount_there_is_no_exact_candidate():
    mdp = FactoryMDP(FactoryParameters(discount=1.0, horizon=10))
    plan = DefaultPlanner().plan(ReducedMDP.estimate(mdp, mdp.exogenous_names, rng=0))
    assert {candidate.method for candidate in plan.candidates} == {
        "forecasts",
        "open-loop forecasts",
    }


def chain(mdp, *steps):
    """Nested masks: nothing, then the variables whose names begin with the first step, ..."""
    masks = [[]]
    for step in steps:
        masks.append([n for n in mdp.exogenous_names if n in masks[-1] or re.match(step, n)])
    return masks


NESTED = {
    "ExoGrid-v0": ("object", "guard$", "carrier", "guard_intent|weather"),
    "ExoFactory-v0": ("order_0", "machine", "order_1|clock", "order_2|tech", "order_3|noise"),
    "ExoCrowd-v0": ("object", "occupancy", "porter", "wanderer"),
    "ExoSynthetic-v0": ("pays|moves", "parent", "grandparent|xor", "."),
}


@pytest.mark.parametrize("env_id", NESTED)
def test_a_larger_mask_does_not_do_worse(env_id):
    """Paired with the best smaller one, at 4 standard errors: once in 30,000 comparisons."""
    mdp = gym.make(env_id).unwrapped.mdp
    rng = np.random.default_rng(0)
    data = ExogenousData.collect(mdp, rng=rng)
    survey = EndogenousSurvey.collect(mdp, data, rng)
    shared = {"data": data, "survey": survey, "memory": Memory()}
    scenarios = Scenarios.sample(mdp, 300 if env_id == "ExoCrowd-v0" else 2000, rng)
    planner = DefaultPlanner(tolerance=0.4, dtype=np.float32)
    best = None
    for mask in chain(mdp, *NESTED[env_id]):
        tried = estimate_objective(mdp, mask, rng=0, scenarios=scenarios, planner=planner, **shared)
        if best is not None:
            gain = tried.gain_over(best)
            assert gain.mean >= -4 * gain.standard_error - 1e-9, (
                mask,
                tried.plan.method,
                str(gain),
            )
        if best is None or tried.mean_return > best.mean_return:
            best = tried
