"""*Estimate-Reward-Variables* against slow independent versions of it, and how it is biased."""

import itertools
import statistics
from collections import Counter
from functools import partial

import numpy as np
import pytest
from factored import random_mdp
from models import CounterMDP
from scripted import Sites, Watched

from exo_envs import ExoMDP, State, Variable
from exo_envs.domains.grid import GridMDP
from wrappers import RewardVariableMaskLearner, Study
from wrappers.learners.reward_variables import (
    REWARD_VARIANCES,
    VISITED,
    draw_mixed,
    estimate_reward_variables,
    visited_sampler,
)

each_reward = pytest.mark.parametrize("reward", ["terms", "total"])


def exact_variances(mdp, n2):
    """E[1/n1 sum_j sigma_j^2], by going through every state: n2 draws show (n2-1)/n2 of it."""
    n_values = list(itertools.product(*(range(v.size) for v in mdp.endogenous_variables)))
    x_values = list(itertools.product(*(range(v.size) for v in mdp.exogenous_variables)))
    variances = []
    for i, variable in enumerate(mdp.exogenous_variables):
        found = []
        for n, x, a in itertools.product(n_values, x_values, range(mdp.num_actions)):
            if x[i]:
                continue  # once for each setting of the others
            rewards = [
                float(mdp.reward(State(np.array(n), np.array([*x[:i], v, *x[i + 1 :]])), a))
                for v in range(variable.size)
            ]
            found.append(statistics.pvariance(rewards))
        variances.append((n2 - 1) / n2 * statistics.fmean(found))
    return np.array(variances)


@each_reward
@pytest.mark.parametrize("n2", [2, 5])
def test_the_mean_variance_is_that_of_the_pseudo_code(reward, n2):
    """Over 30 estimates; 5 standard errors are exceeded once in 40,000 times."""
    rng = np.random.default_rng(1)
    mdp = random_mdp(rng, sizes=(2, 3, 4), endogenous=(3,), paying=(0, 2), num_terminal=1)
    estimates = np.array(
        [
            estimate_reward_variables(mdp, np.random.default_rng(s), n1=200, n2=n2, reward=reward)
            for s in range(30)
        ]
    )
    wanted = exact_variances(mdp, n2)
    error = estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates))
    assert (np.abs(estimates.mean(axis=0) - wanted) <= 5 * error).all()
    assert (estimates[:, 1] == 0).all()
    assert (wanted[[0, 2]] > 20 * error[[0, 2]]).all()  # or the test would tell nothing


def test_the_rewards_asked_for_are_those_of_the_pseudo_code():
    """One variable changes at a time, and the result is the mean of the plain variances."""
    watched = Watched(random_mdp(np.random.default_rng(2), sizes=(3, 2, 5)))
    n1, n2 = 40, 4
    variances = estimate_reward_variables(watched, np.random.default_rng(0), n1=n1, n2=n2)
    asked = watched.asked["rewards"]
    assert sum(len(action) for _, action in asked) == 3 * n1 * n2
    for i, (state, action) in enumerate(asked):
        n, x = (part.reshape(n1, n2, -1) for part in state)
        others = np.delete(x, i, axis=-1)
        for part in (n, others, action.reshape(n1, n2, 1)):
            assert (part == part[:, :1]).all()
        assert set(x[..., i].ravel()) == set(range(watched.exogenous_variables[i].size))
        rewards = [
            [
                float(watched.mdp.reward(State(n[j, k], x[j, k]), action[j * n2 + k]))
                for k in (range(n2))
            ]
            for j in range(n1)
        ]
        slow = statistics.fmean(map(statistics.pvariance, rewards))
        assert variances[i] == pytest.approx(slow, abs=1e-12)


@each_reward
def test_what_never_pays_is_exactly_zero(reward):
    """tau_variance = 0 must not accept the rounding error of large, crooked numbers."""
    mdp = random_mdp(np.random.default_rng(3), sizes=(3, 2, 4), paying=(0, 1, 2))
    mdp.terms[0][:] = 0.1  # always the same
    mdp.terms[1][:] = mdp.terms[1][:1]  # whatever x is
    mdp.terms[2] *= 1e9
    mdp.base_reward[:] = np.pi * 1e7
    variances = estimate_reward_variables(mdp, np.random.default_rng(0), reward=reward)
    assert variances[0] == variances[1] == 0.0
    assert variances[2] > 0


@each_reward
def test_a_terminal_state_pays_nothing(reward):
    """A sixth of the states of CounterMDP are terminal; the clock's variance is 1.25 elsewhere."""
    rng = np.random.default_rng(0)
    variances = estimate_reward_variables(CounterMDP(), rng, n1=20_000, n2=5, reward=reward)
    # The standard error is below sqrt(1.25) / sqrt(20,000) = 0.008.
    assert variances[0] == pytest.approx(5 / 6 * 1.25 * 4 / 5, abs=0.05)
    assert variances[1] == 0


def test_refuses_what_has_no_variance():
    for arguments in ({"n1": 0}, {"n2": 1}, {"n1": 2.5}, {"n2": True}):
        with pytest.raises(ValueError, match=next(iter(arguments))):
            estimate_reward_variables(CounterMDP(), np.random.default_rng(0), **arguments)


def test_visited_samples_are_visited():
    watched = Watched(GridMDP())
    study = Study(watched, 0, n_rollouts=5, n_data_rollouts=50)
    assert study.survey()  # which asks about all states
    watched.moves.clear()
    sampler = visited_sampler(study, ("object", "guard"))
    met = {tuple(row) for batch in watched.moves for row in batch.tolist()}
    assert watched.moves
    state, action = sampler(3000, np.random.default_rng(0))
    drawn = {tuple(row) for row in np.column_stack([*state, action]).tolist()}
    assert drawn <= met
    assert len(drawn) > 100
    calls = watched.calls.copy()
    visited_sampler(study, ("object", "guard"))
    assert watched.calls == calls  # planned and played once


def test_visited_samples_are_spread_evenly():
    """Each (n, a) is drawn as often as its share of the visited states says, to within one."""
    study = Study(GridMDP(), 0, n_rollouts=5, n_data_rollouts=50)
    sampler = visited_sampler(study, ("object", "guard"))
    (n, _), actions = study.memory.entries(VISITED)["object", "guard"]
    share = Counter(zip(n[:, 0].tolist(), actions.tolist(), strict=True))
    for size in (1, 37, 250):
        state, action = sampler(size, np.random.default_rng(size))
        drawn = Counter(zip(state.endogenous[:, 0].tolist(), action.tolist(), strict=True))
        assert drawn.total() == size
        for pair, count in share.items():
            assert abs(drawn[pair] - size * count / len(actions)) < 1


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_a_mixture_has_its_shares(share):
    def constant(value):
        return lambda size, rng: (
            State(np.full((size, 1), value), np.full((size, 2), value)),
            np.full(size, value),
        )

    sampler = partial(draw_mixed, constant(1), constant(2), share)
    (n, x), action = sampler(250, np.random.default_rng(0))
    assert (n.shape, x.shape, action.shape) == ((250, 1), (250, 2), (250,))
    assert (n[:, 0] == action).all()
    assert (x == n).all()
    assert (action == 1).sum() == round(share * 250)
    assert len(sampler(1, np.random.default_rng(0))[1]) == 1
    assert (sampler(1, np.random.default_rng(0))[1] == 1).all() == (share > 0)


class Detour(Sites):
    """The fourth coin pays at the fourth site; the agent goes round the other three."""

    def __init__(self):
        super().__init__(coins=4)

    def sample_initial(self, size, rng):
        state = super().sample_initial(size, rng)
        return State(state.endogenous % 3, state.exogenous)

    def sample_endogenous(self, state, action, rng):
        return (state.endogenous + 1) % 3


def first_phase(mdp, seed=0, **arguments):
    learner = RewardVariableMaskLearner(n_rollouts=5, n_data_rollouts=30, **arguments)
    return learner.fit(mdp, seed).mask_


def test_visited_sampling_leaves_out_what_pays_nowhere_near():
    """Of 250 samples 62 are uniform with a share of 0.25: a quarter of these is at the fourth site.

    Five settings of its coin are alike once in 16 times, so all of about 15 fail once in 16^15.
    """
    near = ("coin_0", "coin_1", "coin_2", "rain")
    everything = ("coin_0", "coin_1", "coin_2", "coin_3", "rain")
    assert first_phase(Detour(), sampling="uniform") == everything
    assert first_phase(Detour(), uniform_share=0.0) == near
    assert first_phase(Detour(), uniform_share=0.25) == everything


class Vault(ExoMDP):
    """A long walk to a door; behind it a dial is paid for, and a guard that costs more.

    Uniform samples are hardly ever at the door with the hand on the dial, so often only the dial
    or only the guard is found; but who knows of one of them goes there, and finds the other.
    """

    num_actions, discount, horizon, length = 3, 0.99, 60, 40

    def __init__(self):
        self.endogenous_variables = (Variable("place", self.length),)
        self.exogenous_variables = (Variable("dial", 2), Variable("guard", 2), Variable("rain", 2))

    def sample_initial(self, size, rng):
        return State(np.zeros((size, 1), dtype=np.int64), rng.integers(2, size=(size, 3)))

    def sample_exogenous(self, exogenous, rng):
        return np.where(rng.random(exogenous.shape) < 0.1, 1 - exogenous, exogenous)

    def sample_endogenous(self, state, action, rng):
        step = np.where(np.asarray(action)[..., None] == 1, 1, 0)
        return np.minimum(state.endogenous + step, self.length - 1)

    def reward_terms(self, state, action):
        working = (state.endogenous[..., 0] == self.length - 1) & (np.asarray(action) == 2)
        pays = np.array([10.0, -25.0, 0.0])
        return np.where(working[..., None], pays * state.exogenous, 0.0)


def test_what_was_found_leads_to_what_was_missed():
    """With reward="total" each variable has 60 samples of its own, each of them once in 120 times
    at the door and at work: three times in five none is, and the variable is missed.

    Who knows of the dial or hopes for it goes to the door and works there. Without optimism a robot
    that only knows of the guard would stand still for ever.
    """
    settings = {"n1": 60, "reward": "total"}
    uniform = [first_phase(Vault(), k, sampling="uniform", **settings) for k in range(40)]
    visited = [first_phase(Vault(), k, **settings) for k in range(40)]
    assert not any("rain" in mask for mask in (*uniform, *visited))
    for before, after in zip(uniform, visited, strict=True):
        if before:
            assert after == ("dial", "guard")
    one_was_missed = [before for before in uniform if len(before) == 1]
    assert {("dial",), ("guard",)} == set(one_was_missed)
    assert visited.count(()) < uniform.count(())


def test_phase_one_alone_is_what_pays():
    names = ("coin_0", "coin_1", "coin_2", "rain")
    learner = RewardVariableMaskLearner(sampling="uniform", n_rollouts=20, n_data_rollouts=30).fit(
        Sites(coins=3)
    )
    assert learner.mask_ == names
    assert [record.candidate[0] for record in learner.history_[:-1]] == list(names)
    scores = {record.candidate[0]: record.score for record in learner.history_[:-1]}
    learner.set_params(tau_variance=scores["coin_1"])
    stricter = learner.fit(Sites(coins=3)).mask_
    assert stricter == tuple(name for name in names if scores[name] > scores["coin_1"])


def test_episodes_that_are_over_before_they_begin():
    """Nothing is visited: samples are uniform, and nothing is paid."""

    class Over(Sites):
        def is_terminal(self, state):
            return np.ones(state.endogenous.shape[:-1], dtype=bool)

    assert first_phase(Over()) == ()


def test_a_share_of_one_is_uniform_and_plans_nothing():
    study = Study(Sites(coins=3), 0, n_rollouts=5, n_data_rollouts=30)
    learner = RewardVariableMaskLearner(uniform_share=1.0).fit(study)
    assert not study.memory.entries(VISITED)
    assert learner.mask_ == RewardVariableMaskLearner(sampling="uniform").fit(study).mask_
    assert len(study.memory.entries(REWARD_VARIANCES)) == 1
