"""What changing a variable shows."""

import numpy as np
import pytest
from processes import ProcessMDP, lazily

from planners.information.interventions import influence
from planners.information.rollouts import ExogenousData


@pytest.mark.parametrize("wasteful", [False, True])
def test_interventions_find_what_acts_on_what(wasteful):
    sizes = (2, 2, 3, 4)

    def step(x, u):
        following = lazily(0.5, sizes)(x, u)
        following[:, 0] = x[:, 1] ^ (x[:, 2] == 1) ^ (u[:, 0] < 0.1)
        return following

    mdp = ProcessMDP(sizes, step, wasteful=wasteful)
    data = ExogenousData.collect(mdp, 50, np.random.default_rng(0))
    acts = {
        (j, i) for j in range(4) for i in np.flatnonzero(influence(mdp, data, f"x{j}")).tolist()
    }
    assert acts == {(1, 0), (2, 0), (1, 1), (2, 2), (3, 3)}
