"""Group tests: which variables a question depends on, and the states that are asked about."""

import numpy as np
import pytest

from planners.core.arrays import CALL_VALUES
from planners.reduced.questions import draw_probes, find_relevant
from planners.samples.rollouts import ExogenousData


def rollouts(sizes, seed=0):
    values = np.random.default_rng(seed).integers(sizes, size=(20, 30, len(sizes)))
    names = tuple(f"x{j}" for j in range(len(sizes)))
    return ExogenousData(names, np.array(sizes), values, np.zeros((20, 1), int), 0)


@pytest.mark.parametrize("num_noise", [0, CALL_VALUES // 100])
def test_what_a_question_depends_on_is_found_among_few_or_many(num_noise):
    """Also if the questions take many calls."""
    data = rollouts([2, 3, 4, 2] + [2] * num_noise)
    scopes = [(), (0,), (1, 3), (0, 1, 2, 3), (len(data.sizes) - 1,)]

    def answer(question, x):
        return np.array([hash(tuple(x[b, list(scopes[q])])) for b, q in enumerate(question)])

    def differ(question, x, y, seed):
        return answer(question, x) != answer(question, y)

    found = find_relevant(differ, len(scopes), data, np.random.default_rng(0), num_tests=96)
    assert [tuple(np.flatnonzero(row)) for row in found] == scopes


def test_states_are_prepared_once_a_round_and_not_once_a_question():
    data, prepared = rollouts([2, 2]), []

    def prepare(x):
        prepared.append(len(x))
        return x * 10

    def differ(question, x, y, seed):
        assert set(np.unique(x)) <= {0, 10}
        return x[:, 1] != y[:, 1]

    found = find_relevant(differ, 50, data, np.random.default_rng(0), num_tests=16, prepare=prepare)
    np.testing.assert_array_equal(found, np.tile([False, True], (50, 1)))
    assert prepared == [16] * 4  # two sets of states, in a round that finds and one that does not


def test_probes_of_some_columns_are_those_of_the_whole_where_they_occur():
    data = rollouts([2, 300, 5])
    some = draw_probes(data, 40, np.random.default_rng(0), np.array([1, 2]))
    assert some.shape == (40, 2)
    assert (some < data.sizes[1:]).all()
    occurring = set(map(tuple, data.values[:, :-1, 1:].reshape(-1, 2).tolist()))
    assert sum(tuple(row) in occurring for row in some.tolist()) >= 20
    with pytest.raises(IndexError, match="columns"):
        data.sample(3, np.random.default_rng(0), np.array([3]))
