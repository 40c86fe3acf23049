"""Crowds of all kinds, by name, and states of them."""

import numpy as np

from exo_envs import State
from exo_envs.domains.crowd import CrowdMDP, CrowdParameters

CROWDS = {
    "default": {},
    "fixed": {"goal": "fixed"},
    "odd": {"grid_size": 5, "num_agents": 4, "num_porters": 3, "num_objects": 4, "num_tables": 3},
    "restless": {"stand_still": 0, "pick_up": 1},
    "strolling": {"stroll": 1.0},
    "sometimes": {"stroll": 0.4, "goal": "fixed"},
    "frozen": {"stand_still": 1.0, "pick_up": 0.0},
    "nobody": {"num_agents": 0, "num_porters": 0, "num_objects": 2, "goal": "fixed"},
}


def crowd(name):
    return CrowdMDP(CrowdParameters(**CROWDS[name]))


def some_states(mdp, size, rng):
    """Half of them as they occur, half of them anything, the robot anywhere."""
    reached = mdp.sample_initial(size // 2, rng).exogenous
    for _ in range(7):
        reached = mdp.sample_exogenous(reached, rng)
    anything = mdp.sample_uniform(size, rng)
    exogenous = np.concatenate([reached, anything.exogenous[size // 2 :]])
    return State(anything.endogenous, exogenous)


def by_name(mdp, x):
    return dict(zip(mdp.exogenous_names, x.tolist(), strict=True))


class FixedNoise:
    """Stands in for a generator: hands out the given uniform numbers, once."""

    def __init__(self, uniforms):
        self.uniforms = uniforms

    def random(self, shape):
        uniforms, self.uniforms = self.uniforms, None
        assert uniforms.shape == tuple(shape)
        return uniforms


def assert_consistent(mdp, x):
    """The rules of reachable states, over a batch (lanes, m)."""
    agents = x[:, mdp.agent_slice].reshape(len(x), -1, 3)
    cells, _, carrying = np.moveaxis(agents, -1, 0)
    occupied = np.zeros((len(x), mdp.floor.num_cells), dtype=np.int64)
    np.put_along_axis(occupied, cells, 1, axis=1)
    assert (x[:, mdp.occupancy_slice] == occupied).all()
    place, is_goal = mdp.decode_object(x[:, mdp.object_slice])
    porters = slice(0, mdp.num_porters)
    in_hand = place == mdp.parameters.num_tables
    assert (in_hand[:, porters] == carrying[:, porters]).all()
    assert not in_hand[:, mdp.num_porters :].any()
    assert not carrying[:, mdp.num_porters :].any()
    assert (is_goal.sum(axis=1) == 1).all()
