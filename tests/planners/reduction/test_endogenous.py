"""What n depends on and how, what is paid, and what of it is seen through a mask."""

import itertools

import numpy as np
import pytest
from factored import random_mdp
from models import CoinMDP, CounterMDP

from exo_envs import ExoMDP, State, Variable
from exo_envs.crowd import CrowdMDP
from exo_envs.factory import FactoryMDP
from exo_envs.grid import GridMDP
from exo_envs.synthetic import SyntheticMDP
from planners.information.rollouts import ExogenousData
from planners.reduction.marginals import reduce_lists
from planners.reduction.rewards import reward_terms, terminal_states, total_rewards
from planners.reduction.survey import EndogenousSurvey
from planners.tables.decision_lists import DecisionLists
from planners.tables.rules import Rule, simplify, with_default


class MoveMDP(ExoMDP):
    """Fair coins or dice, thrown anew each step; the agent goes where a function says."""

    num_actions = 1
    discount = 0.9
    horizon = 10

    def __init__(self, sizes, move, *, positions=2, wasteful=False):
        self.endogenous_variables = (Variable("n", positions),)
        self.exogenous_variables = tuple(Variable(f"x{i}", size) for i, size in enumerate(sizes))
        self.move = move
        self.wasteful = wasteful

    def sample_initial(self, size, rng):
        return State(np.zeros((size, 1), dtype=np.int64), self._throw(size, rng))

    def sample_exogenous(self, exogenous, rng):
        lanes = exogenous.shape[:-1]
        return self._throw(int(np.prod(lanes)), rng).reshape(exogenous.shape)

    def sample_endogenous(self, state, action, rng):
        if self.wasteful:  # the amount of noise depends on the states
            rng.random(int(state.exogenous.sum()))
        u = rng.random(state.endogenous.shape[:-1])
        return self.move(state.endogenous[..., 0], state.exogenous, u)[..., None].astype(np.int64)

    def reward_terms(self, state, action):
        return np.zeros(state.exogenous.shape)

    def _throw(self, size, rng):
        return rng.integers(self.exogenous_sizes, size=(size, len(self.exogenous_sizes)))


def survey_of(mdp, *, seed=0, rollouts=300, **settings):
    rng = np.random.default_rng(seed)
    data = ExogenousData.collect(mdp, rollouts, rng)
    return EndogenousSurvey.collect(mdp, data, rng, **settings)


def moves_of(survey, mdp, columns=None):
    columns = range(len(survey.names)) if columns is None else columns
    sizes = mdp.exogenous_sizes[list(columns)]
    lists = reduce_lists(survey, columns)
    return DecisionLists.from_lists(lists, mdp.num_actions, sizes)


def everything(mdp):
    """All (n, a, x) of a small model, flat."""
    xs = np.indices(mdp.exogenous_sizes).reshape(len(mdp.exogenous_sizes), -1).T
    states = int(np.prod(mdp.endogenous_sizes))
    n, a, x = np.indices((states, mdp.num_actions, len(xs))).reshape(3, -1)
    return n, a, xs[x]


# --- which variables matter ------------------------------------------------------------------


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
        assert (moves.sample(n, a, x, np.full(len(n), uniform)) == following).all()


@pytest.fixture(scope="module")
def crowd():
    mdp = CrowdMDP()
    return mdp, survey_of(mdp, rollouts=1000)


def test_the_crowd_moves_as_the_model_says(crowd):
    mdp, survey = crowd
    moves = moves_of(survey, mdp)
    rng = np.random.default_rng(1)
    state = mdp.sample_uniform(20_000, rng)
    met = survey.contexts.data.sample(20_000, rng)
    for x in (state.exogenous, met):
        n, a = state.endogenous[:, 0], rng.integers(mdp.num_actions, size=20_000)
        following = mdp.sample_endogenous(State(state.endogenous, x), a, rng)[:, 0]
        alive = n != mdp.done
        assert (moves.sample(n, a, x, rng.random(20_000)) == following)[alive].all()
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


# --- decision lists --------------------------------------------------------------------------


def test_a_condition_on_two_variables_becomes_one_rule():
    """Each of ten things has a place and a flag; any that is here and flagged decides."""

    def move(n, x, u):
        here = (x[..., 0:20:2] == 3) & (x[..., 1:20:2] == 1)
        return np.where(here.any(axis=-1), 2, np.where(x[..., 20] == 1, 0, 1))

    mdp = MoveMDP((*(5, 2) * 10, 2), move, positions=3)
    survey = survey_of(mdp)
    rules = survey.lists[0]
    assert [rule.variables for rule in rules[:10]] == [(k, k + 1) for k in range(0, 20, 2)]
    assert all(np.flatnonzero(rule.decided).tolist() == [7] for rule in rules[:10])
    rng = np.random.default_rng(0)
    x = mdp.sample_uniform(5000, rng).exogenous
    n = rng.integers(3, size=5000)
    found = moves_of(survey, mdp).sample(n, np.zeros_like(n), x, rng.random(5000))
    assert (found == move(n, x, 0)).all()


def test_what_overrides_comes_first_whatever_its_position():
    """Twelve dice; the last one that shows its number decides, which is where it sends you."""
    sizes = (4,) * 12

    def move(n, x, u):
        target = np.zeros(x.shape[:-1], dtype=np.int64)
        for i in range(12):
            target = np.where(x[..., i] == i % 4, 1 + i, target)
        return target

    mdp = MoveMDP(sizes, move, positions=13)
    survey = survey_of(mdp)
    rng = np.random.default_rng(0)
    x = mdp.sample_uniform(5000, rng).exogenous
    n = rng.integers(13, size=5000)
    assert (
        moves_of(survey, mdp).sample(n, np.zeros_like(n), x, rng.random(5000)) == move(n, x, 0)
    ).all()
    assert survey.lists[0][0].variables == (11,)


def majority(n, x, u):
    return np.where(u < 0.1, 0, (x[..., :15].sum(axis=-1) > 7).astype(np.int64))


def test_richer_interactions_get_a_table_over_few_variables():
    """A majority of fifteen has no decision list: a documented approximation."""
    mdp = MoveMDP((2,) * 18, majority)
    survey = survey_of(mdp, rollouts=2000)
    assert survey.relevant[:, :15].all()
    assert set(survey.open_ends) == {0, 1}
    rng = np.random.default_rng(0)
    x = mdp.sample_uniform(20_000, rng).exogenous
    n = np.zeros(20_000, dtype=np.int64)
    told = moves_of(survey, mdp).distribution(n, n, x)[:, 1]
    truth = 0.9 * (x[:, :15].sum(axis=-1) > 7)
    assert np.corrcoef(told, truth)[0, 1] > 0.55  # the best table of eight variables has 0.65
    # With three of them in the mask it is the conditional distribution.
    moves = moves_of(survey, mdp, (2, 5, 9))
    few = np.array(list(itertools.product(range(2), repeat=3)))
    told = moves.distribution(np.zeros(8, dtype=np.int64), np.zeros(8, dtype=np.int64), few)[:, 1]
    truth = [truth[(x[:, [2, 5, 9]] == row).all(axis=1)].mean() for row in few]
    np.testing.assert_allclose(told, truth, atol=0.05)


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


# --- rules ---------------------------------------------------------------------------------


def test_simplified_lists_say_the_same():
    rng = np.random.default_rng(0)
    sizes = np.array([2, 3])

    def rule(variables):
        rows = int(np.prod(sizes[list(variables)]))
        table = rng.dirichlet(np.ones(4), size=rows) * rng.random((rows, 1))
        table[rng.random(rows) < 0.3] = 0.0
        return Rule.from_matrix(tuple(variables), table, np.arange(4))

    for _ in range(20):
        rules = [rule([[], [0], [1], [0, 1]][k]) for k in rng.integers(4, size=6)]
        rules.append(Rule.certain(2))
        shorter = simplify(rules)
        assert len(shorter) <= len(rules)
        assert all(a.variables != b.variables for a, b in itertools.pairwise(shorter))
        n, a, x = np.indices((1, 1, 6)).reshape(3, -1)
        x = np.stack(np.divmod(x, 3), axis=-1)
        one, other = (DecisionLists.from_lists([part] * 4, 1, sizes) for part in (rules, shorter))
        np.testing.assert_allclose(
            one.distribution(n, a, x), other.distribution(n, a, x), atol=1e-12
        )


def test_the_most_common_row_becomes_the_default():
    matrix = np.array([[1.0, 0], [0, 1], [0, 1], [0, 0]])  # the last one was never asked about
    first, default = with_default(Rule.from_matrix((3,), matrix, np.array([5, 6])))
    assert first.decided.tolist() == [1, 0, 0, 0]
    assert (default.variables, default.targets.tolist()) == ((), [6])


# --- rewards and ends ------------------------------------------------------------------------


@pytest.mark.parametrize("model", [GridMDP, FactoryMDP, SyntheticMDP, CounterMDP, CoinMDP])
def test_reward_tables_are_those_of_the_model(model):
    mdp = model()
    for kind in ("terms", "total"):
        survey = survey_of(mdp, rollouts=64, reward=kind, num_tests=64, num_draws=1)
        rng = np.random.default_rng(1)
        state = mdp.sample_uniform(3000, rng)
        action = rng.integers(mdp.num_actions, size=3000)
        n = np.ravel_multi_index(tuple(state.endogenous.T), tuple(mdp.endogenous_sizes))
        total = survey.base_reward[n, action].copy()
        for i, table in survey.terms.items():
            total += table[state.exogenous[:, i], n, action]
        np.testing.assert_allclose(total, mdp.reward(state, action), atol=1e-9)


@pytest.mark.parametrize("model", [GridMDP, FactoryMDP, CrowdMDP])
def test_a_total_reward_comes_apart_into_the_terms(model):
    """Not to pay is nothing: so the zero of each term is recovered, too."""
    mdp, rng = model(), np.random.default_rng(0)
    data = ExogenousData.collect(mdp, 300, rng)
    terminal = terminal_states(mdp, data, rng)
    truth, found = reward_terms(mdp, terminal), total_rewards(mdp, data, terminal, rng)
    assert found.terms.keys() == truth.terms.keys()
    for i, table in truth.terms.items():
        np.testing.assert_allclose(found.terms[i], table, atol=1e-9)
    np.testing.assert_allclose(found.base, truth.base, atol=1e-9)


def test_terms_of_a_total_reward_are_known_up_to_a_constant():
    mdp = random_mdp(np.random.default_rng(0), sizes=(2, 3, 4), endogenous=(3,))
    survey = survey_of(mdp, reward="total")
    for i, table in mdp.terms.items():
        np.testing.assert_allclose(
            survey.terms[i] - survey.terms[i][:1], table - table[:1], atol=1e-9
        )


def test_a_reward_that_is_not_a_sum_is_refused():
    class Together(CounterMDP):
        def endogenous_reward(self, endogenous, action):
            return np.zeros(endogenous.shape[:-1])

        def reward_terms(self, state, action):
            terms = np.zeros(state.exogenous.shape)
            terms[..., 0] = state.exogenous[..., 0] * state.exogenous[..., 1]
            return terms

        def sample_initial(self, size, rng):
            return State(np.zeros((size, 2), dtype=np.int64), rng.integers([4, 6], size=(size, 2)))

    with pytest.raises(ValueError, match="what 'clock' pays depends on other exogenous variables"):
        survey_of(Together(), reward="total")


def test_an_end_that_depends_on_x_is_refused():
    class Ending(CounterMDP):
        def is_terminal(self, state):
            return np.equal(state.exogenous[..., 0], 3)

    with pytest.raises(ValueError, match=r"depends on x.*Carry the end .* endogenous variable"):
        survey_of(Ending())


def test_terminal_states_stay_and_pay_nothing():
    mdp = CounterMDP()
    survey = survey_of(mdp)
    over = np.flatnonzero(survey.terminal)
    assert over.tolist() == [15, 16, 17]
    assert not survey.base_reward[over].any()
    moves = moves_of(survey, mdp)
    for n in over:
        found = moves.sample(np.full(3, n), np.arange(3), np.zeros((3, 2), np.int64), np.zeros(3))
        assert (found == n).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reward": "sum"}, "unknown kind of reward 'sum'"),
        ({"num_tests": 0}, "num_tests is at least 1, not 0"),
        ({"num_draws": -1}, "num_draws is at least 1, not -1"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        survey_of(CounterMDP(), **settings)


def test_too_many_pairs_are_refused():
    mdp = MoveMDP((2,), lambda n, x, u: n, positions=200_000)
    with pytest.raises(ValueError, match="200000 endogenous states and 1 actions are more than"):
        survey_of(mdp, rollouts=3)


def test_data_of_another_model_is_refused():
    data = ExogenousData.collect(CoinMDP(), 3, np.random.default_rng(0))
    with pytest.raises(ValueError, match="collect it for the whole model"):
        EndogenousSurvey.collect(CounterMDP(), data.restrict(["coin_a"]), np.random.default_rng(0))


# --- through a mask --------------------------------------------------------------------------


def test_a_dropped_variable_is_averaged_given_what_tells_about_it():
    """x0 moves the agent; x1 is a copy of it now, nine times out of ten; x2 has no part in it."""

    class Copies(MoveMDP):
        def _throw(self, size, rng):
            x = rng.integers(2, size=(size, 3))
            x[:, 1] = np.where(rng.random(size) < 0.9, x[:, 0], 1 - x[:, 0])
            return x

    mdp = Copies((2, 2, 2), lambda n, x, u: x[..., 0])
    survey = survey_of(mdp, rollouts=1000)
    n, a = np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64)
    x = np.array(list(itertools.product(range(2), repeat=2)))
    moves = moves_of(survey, mdp, (1, 2))
    assert moves.dependencies() == (0,)  # x1, by its place in the mask
    np.testing.assert_allclose(
        moves.distribution(n, a, x)[:, 1], np.where(x[:, 0], 0.9, 0.1), atol=0.02
    )
    moves = moves_of(survey, mdp, (2,))
    assert moves.dependencies() == ()
    np.testing.assert_allclose(moves.distribution(n, a, x[:, :1])[:, 1], 0.5, atol=0.02)


def test_dropped_occupancies_become_the_chance_of_meeting_somebody(crowd):
    mdp, survey = crowd
    objects = list(range(mdp.object_slice.start, mdp.object_slice.stop))
    moves = moves_of(survey, mdp, objects)
    x = survey.contexts.data.sample(4000, np.random.default_rng(1))
    lanes = np.ones(len(x), dtype=np.int64)
    for cell, action in itertools.product((0, 9, 27, 62), range(1, mdp.num_actions)):
        target = int(mdp.floor.moves[cell, action])
        if target != cell and cell not in mdp.table_cells:
            found = moves.distribution(cell * lanes, action * lanes, x[:, objects]).mean(axis=0)
            met = x[:, target].mean()
            assert found[cell] == pytest.approx(met, abs=0.03)
            assert found[target] == pytest.approx(1 - met, abs=0.03)
