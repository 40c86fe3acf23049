"""Clocks: what uses up a time limit, and what does not."""

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from compiled import COMPILING, slow_to_compile
from numba.core import event

from exo_envs.core.clock import OutOfTimeError, check_time_limit
from planners import Clock


def test_a_clock_stands_still_while_functions_are_compiled():
    _, function = slow_to_compile()
    clock, wall = Clock(0.25), Clock(None, wall=True)
    function(1)
    assert wall.seconds() > 2 * COMPILING
    clock.tick()
    assert 0 <= clock.seconds() < 0.25  # below zero if nested functions counted twice
    assert clock.left() > 0
    time.sleep(0.25)
    with pytest.raises(OutOfTimeError):
        clock.tick()


def test_reading_the_cache_takes_no_time_either():
    """The lock of the compiler is held meanwhile, and nothing is compiled."""
    clock = Clock(None)
    with event.trigger_event("numba:compiler_lock"):
        time.sleep(0.1)
    assert clock.seconds() < 0.1


def test_a_thread_that_waits_for_the_compiler_does_not_lose_time():
    function, _ = slow_to_compile()

    def call(_):
        clock, wall = Clock(None), Clock(None, wall=True)
        function(1)
        return clock.seconds(), wall.seconds()

    with ThreadPoolExecutor(2) as threads:
        for seconds, on_the_wall in threads.map(call, range(2)):
            assert seconds < COMPILING < on_the_wall


def test_what_other_threads_compile_is_no_matter():
    function, _ = slow_to_compile()
    clock = Clock(None)
    other = threading.Thread(target=function, args=(1,))
    other.start()
    other.join()
    assert clock.seconds() > COMPILING
    with ThreadPoolExecutor(1) as threads:  # the clock is that of the thread which made it
        assert threads.submit(clock.seconds).result() == pytest.approx(clock.seconds(), abs=0.1)


def test_an_interrupt_while_waiting_for_the_compiler_does_not_stop_clocks():
    """Numba does not say that the waiting has ended then."""
    event.start_event("numba:compiler_lock")
    clock = Clock(None)
    time.sleep(0.1)
    assert clock.seconds() >= 0.1
    function, _ = slow_to_compile()
    function(1)
    assert 0.1 <= clock.seconds() < 0.1 + COMPILING


def test_a_clock_above_stops_those_below():
    outer = Clock(0.1)
    with outer.above():
        inner, unlimited = Clock(1000), Clock(None)
    apart = Clock(1000)
    assert inner.left() <= 0.1
    assert unlimited.left() <= 0.1
    assert apart.left() > 0.1
    time.sleep(0.1)
    for clock in (inner, unlimited):
        with pytest.raises(OutOfTimeError):
            clock.tick()
    apart.tick()


def test_a_wall_clock_above_also_stops_after_compiling():
    """What is given to a planner does not count compiling; what learning may take does."""
    function, _ = slow_to_compile()
    with Clock(0.5 * COMPILING, wall=True).above():
        clock = Clock(1000)
        function(1)
        assert clock.seconds() < COMPILING
        with pytest.raises(OutOfTimeError):
            clock.tick()


def test_a_clock_above_is_told_what_goes_on():
    told = []
    with Clock(None, watch=lambda doing: told.append(doing())).above():
        Clock(1000).tick(lambda: "sweeping")
        Clock(1000).tick()
    Clock(1000).tick(lambda: "alone")
    assert told == ["sweeping", ""]


def test_without_a_limit_time_is_never_up():
    for limit in (None, math.inf):
        clock = Clock(limit)
        clock.tick()
        assert clock.left() is None


@pytest.mark.parametrize("limit", [None, 0, 1, 2.5, math.inf, np.float32(0.5), np.int64(3)])
def test_numbers_of_seconds(limit):
    check_time_limit("time_limit", limit)
    Clock(limit)


@pytest.mark.parametrize("limit", ["60", True, [1], np.array([1.0]), 1j, object()])
def test_what_is_no_number_is_no_limit(limit):
    with pytest.raises(TypeError, match="planning_time_limit is a number of seconds or None, not"):
        check_time_limit("planning_time_limit", limit)


@pytest.mark.parametrize("limit", [-1, -math.inf, math.nan, np.float32("nan")])
def test_limits_that_make_no_sense(limit):
    with pytest.raises(ValueError, match="time_limit is a number of seconds, at least 0, or None"):
        Clock(limit)


def test_a_limit_may_have_to_be_positive():
    with pytest.raises(ValueError, match="time_limit is a number of seconds, more than 0"):
        check_time_limit("time_limit", 0, positive=True)
