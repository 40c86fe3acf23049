"""The price curve: against brute force, against fits at other prices, and in other forms."""

import math
import sys
from itertools import pairwise

import numpy as np
import pytest
from learners import TINY, each_learner, fresh

from exo_envs.domains.factory import FactoryMDP, FactoryParameters
from exo_envs.domains.grid import GridMDP
from planners import Estimate
from wrappers import (
    BruteForceMaskLearner,
    CalibratedMaskLearner,
    MaskPath,
    RewardVariableMaskLearner,
)
from wrappers.reports.path import PathPoint, ScoredMask, envelope

WEIGHTS = (0.0, 0.1, 0.5, 1.0, 2.0, 3.0, 10.0, 60.0)


@pytest.fixture(scope="module")
def grid():
    return CalibratedMaskLearner(cost_weight=1.0, n_rollouts=200).fit(GridMDP(), 0)


@pytest.fixture(scope="module")
def path(grid):
    return grid.path()


# --- which masks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_the_envelope_is_the_best_mask_at_every_price(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(6, size=30)
    returns = np.round(rng.normal(size=30), 1)  # some are the same
    tried = [
        ScoredMask(("x",) * size, float(size), float(earned))
        for size, earned in zip(sizes, returns, strict=True)
    ]
    parts = envelope(tried)
    assert parts[0][1] == 0.0
    assert math.isinf(parts[-1][2])
    for (_, _, high), (_, low, _) in pairwise(parts):
        assert low == high
    for own, low, high in parts:
        for weight in (low, (low + min(high, low + 9)) / 2, min(high, 99.0)):
            best = max(other.mean_return - weight * other.cost for other in tried)
            assert own.mean_return - weight * own.cost == pytest.approx(best)


def test_it_is_what_brute_force_finds_at_every_price(grid, path):
    """With few variables all masks are tried, so both choose from the same returns."""
    assert len(path.tried) == 32
    for weight in WEIGHTS:
        brute = BruteForceMaskLearner(cost_weight=weight).fit(grid.study_)
        point = path.at(weight)
        assert point.mask == brute.mask_
        assert point.value_at(weight) == pytest.approx(brute.objective_.value)
        assert point.mean_return.mean == brute.objective_.mean_return
        assert point.mean_return.interval() == brute.objective_.interval()


def test_returns_come_from_trajectories_that_had_no_part_in_the_choice(grid, path):
    evaluator = grid.study_.evaluator
    for point in path:
        shared = evaluator.objective(point.mask).mean_return
        assert (point.mask, float(point.size), shared) in path.tried
        fresh_return = evaluator.objective(point.mask, scenarios=evaluator.fresh_scenarios())
        assert point.mean_return.mean == fresh_return.mean_return


def test_prices_that_are_asked_for_are_the_points(grid, path):
    asked = grid.path(cost_weights=[2.0, 0.1, 2.0])
    assert [point.cost_weight for point in asked] == [2.0, 0.1, 2.0]
    for point in asked:
        whole = path.at(point.cost_weight)
        assert (point.mask, point.low, point.high) == (whole.mask, whole.low, whole.high)
        assert point.value == whole.value_at(point.cost_weight)
    with pytest.raises(ValueError, match=r"no mask for a cost_weight of 1000, only for 2, 0.1"):
        asked.at(1000.0)


def test_masks_are_no_larger_than_asked_for(grid):
    small = grid.path(max_size=1)
    assert max(len(own.mask) for own in small.tried) == 1
    assert [len(own.mask) for own in grid.path(max_size=0).tried] == [0]


def test_cost_need_not_be_the_size(path):
    def double(mask, plan):
        return 2.0 * len(mask)

    learner = CalibratedMaskLearner(cost_weight=1.0, n_rollouts=200, cost=double)
    doubled = learner.fit(GridMDP(), 0).path()
    assert [point.mask for point in doubled] == [point.mask for point in path]
    assert [point.high for point in doubled] == pytest.approx([point.high / 2 for point in path])


def test_on_the_way_to_nothing_the_factory_is_priced_as_a_fit_prices_it():
    """Ten of its variables matter: too many masks. Both J come from the same 200 episodes."""
    mdp = FactoryMDP(FactoryParameters(queue_length=3, num_technicians=1))
    learner = CalibratedMaskLearner(cost_weight=1.0, n_rollouts=200).fit(mdp, 0)
    told = []
    learner.callback = lambda progress: told.append(progress.stage)
    path = learner.path()
    assert {"planning with 10 variables", "planning with 1 variable"} <= set(told)
    point, own = path.at(1.0), learner.objective_
    assert abs(point.value_at(1.0) - own.value) < 2 * point.mean_return.standard_error
    scored = {mask: earned for mask, _, earned in path.tried}
    assert scored[point.mask] - point.size >= scored[learner.mask_] - len(learner.mask_)
    relevant = [len(own.mask) for own in path.tried]
    assert max(relevant) == 10
    assert set(range(11)) <= set(relevant)  # one variable after another
    assert path[-1].mask == ()
    assert [p.size for p in path] == sorted((p.size for p in path), reverse=True)


@each_learner
def test_every_learner_has_one(name):
    path = fresh(name).fit(TINY, 0).path()
    assert path[0].low == 0.0
    assert math.isinf(path[-1].high)
    assert path.at(1e9) == path[-1]


def test_a_learner_that_made_no_tests_has_one_too():
    path = RewardVariableMaskLearner(n_rollouts=50, sampling="uniform").fit(GridMDP(), 0).path()
    assert len(path.tried) == 32


# --- other forms ----------------------------------------------------------------------------------


def test_it_is_a_table_for_pandas_and_in_markdown(path):
    frame = path.to_pandas()
    assert frame["size"].tolist() == [point.size for point in path]
    assert frame["J"].tolist() == [point.value for point in path]
    assert (frame["return_low"] <= frame["mean_return"]).all()
    lines = path.to_markdown().splitlines()
    assert len(lines) == len(path) + 2
    assert "and more" in lines[-1]
    assert len(str(path).splitlines()) == len(path)
    assert path.to_html().count("<tr>") == 1 + len(path)


def test_it_is_drawn_with_the_number_of_variables(path):
    import matplotlib.pyplot as plt

    ax = path.plot()
    assert [text.get_text() for text in ax.texts] == [str(point.size) for point in path]
    assert path.plot(ax) is ax
    plt.close(ax.figure)
    one = MaskPath((PathPoint(0.0, 0.0, math.inf, (), 0.0, Estimate(1.0, 0.1)),), ())
    plt.close(one.plot().figure)


def test_without_pandas_or_matplotlib_the_error_says_what_to_install(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"path.to_pandas\(\) needs pandas"):
        path.to_pandas()
    with pytest.raises(ImportError, match=r"path.plot\(\) needs matplotlib"):
        path.plot()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"cost_weights": 1.0}, TypeError, "numbers for cost_weights are a collection"),
        ({"cost_weights": "12"}, TypeError, "numbers for cost_weights are a collection"),
        ({"cost_weights": []}, ValueError, "there is none in it"),
        ({"cost_weights": [-1.0]}, ValueError, "each of cost_weights is a finite number"),
        ({"cost_weights": [math.nan]}, ValueError, "each of cost_weights is a finite number"),
        ({"max_size": -1}, ValueError, "max_size is a whole number"),
        ({"max_size": 1.5}, ValueError, "max_size is a whole number"),
    ],
)
def test_odd_arguments_are_refused_by_name(grid, arguments, error, words):
    with pytest.raises(error, match=words):
        grid.path(**arguments)
    with pytest.raises(ValueError, match="cost_weight is a finite number, at least 0"):
        grid.path(max_size=0).at(-1.0)
