"""Threads that share sweeps: the same bytes, errors that arrive, clocks that stop them."""

from functools import partial

import numpy as np
import pytest
from factored import random_mdp
from numba import get_num_threads, set_num_threads

from exo_envs.core.clock import Clock, OutOfTimeError
from planners import ValueIteration
from planners.value_iteration import expectation, planner, sweeps
from planners.value_iteration.expectation import share


@pytest.mark.parametrize("threads", [1, 3])
def test_every_piece_is_done_once(threads):
    done = []
    for count in (0, 1, 50):
        done.clear()
        share([partial(done.append, piece) for piece in range(count)], threads)
        assert sorted(done) == list(range(count))


@pytest.mark.parametrize("threads", [1, 3])
def test_errors_of_any_thread_arrive(threads):
    done = []

    def fail(piece):
        done.append(piece)
        if piece == 7:
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        share([partial(fail, piece) for piece in range(20)], threads)
    done.clear()
    share([partial(fail, piece) for piece in range(5)], threads)
    assert len(done) == 5


def test_a_clock_that_runs_out_leaves_the_rest_undone():
    done = []

    with pytest.raises(OutOfTimeError), Clock(0.0).above():
        share([partial(done.append, 1)] * 10**6, 2)
    count = len(done)
    assert count < 10**6 - 1
    share([list] * 3, 2)
    assert len(done) == count  # the other thread had stopped


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_plans_are_the_same_bytes_with_any_number_of_threads(monkeypatch, dtype):
    monkeypatch.setattr(planner, "THREADED_STATES", 1)
    monkeypatch.setattr(sweeps, "PIECE_VALUES", 20)
    monkeypatch.setattr(expectation, "PIECE_MULTIPLICATIONS", 40)
    mdp = random_mdp(np.random.default_rng(3), sizes=(3, 2, 4), num_rules=2, num_terminal=1)
    before, plans = get_num_threads(), []
    try:
        for threads in (1, min(2, before)):
            set_num_threads(threads)
            plans.append(ValueIteration(dtype=dtype).plan(mdp))
    finally:
        set_num_threads(before)
    one, two = plans
    assert one.values.tobytes() == two.values.tobytes()
    assert one.policy.actions.tobytes() == two.policy.actions.tobytes()
    assert (one.residual, one.loss_bound) == (two.residual, two.loss_bound)
