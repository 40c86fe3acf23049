"""The infos of lanes, which are made when they are read."""

import copy
import pickle

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv, VectorWrapper
from models import CounterMDP

from exo_envs import ExoEnv, ExoVectorEnv
from wrappers import FlatVectorObservation, MaskedVectorObservation

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.vec_env import DummyVecEnv

from wrappers.sb3 import SB3VecEnv
from wrappers.sb3.vec_env import LaneInfos, lane_infos

MADE = [{"a": 1}, {"a": 2}, {"a": 3}]


def unread():
    return LaneInfos(3, lambda: copy.deepcopy(MADE))


READERS = {
    "index": lambda infos: infos[1],
    "last": lambda infos: infos[-1],
    "slice": lambda infos: infos[:],
    "loop": lambda infos: [info["a"] for info in infos],
    "backwards": lambda infos: [*reversed(infos)],
    "length": len,
    "truth": bool,
    "list": list,
    "tuple": tuple,
    "zip": lambda infos: [*zip(infos, range(3), strict=True)],
    "membership": lambda infos: {"a": 2} in infos,
    "equal": lambda infos: infos == MADE,
    "different": lambda infos: infos != MADE,
    "extending a list": lambda infos: (before := [0]).extend(infos) or before,
    "text": repr,
    "where": lambda infos: infos.index({"a": 2}),
    "count": lambda infos: infos.count({"a": 2}),
    "shallow copy": copy.copy,
    "deep copy": copy.deepcopy,
    "pickle": lambda infos: pickle.loads(pickle.dumps(infos)),
    "array": lambda infos: np.array(infos).tolist(),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_whoever_reads_them_finds_what_a_list_has(read):
    expected, infos = read(MADE), unread()
    for _ in range(2):
        found = read(infos)
        assert (found, type(found)) == (expected, type(expected))


def test_they_are_made_once_and_only_when_read():
    calls = []
    infos = LaneInfos(2, lambda: calls.append(1) or [{}, {}])
    assert len(infos) == 2
    assert not calls
    infos[0]["new"] = 1  # as monitors and callbacks do
    assert list(infos) == [{"new": 1}, {}]
    assert len(calls) == 1


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


def test_steps_that_are_read_later_say_what_they_said_at_once():
    """Even after more steps and a reset, and also about lanes that ended."""
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


class OwnStep(ExoVectorEnv):
    """A kind of ours that may do anything with its infos."""

    def step(self, actions):
        return super().step(actions)


def test_only_what_makes_new_infos_is_read_later():
    lanes = ExoVectorEnv(CounterMDP(), 2, autoreset_mode="SameStep", reward_terms=True)
    masked = MaskedVectorObservation(lanes, ["die"])
    others = SyncVectorEnv([lambda: ExoEnv(CounterMDP())] * 2, autoreset_mode="SameStep")
    for env, later in (
        (lanes, True),
        (FlatVectorObservation(masked), True),
        (others, False),
        (Reusing(lanes), False),
        (OwnStep(CounterMDP(), 2, autoreset_mode="SameStep"), False),
    ):
        venv = SB3VecEnv(env)
        venv.reset()
        infos = venv.step([0, 0])[3]
        assert isinstance(infos, LaneInfos) is later


def test_what_no_wanted_lane_has_is_not_even_looked_at():
    class Watched(dict):
        def __getitem__(self, key):
            assert key != "terms"
            return super().__getitem__(key)

    infos = Watched(terms=np.ones(3), _terms=np.array([True, False, True]), final_obs=None)
    assert lane_infos(infos, 3, np.array([1]), without=("final_obs",)) == [{}]


def test_copies_of_dummy_vec_envs_infos_are_equal():
    ours = SB3VecEnv(ExoVectorEnv(CounterMDP(), 2, autoreset_mode="SameStep", reward_terms=True))
    theirs = DummyVecEnv([lambda: ExoEnv(CounterMDP())] * 2)
    ours.reset()
    theirs.reset()
    found, expected = ours.step([1, 2])[3], theirs.step([1, 2])[3]
    for copied in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found), found[:]):
        assert type(copied) is type(expected) is list
        for info, other in zip(copied, expected, strict=True):
            assert info.keys() == other.keys()
            assert info["reward_terms"].tolist() == other["reward_terms"].tolist()
