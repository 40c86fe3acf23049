"""Additive forecasts, against an independent regression and on processes that call for them."""

import numpy as np
import pytest
from factored import random_mdp

from exo_envs.core.clock import OutOfTimeError
from planners import Clock
from planners.core.memory import Memory
from planners.forecasting import additive as module
from planners.forecasting.additive import AdditiveForecasts, fit_additive, regress, write_additive
from planners.forecasting.compiled_model import Models, needed_variables
from planners.forecasting.forecast_parents import ForecastParentSearch
from planners.forecasting.forecasts import Forecasts
from planners.forecasting.lookahead import look_ahead
from planners.forecasting.planner import ForecastPlanner, ForecastPolicy
from planners.samples.rollouts import ExogenousData

UNIONS = (2,) * 13


def compiled(sizes, needed=(0,)):
    rng = np.random.default_rng(0)
    mdp = random_mdp(rng, sizes=sizes, paying=needed, moving=needed)
    return Models.of(mdp, recourse=False).atoms


def chances_of(additive, model, x, steps):
    chances = np.full((steps + 1, len(model.values), len(x)), np.nan, dtype=np.float32)
    write_additive(additive, np.asarray(x, dtype=np.int64), chances)
    return chances


def unions(rng, number=400, length=30):
    """Variable 0 says whether any of twelve coins came up a step ago."""
    x = (rng.random((number, length, 13)) < 0.06).astype(np.uint8)
    x[:, 1:, 0] = x[:, :-1, 1:].any(axis=-1)
    return x


def exclusive_ors(rng, number=400, length=30):
    """Variable 0 is the exclusive or of two coins a step ago: no sum tells anything."""
    x = rng.integers(2, size=(number, length, 3)).astype(np.uint8)
    x[:, 1:, 0] = x[:, :-1, 1] ^ x[:, :-1, 2]
    return x


def mdp_with(values, sizes, needed=(0,), horizon=12):
    rng = np.random.default_rng(3)
    mdp = random_mdp(rng, sizes=sizes, paying=needed, moving=needed, horizon=horizon)
    n = np.zeros((len(values), 1), dtype=np.int64)
    mdp.data = ExogenousData(mdp.exogenous_names, mdp.exogenous_sizes, values, n, seed=0)
    return mdp


def test_the_regression_is_ridge_regression():
    """As least squares with one more equation for each weight; the constant is free."""
    rng = np.random.default_rng(0)
    sizes, steps = np.array([3, 4, 2]), 2
    rollouts = rng.integers(sizes, size=(60, 7, 3))
    rollouts[:, 1:, 0] = (rollouts[:, :-1, 1] + rollouts[:, :-1, 2]) % 3
    model = compiled(tuple(sizes), needed=(0, 1))
    x = rollouts[:, : 7 - steps].reshape(-1, 3)
    common = [np.bincount(x[:, j]).argmax() for j in range(3)]
    indicators = [x[:, j] == v for j in range(3) for v in range(sizes[j]) if v != common[j]]
    features = np.stack([*indicators, np.ones(len(x))], axis=-1).astype(float)
    penalties = np.sqrt(module.RIDGE_SAMPLES) * np.eye(len(indicators), len(indicators) + 1)
    found = chances_of(regress(rollouts, sizes, model, steps), model, x, steps)
    for h in (1, 2):
        later = rollouts[:, h : h + 7 - steps].reshape(-1, 3)
        targets = (later[:, model.variables] == model.values).astype(float)
        equations = np.concatenate([features, penalties])
        sides = np.concatenate([targets, np.zeros((len(indicators), len(model.values)))])
        weights = np.linalg.lstsq(equations, sides, rcond=None)[0]
        expected = np.clip(features @ weights, 0, 1)
        np.testing.assert_allclose(found[h].T, expected, atol=1e-5)
    assert np.isnan(found[0]).all()


@pytest.mark.parametrize("size", [1, 47, 48, 130])
def test_equations_are_solved_tile_by_tile(size):
    rng = np.random.default_rng(size)
    factor = rng.normal(size=(size, 2 * size))
    matrix, sides = factor @ factor.T + np.eye(size), rng.integers(9, size=(size, 50))
    found = module._solve(matrix, sides)
    np.testing.assert_allclose(matrix @ found, sides, atol=1e-9)


def test_variables_with_the_fewest_values_come_first(monkeypatch):
    rng = np.random.default_rng(0)
    sizes = np.array([5, 2, 3])
    rollouts = rng.integers(sizes, size=(40, 5, 3))
    monkeypatch.setattr(module, "MAX_FEATURES", 6)
    additive = regress(rollouts, sizes, compiled(tuple(sizes)), 1)
    assert len(additive.weights) == 3
    assert (additive.rows[:5] == -1).all()
    assert sorted(additive.rows[5:]) == [-1, -1, 0, 1, 2]


def test_few_samples_are_taken_of_many(monkeypatch):
    rng = np.random.default_rng(0)
    x, sizes, model = unions(rng), np.array(UNIONS), compiled(UNIONS)
    all_samples = chances_of(regress(x, sizes, model, 1), model, x[0], 1)
    monkeypatch.setattr(module, "MAX_SAMPLES", 4_000)
    fewer = chances_of(regress(x, sizes, model, 1), model, x[0], 1)
    assert 0 < np.abs(fewer[1] - all_samples[1]).max() < 0.2


def test_sums_are_used_where_they_are_better():
    """Of an *or* of twelve coins a table sees four."""
    values = unions(np.random.default_rng(1))
    mdp = mdp_with(values, UNIONS)
    policy = ForecastPlanner().plan(mdp).policy
    tables = ForecastPlanner(additive=False).plan(mdp).policy
    assert set(policy.additive.steps) == {1}
    assert set(policy.additive.atoms) == set(range(len(policy.models.atoms.values)))
    assert not len(tables.additive.steps)
    fresh = unions(np.random.default_rng(2), 200)
    x, later = (
        fresh[:, :-1].reshape(-1, 13),
        fresh[:, 1:, 0].reshape(-1, 1) == policy.models.atoms.values,
    )
    chances = chances_of(policy.additive, policy.models.atoms, x, 1)[1].T
    table = policy.forecasts.probabilities(x, 0)[:, 0, policy.models.atoms.values]
    assert ((chances - later) ** 2).mean() < 0.7 * ((table - later) ** 2).mean()
    shown = policy.probabilities(x, 0)
    np.testing.assert_allclose(shown[:, 0, policy.models.atoms.values], chances, atol=1e-6)
    np.testing.assert_allclose(shown.sum(axis=-1), 1.0, atol=1e-3)
    np.testing.assert_array_equal(shown[:, 1:], policy.forecasts.probabilities(x, 0)[:, 1:])


def test_tables_stay_where_they_are_exact():
    mdp = mdp_with(exclusive_ors(np.random.default_rng(1)), (2, 2, 2))
    policy = ForecastPlanner().plan(mdp).policy
    assert not len(policy.additive.steps)
    n, x = np.arange(4)[:, None], np.array([[0, 1, 0], [1, 1, 1], [0, 0, 1], [1, 0, 0]])
    tables = ForecastPlanner(additive=False).plan(mdp).policy
    np.testing.assert_array_equal(policy.action_values(n, x), tables.action_values(n, x))


def test_tables_stay_where_few_rollouts_are_held_out():
    values = unions(np.random.default_rng(1), number=8 * module.MIN_HELD_OUT - 1)
    assert not len(ForecastPlanner().plan(mdp_with(values, UNIONS)).policy.additive.steps)


def test_rollouts_that_are_drawn_are_held_out_too():
    """The last eighth."""
    mdp = random_mdp(np.random.default_rng(3), sizes=(2, 3))
    planner = ForecastPlanner(num_rollouts=400)
    rollouts, held_out = planner._rollouts(mdp, np.random.default_rng(0))
    assert (len(rollouts), held_out.sum(), held_out[-50:].sum()) == (400, 50, 50)


def test_held_out_rollouts_decide_and_nothing_else():
    """Tables and sums are those of all rollouts, and tables are the same with or without sums."""
    values = unions(np.random.default_rng(1))
    mdp = mdp_with(values, UNIONS)
    sizes, memory = np.array(UNIONS), Memory()
    search = ForecastParentSearch(values, sizes, 1e-3, 4, memory)
    parents = {i: search.parents(i) for i in needed_variables(mdp)}
    expected = Forecasts.fit(values, sizes, parents, mdp.horizon, memory)
    n, x = np.arange(4)[:, None], values[:4, 0].astype(np.int64)
    for additive in (False, True):
        policy = ForecastPlanner(additive=additive).plan(mdp).policy
        for found, same in zip(policy.forecasts.tables, expected.tables, strict=True):
            np.testing.assert_array_equal(found, same)
        tables = look_ahead(policy.models, expected, mdp.discount, n[:, 0], x)
        assert np.array_equal(policy.action_values(n, x), tables) is not additive
    sums = regress(values, sizes, policy.models.atoms, module.MAX_STEPS)
    for found, same in zip(policy.additive, sums.keep(sums.steps == 1), strict=True):
        np.testing.assert_array_equal(found, same)
    held_out = values.copy()
    held_out[mdp.data.held_out] = exclusive_ors(np.random.default_rng(1), 50)[:, :, [0] * 13]
    assert not len(ForecastPlanner().plan(mdp_with(held_out, UNIONS)).policy.additive.steps)


def test_look_ahead_takes_the_sums():
    """Sums that say what the tables say change nothing, and others what they are about."""
    values = unions(np.random.default_rng(1))
    policy = ForecastPlanner(additive=False).plan(mdp_with(values, UNIONS)).policy
    n, x = np.zeros(70, dtype=np.int64), values[:70, 3].astype(np.int64)
    x[:] = x[0]
    before = look_ahead(policy.models, policy.forecasts, 0.9, n, x)
    said = policy.forecasts.probabilities(x[:1], 0)[0][:2, policy.models.atoms.values]
    ahead, atoms = np.divmod(np.arange(said.size), len(policy.models.atoms.values))
    none = AdditiveForecasts.none(np.array(UNIONS))
    same = none._replace(
        weights=np.zeros((0, said.size), dtype=np.float32),
        constants=said.reshape(-1),
        steps=ahead + 1,
        atoms=atoms,
    )
    found = look_ahead(policy.models, policy.forecasts, 0.9, n, x, same)
    np.testing.assert_array_equal(found, before)
    other = same._replace(constants=1 - same.constants)
    assert not np.allclose(look_ahead(policy.models, policy.forecasts, 0.9, n, x, other), before)


def test_the_same_seed_gives_the_same_file(tmp_path):
    mdp = mdp_with(unions(np.random.default_rng(1)), UNIONS)
    policies = [ForecastPlanner().plan(mdp).policy for _ in range(2)]
    for name, policy in zip("ab", policies, strict=True):
        policy.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    loaded = ForecastPolicy.load(tmp_path / "a")
    for part, same in zip(loaded.additive, policies[0].additive, strict=True):
        np.testing.assert_array_equal(part, same)
    state = mdp.sample_uniform(50, np.random.default_rng(2))
    np.testing.assert_array_equal(loaded(state), policies[0](state))


def test_there_may_be_no_time(monkeypatch):
    values = unions(np.random.default_rng(1))
    mdp, sizes = mdp_with(values, UNIONS), np.array(UNIONS)
    parents, memory = {0: (1, 2, 3, 4)}, Memory()
    arguments = (values, mdp.data.held_out, sizes, compiled(UNIONS), parents, 12, memory)
    with pytest.raises(OutOfTimeError), Clock(0).above():
        fit_additive(*arguments)
    with Clock(1000).above():
        assert len(fit_additive(*arguments).steps)

    def out_of_time():
        raise OutOfTimeError

    monkeypatch.setattr(module, "tick", out_of_time)  # while the equations are solved, say
    plan = ForecastPlanner().plan(mdp, time_limit=1000)
    assert not plan.converged
    assert not len(plan.policy.additive.steps)
    assert ForecastPlanner(additive=False).plan(mdp, time_limit=1000).converged


@pytest.mark.parametrize("sizes", [(1,), (2,), (1, 1), (3, 1), ()])
@pytest.mark.parametrize("length", [2, 3, 13])
@pytest.mark.parametrize("needed", [None, ()])
def test_any_shape_will_do(sizes, length, needed):
    rng = np.random.default_rng(0)
    values = rng.integers(np.array(sizes, dtype=int), size=(400, length, len(sizes)))
    mdp = mdp_with(values, sizes, needed, horizon=length - 1)
    plan = ForecastPlanner().plan(mdp)
    assert plan.converged
    assert (plan.policy.additive.steps <= length // 2).all()
    assert plan.policy(mdp.sample_uniform(5, rng)).shape == (5,)
