"""Processes that step copies of an environment."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.util import Finalize
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from gymnasium.vector.utils import CloudpickleWrapper
from numpy.typing import NDArray

from exo_envs.core.clock import tick
from exo_envs.core.errors import ExoError
from exo_envs.core.mdp import BoolArray, FloatArray

#: Rows that a process is handed at a time.
CHUNK = 16
#: Seconds between two looks at the time limit while processes are busy.
INTERVAL = 0.1

Rows: TypeAlias = NDArray[Any]  # (B, k + m)


class Steps(NamedTuple):
    """What a batch of single steps gave."""

    following: Rows  # (B, k + m), in range except where the step ended the episode
    reward: FloatArray  # (B,)
    terminated: BoolArray  # (B,)
    reward_terms: FloatArray  # (B, terms), 0 if the environment does not tell them


class WorkerError(ExoError, RuntimeError):
    """A process that stepped a copy of the environment came to an end."""


class Workers:
    """Processes that each hold something with ``step_all`` of rows, made by one function.

    They are started when they are first asked, and again after :meth:`close`. Copies, and what is
    unpickled, start their own.

    Args:
        count: the number of processes.
        make: makes what a process holds; any function, it is sent by ``cloudpickle``.
    """

    def __init__(self, count: int, make: Callable[[], Any]) -> None:
        self.count = count
        self._make = make
        self._pool: ProcessPoolExecutor | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"count": self.count, "make": CloudpickleWrapper(self._make)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["count"], state["make"].fn)  # type: ignore[misc]

    def ask(self, arrays: tuple[NDArray[Any], ...]) -> list[Any]:
        """What ``step_all`` gives for arrays of equal length, in chunks of their rows, in order.

        Raises:
            WorkerError: a process ended before it answered.
        """
        rows = len(arrays[0])
        size = min(CHUNK, -(-rows // self.count))
        chunks = [tuple(array[i : i + size] for array in arrays) for i in range(0, rows, size)]
        try:
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    self.count,
                    multiprocessing.get_context("spawn"),
                    initializer=_begin,
                    initargs=(CloudpickleWrapper(self._make),),
                )
            asked = [self._pool.submit(_step_all, *chunk) for chunk in chunks]
            pending: set[Future[Any]] = set(asked)
            while pending:
                _, pending = wait(pending, timeout=INTERVAL)
                tick()
            return [future.result() for future in asked]
        except BrokenProcessPool as error:
            self.close()
            raise WorkerError(
                "a process with a copy of the environment ended before it answered: was it killed, "
                "is memory short, or is the script that starts it without "
                '`if __name__ == "__main__":`?'
            ) from error
        except BaseException:
            self.close()  # what was asked already is not waited for
            raise

    def close(self) -> None:
        """End the processes, once they have taken the steps that they were handed."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = None


# --- in a process with a copy ---------------------------------------------------------------------

_copy: dict[str, Any] = {}


def _begin(make: CloudpickleWrapper) -> None:
    _copy["make"] = make.fn


def _step_all(*arrays: NDArray[Any]) -> Any:
    """Steps of the copy, which is made when it is first asked: so its errors are raised there."""
    if "env" not in _copy:
        _copy["env"] = _copy["make"]()
        Finalize(None, _copy["env"].close, exitpriority=0)
    return _copy["env"].step_all(*(np.array(array) for array in arrays))
