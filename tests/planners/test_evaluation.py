"""Rollouts, shared scenarios, and estimates with their intervals."""

import numpy as np
import pytest
from factored import random_mdp
from models import CoinMDP, CounterMDP

from exo_envs import ExoEnv
from exo_envs.domains.grid import GridMDP
from planners.core.evaluation import Estimate, Scenarios, evaluate, paired_difference


def constant(action):
    return lambda state: np.full(len(state.endogenous), action)


@pytest.mark.parametrize("action", [0, 1, 2])
def test_returns_are_those_of_the_environment(action):
    """On a model without noise, exactly: discounting, the horizon and the end of an episode."""
    mdp = CounterMDP()
    env = ExoEnv(mdp)
    env.reset(seed=0)
    expected = 0.0
    for t in range(mdp.horizon):
        _, reward, terminated, _, _ = env.step(action)
        expected += mdp.discount**t * reward
        if terminated:
            break
    returns = evaluate(constant(action), mdp, 4, np.random.default_rng(0))
    np.testing.assert_allclose(returns, expected)


def test_returns_have_the_distribution_of_the_environment():
    """The means are less than 5 standard errors apart (p < 1e-6)."""
    mdp = GridMDP()
    walk = {8: 1, 4: 1, 0: 4, 1: 4, 2: 4, 3: 0}

    def policy(state):
        return np.array([walk.get(int(n), 0) for n in state.endogenous[:, 0]])

    returns = evaluate(policy, mdp, 2000, np.random.default_rng(0))
    env, single = ExoEnv(mdp), []
    for seed in range(400):
        observation, _ = env.reset(seed=seed)
        total, t, ended = 0.0, 0, False
        while not ended:
            action = walk.get(int(observation["endogenous"][0]), 0)
            observation, reward, terminated, truncated, _ = env.step(action)
            total += mdp.discount**t * reward
            ended, t = terminated or truncated, t + 1
        single.append(total)
    ours, theirs = Estimate.of(returns), Estimate.of(np.array(single))
    spread = np.hypot(ours.standard_error, theirs.standard_error)
    assert abs(ours.mean - theirs.mean) < 5 * spread


def test_policies_meet_the_same_scenarios():
    mdp = CoinMDP()
    scenarios = Scenarios.sample(mdp, 20, np.random.default_rng(0), horizon=6)
    seen = []
    for action in (0, 1):
        states = []

        def policy(state, states=states, action=action):
            states.append(state.exogenous.copy())
            return np.full(len(state.endogenous), action)

        evaluate(policy, mdp, scenarios=scenarios)
        seen.append(np.array(states))
    np.testing.assert_array_equal(*seen)
    np.testing.assert_array_equal(seen[0], scenarios.exogenous)


def test_pairing_takes_the_noise_out():
    """Two policies that differ little: the paired error is a small part of the unpaired one."""
    mdp = random_mdp(np.random.default_rng(2), sizes=(3, 4), horizon=20)
    scenarios = Scenarios.sample(mdp, 400, np.random.default_rng(0))
    one = evaluate(constant(0), mdp, scenarios=scenarios)
    np.testing.assert_array_equal(one, evaluate(constant(0), mdp, scenarios=scenarios))
    same = paired_difference(one, one)
    assert (same.mean, same.standard_error) == (0.0, 0.0)

    def seldom_different(state):
        return np.where((state.endogenous[:, 0] == 0) & (state.exogenous[:, 0] == 2), 1, 0)

    other = evaluate(seldom_different, mdp, scenarios=scenarios)
    unpaired = np.hypot(Estimate.of(one).standard_error, Estimate.of(other).standard_error)
    assert paired_difference(other, one).standard_error < 0.9 * unpaired


def test_intervals_cover_as_often_as_they_say():
    """95 % intervals of 50 samples cover the truth in 88 to 99 % of 400 runs."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        low, high = Estimate.of(rng.exponential(2.0, size=50)).interval(0.95)
        covered += low <= 2.0 <= high
    assert 0.88 < covered / 400 < 0.99


def test_bad_input_is_refused():
    mdp = CoinMDP()
    with pytest.raises(ValueError, match="n_rollouts is a whole number, at least 1, not 0"):
        evaluate(constant(0), mdp, 0, np.random.default_rng(0))
    with pytest.raises(ValueError, match="needs a generator"):
        evaluate(constant(0), mdp, 5)
    with pytest.raises(ValueError, match="between 0 and 1, not 95"):
        Estimate(0.0, 1.0).interval(95)
    with pytest.raises(ValueError, match=r"\(3,\) and \(4,\)"):
        paired_difference(np.zeros(3), np.zeros(4))
    assert Estimate.of(np.ones(1)).standard_error == np.inf
