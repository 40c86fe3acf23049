"""Information between all pairs: against scikit-learn, and against a plain implementation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from exo_envs.domains.crowd import CrowdMDP
from planners.dependence import contingency
from planners.dependence import pairwise as pairs
from planners.dependence.contingency import Cases, Rows, conditional_information
from planners.dependence.pairwise import SampledColumns, pairwise_information
from planners.samples.rollouts import ExogenousData


def as_data(values, sizes):
    """Rollouts (rollouts, T + 1, m) that somebody wrote down."""
    names = tuple(f"x{i}" for i in range(len(sizes)))
    nobody = np.zeros((len(values), 0), dtype=np.int64)
    return ExogenousData(names, np.array(sizes, dtype=np.int64), np.asarray(values), nobody, seed=0)


def related(sizes, rollouts, steps, rng, dtype=np.uint8):
    """Variables that follow themselves, the one before them, or nothing."""
    values = np.empty((rollouts, steps + 1, len(sizes)), dtype=np.int64)
    values[:, 0] = rng.integers(sizes, size=(rollouts, len(sizes)))
    for t in range(steps):
        anew = rng.integers(sizes, size=(rollouts, len(sizes)))
        neighbour = np.roll(values[:, t], 1, axis=1) % sizes
        which = rng.random((rollouts, len(sizes)))
        following = np.where(which < 0.4, values[:, t], np.where(which < 0.7, neighbour, anew))
        values[:, t + 1] = following
    return as_data(values.astype(dtype), sizes)


def naive_conditional(before, after, own):
    """G and its degrees of freedom, from a table over all joint values."""
    statistic, freedom = 0.0, 0
    for row in np.unique(own):
        table = np.zeros((before.max() + 1, after.max() + 1))
        np.add.at(table, (before[own == row], after[own == row]), 1)
        expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
        seen = table > 0
        statistic += 2 * (table[seen] * np.log(table[seen] / expected[seen])).sum()
        occur = [np.count_nonzero(table.sum(axis=axis)) for axis in (0, 1)]
        freedom += (occur[0] - 1) * (occur[1] - 1)
    return statistic, freedom


sizes_of_variables = st.lists(
    st.sampled_from([1, 2, 2, 2, 2, 3, 5, 17, 64, 200]), min_size=1, max_size=9
)


@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")  # scikit-learn 1.7
@given(
    st.integers(0, 2**32 - 1),
    sizes_of_variables,
    st.integers(1, 12),
    st.integers(1, 30),
    st.sampled_from([np.uint8, np.int16, np.int64]),
)
def test_plug_in_information_is_that_of_scikit_learn(seed, sizes, rollouts, steps, dtype):
    data = related(sizes, rollouts, steps, np.random.default_rng(seed), dtype)
    found = pairwise_information(data)
    everything = np.arange(rollouts)
    assert found.samples == rollouts * steps
    for i in range(len(sizes)):
        for j in range(len(sizes)):
            before, after = data.before(j, everything), data.after(i, everything)
            expected = mutual_info_score(before, after)
            assert found.plug_in[i, j] == pytest.approx(expected, abs=1e-9)
            assert found.freedom[i, j] == (len(set(before)) - 1) * (len(set(after)) - 1)


@given(
    st.integers(0, 2**32 - 1), sizes_of_variables, st.integers(1, 12), st.sampled_from([1, 7, 90])
)
def test_given_the_target_itself_it_is_that_of_a_plain_implementation(seed, sizes, rollouts, steps):
    data = related(sizes, rollouts, steps, np.random.default_rng(seed))
    found = pairwise_information(data, given_self=True)
    everything = np.arange(rollouts)
    for i in range(len(sizes)):
        for j in range(len(sizes)):
            statistic, freedom = naive_conditional(
                data.before(j, everything), data.after(i, everything), data.before(i, everything)
            )
            assert found.statistic[i, j] == pytest.approx(statistic, rel=1e-9, abs=1e-9)
            assert found.freedom[i, j] == freedom


def test_a_real_crowd_agrees():
    """Sizes 2 to 64, 10,000 transitions: every kernel has its pairs."""
    mdp = CrowdMDP()
    data = ExogenousData.collect(mdp, 200, np.random.default_rng(0))
    everything = np.arange(200)
    targets = [0, 70, 90, 123, int(np.argmax(data.sizes))]
    candidates = range(0, len(data.names), 5)
    plain = pairwise_information(data, targets)
    conditional = pairwise_information(data, targets, given_self=True)
    for t, i in enumerate(targets):
        after, own = data.after(i, everything), data.before(i, everything)
        for j in candidates:
            before = data.before(j, everything)
            assert plain.plug_in[t, j] == pytest.approx(mutual_info_score(before, after), abs=1e-9)
            statistic, freedom = naive_conditional(before, after, own)
            assert conditional.statistic[t, j] == pytest.approx(statistic, rel=1e-9, abs=1e-8)
            assert conditional.freedom[t, j] == freedom


@pytest.mark.parametrize("kept_bytes", [0, pairs.KEPT_BYTES])
def test_large_tables_are_counted_row_by_row(kept_bytes, monkeypatch):
    monkeypatch.setattr(pairs, "KEPT_BYTES", kept_bytes)
    monkeypatch.setattr(pairs, "BUFFER_BYTES", 5000)  # one or two columns at a time
    data = related([64, 2, 150, 300, 64, 2, 2, 2], 40, 60, np.random.default_rng(3), np.int16)
    everything = np.arange(40)
    found = pairwise_information(data, given_self=True)
    for i in (0, 2, 3, 1):
        own, after = data.before(i, everything), data.after(i, everything)
        for j in range(8):
            statistic, freedom = naive_conditional(data.before(j, everything), after, own)
            assert found.statistic[i, j] == pytest.approx(statistic, rel=1e-9)
            assert found.freedom[i, j] == freedom


def test_all_ways_of_counting_find_the_same_to_the_last_bit():
    """Which way is taken depends on who else is asked about; what is found must not."""
    rng = np.random.default_rng(1)
    data = related([2] * 6 + [5, 9], 30, 50, rng)
    everything = np.arange(30)
    columns = SampledColumns.of(data, everything)
    own, after = data.before(6, everything), data.after(6, everything)
    rows = Rows.of(1500).split(own, 5)
    cases = Cases(rows, after, 5)
    together = columns.information(cases, np.arange(8))
    for j in range(8):
        alone = columns.information(cases, np.array([j]))
        before, size = data.before(j, everything), int(data.sizes[j])
        assert columns.column(j).tolist() == before.tolist()
        assert (alone[0][0], alone[1][0]) == (together[0][j], together[1][j])
        assert conditional_information(cases, before, size) == (alone[0][0], alone[1][0])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_that_share_the_candidates_count_the_same(threads, monkeypatch):
    rng = np.random.default_rng(0)
    sizes = (3, 7, 64, 2, 5)
    values = rng.integers(sizes, size=(10, 12, 5))  # a number of samples that is no multiple of 4
    data = ExogenousData(tuple("abcde"), np.array(sizes), values, np.zeros((10, 0), np.int64), 0)
    columns, samples = SampledColumns.of(data, np.arange(9)), 99
    cases = Cases(Rows.of(samples), data.after(1, np.arange(9)), 7)
    alone = [
        conditional_information(cases, data.before(j, np.arange(9)), sizes[j]) for j in range(5)
    ]
    monkeypatch.setattr(contingency, "SAMPLES_PER_THREAD", 1)
    monkeypatch.setattr("exo_envs.compiled.threads.get_num_threads", lambda: threads)
    statistic, freedom = columns.information(cases, np.arange(5))
    assert [*zip(statistic, freedom, strict=True)] == [tuple(found) for found in alone]


def test_some_targets_and_some_rollouts():
    data = related([2, 3, 2, 8, 2, 2], 20, 15, np.random.default_rng(0))
    whole = pairwise_information(data)
    part = pairwise_information(data, [3, 0, 3])
    assert (part.statistic == whole.statistic[[3, 0, 3]]).all()
    assert (part.freedom == whole.freedom[[3, 0, 3]]).all()
    chosen = [0, 5, 17]
    fewer = pairwise_information(data, rollouts=np.array(chosen), given_self=True)
    alone = pairwise_information(as_data(data.values[chosen], data.sizes), given_self=True)
    assert fewer.samples == 45
    assert (fewer.statistic == alone.statistic).all()
    nothing = pairwise_information(data, [])
    assert nothing.statistic.shape == nothing.freedom.shape == nothing.plug_in.shape == (0, 6)


def test_pairs_counted_as_bits_are_those_counted_alone(monkeypatch):
    """However many pairs are counted at once, and however the samples are divided."""
    sizes = [2, 9, 1, 2, 64, 3, 130, 2, 300, 5, 2]
    data = related(sizes, 50, 70, np.random.default_rng(5), np.int16)
    everything = np.arange(50)
    columns = SampledColumns.of(data, everything)
    whole = pairwise_information(data)
    for i, size in enumerate(sizes):
        cases = Cases(Rows.of(3500), data.after(i, everything), size)
        statistic, freedom = columns.information(cases, np.arange(len(sizes)))
        np.testing.assert_array_equal(whole.freedom[i], freedom)
        np.testing.assert_allclose(whole.statistic[i], statistic, rtol=1e-12, atol=1e-9)
    monkeypatch.setattr(pairs, "MAX_COUNTS", 4000)
    monkeypatch.setattr(pairs, "WORDS_PER_THREAD", 1)
    monkeypatch.setattr(pairs, "COPIED_SAMPLES", 64)
    for threads in (1, 2, 3):
        monkeypatch.setattr("exo_envs.compiled.threads.get_num_threads", lambda own=threads: own)
        parts = pairwise_information(data)
        np.testing.assert_array_equal(parts.statistic, whole.statistic)
        np.testing.assert_array_equal(parts.freedom, whole.freedom)


def test_more_samples_than_are_counted_at_a_time():
    values = np.random.default_rng(0).integers([2, 2, 7], size=(3, 15_000, 3))
    values[:, 1:, 1] ^= values[:, :-1, 0] & (values[:, :-1, 2] > 3)
    data = as_data(values, [2, 2, 7])
    assert pairs.WORDS_PER_BLOCK * 64 < 3 * 14_999
    found = pairwise_information(data)
    for i in range(3):
        for j in range(3):
            before, after = data.before(j, np.arange(3)), data.after(i, np.arange(3))
            assert abs(found.plug_in[i, j] - mutual_info_score(before, after)) < 1e-12


def test_what_never_varies_tells_nothing():
    rng = np.random.default_rng(0)
    values = rng.integers([1, 2, 7, 2, 7], size=(10, 20, 5))
    values[:, :, 3], values[:, :, 4] = 1, 5
    for given_self in (False, True):
        found = pairwise_information(as_data(values, [1, 2, 7, 2, 7]), given_self=given_self)
        for i in (0, 3, 4):
            assert (found.statistic[i] == 0).all()
            assert (found.statistic[:, i] == 0).all()
            assert (found.freedom[i] == 0).all()
            assert (found.freedom[:, i] == 0).all()
        assert found.freedom[1, 2] > 0


def test_one_sample_tells_nothing():
    values = np.array([[[0, 4, 1], [1, 2, 0]]])
    for given_self in (False, True):
        found = pairwise_information(as_data(values, [2, 5, 2]), given_self=given_self)
        assert found.samples == 1
        assert (found.statistic == 0).all()
        assert (found.freedom == 0).all()
        assert (found.corrected == 0).all()


def test_independent_variables_tell_about_nothing_after_the_correction():
    """The plug-in estimate is too large by its degrees of freedom, on average."""
    sizes = [2, 2, 10, 30]
    values = np.random.default_rng(0).integers(sizes, size=(500, 41, 4))
    found = pairwise_information(as_data(values, sizes))
    np.testing.assert_allclose(found.statistic.sum() / found.freedom.sum(), 1.0, atol=0.1)
    assert found.plug_in[3, 3] > 0.01
    assert (found.corrected < 0.002).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"targets": [3]}, IndexError, "targets are positions from 0 to 2, not 3"),
        ({"targets": [-1]}, IndexError, "not -1"),
        ({"targets": [0.5]}, TypeError, "targets are positions, whole numbers"),
        ({"targets": "x0"}, TypeError, "targets are positions"),
        ({"targets": 2}, TypeError, "targets are positions"),
        ({"rollouts": [4]}, IndexError, "rollouts are positions from 0 to 3, not 4"),
        ({"rollouts": []}, ValueError, "nothing to count"),
    ],
)
def test_bad_requests_are_refused(arguments, error, message):
    data = related([2, 3, 2], 4, 5, np.random.default_rng(0))
    with pytest.raises(error, match=message):
        pairwise_information(data, **arguments)


def test_values_that_a_variable_cannot_have_are_refused():
    values = np.zeros((2, 3, 2), dtype=np.int64)
    for wrong in (2, -1):
        values[1, 2, 1] = wrong
        with pytest.raises(ValueError, match=f"'x1' are from 0 to 1, but the data has .*{wrong}"):
            pairwise_information(as_data(values, [2, 2]))
    with pytest.raises(ValueError, match=r"has shape \(2, 3, 2\), not \(..., 3\)"):
        pairwise_information(as_data(values, [2, 2, 2]))
