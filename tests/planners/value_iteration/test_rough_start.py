"""Large models, whose first sweeps are in float32: the same guarantees."""

import numpy as np
import pytest
from factored import random_mdp, state_at
from hypothesis import given
from hypothesis import strategies as st

from planners import ValueIteration, to_discrete_dp
from planners.value_iteration import planner as planner_module


@given(seed=st.integers(0, 2**32))
def test_plans_are_as_good_as_without_it(seed):
    mdp = random_mdp(np.random.default_rng(seed), sizes=(3, 2), num_rules=2, num_terminal=seed % 2)
    planner = ValueIteration(tolerance=1e-8)
    plain = planner.plan(mdp)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner_module, "ROUGH_STATES", 1)
        plan = planner.plan(mdp)
    assert plan.converged
    assert plan.loss_bound <= 1e-8
    assert plan.values.dtype == np.float64
    np.testing.assert_allclose(plan.values, plain.values, atol=1e-8)
    actions = np.asarray(plan.policy(state_at(mdp, np.arange(mdp.num_states))))
    achieved = np.asarray(to_discrete_dp(mdp).evaluate_policy(actions))
    np.testing.assert_allclose(achieved, plain.values.reshape(-1), atol=2e-8)


def test_it_saves_sweeps_in_double_precision(monkeypatch):
    mdp = random_mdp(np.random.default_rng(0), sizes=(3, 2), discount=0.99)
    sweeps = []
    run = planner_module.Run._sweep

    def count(self, *arguments, **options):
        sweeps.append(self.dtype.itemsize)
        return run(self, *arguments, **options)

    monkeypatch.setattr(planner_module.Run, "_sweep", count)
    plain = ValueIteration().plan(mdp)
    assert sweeps == [8] * plain.iterations
    sweeps.clear()
    monkeypatch.setattr(planner_module, "ROUGH_STATES", 1)
    plan = ValueIteration().plan(mdp)
    assert plan.converged
    assert len(sweeps) == plan.iterations  # of both kinds
    assert sweeps == sorted(sweeps)  # single precision first
    assert 0 < sweeps.count(8) < plain.iterations


@pytest.mark.parametrize("options", [{"max_iterations": 3}, {"dtype": np.float32}])
def test_it_is_left_out_where_it_would_not_do(monkeypatch, options):
    mdp = random_mdp(np.random.default_rng(0), sizes=(3, 2))
    plain = ValueIteration(**options).plan(mdp)
    monkeypatch.setattr(planner_module, "ROUGH_STATES", 1)
    plan = ValueIteration(**options).plan(mdp)
    assert plan.values.tobytes() == plain.values.tobytes()
    assert plan.iterations == plain.iterations


def test_time_that_runs_out_in_between_leaves_a_plan(monkeypatch):
    monkeypatch.setattr(planner_module, "ROUGH_STATES", 1)
    mdp = random_mdp(np.random.default_rng(0), sizes=(3, 2))
    iterate = planner_module.Run.iterate

    def stop(self):
        if self.dtype == np.float64:
            raise planner_module.OutOfTimeError
        iterate(self)

    monkeypatch.setattr(planner_module.Run, "iterate", stop)
    plan = ValueIteration().plan(mdp)
    assert plan.out_of_time
    assert not plan.converged
    assert plan.values.dtype == np.float64
    assert plan.iterations > 0
    actions = np.asarray(plan.policy(state_at(mdp, np.arange(mdp.num_states))))
    problem = to_discrete_dp(mdp)
    best = np.asarray(problem.solve(method="policy_iteration").v)
    assert (best - np.asarray(problem.evaluate_policy(actions))).max() <= plan.loss_bound + 1e-9
