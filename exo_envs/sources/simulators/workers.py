"""Copies of a slow environment in other processes.

Every step is an episode of its own with a seed of its own, so results do not depend on which
process takes it.
"""

from __future__ import annotations

import multiprocessing
import weakref
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, cast

import numpy as np
from gymnasium.vector.utils import CloudpickleWrapper
from numpy.typing import NDArray

from exo_envs.core.errors import ExoError

#: Rows that a process is handed at a time: between them, time limits are looked at.
CHUNK = 16
#: Seconds that a process has to close its environment before it is ended.
PATIENCE = 5.0


class WorkerError(ExoError, RuntimeError):
    """A process that stepped a copy of the environment came to an end."""


class Workers:
    """Processes that each hold something with methods of rows, made by one function.

    They are started when they are first asked, and again after :meth:`close`. Copies, and what is
    unpickled, start their own.

    Args:
        count: the number of processes.
        make: makes what a process holds; any function, it is sent by ``cloudpickle``.
    """

    def __init__(self, count: int, make: Callable[[], Any]) -> None:
        self.count = count
        self._make = make
        self._processes: list[Any] = []
        self._pipes: list[Connection] = []
        self._finalizer: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the processes, which belong to this object."""
        return {"count": self.count, "make": CloudpickleWrapper(self._make)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Processes are started when they are asked."""
        self.__init__(state["count"], state["make"].fn)  # type: ignore[misc]

    def are_worth(self, num_rows: int) -> bool:
        """Whether so many rows are enough to hand out."""
        return num_rows >= 2 * self.count

    def ask(
        self,
        method: str,
        arrays: tuple[NDArray[Any], ...],
        tick: Callable[[], object] | None = None,
    ) -> list[Any]:
        """What ``method`` gives for the arrays, in chunks of their rows, in order.

        Args:
            method: of what the processes hold.
            arrays: of equal length.
            tick: is called whenever a chunk comes back; what it raises ends everything.

        Raises:
            WorkerError: a process ended before it answered.
        """
        self._start()
        rows = len(arrays[0])
        size = min(CHUNK, -(-rows // self.count))
        chunks = [tuple(array[i : i + size] for array in arrays) for i in range(0, rows, size)]
        answers: list[Any] = [None] * len(chunks)
        asked: dict[Connection, int] = {}
        waiting = iter(range(len(chunks)))

        def hand_out(pipe: Connection) -> None:
            index = next(waiting, None)
            if index is not None:
                self._send(pipe, (method, chunks[index]))
                asked[pipe] = index

        try:
            for pipe in self._pipes:
                hand_out(pipe)
            while asked:
                for ready in wait(list(asked)):
                    pipe = cast("Connection", ready)
                    index = asked.pop(pipe)
                    answers[index] = self._receive(pipe)
                    if tick is not None:
                        tick()
                    hand_out(pipe)
        except BaseException:
            self.close()  # what was asked already is not waited for
            raise
        return answers

    def close(self) -> None:
        """End the processes."""
        if self._finalizer is not None:
            self._finalizer()
        self._processes, self._pipes, self._finalizer = [], [], None

    def _start(self) -> None:
        if self._processes:
            return
        context = multiprocessing.get_context("spawn")
        made = CloudpickleWrapper(self._make)
        for number in range(self.count):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(theirs, made), name=f"environment-{number}", daemon=True
            )
            process.start()
            theirs.close()
            self._processes.append(process)
            self._pipes.append(ours)
        self._finalizer = weakref.finalize(self, _end, self._processes, self._pipes)

    def _send(self, pipe: Connection, message: Any) -> None:
        try:
            pipe.send(message)
        except (BrokenPipeError, ConnectionError) as error:
            raise self._ended(pipe) from error

    def _receive(self, pipe: Connection) -> Any:
        try:
            answer, error = pipe.recv()
        except (EOFError, ConnectionError) as broken:
            raise self._ended(pipe) from broken
        if error is not None:
            raise error
        return answer

    def _ended(self, pipe: Connection) -> WorkerError:
        process = self._processes[self._pipes.index(pipe)]
        process.join(PATIENCE)
        return WorkerError(
            f"process {process.pid} with a copy of the environment ended before it answered "
            f"(exit code {process.exitcode}): was it killed, is memory short, or is the script "
            'that starts it without `if __name__ == "__main__":`?'
        )


def _end(processes: list[Any], pipes: list[Connection]) -> None:
    for pipe in pipes:
        with suppress(OSError, ValueError):  # it has ended already
            pipe.send(None)
    for process, pipe in zip(processes, pipes, strict=True):
        process.join(PATIENCE)
        if process.is_alive():
            process.kill()
            process.join()
        pipe.close()
        process.close()


def _serve(pipe: Connection, make: CloudpickleWrapper) -> None:
    """What a process does: answer until it is told to stop, or nobody is there any more."""
    held, failure = None, None
    try:
        held = make.fn()
    except Exception as error:  # noqa: BLE001 - is raised where the process was asked
        failure = error
    try:
        while (message := pipe.recv()) is not None:
            method, arrays = message
            if failure is not None:
                _answer(pipe, None, failure)
                continue
            try:
                answer = getattr(held, method)(*(np.array(array) for array in arrays))
            except Exception as error:  # noqa: BLE001 - is raised where the process was asked
                _answer(pipe, None, error)
            else:
                _answer(pipe, answer, None)
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        pass
    finally:
        if held is not None:
            held.close()


def _answer(pipe: Connection, answer: Any, error: Exception | None) -> None:
    try:
        pipe.send((answer, error))
    except (TypeError, AttributeError, ValueError):  # it cannot be pickled
        pipe.send((None, RuntimeError(f"{type(error or answer).__name__}: {error or answer!r}")))
