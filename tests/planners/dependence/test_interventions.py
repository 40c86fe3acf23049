"""What changing a variable shows."""

import numpy as np
import pytest
from processes import ProcessMDP, lazily

from planners.core.memory import Memory
from planners.dependence import interventions
from planners.dependence.interventions import INFLUENCE, actors_of
from planners.samples.rollouts import ExogenousData


@pytest.mark.parametrize("wasteful", [False, True])
def test_interventions_find_what_acts_on_what(wasteful):
    sizes = (2, 2, 3, 4)

    def step(x, u):
        following = lazily(0.5, sizes)(x, u)
        following[:, 0] = x[:, 1] ^ (x[:, 2] == 1) ^ (u[:, 0] < 0.1)
        return following

    mdp = ProcessMDP(sizes, step, wasteful=wasteful)
    data = ExogenousData.collect(mdp, 50, np.random.default_rng(0))
    acts = {(j, i) for i, own in enumerate(actors_of(mdp, data, range(4))) for j in own}
    assert acts == {(1, 0), (2, 0), (1, 1), (2, 2), (3, 3)}


def test_of_many_variables_those_that_act_are_found_in_groups(monkeypatch):
    sizes = (2,) * 90

    def step(x, u):
        following = lazily(0.5, sizes)(x, u)
        following[:, 0] = x[:, 1] ^ x[:, 2] ^ (u[:, 0] < 0.1)  # a parity
        following[:, 3] = x[:, 4] & (u[:, 3] < 0.3)
        return following

    mdp = ProcessMDP(sizes, step)
    data = ExogenousData.collect(mdp, 50, np.random.default_rng(0))
    one_by_one = actors_of(mdp, data, [0, 3, 50])
    assert [sorted(found) for found in one_by_one] == [[1, 2], [4], [50]]
    assert actors_of(mdp, data, [0, 3], among=[2, 3, 4]) == [
        {2: one_by_one[0][2]},
        {4: one_by_one[1][4]},
    ]
    monkeypatch.setattr(interventions, "MAX_ONE_BY_ONE", 10)
    monkeypatch.setattr(interventions, "GROUP_SIZE", 8)
    memory = Memory()
    asked = [actors_of(mdp, data, [i], memory=memory)[0] for i in (0, 3, 50)]
    assert asked == one_by_one, "the strength is measured one by one"
    assert actors_of(mdp, data, [0], memory=memory, among=[2, 3]) == [{2: one_by_one[0][2]}]
    assert len(memory.entries(INFLUENCE)) < 30, "most variables are never changed alone"


def test_without_common_random_numbers_groups_say_nothing(monkeypatch):
    sizes = (4,) * 12
    mdp = ProcessMDP(sizes, lazily(0.5, sizes), wasteful=True)
    data = ExogenousData.collect(mdp, 50, np.random.default_rng(0))
    monkeypatch.setattr(interventions, "MAX_ONE_BY_ONE", 10)
    assert actors_of(mdp, data, [0]) == [{}]
