"""Tables of forecasts that masks share, and that kernels find by their addresses."""

import copy
import pickle

import numpy as np
import pytest

from planners.core.memory import Memory
from planners.forecasting.forecasts import Forecasts
from planners.forecasting.shared_tables import SharedForecasts

SIZES = np.array([2, 3, 2])


@pytest.fixture
def fitted():
    """Forecasts of two masks of the same variables, and the same ones in new arrays."""
    rollouts = np.random.default_rng(0).integers(0, SIZES, (30, 9, 3))
    memory = Memory()

    def fit(kind, parents):
        return kind.fit(rollouts, SIZES, parents, 4, memory)

    first, second = {0: (1,), 1: (), 2: (0, 1)}, {0: (1,), 2: (0,)}
    return fit(SharedForecasts, first), fit(SharedForecasts, second), fit(Forecasts, first)


def test_masks_share_the_tables_that_look_at_the_same(fitted):
    one, other, _ = fitted
    assert one.tables[0] is other.tables[0]
    assert one.lookups[0] is other.lookups[0]
    assert not np.shares_memory(one.tables[2], other.tables[1])


def test_joined_they_are_what_a_file_has(fitted):
    one, _, joined = fitted
    for found, expected in zip(one.joined(), joined, strict=True):
        np.testing.assert_array_equal(found, expected)
    again = SharedForecasts.of(joined)
    assert np.shares_memory(again.tables[2], joined.tables)
    x = np.random.default_rng(1).integers(0, SIZES, (20, 3))
    for which in range(3):
        expected = joined.probabilities(x, which)
        np.testing.assert_array_equal(one.probabilities(x, which), expected)
        np.testing.assert_array_equal(again.probabilities(x, which), expected)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda own: pickle.loads(pickle.dumps(own))])
def test_a_copy_reads_its_own_arrays(fitted, copied):
    one = fitted[0]
    before = one.addresses
    again = copied(one)
    assert not set(again.addresses.tables.tolist()) & set(before.tables.tolist())
    assert again.addresses.tables.tolist() == [own.ctypes.data for own in again.tables]


@pytest.mark.parametrize("row", [-1, 1_000])
def test_a_lookup_that_leads_out_of_its_table_is_refused(fitted, row):
    one = fitted[0]
    lookup = one.lookups[0].copy()
    lookup[0] = row
    with pytest.raises(ValueError, match="variable 0 has no row"):
        SharedForecasts(
            *(one.variables, one.horizon, one.sizes, one.parents),
            (lookup, *one.lookups[1:]),
            one.tables,
        )


def test_tables_that_are_not_in_one_piece_are_refused(fitted):
    one = fitted[0]
    scattered = np.repeat(one.tables[0], 2, axis=2)[:, :, ::2]
    with pytest.raises(ValueError, match="variable 0 has no row"):
        SharedForecasts(
            *(one.variables, one.horizon, one.sizes, one.parents, one.lookups),
            (scattered, *one.tables[1:]),
        )
