"""The bracket contains the best value; it says how it knows n'; wrong input is refused."""

import math

import gymnasium as gym
import numpy as np
import pytest
from factored import random_mdp
from models import CoinMDP, CounterMDP

import planners
from exo_envs import ExoMDP, State, Variable
from exo_envs.domains.crowd import CrowdMDP
from exo_envs.domains.factory import FactoryMDP, FactoryParameters
from exo_envs.domains.grid import GridMDP
from planners import Bracket, Estimate, ReducedMDP, Scenarios, bracket, evaluate
from planners.bounds import bracketing, penalty
from planners.bounds.penalty import ExactValues, default_model

#: Standard errors that a mean may be off: by chance once in 3.5 million, were seeds not fixed.
ERRORS = 5


def contains(found, value):
    low = found.lower.mean - ERRORS * found.lower.standard_error - 1e-6
    high = found.upper.mean + ERRORS * found.upper.standard_error + 1e-6
    return low <= value <= high


@pytest.mark.parametrize("block", range(10))
def test_the_best_value_is_in_the_bracket_of_100_small_models(small, block, monkeypatch):
    """A third each with n' given, certain, and drawn; with a penalty and without."""
    for name, value in (("NUM_FRESH", 16), ("NUM_SUCCESSORS", 8), ("TRAINING_ROLLOUTS", 50)):
        monkeypatch.setattr(bracketing, name, value)
    for seed in range(10 * block, 10 * block + 10):
        mdp = small.make(seed, certain=seed % 3 == 1)
        model = small.Silent(mdp) if seed % 3 == 2 else mdp
        charged = {"values": ()} if seed % 4 == 0 else {"model": mdp}
        found = bracket(model, small.anything, 200, rng=seed, **charged)
        assert contains(found, small.best_value(mdp)), seed
        assert found.difference.mean >= 0
        assert (found.lower_returns <= found.upper_values).all()
        expected = ("given by the model", "given by the model", "sampled")[seed % 3]
        assert found.successors == expected


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_the_bound_meets_the_best_value_of_small_models(small, seed, monkeypatch):
    monkeypatch.setattr(bracketing, "NUM_FRESH", 500)
    monkeypatch.setattr(bracketing, "TRAINING_ROLLOUTS", 2000)
    mdp = small.make(seed, horizon=5)
    scenarios = Scenarios.sample(mdp, 500, seed)
    found = bracket(mdp, small.anything, scenarios=scenarios)
    assert found.weights[0] >= 0.9
    # From the states in which these trajectories start, not from all.
    assert abs(found.upper.mean - small.best_of(mdp, scenarios).mean()) < 0.02
    assert found.hindsight.mean - found.upper.mean > 0.02


def test_the_best_policy_of_exogrid_gives_nothing_away():
    mdp = GridMDP()
    plan = planners.ValueIteration().plan(mdp, rng=np.random.default_rng(0))
    found = bracket(mdp, plan.policy, 300, rng=1)
    assert found.gap < 0.01
    assert found.hindsight.mean > 1.03 * found.upper.mean
    plain = Estimate.of(evaluate(plan.policy, mdp, 20_000, rng=5))
    assert abs(plain.mean - found.lower.mean) < ERRORS * found.lower.standard_error


def test_a_policy_is_judged_on_the_given_scenarios(small):
    mdp = small.make(5)
    scenarios = Scenarios.sample(mdp, 40, 3)
    first = bracket(mdp, small.anything, rng=1, scenarios=scenarios, values=())
    again = bracket(mdp, small.anything, rng=2, scenarios=scenarios, values=())
    assert len(first.upper_values) == 40
    np.testing.assert_array_equal(first.upper_values, again.upper_values)
    assert first.weights == ()
    assert first.upper == first.hindsight


def test_the_same_seed_gives_the_same_bracket(small):
    mdp = small.make(4)
    first, again, other = (bracket(mdp, small.anything, 30, rng=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.upper_values, again.upper_values)
    np.testing.assert_array_equal(first.lower_returns, again.lower_returns)
    assert first.upper != other.upper


def test_environments_are_taken_too():
    found = bracket(gym.make("ExoGrid-v0"), lambda s: np.zeros(len(s.endogenous), int), 20)
    assert isinstance(found, Bracket)


class Misleading:
    """Large values that have nothing to do with the model."""

    def __init__(self, mdp):
        self.mdp = mdp

    def backwards(self, horizon):
        rng = np.random.default_rng(0)
        n_states = self.mdp.num_endogenous_states
        for _ in range(horizon):
            table = 100 * rng.normal(size=(2, n_states))
            yield lambda x, table=table: table[x[:, 0]]


def test_a_penalty_that_does_not_help_is_not_charged(small):
    mdp = small.make(5)
    found = bracket(mdp, small.anything, 100, rng=0, values=Misleading(mdp))
    assert found.weights == (0.0,)
    assert found.upper == found.hindsight


def test_draws_that_never_differ_are_called_that():
    found = bracket(CounterMDP(), lambda s: np.full(len(s.endogenous), 1), 5, values=())
    assert found.successors == "never differed"
    assert found.loosening == 0
    assert "sampled" not in str(found)


def test_drawn_successors_are_reported_with_what_they_may_cost(small):
    mdp = small.make(5)
    found = bracket(small.Silent(mdp), small.anything, 100, values=())
    assert found.successors == "sampled"
    assert found.loosening > 0
    assert "sampled" in str(found)


def test_it_reads_well():
    returns, bounds = np.array([1.0, 3.0]), np.array([4.0, 4.0])
    found = Bracket(
        lower=Estimate.of(returns),
        upper=Estimate.of(bounds),
        hindsight=Estimate.of(bounds),
        weights=(),
        successors="given by the model",
        loosening=0.0,
        lower_returns=returns,
        upper_values=bounds,
    )
    assert str(found).startswith("earns 2.0 ± 2.0; no policy can earn more than 4.0 ± 0.0")
    assert found.gap == 0.5
    assert found.difference.mean == 2.0
    assert "lower_returns" not in repr(found)


class Still(ExoMDP):
    """No exogenous variables, and a discount of 1."""

    endogenous_variables = (Variable("n", 3),)
    exogenous_variables = ()
    num_actions, discount, horizon = 2, 1.0, 1

    def sample_initial(self, size, rng):
        return State(np.ones((size, 1), int), np.zeros((size, 0), int))

    def sample_exogenous(self, exogenous, rng):
        return exogenous.copy()

    def sample_endogenous(self, state, action, rng):
        return (state.endogenous + np.asarray(action)[..., None]) % 3

    def reward_terms(self, state, action):
        return np.zeros(state.exogenous.shape)

    def endogenous_reward(self, endogenous, action):
        return endogenous[..., 0] * np.asarray(action, dtype=float)


@pytest.mark.parametrize("horizon", [1, 4])
def test_a_model_without_x_is_solved(horizon):
    mdp = Still()
    mdp.horizon = horizon
    found = bracket(mdp, lambda s: np.zeros(len(s.endogenous), int), 3)
    assert found.upper.mean == {1: 1.0, 4: 4.0}[horizon]  # 1, 2, 0, 1
    assert found.lower.mean == 0
    assert found.gap == 1.0


class Wrong:
    def __init__(self, values, steps=99):
        self.values, self.steps = values, steps

    def backwards(self, horizon):
        for _ in range(min(horizon, self.steps)):
            yield lambda x: self.values(len(x))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_rollouts": 0}, "n_rollouts is a whole number"),
        ({"values": Wrong(lambda b: np.full((b, 4), np.nan))}, "not finite"),
        ({"values": Wrong(lambda b: np.full((b, 4), np.inf))}, "not finite"),
        ({"values": Wrong(lambda b: np.zeros((b, 5)))}, r"shape \(\d+, 5\)"),
        ({"values": Wrong(lambda b: np.zeros((b, 4)), steps=3)}, "ends before the horizon"),
        ({"values": (), "model": random_mdp(np.random.default_rng(0))}, "not both"),
        ({"model": random_mdp(np.random.default_rng(0), sizes=(5, 3))}, "does not fit"),
        ({"model": random_mdp(np.random.default_rng(0), endogenous=(9,))}, "does not fit"),
    ],
)
def test_wrong_input_is_refused(small, settings, words):
    mdp = small.make(5)
    with pytest.raises(ValueError, match=words):
        bracket(mdp, small.anything, **{"n_rollouts": 5, **settings})


def test_a_model_that_is_too_large_is_refused(small, monkeypatch):
    mdp = small.make(5)
    for module in (bracketing, penalty):
        monkeypatch.setattr(module, "MAX_EXACT_STATES", 10)
    with pytest.raises(MemoryError, match="24 states"):
        bracket(mdp, small.anything, 5, model=mdp)
    assert bracket(mdp, small.anything, 5).weights in ((), (0.0,))
    with pytest.raises(TypeError, match="FactoredMDP"):
        ExactValues(GridMDP())


def test_n_that_cannot_be_enumerated_is_refused():
    class Huge(CoinMDP):
        endogenous_variables = (Variable("n", 10**6),)

    with pytest.raises(ValueError, match="1,000,000 values of n"):
        bracket(Huge(), lambda s: np.zeros(len(s.endogenous), int), 5)


@pytest.mark.parametrize("broken", ["sum", "range", "reward"])
def test_a_model_that_breaks_the_contract_is_refused(broken):
    class Broken(GridMDP):
        def endogenous_distribution(self, state, action):
            found = super().endogenous_distribution(state, action)
            if broken == "sum":
                return found._replace(probabilities=found.probabilities / 2)
            return found._replace(endogenous=found.endogenous + 99 * (broken == "range"))

        def reward_terms(self, state, action):
            return super().reward_terms(state, action) * (np.nan if broken == "reward" else 1)

    with pytest.raises(
        ValueError, match=r"sum to 1|returned 107 for 'robot'|returned nan for 'object'"
    ):
        bracket(Broken(), lambda s: np.zeros(len(s.endogenous), int), 5, values=())


def test_the_default_model_has_what_matters_and_what_predicts_that():
    mdp = FactoryMDP(FactoryParameters(num_noise=3))
    rng = np.random.default_rng(0)
    machines = tuple(f"machine_{i}" for i in range(5))
    needed = ("order_0", "clock", *machines)
    assert default_model(mdp, None, 60_000, rng).exogenous_names == needed
    more = ("order_0", "order_1", *needed[1:])  # it tells more than a technician
    assert default_model(mdp, None, 400_000, rng).exogenous_names == more
    assert default_model(mdp, None, 1_000, rng) is None


def test_the_default_model_of_a_crowd_is_the_policys_if_there_is_one():
    mdp = CrowdMDP()
    rng = np.random.default_rng(0)
    reduced = ReducedMDP.estimate(mdp, ["object_0", "object_1"], rng=rng, num_rollouts=50)
    plan = planners.ValueIteration(tolerance=1.0).plan(reduced)
    assert default_model(mdp, None, 1e7, rng) is None
    assert default_model(mdp, plan.policy, 1e7, rng).exogenous_names == ("object_0", "object_1")
    assert math.isfinite(bracket(mdp, plan.policy, 4, model=reduced).gap)
