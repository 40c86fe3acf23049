"""What goes on, for who waits: a line that moves on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from typing_extensions import Self

from planners.core.planner import PlanCutShortWarning
from wrappers.cli.console import columns, wrap, write
from wrappers.fitting.history import Progress, Record
from wrappers.fitting.session import LearningStoppedWarning

BAR = 20  # characters
REFRESH = 0.2  # seconds
WIPE = "\r\x1b[K"
#: Without a terminal: seconds without a line after which there is one, at first and at most.
PATIENCE, MOST_PATIENCE = 5.0, 60.0
#: The time before each line has so many characters.
MARGIN = 11
#: Libraries whose warnings are for who writes programs, not for who runs them.
CHATTER = r"(gymnasium|numba|pkg_resources|pygame|torch|tensorboard|stable_baselines3)(\.|$)"


class ProgressBar:
    """A learner's callback that tells what goes on.

    On a terminal it is one line that moves, also while nothing is reported: a compiler at work
    reports nothing. Elsewhere it is a line for each stage, and now and then one that says that it
    still goes on. Steps leave a line in either case.

    Args:
        describe: a line about a step, or an empty one.
        stream: where to write; standard error by default, so that results can be piped.
        hidden: write nothing but warnings.
    """

    def __init__(
        self,
        describe: Callable[[Record], str] = lambda _: "",
        stream: TextIO | None = None,
        *,
        hidden: bool = False,
    ) -> None:
        self._describe = describe
        self._stream = sys.stderr if stream is None else stream
        self._hidden = hidden
        dumb = os.environ.get("TERM") == "dumb"
        self._interactive = self._stream.isatty() and not dumb and not hidden
        self._progress = Progress("starting", 0.0)
        self._start = self._last = time.perf_counter()
        self._patience = PATIENCE
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    @property
    def seconds(self) -> float:
        """Since the bar was made."""
        return time.perf_counter() - self._start

    def __enter__(self) -> Self:
        if not self._hidden:
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        if not self._hidden:
            self._ticker.join()
        if self._interactive:
            self._write(WIPE)

    def __call__(self, progress: Progress) -> None:
        """Be told."""
        if progress.record is not None:
            if line := self._describe(progress.record):
                self.log(line)
            return
        new = progress.stage != self._progress.stage
        self._progress = progress
        if new:
            self._patience = PATIENCE
            if not self._interactive:
                self.log(f"{progress.stage} ...")

    def stage(self, stage: str) -> None:
        """Say what is done now."""
        self(Progress(stage, self.seconds))

    def log(self, line: str) -> None:
        """Leave a line, with the time before it."""
        if not self._hidden:
            told = wrap(line, indent=MARGIN)
            told[0] = f"{self.seconds:7.1f} s  {told[0].lstrip()}"
            self._leave(told)

    def warn(self, message: str) -> None:
        """Leave a line without the time, also if the bar is hidden."""
        self._leave(wrap(f"warning: {message}", hanging=2))

    def _leave(self, lines: list[str]) -> None:
        with self._lock:
            self._last = time.perf_counter()
            if self._interactive:
                lines = [f"{WIPE}{lines[0]}", *lines[1:]]
            write(*lines, stream=self._stream)

    def _tick(self) -> None:
        with suppress(OSError):  # nobody reads any more
            while not self._end.wait(REFRESH):
                if self._interactive:
                    self._write(f"{WIPE}{self._line()}")
                elif time.perf_counter() - self._last > self._patience:
                    self._patience = min(2 * self._patience, MOST_PATIENCE)
                    detail = self._progress.detail or "still at it"
                    self.log(f"{self._progress.stage}{self._count()}: {detail}")

    def _count(self) -> str:
        done, total = self._progress.done, self._progress.total
        return f" {done}/{total}" if total and done else ""

    def _line(self) -> str:
        done, total = self._progress.done, self._progress.total
        if total and done:
            full = BAR * min(done, total) // total
            bar = "#" * full + "." * (BAR - full)
        else:  # a block that goes to and fro
            place = int(self.seconds / REFRESH) % (2 * BAR - 6)
            place = min(place, 2 * BAR - 6 - place)
            bar = "." * place + "###" + "." * (BAR - 3 - place)
        line = f"{self.seconds:7.1f} s  [{bar}] {self._progress.stage}{self._count()}"
        line += f": {self._progress.detail}" if self._progress.detail else ""
        return line[: columns() - 1]  # a line that wraps cannot be wiped

    def _write(self, text: str) -> None:
        with self._lock:
            self._stream.write(text)
            self._stream.flush()


@contextmanager
def plain_warnings(show: Callable[[str], object]) -> Iterator[None]:
    """Within it, a warning is a sentence, and libraries do not chatter.

    That learning was stopped or plans were cut short is for whoever shows the mask to say.
    """

    def show_one(message: Warning | str, *_: Any, **__: Any) -> None:
        show(str(message))

    with warnings.catch_warnings():
        warnings.filterwarnings("default", category=UserWarning)  # also for python -W error
        warnings.filterwarnings("ignore", module=CHATTER)
        for told in (LearningStoppedWarning, PlanCutShortWarning):
            warnings.filterwarnings("ignore", category=told)
        warnings.showwarning = show_one
        yield
