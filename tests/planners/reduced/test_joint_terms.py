"""Reward terms of several variables: surveyed, averaged, and kept in reduced models."""

import itertools

import numpy as np
import pytest
from factored import random_mdp
from hypothesis import given, settings
from hypothesis import strategies as st
from joint import Match, Sales, any_joint_mdp
from reduced import shared
from surveys import rewards_of, survey_of

from exo_envs import State, Variable
from exo_envs.testing import check_mdp
from planners import Memory, ReducedMDP
from planners.default_planner import affordable_part
from planners.reduced.reduced_mdp import SimulatedReducedMDP
from planners.reduced.rewards import disjoint_scopes
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from planners.tables.indexing import MAX_JOINT_VALUES, TooLargeError


def total_reward(model, x):
    """R(n, a) of a survey or a tabulated model at one x, shape (N, A)."""
    paid = model.base_reward.copy()
    for scope, table in model.scoped_terms.items():
        sizes = sizes_of(model)
        paid += table[np.ravel_multi_index([x[i] for i in scope], [sizes[i] for i in scope])]
    return paid


def sizes_of(model):
    data = model.backgrounds.data if isinstance(model, EndogenousSurvey) else model.data
    return data.sizes.tolist()


def asked(mdp, x):
    """R(n, a) of a model itself at one x, shape (N, A)."""
    n, a = np.divmod(np.arange(mdp.endogenous_sizes[0] * mdp.num_actions), mdp.num_actions)
    state = State(n[:, None], np.tile(x, (len(n), 1)))
    return mdp.reward(state, a).reshape(-1, mdp.num_actions)


# --- what a survey finds -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["terms", "total"])
@pytest.mark.parametrize("model", [Match, Sales])
def test_surveys_find_what_pays_together(model, kind):
    mdp = model()
    survey = survey_of(mdp, reward=kind)
    for x in itertools.product(*(range(int(size)) for size in mdp.exogenous_sizes)):
        np.testing.assert_allclose(total_reward(survey, x), asked(mdp, x), atol=1e-9)
    assert set(survey.scoped_terms) == {(0, 1), (2,)}


def test_what_makes_no_difference_does_not_pay():
    """The tax declares to look at "idle", too."""
    survey = survey_of(Match())
    assert survey.paying == ("first", "second", "tax")
    assert survey.scoped_terms[0, 1].shape == (4, 2, 2)


def test_terms_that_depend_on_nothing_are_part_of_the_base():
    class Flat(Match):
        def reward_terms(self, state, action):
            terms = super().reward_terms(state, action)
            terms[..., 1] = 3.0
            return terms

    survey = survey_of(Flat())
    assert survey.paying == ("first", "second")
    assert (survey.base_reward == 3.0).all()


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32))
def test_a_survey_of_tables_gives_the_tables(seed):
    mdp = any_joint_mdp(seed, num_terminal=0)
    survey = survey_of(mdp, rollouts=20, num_tests=4)
    for x in itertools.product(*(range(int(size)) for size in mdp.exogenous_sizes)):
        np.testing.assert_allclose(total_reward(survey, x), total_reward_of(mdp, x), atol=1e-9)


def total_reward_of(mdp, x):
    paid = mdp.base_reward.copy()
    for scope, table in mdp.scoped_terms.items():
        shape = [int(mdp.exogenous_sizes[i]) for i in scope]
        paid += table[np.ravel_multi_index([x[i] for i in scope], shape)]
    return paid


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32))
def test_a_black_box_comes_apart(seed):
    """Whatever the groups are, what they pay adds up to the reward."""
    mdp = any_joint_mdp(seed, num_terminal=0)
    survey = survey_of(mdp, rollouts=200, reward="total", num_tests=4)
    seen = {tuple(x) for x in survey.backgrounds.rows(slice(None)).tolist()}
    for x in list(seen)[:20]:
        np.testing.assert_allclose(total_reward(survey, x), total_reward_of(mdp, x), atol=1e-6)


def test_scopes_are_asked_about_together_if_they_share_nothing():
    number = {(0,): 3, (1,): 2, (0, 1): 6, (2, 3): 4, (1, 2): 4}
    groups = disjoint_scopes(number)
    assert sorted(scope for group in groups for scope in group) == sorted(number)
    for group in groups:
        variables = [i for scope in group for i in scope]
        assert len(variables) == len(set(variables))
    assert groups[0] == [(0, 1), (2, 3)]
    assert disjoint_scopes({(i,): i + 1 for i in range(9)}) == [[(i,) for i in range(8, -1, -1)]]


class Rich(Match):
    """Two variables of very many values, which are bins, and a third one, pay together."""

    exogenous_variables = tuple(Variable(f"x{i}", 200) for i in range(5))
    reward_scopes = (("x0", "x1", "x2"),)

    def reward_terms(self, state, action):
        return (state.exogenous[..., :3].sum(axis=-1) * np.asarray(action))[..., None] / 100.0

    def sample_initial(self, size, rng):
        return State(np.zeros((size, 1), dtype=np.int64), rng.integers(200, size=(size, 5)))

    def sample_exogenous(self, exogenous, rng):
        return rng.integers(200, size=exogenous.shape)


def test_a_term_that_is_too_large_is_refused_by_name():
    message = r"'x0' \(200\), 'x1' \(200\), 'x2' \(200\): 8,000,000 joint values"
    with pytest.raises(TooLargeError, match=message):
        survey_of(Rich(), rollouts=20)
    assert MAX_JOINT_VALUES >= 200**2


# --- what a reduced model pays -----------------------------------------------------------------


@pytest.fixture(scope="module")
def sales():
    mdp = Sales()
    return mdp, shared(mdp, rollouts=3000)


def mean_reward(mdp, given, columns, x):
    """E[R(n, a) | the masked variables are x] over the backgrounds, by plain enumeration."""
    backgrounds = given["survey"].backgrounds.rows(slice(None))
    known = backgrounds[(backgrounds[:, columns] == x).all(axis=1)]
    out = np.zeros((3, 2))
    for n, a in itertools.product(range(3), range(2)):
        state = State(np.full((len(known), 1), n), known)
        out[n, a] = mdp.reward(state, np.full(len(known), a)).mean()
    return out


@pytest.mark.parametrize(
    "mask",
    [
        (),
        ("price",),
        ("demand",),
        ("weather",),
        ("price", "weather"),
        ("price", "demand"),
        ("demand", "noise"),
        ("price", "demand", "weather", "noise"),
    ],
)
def test_averages_are_conditional_means(sales, mask):
    """Price and weather know what demand to expect: price times E[demand | weather]."""
    mdp, given = sales
    reduced = ReducedMDP.estimate(mdp, list(mask), **given)
    columns = list(mdp.exogenous_indices(mask))
    informed = [j for j in columns if mdp.exogenous_names[j] != "noise"]
    sizes = mdp.exogenous_sizes[columns].tolist()
    for x in itertools.product(*map(range, sizes)):
        kept = [value for j, value in zip(columns, x, strict=True) if j in informed]
        expected = mean_reward(mdp, given, informed, kept)
        np.testing.assert_allclose(total_reward(reduced, x), expected, atol=0.03)
    assert reduced.paying == tuple(name for name in mask if name != "noise")


def test_price_and_weather_pay_together_when_demand_is_dropped(sales):
    mdp, given = sales
    reduced = ReducedMDP.estimate(mdp, ["price", "weather", "noise"], **given)
    assert set(reduced.joint_terms) == {(0, 1)}
    assert reduced.reward_scopes == (("price",), ("weather",), ("noise",), ("price", "weather"))
    expected = (np.arange(3) * Sales.chances).sum(axis=1)  # E[demand | weather]
    for price, weather in itertools.product(range(3), range(2)):
        paid = total_reward(reduced, (price, weather, 0))
        less = total_reward(reduced, (0, weather, 0))
        fee = 0.25 * Sales.chances[weather, 0] * (price == 2)
        assert paid[1, 1] - less[1, 1] == pytest.approx(price * expected[weather] - fee, abs=0.1)


@pytest.mark.parametrize("mask", [(), ("price",), ("price", "weather"), ("price", "demand")])
def test_zero_forgets_terms_that_are_not_whole(sales, mask):
    mdp, given = sales
    survey = given["survey"]
    reduced = ReducedMDP.estimate(mdp, list(mask), ignored_rewards="zero", **given)
    np.testing.assert_array_equal(reduced.base_reward, survey.base_reward)
    whole = {"price", "demand"} <= set(mask)
    assert set(reduced.joint_terms) == ({(0, 1)} if whole else set())
    assert set(reduced.terms) == ({mask.index("weather")} if "weather" in mask else set())
    if whole:
        np.testing.assert_array_equal(reduced.joint_terms[0, 1], survey.scoped_terms[0, 1])


def test_optimism_looks_at_the_overall_mean(sales):
    mdp, given = sales
    survey = given["survey"]
    hopeful, zero = (
        ReducedMDP.estimate(mdp, ["price", "weather"], ignored_rewards=rule, **given)
        for rule in ("optimistic", "zero")
    )
    x = survey.backgrounds.rows(slice(None))
    mean = survey.scoped_terms[0, 1][x[:, 0] * 3 + x[:, 1]].mean(axis=0)
    np.testing.assert_allclose(hopeful.base_reward - zero.base_reward, np.maximum(mean, 0.0))
    assert hopeful.joint_terms == {}


def test_a_copy_of_a_dropped_coin_is_as_good(sales):
    """Where two coins pay if they match, neither tells anything by itself: a sum would not do."""

    class Copied(Match):
        def sample_initial(self, size, rng):
            state = super().sample_initial(size, rng)
            state.exogenous[:, 4] = state.exogenous[:, 1]
            return state

        def sample_exogenous(self, exogenous, rng):
            after = super().sample_exogenous(exogenous, rng)
            after[..., 4] = after[..., 1]
            return after

    reduced = ReducedMDP.estimate(Copied(), ["first", "noise"], rng=0, num_rollouts=1000)
    for first, copy in itertools.product(range(2), repeat=2):
        paid = total_reward(reduced, (first, copy))[0, 1]
        assert paid == pytest.approx((10 if first == copy else -10) - 0.5, abs=0.2)


def test_a_memory_changes_nothing(sales):
    _, given = sales
    survey, memory = given["survey"], Memory()
    for mask in ([], [0], [0, 2], [1, 2, 3], [2], [0, 2], [0, 1]):
        alone = rewards_of(survey, mask)
        remembered = rewards_of(survey, mask, memory=memory)
        np.testing.assert_array_equal(alone.base_reward, remembered.base_reward)
        assert list(alone.scoped_terms) == list(remembered.scoped_terms)
        for scope, table in alone.scoped_terms.items():
            np.testing.assert_array_equal(table, remembered.scoped_terms[scope])


@pytest.mark.parametrize("mask", [("price", "demand", "weather"), ("price", "weather"), ("price",)])
def test_reduced_models_are_models_again(sales, mask, tmp_path):
    """They keep the contract, travel as files, and can be masked again."""
    mdp, given = sales
    reduced = ReducedMDP.estimate(mdp, list(mask), **given)
    check_mdp(reduced, num_samples=200)
    reduced.save(tmp_path / "model")
    loaded = ReducedMDP.load(tmp_path / "model")
    assert (loaded.reward_scopes, loaded.paying) == (reduced.reward_scopes, reduced.paying)
    state = reduced.sample_uniform(200, np.random.default_rng(0))
    action = np.arange(200) % 2
    np.testing.assert_array_equal(
        loaded.reward_terms(state, action), reduced.reward_terms(state, action)
    )
    again = ReducedMDP.estimate(reduced, [mask[0]], rng=0, num_rollouts=2000)
    directly = ReducedMDP.estimate(mdp, [mask[0]], **given)
    for value in range(3):
        np.testing.assert_allclose(
            total_reward(again, [value]), total_reward(directly, [value]), atol=0.1
        )


def test_files_without_joint_terms_are_as_they_always_were():
    reduced = ReducedMDP.estimate(random_mdp(np.random.default_rng(0)), [0, 1], rng=0)
    assert "joint_terms" not in reduced.arguments()["tables"]


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_averages_of_random_tables_are_means_over_what_occurs(seed):
    """With x drawn anew, any mask; given more than its own variables it is at least as precise."""
    rng = np.random.default_rng(seed)
    mdp = any_joint_mdp(seed, num_terminal=0, num_rules=0)
    data = ExogenousData.collect(mdp, 200, rng)
    survey = EndogenousSurvey.collect(mdp, data, rng, num_tests=4)
    columns = [j for j in range(len(mdp.exogenous_names)) if rng.random() < 0.5]
    rewards = rewards_of(survey, columns)
    x = survey.backgrounds.rows(slice(None))
    mean = np.zeros(survey.base_reward.shape)
    for row in x[:2000]:
        mean += total_reward_of(mdp, row) / 2000
    found = rewards.base_reward.copy()
    sizes = mdp.exogenous_sizes[columns]
    for scope, table in rewards.scoped_terms.items():
        shape = [int(sizes[i]) for i in scope]
        rows = np.ravel_multi_index([x[:2000, columns[i]] for i in scope], shape)
        found += table[rows].mean(axis=0)
    np.testing.assert_allclose(found, mean, atol=0.25)


def test_stakes_of_variables_that_pay_together():
    """Each coin may change everything; only the tax and one of them fit."""
    mdp = Match()
    reduced = ReducedMDP.estimate(mdp, ["first", "second", "tax"], rng=0, num_rollouts=200)
    assert affordable_part(reduced, 8 * 2) == ("first", "second", "tax")
    assert affordable_part(reduced, 4 * 2) == ("first", "second")


# --- where n cannot be enumerated --------------------------------------------------------------


class ManySales(Sales):
    """The same with more n than can be enumerated."""

    endogenous_variables = (Variable("stock", 3), *(Variable(f"n{i}", 60) for i in range(4)))

    def sample_initial(self, size, rng):
        state = super().sample_initial(size, rng)
        return State(np.tile(state.endogenous, (1, 5)), state.exogenous)

    def sample_endogenous(self, state, action, rng):
        first = State(state.endogenous[..., :1], state.exogenous)
        after = super().sample_endogenous(first, action, rng)
        return np.concatenate([after, state.endogenous[..., 1:]], axis=-1)


@pytest.fixture(scope="module")
def many_sales():
    mdp = ManySales()
    return mdp, shared(mdp, rollouts=1000)


@pytest.mark.parametrize("rule", ["average", "zero", "optimistic"])
@pytest.mark.parametrize("mask", [(), ("price",), ("price", "weather"), ("demand", "price")])
def test_simulated_models_pay_the_mean_over_what_is_dropped(many_sales, mask, rule):
    mdp, given = many_sales
    reduced = ReducedMDP.estimate(mdp, list(mask), ignored_rewards=rule, **given)
    assert isinstance(reduced, SimulatedReducedMDP)
    check_mdp(reduced, num_samples=100)
    columns = reduced.columns.tolist()
    x = given["data"].values[:, :-1].reshape(-1, 4)[:4000]
    n = np.tile([1, 0, 0, 0, 0], (len(x), 1))
    for own in itertools.product(*(range(int(mdp.exogenous_sizes[j])) for j in columns)):
        filled = x.copy().astype(np.int64)
        filled[:, columns] = own
        paid = mdp.reward_terms(State(n, filled), np.ones(len(x), dtype=int))
        whole = [set(scope) <= set(columns) for scope in mdp.scope_indices]
        mean = paid.mean(axis=0)
        if rule == "zero":
            mean = np.where(whole, mean, 0.0)
        elif rule == "optimistic":
            overall = mdp.reward_terms(State(n, x), np.ones(len(x), dtype=int)).mean(axis=0)
            mean = np.where(whole, mean, np.maximum(overall, 0.0))
        state = State(n[:1], np.array([own], dtype=np.int64).reshape(1, len(columns)))
        found = reduced.reward(state, np.ones(1, dtype=int))[0]
        assert found == pytest.approx(mean.sum() + 0.1, abs=0.35 if rule == "average" else 0.1)


def test_scopes_of_simulated_models(many_sales):
    mdp, given = many_sales
    reduced = ReducedMDP.estimate(mdp, ["price", "weather"], **given)
    assert reduced.reward_scopes == (("weather",), ("price",), ("price",))
    assert reduced.paying == ("price", "weather")
