"""What is remembered between masks: never a different result, never too much."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from factored import arrays, random_mdp

from planners import ForecastPlanner, Memory, ReducedMDP
from planners.core.memory import ENTRY_BYTES, Shelf
from planners.forecasting.compiled_model import CompiledModel
from planners.forecasting.planner import ForecastPolicy
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData

MASKS = [(0, 1, 2, 3), (0, 1, 3), (1, 2, 3), (0, 1, 2, 3), (3,)]


@pytest.fixture(scope="module")
def world():
    mdp = random_mdp(np.random.default_rng(3), sizes=(2, 3, 2, 3), horizon=12)
    data = ExogenousData.collect(mdp, 400, np.random.default_rng(0))
    survey = EndogenousSurvey.collect(mdp, data, np.random.default_rng(1))
    return mdp, data, survey


def planned(world, mask, memory=None):
    mdp, data, survey = world
    reduced = ReducedMDP.estimate(mdp, mask, rng=0, data=data, survey=survey, memory=memory)
    return reduced, ForecastPlanner().plan(reduced).policy


def assert_same(policy, other):
    mine, theirs = (arrays((one.forecasts, one.models)) for one in (policy, other))
    for array, other_array in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(array, other_array)


def test_a_memory_never_changes_a_policy(world):
    """Whatever was planned before, in whatever order, every array is the same bit for bit."""
    memory = Memory()
    for mask in MASKS:
        reduced, policy = planned(world, mask, memory)
        alone, afresh = planned(world, mask)
        assert_same(policy, afresh)
        assert reduced.parents == alone.parents
        np.testing.assert_array_equal(reduced.log_loss, alone.log_loss)
        lists = arrays(reduced.decision_lists), arrays(alone.decision_lists)
        for found, expected in zip(*lists, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_the_second_mask_counts_nothing_again(world, monkeypatch):
    memory = Memory()
    assert planned(world, MASKS[0], memory)[0].parents

    def refuse(*_):
        raise AssertionError("counted again")

    for counting in (
        "planners.forecasting.forecasts._fit_one",
        "planners.forecasting.forecast_parents.ForecastParentSearch._count",
        "planners.dependence.pairwise.SampledColumns.information",
        "planners.dependence.interventions._influence",
        "planners.tables.factors._fit_one",
    ):
        monkeypatch.setattr(counting, refuse)
    assert planned(world, MASKS[0], memory)[0].parents
    with pytest.raises(AssertionError, match="counted again"):
        planned(world, MASKS[0])


def test_without_a_memory_nothing_is_kept(world):
    reduced, _ = planned(world, MASKS[0])
    assert reduced.memory is None
    assert vars(world[1]).keys() == {field.name for field in dataclasses.fields(world[1])}


def test_a_memory_is_about_one_collection_and_one_survey(world):
    mdp, data, survey = world
    memory = Memory()
    planned(world, MASKS[0], memory)
    other = ExogenousData.collect(mdp, 20, np.random.default_rng(0))
    with pytest.raises(ValueError, match="about other rollouts"):
        planned((mdp, other, survey), MASKS[0], memory)
    with pytest.raises(ValueError, match="another survey"):
        planned((mdp, data, dataclasses.replace(survey)), MASKS[0], memory)
    remembered = ReducedMDP.estimate(mdp, MASKS[0], rng=0, memory=memory)
    assert remembered.columns.tolist() == list(MASKS[0])


def test_what_an_empty_memory_lacks_is_collected_once(world):
    mdp, data, _ = world
    memory = Memory()
    first = ReducedMDP.estimate(mdp, MASKS[0], rng=3, num_rollouts=50, memory=memory)
    assert memory.data.num_rollouts == 50
    assert memory.survey is not None
    again = ReducedMDP.estimate(mdp, MASKS[0], rng=4, memory=memory)
    assert again.samples == first.samples
    assert_same(ForecastPlanner().plan(again).policy, ForecastPlanner().plan(first).policy)
    other = Memory()
    ReducedMDP.estimate(mdp, MASKS[0], rng=0, data=data, memory=other)
    assert other.data is data


def test_pickles_leave_the_memory_behind(world):
    reduced, policy = planned(world, MASKS[1], Memory())
    back = pickle.loads(pickle.dumps(reduced))
    assert back.memory is None
    assert_same(ForecastPlanner().plan(back).policy, policy)
    for data in (world[1], reduced.data):
        same = pickle.loads(pickle.dumps(data))
        assert same.names == data.names
        np.testing.assert_array_equal(same.values, data.values)
        assert len(pickle.dumps(data)) < 2 * data.values.nbytes


def test_what_was_not_asked_for_longest_goes_first():
    memory, shelf = Memory(), Shelf("some", limit=2 * (40 + ENTRY_BYTES) + 20)
    made = []

    def ask(key):
        if (found := memory.find(shelf, key)) is None:
            made.append(key)
            found = memory.keep(shelf, key, (np.zeros(5),))
        return found

    for key in "abacab":  # 40 bytes each: c takes the place of b, and b that of c
        ask(key)
    assert "".join(made) == "abcb"
    assert memory.entries(shelf).nbytes == 2 * (40 + ENTRY_BYTES)
    assert ask("a") is ask("a")
    assert "".join(made) == "abcb"
    large = memory.keep(shelf, "large", np.zeros(1000))
    assert large.nbytes == 8000
    assert memory.entries(shelf).nbytes == len(memory.entries(shelf)) == 0


def test_the_last_few_stay_whatever_their_size():
    memory, shelf = Memory(), Shelf("some", limit=100, at_least=2)
    for key in range(4):
        memory.keep(shelf, key, np.zeros(1000))
    assert [memory.find(shelf, key) is not None for key in (3, 2, 1)] == [True, True, False]
    assert memory.entries(shelf).nbytes == 2 * (8000 + ENTRY_BYTES)


def test_shelves_do_not_mix():
    memory = Memory()
    for name in "ab":
        memory.keep(Shelf(name), 0, name)
    assert [memory.find(Shelf(name), 0) for name in "abc"] == ["a", "b", None]


def test_copies_remember_on_their_own():
    memory, shelf = Memory(), Shelf("some")
    memory.keep(shelf, 1, "one")
    for twin in (copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))):
        assert twin.find(shelf, 1) == "one"
        twin.keep(shelf, 2, "two")
    assert list(memory.entries(shelf)) == [1]


def test_variables_are_told_apart_by_their_places_in_the_collection():
    memory = Memory()
    first, second = (memory.part(np.array(places)) for places in ([2, 5], [5, 2]))
    assert first.key((0, 1)) == second.key((1, 0)) == (2, 5)
    assert second.key((0, 1)) == (5, 2)
    assert memory.key((2, 0)) == (2, 0)
    shelf = Shelf("some")
    assert first.keep(shelf, 1, "one") == second.find(shelf, 1) == "one"


def test_a_model_without_variables_can_be_planned_in(world, tmp_path):
    _, policy = planned(world, ())
    assert isinstance(policy, ForecastPolicy)
    assert isinstance(policy.models.later, CompiledModel)
    state = world[0].sample_uniform(5, np.random.default_rng(0))
    actions = policy(state)
    policy.save(tmp_path / "policy")
    np.testing.assert_array_equal(ForecastPolicy.load(tmp_path / "policy")(state), actions)
