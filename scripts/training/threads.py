"""What makes torch fast on few cores: a thread for each part of a batch, and kept memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import torch

Map = Callable[..., Iterable[Any]]


@contextmanager
def side_by_side(threads: int) -> Iterator[Map]:
    """A map in threads, while torch uses none of its own: they wait for each other all the time."""
    before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    torch.set_num_threads(1)
    if products_are_exact():
        torch.set_float32_matmul_precision("medium")
    try:
        with ThreadPoolExecutor(max(1, threads - 1), "part", torch.set_num_threads, (1,)) as pool:

            def in_parts(function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
                parts = [*zip(*arguments, strict=False)]
                futures = [pool.submit(function, *part) for part in parts[1:]]
                done = [function(*part) for part in parts[:1]]  # by a thread that is awake
                return done + [future.result() for future in futures]

            yield in_parts if threads > 1 else map
    finally:
        torch.set_num_threads(before[0])
        torch.set_float32_matmul_precision(before[1])


def products_are_exact() -> bool:
    """Whether medium precision still means float32.

    It makes torch take products from oneDNN, which on AMD is twice as fast as MKL. Only processors
    with matrix units for bfloat16 round to it.
    """
    found = getattr(torch.cpu, "get_capabilities", dict)()
    return found.get("architecture") == "x86_64" and not found.get("amx_bf16", True)


def keep_memory() -> None:
    """Keep what is freed, if the C library is GNU's.

    All minibatches need the same megabytes; to get new ones from the system takes a quarter of the
    time of an update.
    """
    trim_threshold, mmap_threshold = -1, -3  # as malloc.h numbers them
    with suppress(OSError, TypeError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(trim_threshold, 2**28)
        library.mallopt(mmap_threshold, 2**25)
