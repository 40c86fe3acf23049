"""The calibrated rule: planted problems, the null, and what it must not be fooled by."""

import math

import numpy as np
import pytest
from scipy.stats import binom
from scripted import Sites

from exo_envs import ExoMDP, State, Variable
from exo_envs.core.statistics import chi_squared_log_tail
from exo_envs.domains.synthetic import SyntheticMDP, SyntheticParameters
from wrappers import CalibratedMaskLearner, Study
from wrappers.fitting.relevance import find_relevance

#: The probability that a test adds anything wrong; the links are far stronger than this asks for.
LEVEL = 1e-4
NOTHING = {
    "generations": 0,
    "num_xor_pairs": 0,
    "num_moving": 0,
    "num_copies": 0,
    "num_correlated": 0,
}


def planted(**parameters):
    return SyntheticMDP(SyntheticParameters(**parameters))


def relevance(mdp, seed=0, *, level=LEVEL, rollouts=200):
    return find_relevance(Study(mdp, seed, n_data_rollouts=rollouts, level=level))


# --- planted problems -------------------------------------------------------------------------

PROBLEMS = {
    "default": {},
    "no ancestors": {"generations": 0},
    "parents": {"generations": 1, "num_moving": 3},
    "great-grandparents": {"generations": 3},
    "two parents": {"parents_per_paying": 2},
    "all XOR": {"num_xor_pairs": 3},
    "copies": {"num_copies": 12, "num_correlated": 12, "num_noise": 20},
}


@pytest.mark.parametrize("instance", [0, 1])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_what_matters_is_found_and_nothing_else(problem, instance):
    """Wrong additions have probability 1e-4 at most; the weakest link is missed once in 1e10.

    (An XOR pair with noise 0.15 tells 0.26 nats: G = 2 * 8750 * 0.26, four degrees of freedom.)
    """
    mdp = planted(instance=instance, **problem)
    found = relevance(mdp)
    assert mdp.closure(found.findings) == mdp.required_mask
    assert len(found.findings) == len(mdp.required_mask)
    for finding in found.findings.values():
        role = mdp.roles[finding.name]
        assert finding.role == {"pays": "pays", "moves": "moves"}.get(role, "predicts")
        assert finding.score > 0
        if finding.role == "predicts":
            assert finding.name in mdp.parents[finding.target]
            assert finding.p_value <= LEVEL
            assert finding.reason == f"predicts {finding.target}"
        else:
            assert finding.target is None


def test_without_a_price_the_mask_is_all_that_matters():
    mdp = planted(instance=3)
    learner = CalibratedMaskLearner(n_rollouts=20, n_data_rollouts=200, level=LEVEL).fit(mdp, 0)
    assert learner.mask_ == mdp.required_mask
    assert set(learner.reasons_) == set(mdp.required_mask)
    *found, last = learner.history_
    assert [r.action for r in found] == ["find"] * len(mdp.required_mask)
    for before, after in zip([None, *found], found, strict=False):
        assert set(after.mask) == {*(before.mask if before else ()), *after.candidate}
    assert (last.action, last.mask, last.accepted) == ("start", mdp.required_mask, True)
    assert last.value == last.mean_return
    low, high = learner.study_.evaluator.objective(learner.mask_).interval()
    assert last.half_width == pytest.approx((high - low) / 2)


def test_a_copy_of_the_mask_s_past_is_not_added():
    """Nor one that it is also confounded with, through what both follow."""
    mdp = planted(num_paying=1, num_xor_pairs=0, generations=2, num_copies=9, copy_noise=0.02)
    copies = [name for name, role in mdp.roles.items() if role == "copy"]
    assert len(copies) == 9
    assert {mdp.parents[name][0] for name in copies} >= {"pays_0", "parent_0_0"}
    found = set(relevance(mdp).findings)
    assert found == set(mdp.required_mask)


# --- XOR --------------------------------------------------------------------------------------

XOR = NOTHING | {"num_paying": 1, "num_xor_pairs": 1, "num_noise": 4}


def test_an_xor_pair_is_found_although_neither_tells_anything():
    mdp = planted(**XOR)
    study = Study(mdp, 0, n_data_rollouts=200, level=LEVEL)
    data = study.data()
    found = find_relevance(study)
    assert set(found.findings) == {"pays_0", "xor_0_a", "xor_0_b"}
    for name in ("xor_0_a", "xor_0_b"):
        i, j = data.positions(["pays_0", name])
        table = np.zeros((2, 2))
        np.add.at(table, (data.before(j, data.fitted), data.after(i, data.fitted)), 1)
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        statistic = 2 * (table * np.log(table / expected)).sum()
        # The samples are correlated; that a G-test at 1e-6 sees nothing is certain enough.
        assert chi_squared_log_tail(float(statistic), 1.0) > math.log(1e-6)


def test_without_interventions_a_pair_among_many_is_not_guessed(monkeypatch):
    nobody = lambda mdp, data, targets, memory: [{} for _ in targets]  # noqa: E731
    monkeypatch.setattr("planners.findings.actors_of", nobody)
    assert set(relevance(planted(**XOR, noise_size=8)).findings) == {"pays_0"}


class Shifty(SyntheticMDP):
    """It draws more noise for some states than for others: no common random numbers."""

    def sample_exogenous(self, exogenous, rng):
        rng.random(int(np.sum(exogenous)) % 7)
        return super().sample_exogenous(exogenous, rng)


def test_an_xor_pair_is_found_without_common_random_numbers():
    """Distributions are compared instead; these differ by 0.85 or more in every state."""
    mdp = Shifty(SyntheticParameters(**XOR))
    found = relevance(mdp)
    assert set(found.findings) == {"pays_0", "xor_0_a", "xor_0_b"}


# --- conditions 1 and 2 -----------------------------------------------------------------------


def test_what_only_moves_the_agent_is_found():
    mdp = planted(num_moving=2, num_paying=2, num_xor_pairs=0, generations=2)
    found = relevance(mdp)
    moving = {name for name, finding in found.findings.items() if finding.role == "moves"}
    assert moving == {"moves_0", "moves_1"}
    assert set(found.direct) == {"pays_0", "pays_1", "moves_0", "moves_1"}
    assert {"parent_moves_0", "parent_moves_1"} <= set(found.findings)  # condition 3 for them too


@pytest.mark.parametrize("reward", ["terms", "total"])
def test_what_pays_is_found_in_a_black_box_too(reward):
    mdp = Sites(coins=3)
    learner = CalibratedMaskLearner(n_rollouts=5, n_data_rollouts=50, reward=reward, level=LEVEL)
    assert learner.fit(mdp).mask_ == ("coin_0", "coin_1", "coin_2", "rain")
    assert {record.reason for record in learner.reasons_.values()} == {"pays"}


def test_nothing_that_pays_is_an_empty_mask():
    class Idle(Sites):
        def reward_terms(self, state, action):
            return np.zeros(state.exogenous.shape)

    for cost_weight in (0.0, 1.0):
        learner = CalibratedMaskLearner(
            n_rollouts=5, n_data_rollouts=20, cost_weight=cost_weight
        ).fit(Idle())
        assert learner.mask_ == ()
        assert learner.objective_.value == 0.0
        assert not learner.get_support().any()
        assert learner.reasons_ == {}


# --- the null ---------------------------------------------------------------------------------


@pytest.mark.parametrize("persistence", [0.5, 0.95])
def test_under_the_null_hardly_anything_is_added(persistence):
    """In at most 5 % of 200 runs; more than the 99.9 % bound of that is no accident.

    The runs share what moves n and what pays, which holds for all of them.
    """
    mdp = planted(**NOTHING, persistence=persistence, horizon=20, num_noise=6)
    survey = Study(mdp, 0, n_data_rollouts=50).survey()
    added = 0
    for seed in range(200):
        study = Study(mdp, seed, n_data_rollouts=50, level=0.05)
        study.memory.survey = survey
        found = find_relevance(study).findings
        assert {"pays_0", "pays_1", "pays_2"} <= set(found)
        added += len(found) > 3
    assert added <= binom.isf(0.001, 200, 0.05)


def test_a_stricter_level_finds_no_more():
    mdp = planted(noise=0.5, copy_noise=0.5)  # weak links, few samples
    found = [set(relevance(mdp, level=level, rollouts=20).findings) for level in (0.2, 1e-3, 1e-12)]
    assert found[0] >= found[1] >= found[2]
    assert len(found[0]) > len(found[2])


class Slow(ExoMDP):
    """What pays is driven by something slow that also moves half of the others.

    Given the driver the others tell nothing; without it they do, each of them.
    """

    endogenous_variables = (Variable("n", 2),)
    exogenous_variables = tuple(Variable(n, 2) for n in ("pays", "driver", "a", "b", "c", "d"))
    num_actions = 2
    discount = 0.95
    horizon = 20

    def sample_initial(self, size, rng):
        x = rng.integers(2, size=(size, 6))
        return State(rng.integers(2, size=(size, 1)), x)

    def sample_exogenous(self, exogenous, rng):
        driver = exogenous[..., 1:2]
        follows = rng.random(exogenous.shape) < 0.8
        following = np.where(follows, driver, rng.integers(2, size=exogenous.shape))
        stays = rng.random(driver.shape) < 0.95
        following[..., 1:2] = np.where(stays, driver, 1 - driver)
        following[..., 4:] = rng.integers(2, size=exogenous.shape)[..., 4:]
        return following

    def sample_endogenous(self, state, action, rng):
        return np.asarray(action)[..., None] + np.zeros_like(state.endogenous)

    def reward_terms(self, state, action):
        terms = np.zeros(state.exogenous.shape)
        terms[..., 0] = np.where(state.exogenous[..., 0] == state.endogenous[..., 0], 1.0, -1.0)
        return terms


def test_what_shares_a_cause_with_the_mask_is_not_added():
    assert set(relevance(Slow()).findings) == {"pays", "driver"}
