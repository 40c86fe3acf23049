"""What is paid, and where episodes end."""

import numpy as np
import pytest
from factored import random_mdp
from many_values import ManyValuesMDP
from models import CoinMDP, CounterMDP
from surveys import moves_of, survey_of

from exo_envs import State, Variable
from exo_envs.contract.checked_mdp import CountedMDP
from exo_envs.domains.crowd import CrowdMDP
from exo_envs.domains.factory import FactoryMDP
from exo_envs.domains.grid import GridMDP
from exo_envs.domains.synthetic import SyntheticMDP
from planners.discretization.coarse import coarsened
from planners.reduced.rewards import reward_terms, terminal_states, total_rewards
from planners.reduced.survey import all_endogenous
from planners.samples.rollouts import ExogenousData
from planners.tables.decision_lists import sample_lists

BLACK_BOX = "planners.reduced.rewards._BlackBox"


@pytest.mark.parametrize("model", [GridMDP, FactoryMDP, SyntheticMDP, CounterMDP, CoinMDP])
def test_reward_tables_are_those_of_the_model(model):
    mdp = model()
    for kind in ("terms", "total"):
        survey = survey_of(mdp, rollouts=64, reward=kind, num_tests=64)
        rng = np.random.default_rng(1)
        state = mdp.sample_uniform(3000, rng)
        action = rng.integers(mdp.num_actions, size=3000)
        n = np.ravel_multi_index(tuple(state.endogenous.T), tuple(mdp.endogenous_sizes))
        total = survey.base_reward[n, action].copy()
        for (i,), table in survey.scoped_terms.items():
            total += table[state.exogenous[:, i], n, action]
        np.testing.assert_allclose(total, mdp.reward(state, action), atol=1e-9)


class FewPay(ManyValuesMDP):
    """Of two prices the first pays, if it is above a threshold; so does the signal, by 0.1."""

    def __init__(self):
        super().__init__(10**6, "pays")
        self.exogenous_variables = (*self.exogenous_variables[:4], Variable("other", 10**6))

    def reward_terms(self, state, action):
        terms = super().reward_terms(state, action)
        terms[..., 1] = 0.1 * state.exogenous[..., 1]
        return terms


def test_a_bin_pays_the_mean_of_the_values_that_stand_for_it():
    mdp = FewPay()
    data = ExogenousData.collect(mdp, 300, np.random.default_rng(0))
    coarse = CountedMDP(coarsened(mdp, data.bins))
    endogenous = all_endogenous(coarse)
    exact = reward_terms(coarse, endogenous, np.zeros(len(endogenous), dtype=bool))
    assert exact.scoped_terms.keys() == {(0,), (1,)}
    n, a = np.divmod(np.arange(6), 2)
    for (j,), table in exact.scoped_terms.items():  # as it answers for all stand-ins
        for value, paid in enumerate(table):
            x = np.zeros((6, 5), dtype=np.int64)
            x[:, j] = value
            told = coarse.reward_terms(State(endogenous[n], x), a)[:, j]
            np.testing.assert_array_equal(paid.reshape(-1), told)


@pytest.mark.parametrize("model", [GridMDP, FactoryMDP, CrowdMDP])
def test_a_total_reward_comes_apart_into_the_terms(model):
    """Not to pay is nothing: so the zero of each term is recovered, too."""
    mdp, rng = model(), np.random.default_rng(0)
    data = ExogenousData.collect(mdp, 300, rng)
    endogenous = all_endogenous(mdp)
    terminal = terminal_states(mdp, endogenous, data, rng)
    truth = reward_terms(mdp, endogenous, terminal)
    found = total_rewards(mdp, endogenous, terminal, data, rng)
    assert found.scoped_terms.keys() == truth.scoped_terms.keys()
    for scope, table in truth.scoped_terms.items():
        np.testing.assert_allclose(found.scoped_terms[scope], table, atol=1e-9)
    np.testing.assert_allclose(found.base_reward, truth.base_reward, atol=1e-9)


def test_terms_of_a_total_reward_are_known_up_to_a_constant():
    mdp = random_mdp(np.random.default_rng(0), sizes=(2, 3, 4), endogenous=(3,))
    survey = survey_of(mdp, reward="total")
    for i, table in mdp.terms.items():
        found = survey.scoped_terms[i,]
        np.testing.assert_allclose(found - found[:1], table - table[:1], atol=1e-9)


def test_a_total_reward_of_variables_that_pay_together():
    class Together(CounterMDP):
        def endogenous_reward(self, endogenous, action):
            return np.zeros(endogenous.shape[:-1])

        def reward_terms(self, state, action):
            terms = np.zeros(state.exogenous.shape)
            terms[..., 0] = state.exogenous[..., 0] * state.exogenous[..., 1]
            return terms

        def sample_initial(self, size, rng):
            return State(np.zeros((size, 2), dtype=np.int64), rng.integers([4, 6], size=(size, 2)))

    survey = survey_of(Together(), reward="total")
    assert set(survey.scoped_terms) == {(0, 1)}


def test_a_total_reward_that_does_not_come_apart_is_refused(monkeypatch):
    """Terms are taken to be single ones, whatever is found out about them."""

    class Together(CounterMDP):
        def reward_terms(self, state, action):
            terms = np.zeros(state.exogenous.shape)
            terms[..., 0] = state.exogenous[..., 0] * state.exogenous[..., 1]
            return terms

        def sample_initial(self, size, rng):
            return State(np.zeros((size, 2), dtype=np.int64), rng.integers([4, 6], size=(size, 2)))

    monkeypatch.setattr(f"{BLACK_BOX}._pay_together", lambda *_: False)
    message = "what 'clock' pays depends on other exogenous variables.*reward_scopes"
    with pytest.raises(ValueError, match=message):
        survey_of(Together(), reward="total")
    monkeypatch.setattr(f"{BLACK_BOX}.is_wrong", lambda *_: True)
    with pytest.raises(ValueError, match="use reward='terms'"):
        survey_of(GridMDP(), reward="total")


def test_an_end_that_depends_on_x_is_refused():
    class Ending(CounterMDP):
        def is_terminal(self, state):
            return np.equal(state.exogenous[..., 0], 3)

    with pytest.raises(ValueError, match=r"depends on x.*carry_end\(mdp\) .* endogenous variable"):
        survey_of(Ending())


def test_terminal_states_stay_and_pay_nothing():
    mdp = CounterMDP()
    survey = survey_of(mdp)
    over = np.flatnonzero(survey.terminal)
    assert over.tolist() == [15, 16, 17]
    assert not survey.base_reward[over].any()
    moves = moves_of(survey, mdp)
    for n in over:
        found = sample_lists(
            moves, np.full(3, n), np.arange(3), np.zeros((3, 2), np.int64), np.zeros(3)
        )
        assert (found == n).all()
