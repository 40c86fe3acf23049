"""Variables of very many values: found, or said to be beyond what the data can tell."""

import copy
import pickle
import time
import warnings

import numpy as np
import pytest
from many_values import ROLES, ManyValuesMDP

from planners import (
    UCT,
    DefaultPlanner,
    ForecastPlanner,
    ReducedMDP,
    ValueIteration,
    estimate_objective,
    evaluate,
)
from planners.discretization.coarse import BinnedPolicy
from wrappers import (
    BruteForceMaskLearner,
    CalibratedMaskLearner,
    CorrelationalMaskLearner,
    RewardVariableMaskLearner,
    UndecidedWarning,
)

SIZES = (10**3, 10**4, 10**5, 10**6, 10**7, 2**40)
FEW = {"n_rollouts": 60, "n_data_rollouts": 1000}
#: Seconds that nothing here may take; most takes a tenth of one.
SOON = 20.0


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    """Compiling takes its time on the first use ever."""
    for role in ROLES:
        CalibratedMaskLearner(**FEW).fit(ManyValuesMDP(1000, role), 1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("role", "rule"), [*((role, "threshold") for role in ROLES), ("predicts", "copy")]
)
def test_what_decides_everything_is_found_however_many_values_it_has(size, role, rule):
    start = time.perf_counter()
    learner = CalibratedMaskLearner(**FEW).fit(ManyValuesMDP(size, role, rule), 0)
    assert time.perf_counter() - start < SOON
    assert learner.mask_ == (("price", "signal") if role == "predicts" else ("price",))
    assert learner.doubts_ == ()
    # Seeing what pays, an agent earns about 1 in every second step; blind, nothing.
    assert learner.objective_.mean_return > (6.5 if role == "moves" else 3.5)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("role", ROLES)
def test_what_bins_cannot_show_is_found_and_said(size, role):
    with pytest.warns(UndecidedWarning, match=f"'price' has {size:,} values") as caught:
        learner = CalibratedMaskLearner(**FEW).fit(ManyValuesMDP(size, role, "parity"), 0)
    assert "price" in learner.mask_
    assert learner.doubts_ == tuple(str(warning.message) for warning in caught)
    assert "fewer values" in learner.doubts_[0] or "Join values" in learner.doubts_[0]
    assert caught[0].filename == __file__
    if role == "predicts":
        assert learner.reasons_["price"].reason == "acts on signal, whose table has no place for it"


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    "learner", [BruteForceMaskLearner, CorrelationalMaskLearner, RewardVariableMaskLearner]
)
def test_other_learners_take_many_values_too(learner, role):
    mask = learner(cost_weight=0.05, **FEW).fit(ManyValuesMDP(10**7, role), 0).mask_
    paying = {"pays": ("price",), "moves": (), "predicts": ("signal",)}
    assert mask == paying[role]  # what moves n here, or predicts, gains next to nothing


def test_black_boxes_take_many_values_too():
    learner = CalibratedMaskLearner(reward="total", **FEW).fit(ManyValuesMDP(10**7, "pays"), 0)
    assert learner.mask_ == ("price",)


@pytest.mark.parametrize("planner", [ValueIteration(), DefaultPlanner(), ForecastPlanner()])
def test_policies_planned_in_bins_play_values(planner, tmp_path):
    mdp = ManyValuesMDP(10**7, "pays")
    policy = planner.plan(mdp, rng=np.random.default_rng(0)).policy
    assert evaluate(policy, mdp, 100, 0).mean() > 3.5
    assert isinstance(policy, BinnedPolicy)
    low, high = ({"endogenous": [0], "exogenous": [x, 0, 0, 0, 0]} for x in (0, 10**7 - 1))
    policy.save(tmp_path / "policy")
    loaded = BinnedPolicy.load(tmp_path / "policy")
    for same in (policy, pickle.loads(pickle.dumps(policy)), copy.deepcopy(policy), loaded):
        assert (same(low), same(high)) == (0, 1)


def test_a_policy_of_tree_search_in_bins_cannot_be_saved(tmp_path):
    reduced = ReducedMDP.estimate(ManyValuesMDP(10**7, "pays"), ["price"], rng=0)
    policy = BinnedPolicy(UCT(simulations=2).plan(reduced).policy, reduced.bins)
    with pytest.raises(TypeError, match="UCTPolicy cannot be saved"):
        policy.save(tmp_path / "policy")
    with pytest.raises(ValueError, match="price"):
        BinnedPolicy(ValueIteration().plan(reduced.part(())).policy, reduced.bins)


def test_reduced_models_have_bins(tmp_path):
    mdp = ManyValuesMDP(10**7, "predicts")
    reduced = ReducedMDP.estimate(mdp, ["price", "signal"], rng=0, num_rollouts=1000)
    assert reduced.parents == {"price": (), "signal": ("price",)}
    assert reduced.exogenous_sizes.tolist() == [len(reduced.bins[0]), 2]
    reduced.save(tmp_path / "model")
    loaded = ReducedMDP.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.bins[0].starts, reduced.bins[0].starts)
    assert estimate_objective(mdp, ["price", "signal"], rng=0).mean_return > 3.5


@pytest.mark.parametrize("size", [10**4, 10**7])
def test_bounds_of_many_values_hold(size):
    learner = CalibratedMaskLearner(**FEW).fit(ManyValuesMDP(size, "pays"), 0)
    bracket = learner.objective_.bracket
    assert bracket.lower.mean <= bracket.upper.mean <= bracket.hindsight.mean
    assert bracket.gap < 0.2
    assert learner.cost_of_ignoring_.high < 1.0


def test_few_values_raise_no_doubts():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for role in ROLES:
            CalibratedMaskLearner(**FEW).fit(ManyValuesMDP(8, role), 0)
