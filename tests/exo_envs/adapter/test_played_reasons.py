"""Environments that are not what their model says: each of the six reasons, planted."""

import re

import numpy as np
import pytest
from airline import adapt_by_hand
from walks import FirstVisit, Jackpot, LooksAhead, Pushed, TwoLevels, Walk

from exo_envs import AdaptedMDP, PlayedDifferentlyError, PlayedDifferentlyWarning, Variable

LEVEL = [Variable("level", 4)]


def set_walk(env, n, x):
    env.place, env.level = int(n[0]), int(x[0])
    if len(x) > 1:
        env.other = int(x[1])


def adapt(env, levels=LEVEL, **kwargs):
    """The place is endogenous and everything else is not."""
    return AdaptedMDP(
        env,
        split=lambda shown: (shown[:1], shown[1:]),
        set_state=set_walk,
        endogenous_variables=[Variable("place", env.size)],
        exogenous_variables=levels,
        horizon=60,
        **kwargs,
    )


def with_single_terms():
    levels = [Variable("level", 4), Variable("other", 4)]
    return adapt(TwoLevels(), levels, reward_scopes=[["level"], ["other"]])


PLANTED = {
    "coarse state": (adapt_by_hand, "finer bins"),
    "hidden state": (lambda: adapt(FirstVisit()), "set_state does not set"),
    "joint rewards": (with_single_terms, r"\('level', 'other'\) pay only together"),
    "noise in the reward": (lambda: adapt(Jackpot()), "such as 100"),
    "exogeneity": (lambda: adapt(Pushed()), "'level' does not move by itself"),
    "looks ahead": (lambda: adapt(LooksAhead()), "'place' looks at the next 'level'"),
}


@pytest.mark.parametrize("reason", PLANTED)
def test_a_difference_is_refused_and_named(reason):
    make, message = PLANTED[reason]
    with pytest.raises(PlayedDifferentlyError, match=message) as caught:
        make().check_claims()
    assert caught.value.reason == reason


def test_a_model_that_is_right_passes():
    mdp = adapt(Walk())
    mdp.check_claims()
    assert mdp.is_played_as_claimed


def test_an_approximation_is_warned_of_once():
    mdp = adapt(Pushed(), differences="warn")
    with pytest.warns(PlayedDifferentlyWarning, match="approximation"):
        mdp.check_claims()
    mdp.check_claims()  # a second warning would be an error


def test_few_seeds_are_too_few_where_chance_decides_far_away():
    """Random actions never come to the end of the way, so every n is asked about."""
    with pytest.raises(PlayedDifferentlyError, match=re.escape("reward_samples=4")):
        adapt(Jackpot(), reward_samples=4).check_claims()
    adapt(Jackpot(), reward_samples=100).check_claims()


def test_rewards_are_asked_for_under_the_same_seeds_in_all_states():
    """So no place looks better than another one because its noise happened to be larger."""

    class Noisy(Walk):
        def pay(self, action, place, level):
            return self.np_random.normal(), False

    mdp = adapt(Noisy(), reward_samples=3)
    state = mdp.sample_initial(1, np.random.default_rng(0))._replace(
        endogenous=np.array([[place, 0] for place in range(5)])
    )
    state = state._replace(exogenous=np.zeros((5, 1), dtype=np.int64))
    paid = mdp.reward(state, np.ones(5, dtype=np.int64))
    assert np.ptp(paid) == 0.0
    assert paid[0] != 0.0
