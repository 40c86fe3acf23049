"""Threads that share long loops over lanes.

The kernels release Python's lock, and each part of the work writes to lanes of its own. So what
comes out does not depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

from numba import get_num_threads

Result = TypeVar("Result")


def in_parts(
    kernel: Callable[..., Result], size: int, *args: Any, ahead: int = 0, least: int = 1
) -> list[Result]:
    """Call ``kernel(first, last, *args)`` for parts of ``range(size)``, see :func:`parts_of`.

    Returns:
        What the calls returned, in the order of the parts.
    """
    parts = parts_of(size, ahead=ahead, least=least)
    if len(parts) == 1:  # as mostly; waiting for nobody takes longer than a small kernel
        return [kernel(*parts[0], *args)]
    with others_at(kernel, parts, *args) as others:
        own = kernel(*parts[0], *args)
    return [own, *(other.result() for other in others)]


def parts_of(size: int, *, ahead: int = 0, least: int = 1) -> list[tuple[int, int]]:
    """Parts of ``range(size)``, one for each thread.

    There are as many threads as Numba may use (``NUMBA_NUM_THREADS``). The one that calls takes the
    first part, which is larger by ``ahead``: for what it does while the others wake up. No part is
    smaller than ``least`` if there are two.
    """
    threads = max(1, min(get_num_threads(), size // least))
    share = max(size - ahead, 0) // threads
    ends = [0, *(size - share * others for others in reversed(range(threads)))]
    return list(pairwise(ends))


@contextmanager
def others_at(
    work: Callable[..., Result], parts: Sequence[tuple[int, int]], *args: Any
) -> Iterator[list[Future[Result]]]:
    """Other threads do ``work(first, last, *args)`` for all parts but the first, meanwhile.

    They are waited for in any case: an interrupt must not leave threads behind that write to our
    arrays.
    """
    pool = _pool(len(parts) - 1) if len(parts) > 1 else None
    others = [pool.submit(work, *part, *args) for part in parts[1:]] if pool else []
    try:
        yield others
    finally:
        wait(others)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="exo_envs")


if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
