"""Infos that are worked out when somebody reads them."""

import copy
import pickle
from threading import Event, Thread

import numpy as np
import pytest

from exo_envs import State
from exo_envs.domains.grid import GridMDP
from exo_envs.shells.infos import LazyInfos, Paid


class TestLazyInfos:
    def make(self):
        made = []

        def work():
            made.append(1)
            return np.ones(2)

        return LazyInfos.of({"reward_terms": work}, {"other": 3}), made

    def test_its_type_makes_plain_dictionaries(self):
        infos, _ = self.make()
        made = type(infos)(a=1)
        assert type(made) is dict
        assert made == {"a": 1}

    def test_an_error_may_be_tried_again(self):
        answers = iter([MemoryError, 2])

        def work():
            answer = next(answers)
            if answer is MemoryError:
                raise answer
            return answer

        infos = LazyInfos.of({"r": work}, {})
        with pytest.raises(MemoryError):
            infos["r"]
        assert infos["r"] == 2

    def test_two_that_wait_are_compared(self):
        one, other = (LazyInfos.of({"r": lambda: 2}, {}) for _ in range(2))
        assert one == other
        one, other = (LazyInfos.of({"r": lambda k=k: k}, {}) for k in range(2))
        assert one != other
        assert one | LazyInfos.of({"s": lambda: 5}, {}) == {"r": 0, "s": 5}

    def test_it_is_a_dictionary_that_waits(self):
        infos, made = self.make()
        assert "reward_terms" in infos
        assert len(infos) == 2
        assert set(infos.keys()) == {"other", "reward_terms"}
        infos["episode"] = 1
        del infos["other"]
        assert isinstance(infos, dict)
        assert not made

    def test_what_is_known_is_read_without_the_rest(self):
        infos, made = self.make()
        assert infos["other"] == infos.get("other") == infos.setdefault("other", 4) == 3
        assert [key for key in infos if infos.get("_" + key) is None] == ["reward_terms", "other"]
        assert infos.pop("other") == 3
        with pytest.raises(KeyError, match="other"):
            infos["other"]
        assert not made
        with pytest.raises(TypeError, match="argument"):
            infos.get()

    @pytest.mark.parametrize(
        "read",
        [
            lambda infos: infos["reward_terms"],
            lambda infos: infos.get("reward_terms"),
            lambda infos: dict(infos)["reward_terms"],
            lambda infos: {**infos}["reward_terms"],
            lambda infos: dict(infos.items())["reward_terms"],
            lambda infos: next(iter(infos.values())),
            lambda infos: infos.pop("reward_terms"),
            lambda infos: (infos.popitem(), infos)[1].popitem()[1],
            lambda infos: infos.setdefault("reward_terms", 0),
            lambda infos: infos.copy()["reward_terms"],
            lambda infos: (infos | {})["reward_terms"],
            lambda infos: ({} | infos)["reward_terms"],
            lambda infos: copy.copy(infos)["reward_terms"],
            lambda infos: copy.deepcopy(infos)["reward_terms"],
            lambda infos: pickle.loads(pickle.dumps(infos))["reward_terms"],
            lambda infos: next(infos[key] for key in infos if key != "other"),
        ],
    )
    def test_whoever_reads_it_gets_what_is_there(self, read):
        infos, made = self.make()
        assert read(infos).tolist() == [1.0, 1.0]
        assert made == [1]
        assert infos.get("other") in (3, None)
        assert made == [1]

    def test_what_is_written_stays(self):
        infos, made = self.make()
        infos["reward_terms"] = 7
        assert infos["reward_terms"] == 7
        assert infos == {"other": 3, "reward_terms": 7}
        assert repr(infos) == "{'reward_terms': 7, 'other': 3}"
        infos, made = self.make()
        infos.clear()
        assert infos == {}
        assert not made
        update = {"a": 1}
        infos, made = self.make()
        update.update(infos)
        assert update["reward_terms"].tolist() == [1.0, 1.0]


def test_who_works_them_out_has_the_state_for_himself():
    """A thread reads infos of a state that another one, which steps, wants to write to."""
    started, go_on, written = Event(), Event(), Event()

    class Slow(GridMDP):
        def reward_terms(self, state, action):
            started.set()
            go_on.wait(10)
            return super().reward_terms(state, action)

    mdp = Slow()
    state = State(np.zeros((1, 1), int), np.array([[2, 0, 1, 0, 1]]))
    paid = Paid(mdp, state, np.zeros(1, int))

    def overwrite():
        paid.work_out()
        written.set()

    threads = [Thread(target=paid.work_out), Thread(target=overwrite)]
    threads[0].start()
    assert started.wait(10)
    threads[1].start()
    assert not written.wait(0.05)
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert written.is_set()
