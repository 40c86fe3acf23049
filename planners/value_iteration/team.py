"""Threads that share the pieces of a sweep.

The pieces are the same however many threads there are, and each writes to a place of its own, so
that a plan does not depend on the number of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")


class Team:
    """This thread and some others, for as long as a plan takes.

    Args:
        size: the number of threads; with one, nothing is started.
    """

    def __init__(self, size: int = 1) -> None:
        self.size = size
        self._others = ThreadPoolExecutor(size - 1) if size > 1 else None

    def __enter__(self) -> Team:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._others is not None:
            self._others.shutdown()

    def share(
        self,
        pieces: Iterable[Piece],
        work: Callable[[int, Piece], Result],
        tick: Callable[[], None],
    ) -> list[Result]:
        """The results of all pieces, in any order.

        Args:
            pieces: what there is to do.
            work: does a piece, given the number of the thread that it runs in.
            tick: is called before each piece that this thread does, and may raise.
        """
        left = deque(pieces)
        results: list[Result] = []

        def take(thread: int, tick: Callable[[], Any]) -> None:
            while True:
                try:
                    piece = left.popleft()
                except IndexError:  # another thread took the last one
                    return
                tick()
                results.append(work(thread, piece))

        others = []
        if self._others is not None and len(left) > 1:
            others = [self._others.submit(take, k, bool) for k in range(1, self.size)]
        try:
            take(0, tick)
        finally:
            left.clear()  # after an error the others stop at their next piece
            for other in others:
                other.exception()  # waits
        for other in others:
            other.result()
        return results
