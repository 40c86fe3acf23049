"""Copies of an environment in other processes: the same answers, and what if one ends."""

import multiprocessing
import os
import signal

import numpy as np
import pytest
from walks import Walk

from exo_envs import AdaptedMDP
from exo_envs.sources.simulators.workers import WorkerError


@pytest.fixture
def two():
    mdp = AdaptedMDP.from_env(Walk(), horizon=10, num_workers=2)
    yield mdp
    mdp.close()


def answers(mdp):
    rng = np.random.default_rng(0)
    state = mdp.sample_initial(40, rng)
    action = rng.integers(3, size=40)
    following = mdp.sample_next(state, action, np.random.default_rng(1))
    return [*following, mdp.reward(state, action)]


def test_processes_give_the_same_answers(two):
    one = AdaptedMDP.from_env(Walk(), horizon=10)
    assert two.num_workers == 2
    for own, other in zip(answers(one), answers(two), strict=True):
        np.testing.assert_array_equal(own, other)


def test_a_killed_process_is_said_and_others_are_started(two):
    before = answers(two)
    pids = children()
    assert len(pids) >= 2
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkerError, match="ended before it answered"):
        answers(two)
    for own, other in zip(before, answers(two), strict=True):
        np.testing.assert_array_equal(own, other)


def children():
    """The processes with copies that this one started, by multiprocessing's own list."""
    return [process.pid for process in multiprocessing.active_children()]
