"""Counting, the tests behind the choice of parents, and the choice itself."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from exo_envs import ExoMDP, State, Variable
from exo_envs.synthetic import SyntheticMDP, SyntheticParameters
from planners.information.contingency import (
    NEGLIGIBLE,
    Rows,
    chi_squared_log_tail,
    conditional_information,
    count_table,
    joint_codes,
    smooth,
)
from planners.information.interventions import influence
from planners.information.parents import ParentSearch
from planners.information.rollouts import ExogenousData


class ProcessMDP(ExoMDP):
    """Exogenous variables that follow a function of x and of noise; the agent does nothing."""

    endogenous_variables = (Variable("n", 1),)
    num_actions = 1
    discount = 0.9

    def __init__(self, sizes, step, *, horizon=20, wasteful=False):
        self.exogenous_variables = tuple(Variable(f"x{i}", size) for i, size in enumerate(sizes))
        self.horizon = horizon
        self.step = step
        self.wasteful = wasteful

    def sample_initial(self, size, rng):
        x = rng.integers(self.exogenous_sizes, size=(size, len(self.exogenous_sizes)))
        return State(np.zeros((size, 1), dtype=np.int64), x)

    def sample_exogenous(self, exogenous, rng):
        if self.wasteful:  # the amount of noise depends on the states
            rng.random(int(exogenous.sum()))
        return self.step(exogenous, rng.random(exogenous.shape)).astype(np.int64)

    def sample_endogenous(self, state, action, rng):
        return state.endogenous.copy()

    def reward_terms(self, state, action):
        return np.zeros(state.exogenous.shape)


def lazily(keep, sizes):
    """Independent variables: each keeps its value or is drawn anew."""

    def step(x, u):
        anew = np.floor((u - keep) / (1 - keep) * np.array(sizes))
        return np.where(u < keep, x, np.minimum(anew, np.array(sizes) - 1))

    return step


def all_parents(mdp, data, *, interventions=True, mask=None, **settings):
    columns = list(range(len(data.names))) if mask is None else mask
    search = ParentSearch(data, **settings)
    effects = [influence(mdp, data, data.names[j]) for j in columns] if interventions else []
    return {
        data.names[i]: {
            data.names[j]
            for j in search.parents(
                i, columns, {j: e[i] for j, e in zip(columns, effects, strict=False)}
            )
        }
        for i in columns
    }


# --- the chi-squared tail --------------------------------------------------------------------


def test_the_tail_of_chi_squared_agrees_with_scipy():
    for freedom in (1, 2, 3, 7, 30, 500, 20_000):
        for ratio in (0.01, 0.3, 0.8, 0.999, 1.0, 1.001, 1.3, 3.0, 20.0):
            expected = scipy.stats.chi2.logsf(ratio * freedom, freedom)
            found = chi_squared_log_tail(ratio * freedom, freedom)
            if np.isfinite(expected):
                assert found == pytest.approx(expected, rel=1e-8, abs=1e-10)


def test_the_tail_has_its_limits():
    assert chi_squared_log_tail(0.0, 5) == 0.0
    assert chi_squared_log_tail(3.0, 0) == 0.0  # nothing can vary: nothing is surprising
    assert chi_squared_log_tail(5000.0, 1) < -2000  # far below what a float can hold as p


# --- information -----------------------------------------------------------------------------


def conditional_mutual_information(rows, target, column):
    """By scikit-learn, row by row, times the samples."""
    return sum(
        (rows == row).sum() * mutual_info_score(target[rows == row], column[rows == row])
        for row in np.unique(rows)
    )


@settings(max_examples=25)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([(1, 2, 2), (3, 2, 5), (4, 40, 30), (70, 3, 64)]),
    st.sampled_from([np.uint8, np.int16, np.int64]),
)
def test_information_agrees_with_scikit_learn(seed, shape, dtype):
    rng = np.random.default_rng(seed)
    samples = int(rng.integers(1, 400))
    row, column, target = (rng.integers(size, size=samples) for size in shape)
    target = np.where(rng.random(samples) < 0.5, target, column % shape[2])
    rows = Rows.of(samples).split(row.astype(dtype), shape[0])
    found = conditional_information(
        rows, target.astype(dtype), shape[2], column.astype(dtype), shape[1]
    )
    expected = 2 * conditional_mutual_information(row, target, column)
    assert found.statistic == pytest.approx(expected, rel=1e-9, abs=1e-9)
    freedom = sum(
        (len(set(column[row == r])) - 1) * (len(set(target[row == r])) - 1) for r in set(row)
    )
    assert found.freedom == freedom


def test_rows_are_the_joint_values_that_occur():
    rng = np.random.default_rng(0)
    columns = [rng.integers(size, size=500) for size in (3, 40, 7)]
    rows = Rows.of(500)
    for column, size in zip(columns, (3, 40, 7), strict=True):
        rows = rows.split(column, size)
    _, expected = np.unique(np.stack(columns), axis=1, return_inverse=True)
    expected = expected.reshape(-1)
    assert rows.count == expected.max() + 1
    assert len(set(zip(rows.row.tolist(), expected.tolist(), strict=True))) == rows.count
    order, starts = rows.grouped
    assert (np.diff(rows.row[order]) >= 0).all()
    assert (np.diff(starts) == np.bincount(rows.row)).all()


# --- smoothing -------------------------------------------------------------------------------


def test_rows_that_were_never_seen_fall_back_on_fewer_parents():
    counts = np.zeros((2, 3, 2), dtype=np.int64)
    counts[0, 0] = [80, 20]
    counts[0, 1] = [0, 100]
    table = smooth(counts, 1.0)
    overall = np.array([80, 120]) / 200
    first = (np.array([80, 120]) + overall) / 201
    np.testing.assert_allclose(table[1], np.broadcast_to(overall, (3, 2)))
    np.testing.assert_allclose(table[0, 2], first)
    np.testing.assert_allclose(table[0, 0], (np.array([80, 20]) + first) / 101)
    np.testing.assert_allclose(table.sum(axis=-1), 1.0)


def test_what_is_deterministic_stays_so():
    counts = np.diag([40_000, 30_000, 20_000, 10_000])
    table = smooth(counts, 1.0)
    assert (table == np.eye(4)).all()
    rare = smooth(np.diag([100, 100]), 1.0)  # of a hundred samples one never knows
    assert NEGLIGIBLE < rare[0, 1] < 0.01


def test_smoothing_vanishes_with_data():
    truth = np.array([[0.7, 0.3], [0.1, 0.9]])
    for samples in (100, 10_000, 1_000_000):
        table = smooth((truth * samples).round().astype(np.int64), 1.0)
        assert np.abs(table - truth).max() < 1 / samples


# --- parents ---------------------------------------------------------------------------------


@pytest.mark.parametrize("instance", range(4))
def test_planted_parents_are_found_exactly(instance):
    mdp = SyntheticMDP(
        SyntheticParameters(
            instance=instance, num_noise=4, noise_size=16, parents_per_paying=1 + instance % 2
        )
    )
    data = ExogenousData.collect(mdp, 1000, np.random.default_rng(instance))
    expected = {name: set(parents) for name, parents in mdp.parents.items()}
    assert all_parents(mdp, data) == expected


def test_an_xor_pair_needs_the_interventions():
    """Among so many variables that they cannot all be tested as one group."""
    sizes = (2,) * 12

    def step(x, u):
        following = lazily(0.5, sizes)(x, u)
        following[:, [4, 7]] = u[:, [4, 7]] < 0.5
        following[:, 0] = np.where(u[:, 0] < 0.9, x[:, 4] ^ x[:, 7], 1 - (x[:, 4] ^ x[:, 7]))
        return following

    mdp = ProcessMDP(sizes, step)
    data = ExogenousData.collect(mdp, 500, np.random.default_rng(0))
    assert all_parents(mdp, data, interventions=False)["x0"] == set()
    found = all_parents(mdp, data)
    assert found.pop("x0") == {"x4", "x7"}
    assert all(
        parents == (set() if name in {"x4", "x7"} else {name}) for name, parents in found.items()
    )


def test_in_a_small_mask_an_xor_of_three_is_found_from_the_data_alone():
    sizes = (2,) * 5

    def step(x, u):
        following = lazily(0.4, sizes)(x, u)
        following[:, 0] = (x[:, 1] + x[:, 2] + x[:, 3] + (u[:, 0] < 0.2)) % 2
        return following

    mdp = ProcessMDP(sizes, step)
    data = ExogenousData.collect(mdp, 500, np.random.default_rng(1))
    assert all_parents(mdp, data, interventions=False)["x0"] == {"x1", "x2", "x3"}


def test_a_parent_with_many_values_is_no_rival_to_the_true_one():
    """Plug-in information prefers high cardinality; the test and the criterion do not."""
    sizes = (2, 2, 64, 64)

    def step(x, u):
        following = lazily(0.5, sizes)(x, u)
        following[:, 0] = np.where(u[:, 0] < 0.55, x[:, 1], 1 - x[:, 1])
        return following

    mdp = ProcessMDP(sizes, step)
    data = ExogenousData.collect(mdp, 300, np.random.default_rng(2))
    assert all_parents(mdp, data) == {"x0": {"x1"}, "x1": {"x1"}, "x2": {"x2"}, "x3": {"x3"}}


def test_independent_variables_get_no_spurious_parents():
    """At level 0.01 in all, 8 variables in each of 40 runs: 3.2 are expected, 11 has p < 1e-3."""
    sizes = (2, 2, 2, 3, 3, 5, 8, 16)
    mdp = ProcessMDP(sizes, lazily(0.5, sizes))
    spurious = 0
    for seed in range(40):
        data = ExogenousData.collect(mdp, 120, np.random.default_rng(seed))
        found = all_parents(mdp, data, interventions=False, level=0.01)
        for name, parents in found.items():
            spurious += len(parents - {name})
            assert name in parents
    assert scipy.stats.poisson.sf(10, 3.2) < 1e-3
    assert spurious <= 10


def test_slow_variables_do_not_seem_related_because_a_dropped_one_is_slow():
    """x0 follows x1, which is out of the mask and never changes within a rollout; so do others."""
    sizes = (2, 2, *(6,) * 6)

    def step(x, u):
        following = x.copy()
        following[:, 0] = np.where(u[:, 0] < 0.8, x[:, 1], 1 - x[:, 1])
        return following

    mdp = ProcessMDP(sizes, step, horizon=40)
    mask = [0, *range(2, 8)]
    spurious = []
    for seed in range(10):
        data = ExogenousData.collect(mdp, 150, np.random.default_rng(seed))
        search = ParentSearch(data)
        told = max(
            (search.all.information(0, [0], j) for j in range(2, 8)),
            key=lambda told: told.statistic,
        )
        assert chi_squared_log_tail(*told) < math.log(1e-3 / 7)  # a plain G-test would accept it
        spurious += search.parents(0, mask)[1:]
    assert spurious == []


def test_a_table_is_never_starved():
    """Every parent matters, but rows must have samples."""
    sizes = (2, *(4,) * 6)

    def step(x, u):
        following = lazily(0.2, sizes)(x, u)
        chance = 0.1 + 0.8 * (x[:, 1:] >= 2).mean(axis=1)
        following[:, 0] = u[:, 0] < chance
        return following

    mdp = ProcessMDP(sizes, step)
    data = ExogenousData.collect(mdp, 100, np.random.default_rng(0))
    for min_samples, at_most in ((20, 3), (200, 1)):
        search = ParentSearch(data, min_samples=min_samples)
        parents = search.parents(0, range(7))
        assert 1 <= len(parents) <= at_most
        assert search.all.rows(parents).count * min_samples <= search.all.count
    assert len(ParentSearch(data, max_parents=2).parents(0, range(7))) == 2
    assert ParentSearch(data, max_parents=0).parents(0, range(7)) == ()


def test_one_search_serves_many_masks():
    """What was counted for one mask changes nothing for the next."""
    mdp = SyntheticMDP(SyntheticParameters(num_noise=2))
    data = ExogenousData.collect(mdp, 200, np.random.default_rng(0))
    shared = ParentSearch.of(data)
    assert ParentSearch.of(data) is shared
    assert ParentSearch.of(data, level=0.05) is not shared
    for mask in ([0, 3, 5], [0, 3], list(range(10)), [5, 3, 0]):
        for i in mask:
            assert shared.parents(i, mask) == ParentSearch(data).parents(i, mask)


@pytest.mark.parametrize("settings", [{"level": 0.0}, {"level": 2}, {"max_parents": -1}])
def test_settings_that_make_no_sense_are_refused(settings):
    mdp = ProcessMDP((2,), lazily(0.5, (2,)))
    data = ExogenousData.collect(mdp, 10, np.random.default_rng(0))
    with pytest.raises(ValueError, match=next(iter(settings))):
        ParentSearch(data, **settings)


# --- interventions ---------------------------------------------------------------------------


@pytest.mark.parametrize("wasteful", [False, True])
def test_interventions_find_what_acts_on_what(wasteful):
    sizes = (2, 2, 3, 4)

    def step(x, u):
        following = lazily(0.5, sizes)(x, u)
        following[:, 0] = x[:, 1] ^ (x[:, 2] == 1) ^ (u[:, 0] < 0.1)
        return following

    mdp = ProcessMDP(sizes, step, wasteful=wasteful)
    data = ExogenousData.collect(mdp, 50, np.random.default_rng(0))
    acts = {
        (j, i) for j in range(4) for i in np.flatnonzero(influence(mdp, data, f"x{j}")).tolist()
    }
    assert acts == {(1, 0), (2, 0), (1, 1), (2, 2), (3, 3)}


# --- the data --------------------------------------------------------------------------------


def test_data_is_compact_and_complete():
    mdp = SyntheticMDP(SyntheticParameters(num_noise=1))
    data = ExogenousData.collect(mdp, 16, np.random.default_rng(0))
    assert data.values.shape == (16, mdp.horizon + 1, len(mdp.nodes))
    assert data.values.dtype == np.uint8
    assert data.held_out.sum() == 2
    assert data.initial().endogenous.shape == (16, 3)
    again = ExogenousData.collect(mdp, 16, np.random.default_rng(0))
    assert (again.values == data.values).all()
    assert again.seed == data.seed
    part = data.restrict(data.names[3:5])
    assert (part.values == data.values[:, :, 3:5]).all()


@pytest.mark.parametrize(("size", "dtype"), [(256, np.uint8), (257, np.int16), (40_000, np.int32)])
def test_values_are_stored_in_the_smallest_type(size, dtype):
    mdp = ProcessMDP((2, size), lazily(0.1, (2, size)), horizon=3)
    data = ExogenousData.collect(mdp, 200, np.random.default_rng(0))
    assert data.values.dtype == dtype
    assert data.values[..., 1].max() > 0.9 * size


def test_counts_of_more_rollouts_add_up():
    mdp = SyntheticMDP(SyntheticParameters(num_noise=2))
    rng = np.random.default_rng(0)
    data = ExogenousData.collect(mdp, 16, rng)
    more = data.extend(mdp, 24, rng)
    assert more.num_rollouts == 40
    assert (more.values[:16] == data.values).all()
    assert (more.held_out[:16] == data.held_out).all()

    def counts(rollouts):
        shape = [int(more.sizes[j]) for j in (2, 5)]
        codes = joint_codes([more.before(j, rollouts) for j in (2, 5)], shape, len(rollouts) * 50)
        return count_table(codes, math.prod(shape), more.after(1, rollouts), int(more.sizes[1]))

    parts = [counts(np.arange(16)), counts(np.arange(16, 40))]
    assert (counts(np.arange(40)) == sum(parts)).all()


def test_the_data_agrees_with_the_model():
    """The frequencies of transitions, against the exact table (Hoeffding at 1e-6)."""
    mdp = SyntheticMDP(SyntheticParameters(num_noise=2))
    data = ExogenousData.collect(mdp, 400, np.random.default_rng(0))
    everything = np.arange(400)
    for name in mdp.required_mask:
        i = mdp.exogenous_names.index(name)
        given = [mdp.exogenous_names.index(parent) for parent in mdp.parents[name]]
        shape = [int(data.sizes[j]) for j in given]
        codes = joint_codes([data.before(j, everything) for j in given], shape, 400 * 50)
        counts = count_table(codes, math.prod(shape), data.after(i, everything), 2)
        samples = counts.sum(axis=-1, keepdims=True)
        spread = np.sqrt(np.log(2 / 1e-6) / (2 * samples))
        assert (np.abs(counts / samples - mdp.table(name).reshape(-1, 2)) < spread).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_rollouts": 0}, ValueError, "num_rollouts is at least 1, not 0"),
        ({"num_rollouts": 2.5}, TypeError, "num_rollouts is a whole number, not 2.5"),
        ({"num_rollouts": True}, TypeError, "not True"),
        ({"num_steps": 0}, ValueError, "num_steps is at least 1, not 0"),
    ],
)
def test_bad_amounts_of_data_are_refused(arguments, error, message):
    mdp = ProcessMDP((2,), lazily(0.5, (2,)))
    with pytest.raises(error, match=message):
        ExogenousData.collect(mdp, **arguments)


def test_unknown_variables_of_the_data_are_refused():
    mdp = ProcessMDP((2, 2), lazily(0.5, (2, 2)))
    data = ExogenousData.collect(mdp, 3, np.random.default_rng(0))
    with pytest.raises(ValueError, match="did you mean 'x1'"):
        data.restrict(["x11"])


def test_every_pair_of_a_larger_net():
    """A chain in which each variable copies the one before it, noisily."""
    sizes = (3,) * 10

    def step(x, u):
        following = np.roll(x, 1, axis=1)
        anew = np.minimum(np.floor(u / 0.3 * 3), 2)
        return np.where(u < 0.3, anew, following)

    mdp = ProcessMDP(sizes, step)
    data = ExogenousData.collect(mdp, 300, np.random.default_rng(0))
    expected = {f"x{i}": {f"x{j}"} for j, i in itertools.pairwise([*range(10), 0])}
    expected["x0"] = {"x9"}
    assert all_parents(mdp, data) == expected


def test_the_evidence_for_parents():
    """x0 follows x1 and, less often, x2; of x3 it knows nothing."""
    sizes = (2, 2, 4, 16)

    def step(x, u):
        following = lazily(0.5, sizes)(x, u)
        second = (x[:, 2] >= 2).astype(int)
        following[:, 0] = np.where(u[:, 0] < 0.6, x[:, 1], np.where(u[:, 0] < 0.9, second, 0))
        return following

    mdp = ProcessMDP(sizes, step)
    data = ExogenousData.collect(mdp, 800, np.random.default_rng(0))
    search = ParentSearch(data)
    parents = search.parents(0, range(4))
    assert set(parents) == {1, 2}
    evidence = search.explain(0, parents)
    assert list(evidence) == list(parents)
    assert evidence[1].information > evidence[2].information > 0.01
    for j, other in ((1, 2), (2, 1)):
        rows = data.before(other, data.fitted)
        expected = conditional_mutual_information(
            rows, data.after(0, data.fitted), data.before(j, data.fitted)
        )
        count = len(rows)
        found = evidence[j]
        assert found.plug_in == pytest.approx(expected / count, rel=1e-9)
        assert found.statistic == pytest.approx(2 * expected, rel=1e-9)
        assert found.information == pytest.approx(
            found.plug_in - found.freedom / (2 * count), rel=1e-9
        )
        assert found.freedom == data.sizes[other] * (data.sizes[j] - 1)
        assert found.log_p < math.log(1e-6)
    needless = search.explain(0, [*parents, 3])[3]
    assert needless.information < 0.005
    assert needless.log_p > math.log(1e-3)
    assert search.explain(0, []) == {}


def test_only_what_is_not_known_to_act_is_compared_with_other_rollouts():
    """Slow variables: a plain G-test finds a lot, other rollouts of the same just as much."""
    sizes = (2, 2, 6)

    def step(x, u):
        following = x.copy()
        following[:, 0] = np.where(u[:, 0] < 0.8, x[:, 1], 1 - x[:, 1])
        return following

    data = ExogenousData.collect(ProcessMDP(sizes, step, horizon=40), 150, np.random.default_rng(1))
    search = ParentSearch(data)
    compared = search.explain(0, [0, 2])
    plain = search.explain(0, [0, 2], suspects={2: 0.1, 1: 0.0})
    assert plain[0] == compared[0]
    assert plain[2].log_p == chi_squared_log_tail(plain[2].statistic, plain[2].freedom)
    assert plain[2].log_p < compared[2].log_p
    assert plain[2][:-1] == compared[2][:-1]


def test_many_candidates_take_little_memory():
    """What is remembered about thousands of hopeless candidates is bounded."""
    sizes = np.array([2] * 1500 + [3] * 500)
    values = np.random.default_rng(0).integers(sizes, size=(160, 26, 2000)).astype(np.uint8)
    values[:, 1:, 7] = values[:, :-1, 1800] > 0
    names = tuple(f"x{i}" for i in range(2000))
    data = ExogenousData(names, sizes, values, np.zeros((160, 0), dtype=np.int64), seed=0)
    search = ParentSearch(data)
    assert search.parents(7, range(2000)) == (1800,)
    tracemalloc.start()
    for target in range(20):
        assert set(search.parents(target, range(2000))) == ({1800} if target == 7 else set())
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * values.nbytes
    assert kept < 2 * values.nbytes
    assert len(search.all._told) < 20 * 40
