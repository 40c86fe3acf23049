"""Bins: what belongs to which, what stands for them, and the model that is asked through them."""

import gymnasium as gym
import numpy as np
import pytest
from many_values import ManyValuesMDP

from exo_envs import State, Variable
from planners.dependence.interventions import hidden_in_bins
from planners.discretization.bins import MAX_BINS, NUM_STAND_INS, Bins
from planners.discretization.coarse import Binning, CoarseMDP, coarsened
from planners.samples.rollouts import ExogenousData


def binned(values, size=10**7):
    return Bins.of(Variable("x", size), np.asarray(values))


def test_bins_hold_about_as_many_samples_each():
    values = np.random.default_rng(0).integers(10**7, size=100_000)
    bins = binned(values)
    counts = np.bincount(bins.of_values(values), minlength=len(bins))
    assert len(bins) == MAX_BINS
    assert counts.min() > 0.9 * counts.max()


def test_of_few_samples_there_are_few_bins():
    values = np.random.default_rng(0).integers(10**7, size=1000)
    assert len(binned(values)) == 7  # with two such variables, 20 samples for each joint value
    assert len(binned(values[:1])) == 1


def test_a_frequent_value_has_a_bin_of_its_own_and_rare_ones_are_merged():
    rng = np.random.default_rng(0)
    values = np.where(rng.random(50_000) < 0.5, 5_000_000, rng.integers(10**7, size=50_000))
    bins = binned(values)
    own = bins.of_values(np.array([4_999_999, 5_000_000, 5_010_000]))
    assert len(set(own.tolist())) == 3
    assert (bins.stand_ins[own[1]] == 5_000_000).all()
    assert len(bins) <= 3 * MAX_BINS


def test_few_values_that_occur_are_bins_of_their_own():
    values = np.random.default_rng(0).choice([3, 2**33, 2**39], size=1000)
    bins = binned(values, 2**40)
    assert bins.starts.tolist() == [3, 2**33, 2**39]
    # What never occurred belongs to the value below; there is none below the first.
    assert bins.of_values(np.array([0, 4, 2**40 - 1])).tolist() == [0, 0, 2]


def test_what_stands_for_a_bin_belongs_to_it():
    bins = binned(np.random.default_rng(0).integers(10**7, size=30_000))
    everything = np.repeat(np.arange(len(bins))[:, None], NUM_STAND_INS, axis=1)
    np.testing.assert_array_equal(bins.of_values(bins.stand_ins), everything)


@pytest.mark.parametrize(
    "wrong",
    [
        {"starts": np.array([5, 5])},
        {"starts": np.array([0.0, 9.0])},
        {"starts": np.zeros(0, dtype=np.int64)},
        {"stand_ins": np.zeros((2, 3), dtype=np.int64)},
        {"stand_ins": np.zeros((2, NUM_STAND_INS), dtype=np.int64)},
    ],
)
def test_what_are_no_bins_is_refused(wrong):
    right = {
        "starts": np.array([0, 9]),
        "stand_ins": np.repeat([[4], [12]], NUM_STAND_INS, axis=1),
    }
    Bins("x", 1000, **right)
    with pytest.raises(ValueError, match="the bins of 'x'"):
        Bins("x", 1000, **{**right, **wrong})


@pytest.fixture(scope="module")
def rollouts():
    mdp = ManyValuesMDP(10**6, "predicts")
    return mdp, ExogenousData.collect(mdp, 1000, np.random.default_rng(0))


def test_rollouts_have_bins_in_place_of_many_values(rollouts):
    _, data = rollouts
    assert [own.name for own in data.bins] == ["price"]
    assert data.sizes.tolist() == [len(data.bins[0]), 2, 2, 2, 2]
    assert data.values.dtype == np.uint8
    assert data.values[..., 0].max() == data.sizes[0] - 1
    assert data.restrict(["signal"]).bins == ()


def test_a_model_in_bins_is_one(rollouts):
    mdp, data = rollouts
    coarse = coarsened(mdp, data.bins)
    assert isinstance(coarse, CoarseMDP)
    assert coarsened(coarse, data.bins) is coarse
    assert coarsened(mdp, ()) is mdp
    rng = np.random.default_rng(0)
    state, action = coarse.sample_initial(500, rng), rng.integers(2, size=500)
    following = coarse.sample_next(state, action, rng)
    assert (following.exogenous < coarse.exogenous_sizes).all()
    assert (following.exogenous[:, 1] == (state.exogenous[:, 0] >= data.sizes[0] / 2)).mean() > 0.97
    assert coarse.reward_terms(state, action).shape == (500, 5)
    assert not coarse.is_terminal(state).any()


def test_a_bin_pays_the_mean_of_its_values():
    mdp = ManyValuesMDP(10**6, "pays")
    data = ExogenousData.collect(mdp, 1000, np.random.default_rng(0))
    x = np.zeros((len(data.bins[0]), 5), dtype=np.int64)
    x[:, 0] = np.arange(len(x))
    state = State(np.zeros((len(x), 1), dtype=np.int64), x)
    paid = coarsened(mdp, data.bins).reward_terms(state, np.ones(len(x), dtype=np.int64))[:, 0]
    assert (np.abs(paid) == 1).sum() >= len(x) - 1  # the threshold may be within a bin
    assert paid[0] == -1
    assert paid[-1] == 1


@pytest.mark.parametrize("role", ["pays", "moves", "predicts"])
def test_what_bins_hide(role):
    n, hidden = np.arange(3)[:, None], {}
    for rule in ("threshold", "parity"):
        mdp = ManyValuesMDP(10**6, role, rule)
        data = ExogenousData.collect(mdp, 1000, np.random.default_rng(0))
        hidden[rule] = hidden_in_bins(mdp, data, "price", ["price", "signal"], n)
    assert hidden["threshold"] < 0.1
    assert hidden["parity"] > 0.5


def test_without_common_random_numbers_nothing_is_said_of_what_bins_hide():
    class Reordered(ManyValuesMDP):
        """Draws its noise in an order that depends on the states."""

        def sample_exogenous(self, exogenous, rng):
            return super().sample_exogenous(exogenous, np.random.default_rng(exogenous.sum()))

    mdp = Reordered(10**6, "predicts", "parity")
    data = ExogenousData.collect(mdp, 1000, np.random.default_rng(0))
    assert hidden_in_bins(mdp, data, "price", ["noise_0"], np.arange(3)[:, None]) == 0.0


@pytest.mark.parametrize("size", [1000, 10**6])  # looked up in a table, and searched for
def test_bins_of_many_variables_are_those_of_each(size):
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(5)]
    values = rng.integers(size, size=(400, 6, 5))
    bins = [Bins.of(Variable(name, size), values[..., j]) for j, name in enumerate(names[:3])]
    put = Binning(names, bins).put
    anything = rng.integers(-5, size + 5, size=(50, 5))
    for x in (values, values[:, 0].astype(np.int32), anything):
        found = put(x)
        assert found.dtype == np.int64
        for j, own in enumerate(bins):
            np.testing.assert_array_equal(found[..., j], own.of_values(x[..., j]))
        np.testing.assert_array_equal(found[..., 3:], x[..., 3:])
    np.testing.assert_array_equal(put(values * 1.0), found_in(values, bins))
    with pytest.raises(ValueError, match="x has 4 variables, not the 5"):
        put(values[..., :4])


def found_in(values, bins):
    out = values.copy()
    for j, own in enumerate(bins):
        out[..., j] = own.of_values(values[..., j])
    return out


def test_values_in_place_of_bins_belong_to_them(rollouts):
    mdp, data = rollouts
    coarse, rng = coarsened(mdp, data.bins), np.random.default_rng(0)
    x = data.sample(200, rng)
    same = np.zeros(len(coarse.binned), dtype=np.int64)
    for refined in (coarse.refine(x, rng), coarse.values(x, same)):
        np.testing.assert_array_equal(coarse.in_bins(refined), x)
        assert (refined[:, 0] != x[:, 0]).any()
    columns = np.array([0, 3])
    some = coarse.refine_some(x[:, columns], columns, rng)
    np.testing.assert_array_equal(data.bins[0].of_values(some[:, 0]), x[:, 0])
    np.testing.assert_array_equal(some[:, 1], x[:, 3])
    with pytest.raises(ValueError, match="does not have"):
        coarse.refine_some(data.sizes[columns], columns, rng)


def test_rows_of_different_lengths_are_named():
    mdp = gym.make("exo_envs:ExoSyntheticReal-v0").unwrapped.mdp
    coarse = CoarseMDP(mdp, ExogenousData.collect(mdp, 20, np.random.default_rng(0)).bins)
    with pytest.raises(ValueError, match="exogenous"):
        coarse.sample_exogenous([[1], [2, 3]], np.random.default_rng(0))
