"""What a reduced model pays for the variables that its mask ignores."""

import itertools

import numpy as np
import pytest
from factored import random_mdp
from reduced import shared
from surveys import rewards_of

from exo_envs import ExoMDP, State, Variable
from exo_envs.domains.grid import GridMDP
from planners import Memory, ReducedMDP, estimate_objective
from planners.reduced.ignored_rewards import additive_means, paid_amounts
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData


class Till(ExoMDP):
    """Dependent variables that pay random amounts; one of three n is terminal.

    x0 is one of two coins that are tossed anew each step, x1 copies it four times out of five, x2
    is one of three and depends on both, x3 is thrown by itself. x0, x2 and x3 pay.
    """

    endogenous_variables = (Variable("n", 3),)
    exogenous_variables = tuple(Variable(f"x{i}", size) for i, size in enumerate((2, 2, 3, 4)))
    num_actions, discount, horizon = 2, 0.9, 8

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.amounts = [rng.normal(size=(v.size, 3, 2)) for v in self.exogenous_variables]
        self.amounts[1][:] = 0.0
        self.own = rng.normal(size=(3, 2))

    def sample_initial(self, size, rng):
        return State(rng.integers(2, size=(size, 1)), self._draw((size,), rng))

    def sample_exogenous(self, exogenous, rng):
        return self._draw(exogenous.shape[:-1], rng)

    def sample_endogenous(self, state, action, rng):
        return rng.integers(3, size=state.endogenous.shape)

    def reward_terms(self, state, action):
        n = state.endogenous[..., 0]
        parts = [t[state.exogenous[..., i], n, action] for i, t in enumerate(self.amounts)]
        return np.stack(parts, axis=-1)

    def endogenous_reward(self, endogenous, action):
        return self.own[endogenous[..., 0], action]

    def is_terminal(self, state):
        return state.endogenous[..., 0] == 2

    def _draw(self, lanes, rng):
        x = np.empty((*lanes, 4), dtype=np.int64)
        x[..., 0] = rng.random(lanes) < 0.3
        x[..., 1] = np.where(rng.random(lanes) < 0.8, x[..., 0], 1 - x[..., 0])
        x[..., 2] = np.minimum(2, x[..., 0] + x[..., 1] * (rng.random(lanes) < 0.7))
        x[..., 3] = rng.integers(4, size=lanes)
        return x


ALIVE = np.array([1.0, 1.0, 0.0])[:, None]  # a terminal state pays nothing


@pytest.fixture(scope="module")
def till():
    mdp = Till()
    return mdp, shared(mdp, rollouts=3000)


def backgrounds_of(given):
    return given["survey"].backgrounds.rows(slice(None))


def total_reward(reduced, x):
    """R(n, a) at one x of the mask, shape (N, A)."""
    return reduced.base_reward + sum(table[x[i]] for i, table in reduced.terms.items())


def test_an_empty_mask_pays_what_is_paid_on_average(till):
    """Against the plain mean of the reward over all backgrounds."""
    mdp, given = till
    reduced = ReducedMDP.estimate(mdp, [], **given)
    x = backgrounds_of(given)
    for n, a in itertools.product(range(3), range(2)):
        states = State(np.full((len(x), 1), n), x)
        mean = mdp.reward(states, np.full(len(x), a)).mean()
        assert reduced.base_reward[n, a] == pytest.approx(mean, abs=1e-12)
    assert reduced.terms == {}
    assert (reduced.ignored_rewards, reduced.paying) == ("average", ())


def test_given_one_variable_it_is_the_conditional_mean(till):
    mdp, given = till
    reduced = ReducedMDP.estimate(mdp, ["x1"], **given)
    x = backgrounds_of(given)
    for value in range(2):
        known = x[x[:, 1] == value]
        # A term of which x1 tells nothing is averaged over everything.
        means = [mdp.amounts[i][known[:, i]].mean(axis=0) for i in (0, 2)]
        means.append(mdp.amounts[3][x[:, 3]].mean(axis=0))
        expected = (mdp.own + sum(means)) * ALIVE
        np.testing.assert_allclose(total_reward(reduced, [value]), expected, atol=1e-3)
    assert reduced.paying == ()  # x1 tells about what pays, and does not pay itself
    assert set(reduced.terms) == {0}


def test_given_two_variables_it_is_the_best_sum(till):
    """x2 given x0 and x1, against least squares over the single backgrounds."""
    mdp, given = till
    reduced = ReducedMDP.estimate(mdp, ["x0", "x1"], **given)
    x = backgrounds_of(given)
    design = np.concatenate([np.ones((len(x), 1)), np.eye(2)[x[:, 0]], np.eye(2)[x[:, 1]]], axis=1)
    paid = mdp.amounts[2][x[:, 2]].reshape(len(x), -1)
    fitted = np.linalg.lstsq(design, paid, rcond=None)[0]
    rest = mdp.own + mdp.amounts[3][x[:, 3]].mean(axis=0)
    for first, second in itertools.product(range(2), repeat=2):
        mean = (fitted[0] + fitted[1 + first] + fitted[3 + second]).reshape(3, 2)
        expected = (rest + mdp.amounts[0][first] + mean) * ALIVE
        np.testing.assert_allclose(total_reward(reduced, [first, second]), expected, atol=2e-3)
    assert reduced.paying == ("x0",)


@pytest.mark.parametrize("shape", [(), (3,), (2, 4), (2, 3, 2)])
def test_rare_values_are_drawn_towards_the_overall_mean(shape):
    """Least squares with the overall mean as that many more samples of each value."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 20, size=(*shape, 3))
    if shape:
        counts[0] = 0  # a value that never occurs
    overall, *added = additive_means(counts, 2.0)
    assert overall == pytest.approx(counts.reshape(-1, 3).sum(axis=0) / counts.sum())
    assert [table.shape for table in added] == [(size, 3) for size in shape]
    if not shape:
        return
    rows, labels = [], []
    for cell in itertools.product(*(range(size) for size in shape)):
        for label in range(3):
            one_hot = np.concatenate([np.eye(s)[v] for s, v in zip(shape, cell, strict=True)])
            rows += [one_hot] * counts[(*cell, label)]
            labels += [np.eye(3)[label] - overall] * counts[(*cell, label)]
    width = sum(shape)
    design = np.array([*rows, *np.sqrt(2.0) * np.eye(width)])
    wanted = np.array([*labels, *np.zeros((width, 3))])
    expected = np.linalg.lstsq(design, wanted, rcond=None)[0]
    np.testing.assert_allclose(np.concatenate(added), expected, atol=1e-9)
    np.testing.assert_allclose(added[0][0], 0.0, atol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_values_that_pay_the_same_have_one_label(share):
    rng = np.random.default_rng(0)
    table = np.zeros((9, 4, 5)) + rng.normal(size=(4, 5))
    pays = rng.random((4, 5)) < share
    table[:, pays] += rng.integers(3, size=(9, 1)) - 1.0
    label, amounts = paid_amounts(table)
    expected, inverse = np.unique(table.reshape(9, -1), axis=0, return_inverse=True)
    np.testing.assert_array_equal(amounts, expected)
    np.testing.assert_array_equal(label, inverse.reshape(-1))


def test_zero_forgets_them(till):
    """As in the paper: R(n, a) and the terms of the mask, as they are."""
    mdp, given = till
    survey = given["survey"]
    for mask in ([], [1], [0, 2], [0, 1, 2, 3]):
        reduced = ReducedMDP.estimate(mdp, mask, ignored_rewards="zero", **given)
        np.testing.assert_array_equal(reduced.base_reward, survey.base_reward)
        assert set(reduced.terms) == {k for k, j in enumerate(mask) if (j,) in survey.scoped_terms}
        for k, table in reduced.terms.items():
            np.testing.assert_array_equal(table, survey.scoped_terms[mask[k],])
        assert reduced.ignored_rewards == "zero"


def test_where_nothing_is_ignored_the_rules_agree(till):
    mdp, given = till
    average, zero = (
        ReducedMDP.estimate(mdp, ["x0", "x2", "x3"], ignored_rewards=rule, **given)
        for rule in ("average", "zero")
    )
    np.testing.assert_array_equal(average.base_reward, zero.base_reward)
    for k in range(3):
        np.testing.assert_array_equal(average.terms[k], zero.terms[k])


def test_a_black_box_has_the_same_averages(till):
    """Where terms have their zero is not known then, and does not matter to averages."""
    mdp, given = till
    rng = np.random.default_rng(5)
    survey = EndogenousSurvey.collect(mdp, given["data"], rng, reward="total")
    columns, x = [0, 1], np.array([1, 0])
    told, asked = (rewards_of(s, columns) for s in (given["survey"], survey))
    first, second = (
        rewards.base_reward + sum(table[x[k]] for (k,), table in rewards.scoped_terms.items())
        for rewards in (told, asked)
    )
    np.testing.assert_allclose(first, second, atol=0.02)  # their backgrounds differ


def test_a_memory_changes_nothing(till):
    _, given = till
    survey, memory = given["survey"], Memory()
    masks = [[], [1], [0, 1], [1, 2, 3], [0, 1]]
    for mask in masks:
        alone = rewards_of(survey, mask)
        remembered = rewards_of(survey, mask, memory=memory)
        np.testing.assert_array_equal(alone.base_reward, remembered.base_reward)
        assert set(alone.scoped_terms) == set(remembered.scoped_terms)
        for scope, table in alone.scoped_terms.items():
            np.testing.assert_array_equal(table, remembered.scoped_terms[scope])
    for table in (survey.base_reward, *survey.scoped_terms.values()):  # the survey stays as it is
        assert not table[..., 2, :].any()


class Carousel(ExoMDP):
    """x0 goes round with the clock x1, from the start of each episode, and pays for action 1."""

    endogenous_variables = (Variable("n", 1),)
    exogenous_variables = (Variable("gate", 4), Variable("clock", 4))
    num_actions, discount, horizon = 2, 0.9, 12

    def sample_initial(self, size, rng):
        return State(np.zeros((size, 1), int), np.zeros((size, 2), int))

    def sample_exogenous(self, exogenous, rng):
        return (exogenous + 1) % 4

    def sample_endogenous(self, state, action, rng):
        return state.endogenous.copy()

    def reward_terms(self, state, action):
        terms = np.zeros(state.exogenous.shape)
        terms[..., 0] = np.where(state.exogenous[..., 0] == 0, 10.0, -4.0) * np.asarray(action)
        return terms


def test_means_that_change_over_an_episode():
    """All steps count alike, unless a masked variable tells the time."""
    mdp = Carousel()
    given = shared(mdp, rollouts=500)
    blind = ReducedMDP.estimate(mdp, [], **given)
    assert blind.base_reward[0] == pytest.approx([0.0, -0.5], abs=0.1)
    timed = ReducedMDP.estimate(mdp, ["clock"], **given)
    paid = [total_reward(timed, [hour])[0, 1] for hour in range(4)]
    assert paid == pytest.approx([10.0, -4.0, -4.0, -4.0], abs=0.05)


def test_a_blind_robot_on_the_grid_earns_what_the_averages_promise():
    objective = estimate_objective(GridMDP(), [], rng=0, n_rollouts=2000)
    assert objective.mean_return >= 70
    # Each step it expects the object anew: the model promises more than there is to earn.
    assert objective.plan.values.max() > objective.mean_return
    forgotten = estimate_objective(GridMDP(), [], rng=0, n_rollouts=100, ignored_rewards="zero")
    assert not forgotten.returns.any()


def test_unknown_rules_are_refused():
    with pytest.raises(ValueError, match=r"unknown rule for ignored_rewards 'mean'.*average"):
        ReducedMDP.estimate(GridMDP(), [], rng=0, ignored_rewards="mean")
    with pytest.raises(ValueError, match="did you mean 'zero'"):
        estimate_objective(GridMDP(), [], rng=0, ignored_rewards="zeros")


def test_files_keep_the_rule(till, tmp_path):
    mdp, given = till
    for rule in ("average", "zero"):
        reduced = ReducedMDP.estimate(mdp, ["x0", "x1"], ignored_rewards=rule, **given)
        assert f"what ignored variables pay: {rule}" in reduced.describe()
        reduced.save(tmp_path / "model")
        loaded = ReducedMDP.load(tmp_path / "model")
        assert (loaded.ignored_rewards, loaded.paying) == (rule, ("x0",))
        np.testing.assert_array_equal(loaded.base_reward, reduced.base_reward)
        np.testing.assert_array_equal(loaded.terms[0], reduced.terms[0])


def test_a_file_from_before_there_was_a_choice_forgets_them(till, tmp_path):
    mdp, given = till
    reduced = ReducedMDP.estimate(mdp, ["x0", "x1"], ignored_rewards="zero", **given)
    arguments = reduced.arguments()
    del arguments["ignored_rewards"], arguments["paying"]
    old = type(reduced)(**arguments)
    assert (old.ignored_rewards, old.paying) == ("zero", ("x0",))


def test_the_survey_of_few_rollouts_is_enough():
    """Nothing is told apart by a handful of rollouts; averages are plain means then."""
    mdp, rng = Till(), np.random.default_rng(0)
    data = ExogenousData.collect(mdp, 3, rng)
    survey = EndogenousSurvey.collect(mdp, data, rng)
    reduced = ReducedMDP.estimate(mdp, ["x1"], rng=rng, data=data, survey=survey)
    assert reduced.terms == {}
    assert np.isfinite(reduced.base_reward).all()


def test_optimism_expects_gains_and_forgets_losses():
    """x0 is kept; x1 pays 10 or -30 with n, x2 costs 5: overall means, and never a loss."""
    rng = np.random.default_rng(3)
    mdp = random_mdp(rng, sizes=(2, 2, 2), endogenous=(2,), paying=(0, 1, 2), num_terminal=0)
    mdp.terms[1][:] = 0.0
    mdp.terms[1][1, 0], mdp.terms[1][1, 1] = 10.0, -30.0
    mdp.terms[2][:] = 0.0
    mdp.terms[2][1] = -5.0
    data = ExogenousData.collect(mdp, 200, rng)
    survey = EndogenousSurvey.collect(mdp, data, rng)
    given = {"rng": 0, "data": data, "survey": survey}
    reduced = {
        rule: ReducedMDP.estimate(mdp, ["x0"], **given, ignored_rewards=rule)
        for rule in ("optimistic", "zero")
    }
    extra = reduced["optimistic"].base_reward - reduced["zero"].base_reward
    share = survey.backgrounds.column(1).mean()
    assert extra == pytest.approx(np.array([[10.0 * share], [0.0]]) + 0 * extra)
    assert (reduced["optimistic"].terms[0] == reduced["zero"].terms[0]).all()
