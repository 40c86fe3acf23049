"""What a bracket can rely on: the model's word on n', plain returns, and the end of an episode."""

from dataclasses import replace

import numpy as np
import pytest

import planners
from exo_envs import ExoMDP, State, Variable
from exo_envs.contract.checked_mdp import CountedMDP
from exo_envs.domains.grid import GridMDP
from planners import Estimate, Scenarios, bracket, evaluate
from planners.bounds.relaxation import gives_successors


def stay(state):
    return np.zeros(len(state.endogenous), int)


class Firm(GridMDP):
    """Never slips, but inherits the probabilities of a model that does."""

    def sample_endogenous(self, state, action, rng):
        return super().endogenous_distribution(state, action).endogenous[..., 0, :]


class Both(Firm):
    """Says what it does."""

    def endogenous_distribution(self, state, action):
        found = super().endogenous_distribution(state, action)
        certain = np.zeros_like(found.probabilities)
        certain[..., 0] = 1.0
        return found._replace(probabilities=certain)


class Passing(CountedMDP):
    """Defines neither."""


@pytest.mark.parametrize("wrap", [lambda mdp: mdp, CountedMDP, lambda m: Passing(CountedMDP(m))])
def test_probabilities_count_if_they_are_of_the_class_that_draws_or_of_a_later_one(wrap):
    assert gives_successors(wrap(GridMDP()))
    assert gives_successors(wrap(Both()))
    assert not gives_successors(wrap(Firm()))


def test_a_method_that_was_set_on_the_model_itself_is_the_last_word():
    mdp = GridMDP()
    mdp.sample_endogenous = lambda state, action, rng: state.endogenous.copy()
    assert not gives_successors(mdp)


@pytest.mark.parametrize("wrap", [lambda mdp: mdp, CountedMDP])
def test_inherited_probabilities_do_not_make_a_bound_too_low(wrap):
    mdp = Firm(replace(GridMDP().parameters, slip=0.5))
    plan = planners.ValueIteration().plan(
        GridMDP(replace(mdp.parameters, slip=0.0)), rng=np.random.default_rng(0)
    )
    earned = Estimate.of(evaluate(plan.policy, mdp, 2000, rng=3))
    found = bracket(wrap(mdp), plan.policy, 60, rng=1, values=())
    assert found.successors == "never differed"
    assert found.upper.interval(0.999)[1] > earned.mean


def test_a_policy_that_earns_nothing_is_said_to_earn_nothing():
    mdp = GridMDP()
    scenarios = Scenarios.sample(mdp, 60, 0)
    found = bracket(mdp, stay, scenarios=scenarios)
    assert found.lower == Estimate.of(evaluate(stay, mdp, scenarios=scenarios))
    assert found.lower == Estimate(0.0, 0.0)
    assert Estimate.of(found.lower_returns).standard_error > 0
    assert (found.lower_returns <= found.upper_values).all()
    assert found.gap == pytest.approx(found.difference.mean / found.upper.mean)


def test_a_good_policy_is_judged_with_less_noise_than_its_returns_have():
    mdp = GridMDP()
    plan = planners.ValueIteration().plan(mdp, rng=np.random.default_rng(0))
    scenarios = Scenarios.sample(mdp, 100, 0)
    found = bracket(mdp, plan.policy, scenarios=scenarios)
    plain = Estimate.of(evaluate(plan.policy, mdp, scenarios=scenarios))
    assert found.lower == Estimate.of(found.lower_returns)
    assert found.lower.standard_error < plain.standard_error


def test_returns_that_are_known_are_taken():
    mdp = GridMDP()
    scenarios = Scenarios.sample(mdp, 20, 0)
    found = bracket(mdp, stay, scenarios=scenarios, values=(), returns=np.full(20, 7.0))
    assert found.lower == Estimate(7.0, 0.0)
    for settings in ({}, {"scenarios": scenarios}):
        with pytest.raises(ValueError, match="one for each of the scenarios"):
            bracket(mdp, stay, values=(), returns=np.zeros(3), **settings)


class Storm(ExoMDP):
    """A storm ends the episode, and n does not show it. n pays where it is what w is."""

    endogenous_variables = (Variable("n", 3),)
    exogenous_variables = (Variable("storm", 2), Variable("w", 3))
    num_actions, discount, horizon = 2, 0.95, 8

    def sample_initial(self, size, rng):
        x = np.stack([np.zeros(size, int), rng.integers(3, size=size)], axis=-1)
        return State(np.zeros((size, 1), int), x)

    def sample_exogenous(self, exogenous, rng):
        shape = exogenous.shape[:-1]
        storm = exogenous[..., 0] | (rng.random(shape) < 0.2)
        return np.stack([storm, rng.integers(3, size=shape)], axis=-1)

    def sample_endogenous(self, state, action, rng):
        return (state.endogenous + np.asarray(action)[..., None]) % 3

    def reward_terms(self, state, action):
        terms = np.zeros(state.exogenous.shape)
        terms[..., 1] = state.exogenous[..., 1] == state.endogenous[..., 0]
        return terms

    def is_terminal(self, state):
        return state.exogenous[..., 0] == 1


def best_in_hindsight(exogenous):
    """By trying every sequence of actions."""
    best = 0.0
    for code in range(2 ** len(exogenous)):
        n, total = 0, 0.0
        for t, (storm, w) in enumerate(exogenous.tolist()):
            if storm:
                break
            total += 0.95**t * (n == w)
            n = (n + (code >> t & 1)) % 3
        best = max(best, total)
    return best


def test_where_the_end_depends_on_x_there_is_no_penalty_and_the_bound_is_hindsight():
    mdp = Storm()
    scenarios = Scenarios.sample(mdp, 30, 0)
    found = bracket(mdp, stay, scenarios=scenarios)
    assert found.weights == ()
    expected = [best_in_hindsight(scenarios.exogenous[:, b]) for b in range(30)]
    np.testing.assert_allclose(found.upper_values, expected, atol=1e-12)
    returns = evaluate(stay, mdp, scenarios=scenarios)
    np.testing.assert_allclose(found.lower_returns, returns, atol=1e-12)
    assert found.lower.mean < found.upper.mean
