"""Which variables n depends on, and what a survey refuses."""

import itertools

import numpy as np
import pytest
from factored import random_mdp
from models import CoinMDP, CounterMDP
from surveys import MoveMDP, everything, moves_of, survey_of
from workshop import Workshop

from exo_envs import State, Variable
from exo_envs.domains.factory import FactoryMDP
from exo_envs.testing import check_mdp
from planners.default_planner import DefaultPlanner
from planners.reduced.reduced_mdp import ReducedMDP
from planners.reduced.survey import EndogenousSurvey, can_enumerate
from planners.samples.rollouts import ExogenousData
from planners.tables.decision_lists import sample_lists


def test_dependencies_of_the_factory_are_found_exactly():
    mdp = FactoryMDP()
    survey = survey_of(mdp)
    clock = mdp.clock_index
    for n, a in itertools.product(range(60), range(mdp.num_actions)):
        robot, fulfilled = divmod(n, 2)
        stations = np.flatnonzero(mdp.station_cells == robot)
        expected = {clock} if fulfilled else set()
        if a == mdp.num_actions - 1 and len(stations) and not fulfilled:
            expected = {0, clock, mdp.machine_slice.start + int(stations[0])}
        assert set(np.flatnonzero(survey.relevant[n * mdp.num_actions + a])) == expected
    assert survey.paying == ("order_0", *(f"machine_{i}" for i in range(5)))


def test_every_context_of_the_factory_leads_where_the_model_says():
    mdp = FactoryMDP()
    moves = moves_of(survey_of(mdp), mdp)
    rng = np.random.default_rng(1)
    shape = (60, mdp.num_actions, 6, mdp.parameters.clock_size, *(2,) * 5)
    n, a, order, clock, *machines = np.indices(shape).reshape(len(shape), -1)
    x = mdp.sample_uniform(len(n), rng).exogenous
    x[:, 0], x[:, mdp.clock_index] = order, clock
    x[:, mdp.machine_slice] = np.stack(machines, axis=-1)
    state = State(np.stack(np.divmod(n, 2), axis=-1), x)
    following = mdp.sample_endogenous(state, a, rng) @ np.array([2, 1])
    for uniform in (0.0, 0.5, 1 - 1e-9):  # a certainty, so the noise does not matter
        assert (sample_lists(moves, n, a, x, np.full(len(n), uniform)) == following).all()


def test_the_crowd_moves_as_the_model_says(crowd_survey):
    mdp, survey = crowd_survey
    moves = moves_of(survey, mdp)
    rng = np.random.default_rng(1)
    state = mdp.sample_uniform(20_000, rng)
    met = survey.backgrounds.data.sample(20_000, rng)
    for x in (state.exogenous, met):
        n, a = state.endogenous[:, 0], rng.integers(mdp.num_actions, size=20_000)
        following = mdp.sample_endogenous(State(state.endogenous, x), a, rng)[:, 0]
        alive = n != mdp.done
        assert (sample_lists(moves, n, a, x, rng.random(20_000)) == following)[alive].all()
    at_table = survey.lists[int(mdp.table_cells[0]) * mdp.num_actions]
    objects = range(mdp.object_slice.start, mdp.object_slice.stop)
    assert [rule.variables for rule in at_table[:12]] == [(j,) for j in objects]


def test_variables_that_act_in_rare_contexts_are_found():
    """Only if three dice agree on one value does a fourth matter: in one of 64 contexts."""

    def move(n, x, u):
        return np.where((x[..., :3] == 2).all(axis=-1), x[..., 3] > 1, 0)

    mdp = MoveMDP((4, 4, 4, 4, *(3,) * 20), move)
    survey = survey_of(mdp)
    assert survey.relevant[:, :4].all()
    assert not survey.relevant[:, 4:].any()
    n, a, x = everything(MoveMDP((4, 4, 4, 4), move))
    found = moves_of(survey, mdp, range(4)).distribution(n, a, x)
    assert (found[np.arange(len(n)), move(n, x, 0).astype(int)] == 1.0).all()


@pytest.mark.parametrize("wasteful", [False, True])
def test_noise_that_cannot_be_held_fixed_is_dealt_with(wasteful):
    """Distributions are compared if the amount of noise depends on the state."""

    def move(n, x, u):
        stays = (u < 0.25) | (x[..., 1] == 2)
        return np.where(stays, n, x[..., 0])

    mdp = MoveMDP((2, 3, 2, 2), move, wasteful=wasteful)
    survey = survey_of(mdp, num_tests=64)
    assert survey.common_noise is not wasteful
    assert survey.relevant.tolist() == [[True, True, False, False]] * 2
    n, a, x = everything(mdp)
    found = moves_of(survey, mdp).distribution(n, a, x)
    goes = 0.75 * (x[:, 1] != 2)
    truth = np.zeros((len(n), 2))
    np.add.at(truth, (np.arange(len(n)), n), 1 - goes)
    np.add.at(truth, (np.arange(len(n)), x[:, 0]), goes)
    assert np.abs(found - truth).max() < 0.03


def test_without_any_exogenous_variables():
    mdp = random_mdp(np.random.default_rng(0), sizes=(), endogenous=(2, 2))
    survey = survey_of(mdp)
    n, a = np.divmod(np.arange(12), 3)
    x = np.zeros((12, 0), dtype=np.int64)
    difference = moves_of(survey, mdp).distribution(n, a, x) - mdp.decision_lists.distribution(
        n, a, x
    )
    assert np.abs(difference).max() < 0.03
    np.testing.assert_array_equal(survey.base_reward, mdp.base_reward)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reward": "sum"}, "unknown kind of reward 'sum'"),
        ({"num_tests": 0}, "num_tests is a whole number, at least 1, not 0"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        survey_of(CounterMDP(), **settings)


def test_up_to_a_hundred_thousand_pairs_all_n_are_asked_about():
    few, many = (MoveMDP((2,), lambda n, x, u: n, positions=k) for k in (100_000, 100_001))
    assert (can_enumerate(few), can_enumerate(many)) == (True, False)


def test_where_n_cannot_be_enumerated_a_sample_is_surveyed():
    mdp = Workshop()
    survey = survey_of(mdp, num_tests=64)
    assert not survey.is_complete
    assert (survey.paying, survey.moving) == (("demand",), ("belt",))
    assert (survey.lists, survey.undecided) == ([], {})
    n, a = len(survey.endogenous), mdp.num_actions
    assert n > 1000
    assert len(np.unique(survey.endogenous, axis=0)) == n
    # The sample has n from rollouts, where the bins are nearly empty, and from anywhere.
    assert 0.5 < (survey.endogenous < 22).all(axis=1).mean() < 0.9
    assert survey.relevant.shape == (n * a, 6)
    # The belt moves whatever still fits by more than one part.
    room = survey.endogenous[:, :4] < 38
    np.testing.assert_array_equal(survey.relevant[:, 1].reshape(n, a), room)
    np.testing.assert_array_equal(survey.base_reward, -0.01)
    paid = np.eye(4)[:, None] * (survey.endogenous < 39)  # (demand, n, a)
    np.testing.assert_array_equal(survey.scoped_terms[0,], paid)


@pytest.mark.parametrize("bins", [12, 20])
def test_n_may_have_more_values_than_an_integer_can_count(bins):
    """40 ** 12 overflows 64 bits, 40 ** 20 any float that counts exactly."""
    mdp = Workshop()
    mdp.endogenous_variables = tuple(Variable(f"bin_{i}", 40) for i in range(bins))
    survey = survey_of(mdp, num_tests=64)
    assert (survey.paying, survey.moving) == (("demand",), ("belt",))
    reduced = ReducedMDP.estimate(
        mdp, ["demand"], rng=0, data=survey.backgrounds.data, survey=survey
    )
    check_mdp(reduced, num_samples=60)
    policy = DefaultPlanner().plan(reduced).policy
    state = mdp.sample_initial(20, np.random.default_rng(0))
    np.testing.assert_array_equal(policy(state), state.exogenous[:, 0])


@pytest.mark.parametrize("wasteful", [False, True])
def test_what_moves_n_is_found_in_a_sample_without_common_random_numbers(wasteful):
    def move(n, x, u):
        return (n + 1 + (u < 0.5) * (1 + 3 * x[..., 1])) % 200_000

    mdp = MoveMDP((2, 2, 2), move, positions=200_000, wasteful=wasteful)
    survey = survey_of(mdp, num_tests=32)
    assert survey.common_noise is not wasteful
    assert survey.moving == ("x1",)


def test_a_total_reward_needs_all_n():
    with pytest.raises(ValueError, match=r"Workshop.* too many n .* use reward='terms'"):
        survey_of(Workshop(), rollouts=3, reward="total")


def test_an_end_that_depends_on_x_is_refused_in_a_sample_too():
    class Closing(Workshop):
        def is_terminal(self, state):
            return np.equal(state.exogenous[..., 3], 2)

    with pytest.raises(ValueError, match=r"whether n = .* is terminal depends on x"):
        survey_of(Closing(), rollouts=20)


def test_data_of_another_model_is_refused():
    data = ExogenousData.collect(CoinMDP(), 3, np.random.default_rng(0))
    with pytest.raises(ValueError, match="collect it for the whole model"):
        EndogenousSurvey.collect(CounterMDP(), data.restrict(["coin_a"]), np.random.default_rng(0))
