"""The online planner, against plain enumeration."""

import inspect
import itertools

import numpy as np
import pytest
from factored import random_mdp
from hypothesis import given
from hypothesis import strategies as st

from exo_envs.domains.crowd import CrowdMDP
from planners import estimate_objective
from planners.core.memory import Memory
from planners.forecasting import recourse as recourse_module
from planners.forecasting.compiled_model import Models, needed_variables
from planners.forecasting.forecast_parents import ForecastParentSearch
from planners.forecasting.forecasts import Forecasts
from planners.forecasting.lookahead import look_ahead
from planners.forecasting.planner import ForecastPlanner, ForecastPolicy
from planners.samples.rollouts import ExogenousData
from planners.tables.factored_mdp import FactoredMDP


def fit(rollouts, sizes, parents, horizon):
    return Forecasts.fit(rollouts, sizes, parents, horizon, Memory())


def reference_values(mdp, forecast, n, x, recourse):
    """Backward induction by the definition: expectations over every joint value of x.

    With ``recourse``, a later action is chosen for each joint value; without, for all of them.
    """
    states, actions = mdp.num_endogenous_states, mdp.num_actions
    joint = np.array(list(itertools.product(*(range(size) for size in mdp.exogenous_sizes))))
    value = np.zeros(states)
    for h in range(forecast.horizon, -1, -1):
        if h == 0:
            weight = (joint == x).all(axis=1).astype(float)
        else:
            weight = np.ones(len(joint))
            for f, i in enumerate(forecast.variables):
                weight *= forecast.probabilities(x[None], f)[0, h - 1][joint[:, i]]
            others = np.prod(
                [s for i, s in enumerate(mdp.exogenous_sizes) if i not in forecast.variables]
            )
            weight /= others
        value_then = np.zeros((states, actions, len(joint)))
        for state, a in itertools.product(range(states), range(actions)):
            pairs = np.full(len(joint), state), np.full(len(joint), a)
            reward = mdp.base_reward[state, a] + sum(
                table[joint[:, i], state, a] for i, table in mdp.terms.items()
            )
            move = mdp.decision_lists.distribution(*pairs, joint)
            value_then[state, a] = reward + mdp.discount * move @ value
        q = value_then @ weight
        value = value_then.max(axis=1) @ weight if recourse else q.max(axis=1)
        value[mdp.terminal] = 0.0
        q[mdp.terminal] = 0.0
    return q[n]


@given(seed=st.integers(0, 2**32), recourse=st.booleans())
def test_look_ahead_is_backward_induction_over_forecasts(seed, recourse):
    """Exactly: without recourse, where no two rules of a list look at the same variable."""
    rng = np.random.default_rng(seed)
    num_rules = 2 if recourse else 1
    mdp = random_mdp(rng, sizes=(2, 3, 2), num_rules=num_rules, num_terminal=int(rng.integers(2)))
    rollouts = rng.integers(mdp.exogenous_sizes, size=(30, 6, 3))
    needed = needed_variables(mdp)
    forecasts = fit(rollouts, mdp.exogenous_sizes, dict.fromkeys(needed, (0, 1)), 4)
    n = np.array([0, 1])
    x = rng.integers(mdp.exogenous_sizes, size=(2, 3))
    models = Models.of(mdp, recourse=recourse)
    values = look_ahead(models, forecasts, mdp.discount, n, x)
    expected = [reference_values(mdp, forecasts, n[lane], x[lane], recourse) for lane in range(2)]
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5)


def test_lists_that_are_too_long_are_not_taken_apart(monkeypatch):
    """Then a later action is chosen for all that may be seen, as without recourse."""
    mdp = random_mdp(np.random.default_rng(0), sizes=(2, 3, 2))
    monkeypatch.setattr(recourse_module, "MAX_ENTRIES", 0)
    _, now, later = Models.of(mdp, recourse=True)
    assert len(later.trees.parents) == mdp.num_endogenous_states  # roots only
    np.testing.assert_array_equal(later.lists.base, now.lists.base)


@given(seed=st.integers(0, 2**32), most=st.sampled_from([1, 2, 4, 64]))
def test_who_sees_more_before_choosing_expects_more(seed, most):
    """At most ``most`` joint observations: none of them loses against choosing blindly.

    With several rules, those that look at the same variable are weighed as if independent.
    """
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, sizes=(2, 3, 2), num_rules=1, num_terminal=int(rng.integers(2)))
    rollouts = rng.integers(mdp.exogenous_sizes, size=(30, 6, 3))
    forecasts = fit(rollouts, mdp.exogenous_sizes, dict.fromkeys(needed_variables(mdp), (0, 1)), 4)
    n, x = np.arange(4), rng.integers(mdp.exogenous_sizes, size=(4, 3))
    blind = Models.of(mdp, recourse=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recourse_module, "MAX_LEAVES", most)
        seeing = Models.of(mdp, recourse=True)
    args = forecasts, mdp.discount, n, x
    without = look_ahead(blind, *args)
    assert (look_ahead(seeing, *args) >= without - 1e-5).all()


def test_forecasts_are_frequencies():
    """A walk round a ring of four that turns round when the other variable says so."""
    rng = np.random.default_rng(0)
    steps = np.cumsum(np.ones((4000, 9), dtype=int), axis=1)
    start, way = rng.integers(4, size=(4000, 1)), rng.integers(2, size=(4000, 1))
    place = (start + steps * (1 - 2 * way)) % 4
    rollouts = np.stack([place, np.broadcast_to(way, place.shape)], axis=-1)
    alone = fit(rollouts, np.array([4, 2]), {0: ()}, 3)
    informed = fit(rollouts, np.array([4, 2]), {0: (1,)}, 3)
    x = np.array([[0, 0], [0, 1]])
    np.testing.assert_allclose(alone.probabilities(x, 0)[0, 0], [0, 0.5, 0, 0.5], atol=0.03)
    sure = informed.probabilities(x, 0)
    assert sure.sum(axis=-1) == pytest.approx(1.0, abs=1e-5)
    for h in (1, 2, 3):
        assert sure[0, h - 1, h % 4] > 0.99
        assert sure[1, h - 1, -h % 4] > 0.99


def test_joint_values_never_seen_know_the_variables_own_value():
    rollouts = np.zeros((50, 5, 2), dtype=int)
    rollouts[:25, :, 0] = 1
    forecasts = fit(rollouts, np.array([2, 3]), {0: (1,)}, 2)
    seen, unseen = forecasts.probabilities(np.array([[1, 0], [1, 2]]), 0)
    assert seen[0, 1] > 0.95
    assert unseen[0, 1] > 0.95


def test_forecast_parents_are_what_tells_the_future():
    """Variable 0 copies 3; 1 is noise; 2 counts round; only 0 needs another variable."""
    rng = np.random.default_rng(1)
    driver = rng.integers(3, size=(300, 31))
    copy = np.roll(driver, 1, axis=1)
    noise = rng.integers(5, size=driver.shape)
    count = (np.arange(31) + rng.integers(4, size=(300, 1))) % 4
    rollouts = np.stack([copy, noise, count, driver], axis=-1)
    search = ForecastParentSearch(rollouts, np.array([3, 5, 4, 3]), 1e-3, 4, Memory())
    assert {i: search.parents(i) for i in range(4)} == {0: (3,), 1: (), 2: (), 3: ()}


def test_no_forecast_parents_under_independence():
    """Of 40 targets in 10 runs, each at level 1e-3, at most 3 choose anything (p < 1e-5)."""
    chosen = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rollouts = rng.integers(3, size=(200, 21, 4))
        search = ForecastParentSearch(rollouts, np.full(4, 3), 1e-3, 4, Memory())
        chosen += sum(bool(search.parents(i)) for i in range(4))
    assert chosen <= 3


def test_plans_say_what_they_did_and_repeat_by_seed(tmp_path):
    mdp = random_mdp(np.random.default_rng(3), sizes=(2, 3, 2))
    plans = [
        ForecastPlanner(horizon=5, num_rollouts=200).plan(mdp, rng=np.random.default_rng(1))
        for _ in range(2)
    ]
    assert plans[0].converged
    assert plans[0].iterations == 5
    state = mdp.sample_uniform(50, np.random.default_rng(2))
    actions = plans[0].policy(state)
    np.testing.assert_array_equal(actions, plans[1].policy(state))
    path = tmp_path / "policy"
    plans[0].policy.save(path)
    np.testing.assert_array_equal(ForecastPolicy.load(path)(state), actions)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match=r"policy'"):
        ForecastPolicy.load(path)


def test_forecasts_are_counted_in_the_rollouts_of_the_model():
    """Rollouts in which x never moves, of a model whose tables say otherwise."""
    mdp = random_mdp(np.random.default_rng(3), sizes=(2, 3))
    x = np.random.default_rng(0).integers(mdp.exogenous_sizes, size=(500, 1, 2))
    values = np.repeat(x, mdp.horizon + 1, axis=1)
    names, n = mdp.exogenous_names, np.zeros((500, 1), dtype=np.int64)
    planner = ForecastPlanner(num_rollouts=500)

    def forecast(data):
        mdp.data = data
        forecasts = planner.plan(mdp, rng=np.random.default_rng(1)).policy.forecasts
        return forecasts.probabilities(np.array([[1, 2]]), 0)[0, 0]

    still = forecast(ExogenousData(names, mdp.exogenous_sizes, values, n, seed=0))
    assert still.argmax() == (1, 2)[needed_variables(mdp)[0]]
    assert still.max() > 0.9
    assert forecast(None).max() < 0.9


def test_a_reduced_model_is_the_model_that_was_planned_in():
    """Its own rollouts, given to its constructor, are all that forecasts are counted in."""
    mdp = CrowdMDP()
    mask = ("porter_0_cell", "porter_0_destination", "object_0", "occupancy_3_3")
    objective = estimate_objective(
        mdp, mask, rng=0, num_rollouts=50, n_rollouts=3, planner=ForecastPlanner()
    )
    reduced, forecasts = objective.reduced, objective.plan.policy.forecasts
    assert reduced.data.names == reduced.mask
    given = set(inspect.signature(FactoredMDP).parameters) - {"memory"}
    copied = FactoredMDP(**{name: getattr(reduced, name) for name in given})
    again = ForecastPlanner().plan(copied, rng=np.random.default_rng(9)).policy.forecasts
    for part, same in zip(forecasts.tables, again.tables, strict=True):
        np.testing.assert_array_equal(part, same)


def test_at_the_time_limit_it_says_so():
    mdp = random_mdp(np.random.default_rng(3), sizes=(2, 3, 2))
    plan = ForecastPlanner(num_rollouts=50).plan(mdp, rng=np.random.default_rng(1), time_limit=1e-9)
    assert not plan.converged
    assert plan.policy(mdp.sample_uniform(3, np.random.default_rng(0))).shape == (3,)


def test_values_out_of_range_get_an_answer():
    mdp = random_mdp(np.random.default_rng(3), sizes=(2, 3))
    policy = ForecastPlanner(num_rollouts=50).plan(mdp, rng=np.random.default_rng(1)).policy
    observation = {"endogenous": np.array([99]), "exogenous": np.array([7, -2])}
    assert policy(observation) in range(mdp.num_actions)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="horizon is a whole number, at least 1, not 0"):
        ForecastPlanner(horizon=0)


def test_masks_share_the_tables_that_look_at_the_same():
    sizes, memory = np.array([2, 3, 2]), Memory()
    rollouts = np.random.default_rng(0).integers(0, sizes, (30, 9, 3))
    one = Forecasts.fit(rollouts, sizes, {0: (1,), 1: (), 2: (0, 1)}, 4, memory)
    other = Forecasts.fit(rollouts, sizes, {0: (1,), 2: (0,)}, 4, memory)
    assert one.tables[0] is other.tables[0]
    assert one.lookups[0] is other.lookups[0]
    assert not np.shares_memory(one.tables[2], other.tables[1])


@pytest.mark.parametrize(
    "damage", [{"lookups": -1}, {"lookups": 1_000}, {"tables": np.nan}, {"tables": 2.0}]
)
def test_tables_that_are_damaged_are_refused(damage):
    sizes = np.array([2, 3])
    rollouts = np.random.default_rng(0).integers(0, sizes, (30, 9, 2))
    good = Forecasts.fit(rollouts, sizes, {0: (1,)}, 4, Memory())
    good.check()
    ((name, value),) = damage.items()
    array = getattr(good, name)[0].copy()
    array.reshape(-1)[0] = value
    with pytest.raises(ValueError, match="variable 0"):
        good._replace(**{name: (array,)}).check()
