"""Plans where several variables pay together, against plain enumeration of the joint model."""

import itertools

import numpy as np
import pytest
from factored import random_mdp
from hypothesis import given, settings
from hypothesis import strategies as st
from joint import Match, any_joint_mdp, full_rewards, full_values, random_scopes

from planners import (
    UCT,
    DefaultPlanner,
    ForecastPlanner,
    ReducedMDP,
    ValueIteration,
    bracket,
    estimate_objective,
    evaluate,
)
from planners.core.memory import Memory
from planners.core.ragged import Ragged
from planners.forecasting.compiled_model import Models, needed_variables
from planners.forecasting.forecasts import Forecasts
from planners.forecasting.lookahead import look_ahead
from planners.forecasting.planner import ForecastPolicy
from planners.value_iteration.sweeps import backward_induction


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_exact_plans_are_those_of_the_joint_matrix(seed):
    mdp = any_joint_mdp(seed)
    plan = ValueIteration(tolerance=1e-7).plan(mdp)
    assert plan.converged
    np.testing.assert_allclose(plan.values, full_values(mdp), atol=1e-6)
    single = ValueIteration(tolerance=1e-3, dtype=np.float32).plan(mdp)
    np.testing.assert_allclose(single.values, full_values(mdp), atol=1e-2)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_so_are_values_with_few_steps_left(seed):
    mdp = any_joint_mdp(seed)
    for steps, values in enumerate(backward_induction(mdp, 3)):
        np.testing.assert_allclose(values, full_values(mdp, steps), atol=1e-9)


def test_memory_is_counted_before_it_is_taken():
    mdp = random_mdp(np.random.default_rng(0), sizes=(2, 3, 4), paying=(), joint=((0, 1, 2),))
    alone = random_mdp(np.random.default_rng(0), sizes=(2, 3, 4), paying=())
    planner = ValueIteration()
    more = planner.bytes_needed(mdp) - planner.bytes_needed(alone)
    assert more == (24 - 1) * mdp.base_reward.size * 8


def reference_look_ahead(mdp, forecasts, n, x, recourse):
    """Backward induction by the definition: expectations over every joint value of x."""
    joint = np.array(list(itertools.product(*(range(size) for size in mdp.exogenous_sizes))))
    rewards, value = full_rewards(mdp), np.zeros(mdp.num_endogenous_states)
    pair = np.indices((mdp.num_endogenous_states, mdp.num_actions, len(joint))).reshape(3, -1)
    moves = mdp.decision_lists.distribution(pair[0], pair[1], joint[pair[2]])
    moves = moves.reshape(*rewards.shape[1:], len(joint), -1)
    for h in range(forecasts.horizon, -1, -1):
        weight = (joint == x).all(axis=1).astype(float)
        if h:
            weight = np.ones(len(joint))
            for f, i in enumerate(forecasts.variables):
                weight *= forecasts.probabilities(x[None], f)[0, h - 1][joint[:, i]]
            known = set(forecasts.variables.tolist())
            weight /= np.prod([s for i, s in enumerate(mdp.exogenous_sizes) if i not in known])
        q = rewards.transpose(1, 2, 0) + mdp.discount * moves @ value
        first = q @ weight
        value = q.max(axis=1) @ weight if recourse else first.max(axis=1)
        value[mdp.terminal] = 0.0
        first[mdp.terminal] = 0.0
    return first[n]


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), recourse=st.booleans())
def test_look_ahead_is_backward_induction_over_forecasts(seed, recourse):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(
        rng,
        sizes=(2, 3, 2),
        num_rules=2 if recourse else 1,
        paying=tuple(i for i in range(3) if rng.random() < 0.5),
        num_terminal=int(rng.integers(2)),
        joint=random_scopes(rng, 3),
    )
    for table in mdp.joint_terms.values():
        table[rng.random(table.shape) < 0.5] = 0.0
    rollouts = rng.integers(mdp.exogenous_sizes, size=(30, 6, 3))
    parents = dict.fromkeys(needed_variables(mdp), (0, 1))
    memory = Memory()
    forecasts = Forecasts.fit(rollouts, mdp.exogenous_sizes, parents, 4, memory)
    n, x = np.array([0, 1]), rng.integers(mdp.exogenous_sizes, size=(2, 3))
    models = Models.of(mdp, recourse=recourse)
    models.check(forecasts)
    values = look_ahead(models, forecasts, mdp.discount, n, x)
    expected = [reference_look_ahead(mdp, forecasts, n[k], x[k], recourse) for k in range(2)]
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5)


def test_actions_that_pay_alike_share_their_joint_rewards():
    """What all actions of an n are paid alike is worked out once."""
    rng = np.random.default_rng(0)
    mdp = random_mdp(rng, sizes=(2, 3), paying=(), moving=(), joint=((0, 1),))
    mdp.joint_terms[0, 1][:] = mdp.joint_terms[0, 1][..., :1]
    paid = Models.of(mdp, recourse=False).now.lists.paid
    branches = mdp.num_endogenous_states * mdp.num_actions
    assert paid.starts[branches] == 0
    assert paid.starts[-1] == 6 * mdp.num_endogenous_states


def test_policies_of_joint_rewards_travel(tmp_path):
    mdp = random_mdp(np.random.default_rng(1), sizes=(2, 3, 2), joint=((0, 1), (1, 2)))
    policy = ForecastPlanner(num_rollouts=100).plan(mdp, rng=np.random.default_rng(0)).policy
    policy.save(tmp_path / "policy")
    state = mdp.sample_uniform(64, np.random.default_rng(2))
    loaded = ForecastPolicy.load(tmp_path / "policy")
    np.testing.assert_array_equal(loaded.action_values(*state), policy.action_values(*state))


@pytest.mark.parametrize(
    "change",
    [
        {"rewards": np.array([np.nan], dtype=np.float32)},
        {"paid": Ragged(np.array([10**6]), np.array([0, 1]))},
        {"paid": Ragged(np.array([0]), np.array([0, 1]))},
    ],
)
def test_damaged_joint_rewards_are_refused(change):
    mdp = random_mdp(np.random.default_rng(1), sizes=(2, 3), joint=((0, 1),))
    policy = ForecastPlanner(num_rollouts=50).plan(mdp, rng=np.random.default_rng(0)).policy
    now = policy.models.now
    models = policy.models._replace(now=now._replace(lists=now.lists._replace(**change)))
    with pytest.raises(ValueError, match=r"rewards|what lists pay for"):
        ForecastPolicy(**policy.arguments() | {"models": models})


PLANNERS = {
    "exact": ValueIteration(),
    "forecasts": ForecastPlanner(),
    "default": DefaultPlanner(),
    "tree search": UCT(simulations=200, depth=5),
}


@pytest.mark.parametrize("name", PLANNERS)
def test_every_planner_bets_when_the_coins_match(name):
    mdp = Match()
    model = ReducedMDP.estimate(mdp, ["first", "second"], rng=0, num_rollouts=300)
    policy = PLANNERS[name].plan(model, rng=np.random.default_rng(0)).policy
    x = np.array(list(itertools.product(range(2), repeat=5)))
    bets = policy({"endogenous": np.zeros((32, 1), dtype=int), "exogenous": x})
    np.testing.assert_array_equal(bets, x[:, 0] == x[:, 1])


def test_the_bracket_holds():
    """To bet in half of all steps: 10 less the tax of a half, as discounted over 20 steps."""
    mdp = Match()
    objective = estimate_objective(mdp, ["first", "second"], rng=0, n_rollouts=400)
    best = 0.5 * (10 - 0.5) * (1 - 0.9**20) / 0.1
    assert objective.mean_return == pytest.approx(best, abs=4 * objective.standard_error)
    found = bracket(mdp, objective.plan.policy, n_rollouts=100, rng=0)
    assert found.lower.mean - 3 * found.lower.standard_error <= best + 1
    assert best <= found.upper.mean + 3 * found.upper.standard_error + 1


def test_one_coin_alone_is_worth_nothing():
    mdp = Match()
    for mask in ([], ["first"], ["second", "tax", "noise"]):
        objective = estimate_objective(mdp, mask, rng=0, n_rollouts=400, num_rollouts=2000)
        assert abs(objective.mean_return) <= 4 * objective.standard_error + 2.0
    never = evaluate(objective.plan.policy, mdp, 10, np.random.default_rng(0))
    assert np.isfinite(never).all()
