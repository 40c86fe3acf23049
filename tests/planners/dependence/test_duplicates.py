"""Variables that say the same, and those that only seem to."""

import numpy as np
import pytest

from planners.dependence.pairwise import duplicates
from planners.samples.rollouts import ExogenousData


def rollouts(values, sizes=None):
    m = values.shape[2]
    sizes = np.full(m, int(values.max()) + 1) if sizes is None else sizes
    names = tuple(f"x{j}" for j in range(m))
    return ExogenousData(names, sizes, values, np.zeros((len(values), 1), np.int64), 0)


def test_one_to_one_functions_say_the_same_and_others_do_not():
    rng = np.random.default_rng(0)
    values = rng.integers(4, size=(50, 21, 6))
    values[:, :, 1] = np.array([2, 0, 3, 1])[values[:, :, 0]]
    values[:, :, 2] = values[:, :, 0] // 2  # says less
    values[:, :, 4] = values[:, :, 3]
    values[7, 11, 4] = (values[7, 11, 3] + 1) % 4  # once another
    data = rollouts(values)
    assert [duplicates(data, j) for j in range(6)] == [(1,), (0,), (), (), (), ()]


def test_what_hardly_changes_is_not_said_to_be_the_same():
    values = np.zeros((50, 21, 3), np.int64)
    values[3, 4:9, :2] = 1
    data = rollouts(values, np.array([2, 2, 2]))
    assert [duplicates(data, j) for j in range(3)] == [(), (), ()]


def test_rare_events_that_come_together_are_the_same():
    values = np.zeros((500, 21, 3), np.int64)
    values[::40, 5, :2] = 1
    values[1::40, 5, 2] = 1
    data = rollouts(values)
    assert [duplicates(data, j) for j in range(3)] == [(1,), (0,), ()]


def test_what_never_changes_within_an_episode_is_compared_between_them():
    rng = np.random.default_rng(1)
    goal = np.repeat(rng.integers(5, size=(200, 1, 1)), 11, axis=1)
    values = np.concatenate([goal, 4 - goal, rng.integers(5, size=goal.shape)], axis=2)
    assert duplicates(rollouts(values), 0) == (1,)


def test_an_odd_position_is_refused():
    data = rollouts(np.random.default_rng(0).integers(2, size=(5, 9, 2)))
    with pytest.raises(IndexError, match="variable"):
        duplicates(data, 2)
