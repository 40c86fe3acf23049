"""ExoSynthetic: the tables are the dynamics."""

import itertools
from collections import Counter

import numpy as np
import pytest
from planted import STRUCTURES, make, reference_outcomes, reference_reward
from scipy.stats import chi2

from exo_envs import State
from exo_envs.domains.synthetic import SyntheticVectorEnv, exact
from exo_envs.testing import check_mdp


@pytest.mark.parametrize("parameters", STRUCTURES, ids=str)
def test_the_contract(parameters):
    check_mdp(make(**parameters), rng=np.random.default_rng(0))


@pytest.mark.parametrize("parameters", STRUCTURES[:3] + STRUCTURES[-1:], ids=str)
def test_frequencies_match_the_tables(parameters):
    """Chi-square per state and variable; all pass with probability over 1 - 1e-4 a structure."""
    mdp = make(**parameters)
    rng = np.random.default_rng(1)
    size, states = 20_000, mdp.sample_uniform(4, rng).exogenous
    for x in states:
        following = mdp.sample_exogenous(np.broadcast_to(x, (size, len(x))), rng)
        for i, name in enumerate(mdp.exogenous_names):
            expected = size * mdp.table(name)[tuple(x[mdp.exogenous_indices(mdp.parents[name])])]
            counts = np.bincount(following[:, i], minlength=len(expected))
            statistic = ((counts - expected) ** 2 / expected).sum()
            assert chi2.sf(statistic, len(expected) - 1) > 1e-4 / (len(states) * len(x)), name


def test_variables_are_drawn_independently():
    """Every correlation within 5.5 standard errors: fails by chance with probability 2e-5."""
    mdp = make()
    rng = np.random.default_rng(2)
    size = 20_000
    x = np.broadcast_to(mdp.sample_uniform(1, rng).exogenous, (size, len(mdp.nodes)))
    correlations = np.corrcoef(mdp.sample_exogenous(x, rng).T)
    np.fill_diagonal(correlations, 0)
    assert np.abs(correlations).max() < 5.5 / np.sqrt(size)


@pytest.mark.parametrize("parameters", STRUCTURES, ids=str)
def test_episodes_start_stationary(parameters):
    """Chi-square on the joint values around one site; fails by chance with probability 1e-6."""
    mdp = make(**parameters)
    names = mdp.closure(mdp.sites[0].variables)
    process = exact._joint_process(mdp, names)
    np.testing.assert_allclose(
        process.stationary @ process.transitions, process.stationary, atol=1e-14
    )
    size = 20_000
    state = mdp.sample_initial(size, np.random.default_rng(3))
    codes = exact._codes(state.exogenous[:, mdp.exogenous_indices(names)], np.full(len(names), 2))
    counts = np.bincount(codes, minlength=len(process.stationary))
    likely = size * process.stationary >= 5
    expected = np.append(
        size * process.stationary[likely], size * process.stationary[~likely].sum()
    )
    seen = np.append(counts[likely], counts[~likely].sum())
    used = expected > 0
    statistic = ((seen - expected)[used] ** 2 / expected[used]).sum()
    assert chi2.sf(statistic, used.sum() - 1) > 1e-6
    assert set(map(tuple, state.endogenous)) == set(map(tuple, mdp.initial_endogenous))


@pytest.mark.parametrize("parameters", [{}, {"generations": 3, "num_moving": 3}], ids=str)
def test_bets_follow_the_rules(parameters):
    """Every n and action, reachable or not, with several x."""
    mdp = make(**parameters)
    rng = np.random.default_rng(4)
    for n in itertools.product(*(range(size) for size in mdp.endogenous_sizes)):
        for action in range(mdp.num_actions):
            for x in mdp.sample_uniform(3, rng).exogenous:
                state = State(np.array(n), x)
                expected = reference_outcomes(mdp, n, x, action)
                straight, turned, turn = mdp.endogenous_outcomes(state, np.array(action))
                outcomes = Counter({tuple(straight): 1 - turn})
                outcomes[tuple(turned)] += turn
                assert {k: v for k, v in outcomes.items() if v} == pytest.approx(expected)
                reward = mdp.reward(state, np.array(action))
                assert reward == pytest.approx(reference_reward(mdp, n, x, action))


def test_a_bet_is_turned_as_often_as_stated():
    """Both values of the switch, within 5 standard errors."""
    mdp = make(slip=0.2)
    size = 20_000
    n = np.tile([0, 1, 1], (size, 1))
    for on in (0, 1):
        x = np.zeros((size, len(mdp.nodes)), dtype=int)
        x[:, mdp.exogenous_names.index("moves_0")] = on
        following = mdp.sample_endogenous(State(n, x), np.ones(size, int), np.random.default_rng(5))
        assert (following[:, :2] == [0, 0]).all()
        turned = (following[:, 2] == 2).mean()
        assert abs(turned - (0.8 if on else 0.2)) < 5 * 0.4 / np.sqrt(size)


def test_the_noise_used_depends_on_shapes_only(planted):
    left = []
    for seed in (0, 1):
        rng = np.random.default_rng(9)
        state = planted.sample_uniform(6, np.random.default_rng(seed))
        planted.sample_next(state, np.full(6, seed), rng)
        left.append(rng.random())
    assert left[0] == left[1]


def test_the_agent_cannot_change_what_happens():
    trajectories = []
    for action in (0, 1):
        env = SyntheticVectorEnv(4, instance=2)
        observations = [env.reset(seed=7)[0]]
        observations += [env.step(np.full(4, action))[0] for _ in range(60)]
        trajectories.append(np.array([observation["exogenous"] for observation in observations]))
    assert (trajectories[0] == trajectories[1]).all()
