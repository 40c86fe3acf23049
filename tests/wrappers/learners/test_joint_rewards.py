"""What learners make of variables that pay only together."""

import numpy as np
import pytest
from joint import Match, Sales

from exo_envs import State
from wrappers import (
    BruteForceMaskLearner,
    CalibratedMaskLearner,
    CorrelationalMaskLearner,
    GreedyMaskLearner,
    RewardVariableMaskLearner,
    Study,
)
from wrappers.fitting.relevance import find_relevance, importance
from wrappers.learners.reward_variables import estimate_reward_variables

PAIR = ("first", "second")
SMALL = {"n_rollouts": 100, "n_data_rollouts": 200}


class Driven(Match):
    """The weather ("noise") drives the first coin: what it is now, the coin is next."""

    def sample_exogenous(self, exogenous, rng):
        after = super().sample_exogenous(exogenous, rng)
        after[..., 0] = exogenous[..., 4]
        return after


@pytest.mark.parametrize("reward", ["terms", "total"])
def test_both_coins_are_found_and_what_drives_them(reward):
    """The tax pays by itself; "idle" is in the scope of its term and makes no difference."""
    learner = CalibratedMaskLearner(reward=reward, **SMALL).fit(Driven(), 0)
    assert learner.mask_ == ("first", "second", "tax", "noise")
    findings = find_relevance(Study(Driven(), 0, n_data_rollouts=200, reward=reward)).findings
    assert {name: f.role for name, f in findings.items()} == {
        **dict.fromkeys(("first", "second", "tax"), "pays"),
        "noise": "predicts",
    }
    assert findings["first"].reason == "pays together with second"
    assert findings["second"].partners == ("first",)
    assert findings["tax"].reason == "pays"
    # +- 10 for a bet, nothing for waiting: half of the variance of a fair coin that decides.
    assert findings["first"].score == pytest.approx(50.0)


@pytest.mark.parametrize("reward", ["terms", "total"])
def test_the_pair_stays_at_a_price_it_is_worth(reward):
    """The tax is worth next to nothing; the coins 20 each at least, if both are there."""
    learner = CalibratedMaskLearner(cost_weight=2.0, reward=reward, **SMALL).fit(Match(), 0)
    assert learner.mask_ == PAIR
    assert learner.objective_.mean_return > 30


def test_the_pair_goes_at_a_price_it_is_not_worth():
    learner = CalibratedMaskLearner(cost_weight=100.0, **SMALL).fit(Match(), 0)
    assert learner.mask_ == ()


def test_what_a_coin_is_worth_counts_if_the_other_is_known():
    study = Study(Match(), 0, n_data_rollouts=200)
    worth = importance(study, find_relevance(study), np.zeros(0))
    assert worth["first"] == pytest.approx(worth["second"], rel=0.1)
    assert worth["first"] > 5 * worth["tax"] > 0


@pytest.mark.parametrize("reward", ["terms", "total"])
def test_estimated_variances_are_those_of_one_variable_at_a_time(reward):
    """Half of all bets; x is one of two values: +-10 has a variance of 100 (1 - 1/5) at n2=5."""
    variances = estimate_reward_variables(Match(), 0, n1=4000, n2=5, reward=reward)
    assert variances.shape == (5,)
    assert variances[:2] == pytest.approx(0.5 * 100 * 0.8, rel=0.1)
    assert variances[2] == pytest.approx(0.5 * 0.25 * 0.8, rel=0.1)
    assert (variances[3:] == 0).all()


def test_variances_of_overlapping_scopes():
    """Terms that look at the same variable vary together."""
    mdp = Sales()
    terms = estimate_reward_variables(mdp, 0, n1=20_000, reward="terms")
    total = estimate_reward_variables(mdp, 1, n1=20_000, reward="total")
    np.testing.assert_allclose(terms, total, rtol=0.1)
    assert terms[3] == 0


def test_nothing_is_paid_when_it_is_over():
    class Over(Match):
        def is_terminal(self, state):
            return np.ones(state.endogenous.shape[:-1], dtype=bool)

    assert not estimate_reward_variables(Over(), 0, reward="terms").any()


@pytest.mark.parametrize("reward", ["terms", "total"])
@pytest.mark.parametrize("sampling", ["uniform", "visited"])
def test_phase_one_finds_the_pair(sampling, reward):
    """The relaxed plan bets, too, once it knows the coins: so the tax pays where the agent goes."""
    learner = RewardVariableMaskLearner(sampling=sampling, reward=reward, **SMALL)
    assert learner.fit(Match(), 0).mask_ == ("first", "second", "tax")


def test_the_papers_learner_finds_the_pair():
    learner = CorrelationalMaskLearner(**SMALL).fit(Driven(), 0)
    assert {"first", "second", "tax"} <= set(learner.mask_)


def test_brute_force_finds_the_pair():
    learner = BruteForceMaskLearner(cost_weight=2.0, **SMALL).fit(Match(), 0)
    assert learner.mask_ == PAIR


def test_one_variable_at_a_time_never_starts():
    """Greedy adds a variable if J rises; no coin by itself raises it."""
    learner = GreedyMaskLearner(cost_weight=2.0, trials=3, **SMALL).fit(Match(), 0)
    assert not set(PAIR) <= set(learner.mask_)


def test_a_product_is_worth_its_variables():
    """Price times demand: both are kept, and the weather that tells nothing more is dropped."""

    class Choosy(Sales):
        """To sell costs 1.5, so one looks at price and demand first."""

        def endogenous_reward(self, endogenous, action):
            return super().endogenous_reward(endogenous, action) - 1.5 * np.asarray(action)

        def sample_initial(self, size, rng):
            state = super().sample_initial(size, rng)
            return State(np.full((size, 1), 2), state.exogenous)

    mask = CalibratedMaskLearner(**SMALL).fit(Choosy(), 0).mask_
    assert mask == ("price", "demand", "weather")
    priced = CalibratedMaskLearner(cost_weight=0.2, n_rollouts=400, n_data_rollouts=400)
    assert priced.fit(Choosy(), 0).mask_ == ("price", "demand")
