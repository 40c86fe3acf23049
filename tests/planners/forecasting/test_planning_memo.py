"""What planners remember about shared data: never a different result, never too much."""

import copy
import gc
import pickle
from collections import defaultdict

import numpy as np
import pytest
from factored import random_mdp

from planners import EndogenousSurvey, ExogenousData, ForecastPlanner, ReducedMDP
from planners.forecasting.compiled_model import CompiledModel
from planners.forecasting.planner import ForecastPolicy
from planners.information.rollouts import Memo, Recent

MASKS = [(0, 1, 2, 3), (0, 1, 3), (1, 2, 3), (0, 1, 2, 3), (3,)]


@pytest.fixture(scope="module")
def world():
    mdp = random_mdp(np.random.default_rng(3), sizes=(2, 3, 2, 3), horizon=12)
    data = ExogenousData.collect(mdp, 400, np.random.default_rng(0))
    survey = EndogenousSurvey.collect(mdp, data, np.random.default_rng(1))
    return mdp, data, survey


def planned(world, mask, data=None):
    mdp, shared, survey = world
    data = shared if data is None else data
    rng = np.random.default_rng(0)
    reduced = ReducedMDP.estimate(mdp, mask, rng=rng, data=data, survey=survey)
    return reduced, ForecastPlanner().plan(reduced).policy


def assert_same(policy, other):
    for name, array in vars(policy.forecasts).items():
        np.testing.assert_array_equal(array, getattr(other.forecasts, name))
    for name, array in policy.model._asdict().items():
        np.testing.assert_array_equal(array, getattr(other.model, name))


def test_a_memo_never_changes_a_policy(world):
    """Whatever was planned before, in whatever order, every array is the same bit for bit."""
    for mask in MASKS:
        _, policy = planned(world, mask)
        _, afresh = planned(world, mask, copy.deepcopy(world[1]))
        assert_same(policy, afresh)


def test_the_second_mask_counts_nothing_again(world, monkeypatch):
    planned(world, MASKS[0])

    def refuse(*_):
        raise AssertionError("counted again")

    monkeypatch.setattr("planners.forecasting.forecasts._fit_one", refuse)
    monkeypatch.setattr("planners.forecasting.forecast_parents._Search._count", refuse)
    planned(world, MASKS[0])
    with pytest.raises(AssertionError, match="counted again"):
        planned(world, MASKS[0], copy.deepcopy(world[1]))


def test_more_data_is_counted_afresh(world):
    reduced, policy = planned(world, MASKS[1])
    longer = reduced.extend(world[0], 100, np.random.default_rng(5))
    extended = ForecastPlanner().plan(longer).policy
    assert not np.array_equal(extended.forecasts.tables, policy.forecasts.tables)
    again = reduced.extend(world[0], 100, np.random.default_rng(5))
    assert_same(extended, ForecastPlanner().plan(again).policy)


def test_restricted_data_know_their_places_and_outlive_their_origin(world):
    data = copy.deepcopy(world[1])
    names = data.names
    part = data.restrict([names[3], names[1]]).restrict([names[1]])
    assert part.shared_memo().places.tolist() == [1]
    assert part.shared_memo().recent is data.shared_memo().recent
    del data
    gc.collect()
    assert part.shared_memo().places.tolist() == [0]


def test_pickles_leave_the_memo_behind(world):
    reduced, _ = planned(world, MASKS[0])
    for data in (world[1], reduced.data):
        back = pickle.loads(pickle.dumps(data))
        assert not back.memo
        assert back.names == data.names
        np.testing.assert_array_equal(back.values, data.values)
    assert len(pickle.dumps(reduced.data)) < 2 * reduced.data.values.nbytes


def test_what_was_not_asked_for_longest_goes_first():
    recent = Recent(limit=100)
    made = []

    def ask(key):
        return recent.get(key, lambda: (made.append(key), np.zeros(5))[1:])

    for key in "abacab":  # 40 bytes each: c takes the place of b, and b that of c
        ask(key)
    assert "".join(made) == "abcb"
    assert recent.nbytes == 80
    (large,) = recent.get("large", lambda: (np.zeros(1000),))
    assert large.nbytes == 8000
    assert recent.nbytes == 0


def test_a_memo_tells_variables_apart_by_their_places():
    recent = defaultdict(Recent)
    first, second = Memo(np.array([2, 5]), 6, recent), Memo(np.array([5, 2]), 6, recent)
    found = first.get("x", (0, 1), lambda: (np.array([1.0]),))
    assert second.get("x", (1, 0), lambda: (np.array([2.0]),)) is found
    assert second.get("x", (0, 1), lambda: (np.array([2.0]),)) is not found
    assert first.get("y", (0, 1), lambda: (np.array([2.0]),)) is not found
    assert first.get("x", (0, 1), lambda: (np.array([2.0]),), setting=3) is not found


def test_a_model_without_variables_can_be_planned_in(world, tmp_path):
    _, policy = planned(world, ())
    assert isinstance(policy, ForecastPolicy)
    assert isinstance(policy.model, CompiledModel)
    state = world[0].sample_uniform(5, np.random.default_rng(0))
    actions = policy(state)
    policy.save(tmp_path / "policy.npz")
    np.testing.assert_array_equal(ForecastPolicy.load(tmp_path / "policy.npz")(state), actions)
