"""Lanes that look at each other, and noise that is not the generator's, are found out."""

import numpy as np
import pytest
from models import CoinMDP, CounterMDP

from exo_envs import ExoMDP, State, Variable
from exo_envs.contract.check import check_quickly
from exo_envs.contract.rules import Probe, check_neighbours, collect_states, shares_noise
from exo_envs.domains.grid import GridMDP
from exo_envs.testing import ContractError, check_mdp


class Shop(ExoMDP):
    """A price that walks, weather that is thrown, and stock."""

    endogenous_variables = (Variable("stock", 3),)
    exogenous_variables = (Variable("price", 5), Variable("weather", 2))
    num_actions, discount, horizon = 2, 0.95, 20

    def sample_initial(self, size, rng):
        n, x = np.zeros((size, 1), dtype=np.int64), rng.integers([5, 2], size=(size, 2))
        return State(n, x)

    def sample_exogenous(self, exogenous, rng):
        following = rng.integers(2, size=exogenous.shape)
        step = rng.integers(-1, 2, size=exogenous.shape[:-1])
        following[..., 0] = np.clip(exogenous[..., 0] + step, 0, 4)
        return following

    def sample_endogenous(self, state, action, rng):
        return np.clip(state.endogenous + 2 * np.asarray(action)[..., None] - 1, 0, 2)

    def reward_terms(self, state, action):
        sold = (np.asarray(action) == 0)[..., None] & (state.endogenous > 0)
        return state.exogenous * sold * [1.0, 0.0]


class TakesThePriceOfTheLaneBefore(Shop):
    def sample_exogenous(self, exogenous, rng):
        following = super().sample_exogenous(exogenous, rng)
        following[..., 0] = np.roll(following[..., 0], 1) if following.ndim > 1 else 0
        return following


class TakesTheWeatherTwoLanesBefore(Shop):
    def sample_exogenous(self, exogenous, rng):
        following = super().sample_exogenous(exogenous, rng)
        if following.ndim > 1:
            following[..., 1] = np.roll(exogenous[..., 1], 2)
        return following


class LooksAtTheMean(Shop):
    def sample_exogenous(self, exogenous, rng):
        following = super().sample_exogenous(exogenous, rng)
        if exogenous[..., 0].mean() < 1:
            following[..., 0] = exogenous[..., 0]
        return following


class LooksAtTheLastLane(Shop):
    def sample_endogenous(self, state, action, rng):
        following = super().sample_endogenous(state, action, rng)
        return following if np.reshape(state.exogenous, -1)[-1] else state.endogenous.copy()


class BringsItsOwnNoise(Shop):
    def sample_exogenous(self, exogenous, rng):
        return super().sample_exogenous(exogenous, np.random.default_rng(0))


class DrawsOnceForAll(Shop):
    def sample_exogenous(self, exogenous, rng):
        following = super().sample_exogenous(exogenous, rng)
        following[..., 1] = rng.integers(2)
        return following


class DrawsWhereItMatters(Shop):
    """Noise for the lanes that need it: how much is drawn depends on the others. That is right."""

    def sample_endogenous(self, state, action, rng):
        following = super().sample_endogenous(state, action, rng)
        buys = np.asarray(action) == 1
        lost = np.zeros(buys.shape, dtype=np.bool_)
        lost[buys] = rng.random(np.count_nonzero(buys)) < 0.3
        return np.where(lost[..., None], state.endogenous, following)


@pytest.mark.parametrize(
    "model",
    [
        TakesThePriceOfTheLaneBefore,
        TakesTheWeatherTwoLanesBefore,
        LooksAtTheMean,
        LooksAtTheLastLane,
        BringsItsOwnNoise,
        DrawsOnceForAll,
    ],
)
def test_lanes_that_are_not_independent_are_found_out(model):
    with pytest.raises(ContractError, match=r"rule 'batching' is broken: sample_\w+ (looks|has)"):
        check_quickly(model())
    for seed in range(5):
        with pytest.raises(ContractError, match="rule 'batching' is broken"):
            check_mdp(model(), rng=seed)


def test_the_message_shows_the_lane_and_what_changes_it():
    wanted = (
        r"sample_exogenous looks at other lanes of the batch: 'weather' is \d in \d+% of the "
        r"samples at n: stock=\d; x: price=\d, weather=\d; action \d, but in \d+% if other lanes"
    )
    with pytest.raises(ContractError, match=wanted):
        check_quickly(TakesTheWeatherTwoLanesBefore())


@pytest.mark.parametrize("model", [Shop, DrawsWhereItMatters, CoinMDP, CounterMDP, GridMDP])
def test_good_models_pass(model):
    check_quickly(model())
    check_mdp(model(), rng=0)


def probe_of(model, seed):
    rng = np.random.default_rng(seed)
    return Probe.of(model, collect_states(model, 64, True, rng), rng)


def test_a_good_model_fails_seldom_enough():
    """200 comparisons at 0.05: more than 20 fail with a probability of 0.1 % if 5 % do."""

    def fails(seed):
        try:
            check_neighbours(probe_of(DrawsWhereItMatters(), seed), 30, 0.05)
        except ContractError:
            return True
        return False

    assert sum(map(fails, range(200))) <= 20


@pytest.mark.parametrize("seed", range(10))
def test_noise_is_told_from_certainty(seed):
    assert shares_noise(probe_of(DrawsOnceForAll(), seed))
    assert shares_noise(probe_of(BringsItsOwnNoise(), seed))
    assert not shares_noise(probe_of(Shop(), seed))
    assert not shares_noise(probe_of(CounterMDP(), seed))


def test_a_few_states_are_enough_not_to_fail():
    for num_states in (1, 2, 3, 9):
        check_mdp(DrawsWhereItMatters(), num_states=num_states, num_samples=2)
