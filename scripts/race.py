"""How benchmarks are timed."""

from __future__ import annotations

import gc
from collections.abc import Callable


def race(
    contenders: dict[str, Callable[[float], float]], seconds: float, rounds: int
) -> dict[str, float]:
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
