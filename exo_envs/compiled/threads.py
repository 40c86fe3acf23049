"""Threads that share long loops over lanes.

The kernels release Python's lock, and each part of the work writes to lanes of its own. So what
comes out does not depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise
from typing import TypeVar

from numba import get_num_threads

Result = TypeVar("Result")


def in_parts(
    work: Callable[[int, int], Result], size: int, *, ahead: int = 0, least: int = 1
) -> list[Result]:
    """Call ``work(first, last)`` for parts of ``range(size)``, one for each thread, at once.

    There are as many threads as Numba may use (``NUMBA_NUM_THREADS``). The one that calls takes a
    part, too, which is larger by ``ahead``: for what it does while the others wake up. No part is
    smaller than ``least`` if there are two.

    Returns:
        What the calls returned, in the order of the parts.
    """
    threads = max(1, min(get_num_threads(), size // least))
    share = max(size - ahead, 0) // threads
    ends = [size - share * others for others in reversed(range(threads))]
    others = [_pool(threads - 1).submit(work, first, last) for first, last in pairwise(ends)]
    try:
        done = work(0, ends[0])
    finally:
        wait(others)  # an interrupt must not leave threads behind that write to our arrays
    return [done, *(other.result() for other in others)]


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="exo_envs")


if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
