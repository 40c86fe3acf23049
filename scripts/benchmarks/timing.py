"""How benchmarks measure: races between contenders, seconds, and memory."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")

#: Runs for about that many seconds, and returns how many steps it made in each.
Contender = Callable[[float], float]


def race(contenders: dict[str, Contender], seconds: float, rounds: int) -> dict[str, float]:
    """Steps per second of each contender: the best of several rounds, taken in turns."""
    for run in contenders.values():
        run(0.05)  # compilation, caches
    gc.collect()
    gc.freeze()  # or each contender pays for the garbage collector's walks through the others
    rates = dict.fromkeys(contenders, 0.0)
    for _ in range(rounds):
        for name, run in contenders.items():
            rates[name] = max(rates[name], run(seconds))
    gc.unfreeze()
    return rates


def random_steps(env: Any, num_actions: int) -> Contender:
    """Random actions in all lanes of a vector environment, Gymnasium's or SB3's, after a reset."""
    actions = np.random.default_rng(0).integers(num_actions, size=(16, env.num_envs))

    def run(seconds: float) -> float:
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            env.step(actions[steps % len(actions)])
            steps += 1
        return steps * env.num_envs / (time.perf_counter() - start)

    return run


def timed(action: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds and result."""
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def peak_memory(action: Callable[[], object]) -> int:
    """Bytes of arrays and objects at the peak."""
    tracemalloc.start()
    action()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most
