"""The infos of lanes."""

import copy

import numpy as np
import pytest
from gymnasium.vector import VectorWrapper
from models import CounterMDP

from exo_envs import ExoVectorEnv

pytest.importorskip("stable_baselines3")

from wrappers.sb3 import SB3VecEnv
from wrappers.sb3.vec_env import lane_infos


def test_dictionaries_of_lanes_are_their_own():
    venv = SB3VecEnv(ExoVectorEnv(CounterMDP(), 3, autoreset_mode="SameStep", reward_terms=True))
    venv.reset()
    first, second = venv.step([0, 1, 2])[3], venv.step([0, 1, 2])[3]
    assert all(type(info) is dict for info in first)
    first[0]["mine"] = True
    first[0]["reward_terms"][:] = 77.0
    assert "mine" not in first[1]
    assert (first[1]["reward_terms"] != 77.0).all()
    assert all("mine" not in info and (info["reward_terms"] != 77.0).all() for info in second)


def test_infos_stay_as_they_are_while_the_lanes_go_on():
    """Also about lanes that ended."""
    venvs = [
        SB3VecEnv(ExoVectorEnv(CounterMDP(), 4, autoreset_mode="SameStep", reward_terms=True))
        for _ in range(2)
    ]
    rng = np.random.default_rng(0)
    at_once, later = [], []
    for venv in venvs:
        venv.reset()
    for actions in rng.integers(3, size=(40, 4)):
        at_once.append(copy.deepcopy(venvs[0].step(actions)[3]))
        later.append(venvs[1].step(actions)[3])
    venvs[1].reset()
    for one, other in zip(at_once, later, strict=True):
        assert len(one) == len(other) == 4
        for info, of_other in zip(one, other, strict=True):
            assert [*info] == [*of_other]
            assert info["reward_terms"].tolist() == of_other["reward_terms"].tolist()
            assert info["TimeLimit.truncated"] is of_other["TimeLimit.truncated"]
            last, of_last = info.get("terminal_observation"), of_other.get("terminal_observation")
            assert (last is None) == (of_last is None)
            if last is not None:
                assert all((last[key] == of_last[key]).all() for key in last)
    assert any("terminal_observation" in info for step in at_once for info in step)


class Reusing(VectorWrapper):
    """Writes the next infos over the last ones."""

    def __init__(self, env):
        super().__init__(env)
        self.infos = {"count": np.zeros(env.num_envs, dtype=int)}

    def step(self, actions):
        *step, infos = self.env.step(actions)
        self.infos.update(infos)
        self.infos["count"] += 1
        return (*step, self.infos)


def test_wrappers_of_others_may_write_over_their_infos():
    venv = SB3VecEnv(
        Reusing(ExoVectorEnv(CounterMDP(), 2, autoreset_mode="SameStep", reward_terms=True))
    )
    venv.reset()
    steps = [venv.step([0, 0])[3] for _ in range(3)]
    assert [[info["count"] for info in infos] for infos in steps] == [[1, 1], [2, 2], [3, 3]]


def test_what_no_wanted_lane_has_is_not_even_looked_at():
    class Watched(dict):
        def __getitem__(self, key):
            assert key != "terms"
            return super().__getitem__(key)

    infos = Watched(terms=np.ones(3), _terms=np.array([True, False, True]), final_obs=None)
    assert lane_infos(infos, 3, np.array([1]), without=("final_obs",)) == [{}]
