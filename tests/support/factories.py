"""Factories of all sizes."""

import numpy as np
import pytest

from exo_envs.domains.factory import WORK, FactoryParameters

SMALL = FactoryParameters(
    rows=3, columns=4, queue_length=2, clock_size=3, num_technicians=3, num_noise=3, no_order=0.4
)
BARE = FactoryParameters(queue_length=1, clock_size=1, num_technicians=0, num_noise=0)
each_size = pytest.mark.parametrize("parameters", [FactoryParameters(), SMALL, BARE])


class GivenNoise:
    """Stands in for a generator: hands out the uniform numbers it was given."""

    def __init__(self, uniforms):
        self.uniforms = uniforms

    def random(self, shape):
        return self.uniforms.reshape(shape)  # a number for each variable of each lane


def random_cases(mdp, count, seed):
    """States from the whole space, half of them with the robot at the live order's station."""
    rng = np.random.default_rng(seed)
    state = mdp.sample_uniform(count, rng)
    live = state.exogenous[:, 0]
    there = (live > 0) & (rng.random(count) < 0.5)
    state.endogenous[there, 0] = mdp.station_cells[live[there] - 1]
    action = np.where(rng.random(count) < 0.5, WORK, rng.integers(WORK, size=count))
    return state, action, rng
