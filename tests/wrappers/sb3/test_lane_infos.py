"""The infos of lanes, which are made when they are read."""

import copy
import operator
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
from wrappers.sb3.lane_infos import LaneInfos, lane_infos

MADE = [{"a": 1}, {"a": 2}, {"a": 3}]


def unread():
    return LaneInfos.unread(lambda: copy.deepcopy(MADE))


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
    "star": lambda infos: [*infos],
    "unpacked": lambda infos: max(*infos, key=id)["a"] > 0,
    "enumerate": lambda infos: [*enumerate(infos)],
    "zip": lambda infos: [*zip(infos, range(3), strict=True)],
    "membership": lambda infos: {"a": 2} in infos,
    "equal": lambda infos: infos == MADE,
    "equal, the other way": lambda infos: operator.eq(MADE, infos),
    "different": lambda infos: infos != MADE,
    "added": lambda infos: operator.add(infos, [0]),
    "added to a list": lambda infos: operator.add([0], infos),
    "extending a list": lambda infos: (before := [0]).extend(infos) or before,
    "assigned to a slice": lambda infos: (before := [0]).__setitem__(slice(1), infos) or before,
    "times": lambda infos: infos * 2,
    "times, the other way": lambda infos: 2 * infos,
    "text": repr,
    "where": lambda infos: infos.index({"a": 2}),
    "count": lambda infos: infos.count({"a": 2}),
    "copy": lambda infos: infos.copy(),
    "shallow copy": copy.copy,
    "deep copy": copy.deepcopy,
    "pickle": lambda infos: pickle.loads(pickle.dumps(infos)),
    "array": lambda infos: np.array(infos).tolist(),
    "type called": lambda infos: type(infos)(infos),
    "pop": lambda infos: (infos.pop(), infos),
    "append": lambda infos: infos.append(0) or infos,
    "insert": lambda infos: infos.insert(1, 0) or infos,
    "set": lambda infos: infos.__setitem__(1, 0) or infos,
    "delete": lambda infos: infos.__delitem__(1) or infos,
    "reverse": lambda infos: infos.reverse() or infos,
    "sort": lambda infos: infos.sort(key=lambda info: -info["a"]) or infos,
    "clear": lambda infos: infos.clear() or infos,
    "in place": lambda infos: infos.__iadd__([0]),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_whoever_reads_or_changes_them_first_finds_a_list(read):
    expected = read(copy.deepcopy(MADE))
    infos = unread()
    found = read(infos)
    assert found == expected
    if type(expected) is list and found is not infos:
        assert type(found) is list
    again = read(infos) if found is not infos and not isinstance(found, tuple) else None
    assert again is None or again == expected  # and no less the second time


def test_they_are_made_once_and_only_when_read():
    calls = []
    infos = LaneInfos.unread(lambda: calls.append(1) or [{}, {}])
    assert isinstance(infos, list)
    assert not calls
    infos[0]["new"] = 1  # as monitors and callbacks do
    assert infos == [{"new": 1}, {}]
    assert len(calls) == 1


def test_two_that_were_not_read_are_compared():
    assert unread() == unread() == MADE
    assert unread() + unread() == MADE + MADE
    assert LaneInfos.unread(list) != unread()


def test_an_error_may_be_tried_again():
    answers = iter([MemoryError(), MADE])

    def make():
        answer = next(answers)
        if isinstance(answer, MemoryError):
            raise answer
        return answer

    infos = LaneInfos.unread(make)
    with pytest.raises(MemoryError):
        len(infos)
    assert infos == MADE


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
        assert isinstance(infos, list)


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
