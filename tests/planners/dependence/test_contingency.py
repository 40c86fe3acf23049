"""Counting joint values: information against scikit-learn, rows, and smoothed tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import conditional_mutual_information

from planners.dependence.contingency import (
    NEGLIGIBLE_PROBABILITY,
    Cases,
    Rows,
    conditional_information,
    smooth,
)


@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")  # scikit-learn 1.7
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
    cases = Cases(rows, target.astype(dtype), shape[2])
    found = conditional_information(cases, column.astype(dtype), shape[1])
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
    assert NEGLIGIBLE_PROBABILITY < rare[0, 1] < 0.01


def test_smoothing_vanishes_with_data():
    truth = np.array([[0.7, 0.3], [0.1, 0.9]])
    for samples in (100, 10_000, 1_000_000):
        table = smooth((truth * samples).round().astype(np.int64), 1.0)
        assert np.abs(table - truth).max() < 1 / samples


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64])
def test_few_values_are_kept_as_bytes_so_that_kernels_are_compiled_once(dtype):
    target = np.arange(300).astype(dtype) % 200
    assert Cases(Rows.of(300), target, 200).target.dtype == np.uint8
    if dtype != np.uint8:
        with pytest.raises(ValueError, match=r"target\[7\] is 256"):
            Cases(Rows.of(300), np.where(np.arange(300) == 7, 256, target), 200)
