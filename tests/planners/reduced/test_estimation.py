"""Reduced models against the models they reduce."""

import itertools

import numpy as np
import pytest
from factored import random_mdp
from reduced import all_x, factor_tables, move_table, shared, total_variation

from exo_envs import State
from exo_envs.domains.crowd import CrowdMDP
from exo_envs.domains.factory import FactoryMDP
from exo_envs.domains.grid import GridMDP
from exo_envs.domains.synthetic import SyntheticMDP, SyntheticParameters
from exo_envs.testing import check_mdp
from planners.reduced.reduced_mdp import ReducedMDP
from planners.tables.factors import transition_counts

ERROR_PROBABILITY = 1e-6


class FixedNoise:
    """Stands in for a generator: every uniform number is the given one."""

    def __init__(self, uniform):
        self.uniform = uniform

    def random(self, shape):
        return np.full(shape, self.uniform)


def l1_bound(samples, values, comparisons):
    """Weissman's: the empirical distribution is within this total variation of the true one."""
    log = np.log(comparisons * 2.0**values / ERROR_PROBABILITY)
    return 0.5 * np.sqrt(2 * log / np.maximum(samples, 1))


def occupancy(mdp):
    """How likely each x is at a random step of a rollout, shape (X,), exactly."""
    x = all_x(mdp)
    transitions = np.ones((len(x), len(x)))
    for i, table in enumerate(factor_tables(mdp, x)):
        transitions *= table[:, x[:, i]]
    codes = np.ravel_multi_index(mdp.initial.exogenous.T, tuple(mdp.exogenous_sizes))
    now = np.bincount(codes, minlength=len(x)) / len(codes)
    mean = np.zeros(len(x))
    for _ in range(mdp.horizon):
        mean += now / mdp.horizon
        now = now @ transitions
    return mean


# --- with nothing dropped --------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_full_mask_gives_back_a_random_model(seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, sizes=(2, 3, 2, 4), endogenous=(3, 2), num_terminal=1)
    reduced = ReducedMDP.estimate(mdp, mdp.exogenous_names, rng=rng)
    x = all_x(mdp)
    for i, factor in enumerate(mdp.factors):
        assert set(reduced.factors[i].parents) == set(factor.parents)
        counts = transition_counts(reduced.data, i, factor.parents, reduced.data.fitted)
        rows = counts.reshape(-1, counts.shape[-1]).sum(axis=-1)
        row = np.zeros(len(x), dtype=np.int64)
        for j in factor.parents:
            row = row * mdp.exogenous_sizes[j] + x[:, j]
        found, truth = factor_tables(reduced, x)[i], factor_tables(mdp, x)[i]
        # One sample's worth of smoothing; and the number of samples is itself random.
        bound = l1_bound(rows, counts.shape[-1], 1e5 * rows.size) + 1 / (1 + rows)
        assert (total_variation(found, truth) <= bound[row]).all()
    found, truth = move_table(reduced, x), move_table(mdp, x)
    draws = 10_000  # as many as a row gets in a model of this size
    assert total_variation(found, truth).max() <= l1_bound(draws, 6, 6 * 3 * len(x))
    assert reduced.terms.keys() == mdp.terms.keys()
    for i, table in mdp.terms.items():
        np.testing.assert_array_equal(reduced.terms[i], table)
    np.testing.assert_array_equal(reduced.base_reward, mdp.base_reward)
    np.testing.assert_array_equal(reduced.terminal, mdp.terminal)


def test_more_data_comes_nearer_to_the_truth():
    mdp = random_mdp(np.random.default_rng(3), sizes=(3, 3), endogenous=(2,))
    x = all_x(mdp)
    errors = []
    for rollouts in (50, 5000):
        reduced = ReducedMDP.estimate(
            mdp, mdp.exogenous_names, rng=np.random.default_rng(0), num_rollouts=rollouts
        )
        found, truth = factor_tables(reduced, x), factor_tables(mdp, x)
        errors.append(np.mean([total_variation(*pair) for pair in zip(found, truth, strict=True)]))
    assert errors[1] < 0.3 * errors[0]


def test_the_full_mask_of_the_grid_has_its_probabilities():
    mdp = GridMDP()
    p = mdp.parameters
    reduced = ReducedMDP.estimate(mdp, mdp.exogenous_names, rng=np.random.default_rng(0))
    assert reduced.parents == {
        "object": ("object", "carrier"),
        "carrier": ("carrier",),
        "guard": ("guard_intent", "guard"),
        "guard_intent": ("guard_intent",),
        "weather": ("weather",),
    }
    x = all_x(mdp)
    tables = factor_tables(reduced, x)
    onwards = np.where(x[:, 1] == 0, 1, -1)
    lane = np.arange(len(x))
    for i, value, chance in (
        (0, (x[:, 0] + onwards) % 3, p.carry),
        (1, 1 - x[:, 1], p.turn),
        (2, x[:, 3], np.where(x[:, 2] == x[:, 3], 1.0, p.follow)),
        (3, 1 - x[:, 3], p.reconsider),
        (4, 1 - x[:, 4], p.weather_change),
    ):
        np.testing.assert_allclose(tables[i][lane, value], chance, atol=0.015)
    # A slip and no slip, exactly; the done state is the last.
    found = move_table(reduced, x)
    truth = np.zeros_like(found)
    n, a, k = (part.reshape(-1) for part in np.indices(found.shape[:3]))
    state = State(n[:, None], x[k])
    for uniform, chance in ((0.5 * p.slip, p.slip), (0.5, 1 - p.slip)):
        following = mdp.sample_endogenous(state, a, FixedNoise(uniform))[:, 0]
        np.add.at(truth, (n, a, k, following), chance)
    assert total_variation(found, truth).max() < 0.02
    rng = np.random.default_rng(1)
    state, action = mdp.sample_uniform(2000, rng), rng.integers(mdp.num_actions, size=2000)
    np.testing.assert_array_equal(
        reduced.reward_terms(state, action), mdp.reward_terms(state, action)
    )


def test_the_log_loss_is_near_the_entropy_of_what_is_left_to_chance():
    mdp = GridMDP()
    reduced = ReducedMDP.estimate(mdp, mdp.exogenous_names, rng=np.random.default_rng(0))
    p = mdp.parameters
    for name, chance in (
        ("carrier", p.turn),
        ("guard_intent", p.reconsider),
        ("weather", p.weather_change),
    ):
        i = reduced.mask.index(name)
        entropy = -chance * np.log(chance) - (1 - chance) * np.log(1 - chance)
        assert reduced.log_loss[i] == pytest.approx(entropy, abs=0.015)
        assert reduced.marginal_log_loss[i] == pytest.approx(np.log(2), abs=0.005)
    assert (reduced.log_loss <= reduced.marginal_log_loss).all()


# --- with something dropped ------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_dropped_variables_are_marginalised(seed):
    """Against the exact conditional distributions under the rollouts' distribution of x."""
    mdp = random_mdp(np.random.default_rng(seed), sizes=(2, 3, 2, 4), endogenous=(3, 2))
    x, weight = all_x(mdp), occupancy(mdp)
    factors, moves = factor_tables(mdp, x), move_table(mdp, x)
    given = shared(mdp, seed)
    for mask in itertools.chain.from_iterable(
        itertools.combinations(range(4), k) for k in (0, 1, 2, 3)
    ):
        reduced = ReducedMDP.estimate(mdp, mask, **given)
        seen, row = np.unique(x[:, list(mask)], axis=0, return_inverse=True)
        belongs = np.zeros((len(seen), len(x)))
        belongs[row.reshape(-1), np.arange(len(x))] = weight
        chance = belongs.sum(axis=1)
        belongs /= chance[:, None]
        found = factor_tables(reduced, seen)
        for k, i in enumerate(mask):
            error = total_variation(found[k], belongs @ factors[i])
            assert chance @ error < 0.02
            assert error[chance > 0.02].max(initial=0.0) < 0.08
        truth = np.einsum("vx,naxm->navm", belongs, moves)
        error = total_variation(move_table(reduced, seen), truth)
        assert (error @ chance).max() < 0.03
        assert error[..., chance > 0.02].max() < 0.12


def test_every_mask_of_the_grid_keeps_the_contract():
    mdp = GridMDP()
    given = shared(mdp)
    for kept in itertools.product((False, True), repeat=5):
        reduced = ReducedMDP.estimate(mdp, kept, **given)
        assert reduced.mask == tuple(itertools.compress(mdp.exogenous_names, kept))
        check_mdp(reduced, num_samples=60)
        assert reduced.decision_lists.num_states == 13
        assert reduced.paying == tuple(v for v in reduced.mask if v in ("object", "guard"))
        # Rewards of who tells about an ignored payer: the guard's intent tells about the guard.
        assert {reduced.mask.index(name) for name in reduced.paying} <= set(reduced.terms)


def test_an_empty_mask():
    mdp = GridMDP()
    reduced = ReducedMDP.estimate(mdp, (), rng=np.random.default_rng(0))
    assert reduced.mask == ()
    assert reduced.data.values.shape[2] == 0
    assert reduced.decision_lists.dependencies() == ()
    # Where a table is, the object is found as often as it is there.
    there = reduced.decision_lists.distribution(
        np.array([0]), np.array([0]), np.zeros((1, 0), dtype=np.int64)
    )[0, mdp.done]
    assert there == pytest.approx(1 / 3, abs=0.03)


def test_the_factory_with_and_without_the_clock():
    mdp = FactoryMDP()
    given = shared(mdp)
    state = State(np.array([[int(mdp.station_cells[0]), 0]]), np.zeros((1, 22), dtype=np.int64))
    work = np.array([mdp.num_actions - 1])
    for mask, chance in (
        (("order_0", "clock", "machine_0"), 1.0),
        (("order_0", "machine_0"), 0.816),  # the belt moves in a share of 1 / (1 + 4 / 0.9)
        (("order_0",), 0.816 * 0.58),  # and the machine is up as often as this
    ):
        reduced = ReducedMDP.estimate(mdp, mask, **given)
        x = {"order_0": 1, "clock": 3, "machine_0": 1}
        masked = np.array([[x[name] for name in mask]])
        n = reduced.endogenous_index(state.endogenous)
        found = reduced.decision_lists.distribution(n, work, masked)[0]
        assert found[n[0] + 1] == pytest.approx(chance, abs=0.04)
        assert found.sum() == pytest.approx(1.0)
        elsewhere = np.array([[2, *masked[0, 1:]]])
        assert reduced.decision_lists.distribution(n, work, elsewhere)[0, n[0]] == pytest.approx(
            1.0
        )


@pytest.fixture(scope="module")
def crowd():
    mdp = CrowdMDP()
    return mdp, shared(mdp, rollouts=400)


@pytest.mark.parametrize("with_porters", [False, True])
def test_the_crowd_at_its_full_size(crowd, with_porters):
    mdp, given = crowd
    kinds = ("occupancy", "object", "porter") if with_porters else ("occupancy", "object")
    mask = [name for name in mdp.exogenous_names if name.startswith(kinds)]
    reduced = ReducedMDP.estimate(mdp, mask, **given)
    assert len(reduced.mask) == (94 if with_porters else 76)
    rng = np.random.default_rng(1)
    state = mdp.sample_uniform(5000, rng)
    at_table = rng.choice(mdp.table_cells, size=(5000, 1))
    for n in (state.endogenous, at_table):
        for x in (state.exogenous, given["data"].sample(5000, rng)):
            action = rng.integers(mdp.num_actions, size=5000)
            full, masked = State(n, x), State(n, x[:, reduced.columns])
            following = mdp.sample_next(full, action, rng)
            found = reduced.sample_next(masked, action, rng)
            assert (found.endogenous == following.endogenous).all()
            np.testing.assert_array_equal(reduced.reward(masked, action), mdp.reward(full, action))
    assert reduced.log_loss.sum() < 0.6 * reduced.marginal_log_loss.sum()
    for i in range(6, 12):  # the objects that never move
        assert reduced.log_loss[reduced.mask.index(f"object_{i}")] < 1e-3
        assert reduced.parents[f"object_{i}"] == (f"object_{i}",)
    if with_porters:
        assert set(reduced.parents["porter_0_cell"]) == {"porter_0_cell", "porter_0_destination"}
    else:
        assert "occupancy_4_4" in reduced.parents["occupancy_4_4"]


def test_a_planted_problem_with_many_variables():
    mdp = SyntheticMDP(SyntheticParameters(num_noise=400, noise_size=16, num_copies=40))
    reduced = ReducedMDP.estimate(
        mdp, mdp.required_mask, rng=np.random.default_rng(0), num_rollouts=600
    )
    assert {name: set(parents) for name, parents in reduced.parents.items()} == {
        name: set(mdp.parents[name]) for name in mdp.required_mask
    }
    looked_at = {reduced.mask[i] for i in reduced.decision_lists.dependencies()}
    pays = {reduced.mask[i] for i in reduced.terms}
    for found, role in ((looked_at, "moves"), (pays, "pays")):
        assert found == {name for name in mdp.exogenous_names if mdp.roles[name] == role}
