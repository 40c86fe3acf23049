"""Bins against nearest neighbours, on planted problems whose net is known."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from exo_envs.domains.synthetic import RealSyntheticMDP, RealSyntheticParameters
from planners import cross_check
from planners.dependence.cross_check import neighbour_information
from planners.dependence.parents import ParentSearch
from planners.samples.rollouts import ExogenousData

SMALL = {
    "num_paying": 2,
    "generations": 1,
    "num_moving": 0,
    "num_copies": 1,
    "num_noise": 2,
    "num_correlated": 0,
    "whole_share": 0.0,
}


def make(**parameters):
    return RealSyntheticMDP(RealSyntheticParameters(**{**SMALL, **parameters}))


@pytest.fixture(scope="module")
def planted():
    return make()


@pytest.fixture(scope="module")
def data(planted):
    return ExogenousData.collect(planted, rng=np.random.default_rng(0))


def test_bins_and_neighbours_agree_on_the_true_net(planted, data):
    check = cross_check(planted, planted.required_mask, data=data, num_samples=500, rng=0)
    found = {(edge.parent, edge.target) for edge in check.edges if edge.found}
    true = {(p, t) for t in planted.required_mask for p in planted.parents[t]}
    assert found == true
    assert check.disagreements == ()
    m = len(planted.exogenous_names)
    assert len(check.edges) == m * len(planted.required_mask)
    assert len(check.to_pandas()) == len(check.edges)


def test_both_rank_parents_alike(planted, data):
    """Information by bins and by neighbours of all pairs that tell something."""
    search, rng = ParentSearch(data), np.random.default_rng(1)
    x = planted.sample_initial(2000, rng).exogenous
    after = planted.sample_exogenous(x, rng)
    binned, near = [], []
    for i in range(len(data.names)):
        for j in range(len(data.names)):
            counted = search.all.information(i, [], j)
            told = (counted.statistic - counted.freedom) / (2 * search.all.count)
            if told > 0.02:
                binned.append(told)
                near.append(neighbour_information(x[:, j], after[:, i]))
    assert len(binned) >= 8
    assert spearmanr(binned, near).statistic > 0.9
    np.testing.assert_allclose(near, binned, atol=0.15)


def test_what_was_left_out_is_found_by_neighbours(planted, data):
    parents = dict(planted.parents)
    left_out = next(p for p in parents["pays_0"] if p != "pays_0")
    parents["pays_0"] = ()
    check = cross_check(planted, ["pays_0"], parents=parents, data=data, num_samples=300, rng=0)
    only = {e.parent for e in check.disagreements if e.verdict == "only by neighbours"}
    assert left_out in only


def test_what_was_made_up_is_found_in_bins_only(planted, data):
    parents = {"pays_0": (*planted.parents["pays_0"], "noise_0")}
    check = cross_check(
        planted, ["pays_0"], parents=parents, candidates=["noise_1"], data=data, num_samples=300,
        rng=0,
    )  # fmt: skip
    assert [(e.parent, e.verdict) for e in check.disagreements] == [("noise_0", "only in bins")]
    assert len(check.edges) == len(parents["pays_0"]) + 1
    assert next(e for e in check.edges if e.parent == "noise_0").binned < 0.01


def test_variables_of_few_values_need_no_second_opinion():
    mdp = make(whole_share=1.0, smallest_size=2, largest_size=4)
    assert cross_check(mdp, mdp.required_mask, num_samples=100).edges == ()


def test_parents_have_to_be_those_of_the_mask(planted, data):
    with pytest.raises(ValueError, match="parents says nothing about 'pays_1'"):
        cross_check(planted, ["pays_1"], parents={}, data=data)
