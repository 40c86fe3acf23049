"""Grids of real endogenous variables, and bins that begin where a real variable matters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_models import BatteryMDP, DoorMDP

from exo_envs import State
from planners.discretization.bins import Bins, Grid, bin_starts
from planners.discretization.coarse import coarsened
from planners.samples.rollouts import ExogenousData

REALS = st.floats(-5, 15, allow_nan=False)
GRID = Grid("charge", np.array([0.0, 1.0, 2.5, 10.0]))


@given(st.lists(REALS, min_size=1, max_size=20), st.integers(0, 2**32 - 1))
def test_a_value_goes_to_a_point_beside_it(values, seed):
    given_values = np.array(values)
    uniform = np.random.default_rng(seed).random(len(values))
    split, nearest = GRID.split(given_values, uniform), GRID.nearest(given_values)
    clipped = given_values.clip(0, 10)
    distance = np.abs(GRID.points[:, None] - clipped)
    np.testing.assert_allclose(distance.min(axis=0), distance[nearest, np.arange(len(values))])
    below = np.clip(np.searchsorted(GRID.points, clipped, side="right") - 1, 0, 2)
    assert ((split == below) | (split == below + 1)).all()


@given(st.floats(0, 10))
def test_the_mean_stays_where_it_is(value):
    uniform = (np.arange(1000) + 0.5) / 1000
    points = GRID.points[GRID.split(np.full(1000, value), uniform)]
    assert points.mean() == pytest.approx(value, abs=0.01)


@pytest.mark.parametrize("points", [[], [1.0, 1.0], [np.nan], [[1.0]], [np.inf], [1]])
def test_what_is_no_grid_is_refused(points):
    with pytest.raises(ValueError, match="increasing finite numbers"):
        Grid("charge", np.array(points))


def test_charges_that_occur_are_the_points():
    data = ExogenousData.collect(BatteryMDP(), 200, 0)
    *_, grid = data.bins
    np.testing.assert_allclose(grid.points, np.arange(11))
    assert data.initial_endogenous.dtype.kind == "i"


def test_many_charges_are_seen_at_even_distances():
    data = ExogenousData.collect(BatteryMDP(losses=0.1), 200, 0)
    *_, grid = data.bins
    assert (len(grid), grid.points[0], grid.points[-1]) == (41, 0.0, 10.0)


def test_a_model_on_a_grid_moves_as_the_model_does():
    mdp = BatteryMDP(losses=0.3)
    data = ExogenousData.collect(mdp, 200, 0)
    coarse, rng = coarsened(mdp, data.bins), np.random.default_rng(1)
    *_, grid = data.bins
    number = 20_000
    state = State(
        np.full((number, 1), 17), np.tile(data.values[0, 0].astype(np.int64), (number, 1))
    )
    n = coarse.sample_endogenous(state, np.full(number, 2), rng)
    charge = grid.points[17] + 1.0
    assert grid.points[n[:, 0]].mean() == pytest.approx(charge * 0.85, abs=0.02)
    assert coarse.exogenous_ranges.is_real is coarse.endogenous_ranges.is_real is False


def test_bins_begin_at_thresholds():
    mdp = DoorMDP()
    price, level, signal = ExogenousData.collect(mdp, 500, 0).bins
    for own, threshold in ((price, mdp.pays_from), (level, mdp.opens_from)):
        above = own.starts[np.searchsorted(own.starts, threshold - 1e-9)]
        # The first sample above the threshold.
        assert 0 <= above - threshold < 0.001
    assert len(signal) <= len(price)


def test_bins_without_a_change_have_equal_shares():
    ordered = np.sort(np.random.default_rng(0).normal(size=3200))
    starts = bin_starts(ordered, [])
    np.testing.assert_array_equal(starts, np.arange(16) * 200)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=200), st.lists(st.floats(-100, 100)))
def test_every_value_is_in_a_bin_with_its_stand_ins(values, edges):
    ordered = np.sort(np.array(values))
    starts = bin_starts(ordered, edges)
    assert starts[0] == 0
    assert (np.diff(ordered[starts]) > 0).all() or len(starts) == 1


def test_real_bins_are_refused_where_whole_ones_are_meant():
    starts, values = np.array([0.0, 1.0]), np.array([[0.5] * 8, [1.5] * 8])
    with pytest.raises(ValueError, match="whole if it is not real"):
        Bins("price", 1000, starts, values)
