"""What the console shows: tables, and a bar for work that takes a while."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from wrappers import Progress, Record

BAR = 20  # characters
REFRESH = 0.2  # seconds
INTERRUPTED = 130  # what a shell reports of a script that was ended by Ctrl-C


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> None:
    """Columns as wide as they need to be; ``align`` has ``<`` or ``>`` for each.

    A column that is empty in all rows is left out.
    """
    columns = [k for k in range(len(header)) if any(row[k] for row in rows)]
    lines = [header, *rows]
    widths = [max(len(line[k]) for line in lines) for k in columns]
    for line in lines:
        cells = (f"{line[k]:{align[k]}{w}}" for k, w in zip(columns, widths, strict=True))
        print("  " + "  ".join(cells).rstrip())


class ProgressBar:
    """A learner's callback that tells on the console what goes on.

    On a terminal it is one line that moves, also while nothing is reported (a compiler at work
    reports nothing); elsewhere it is a line for each stage. Steps leave a line in either case.

    Args:
        describe: a line about a step, or an empty one.
        stream: where to write.
    """

    def __init__(self, describe: Callable[[Record], str], stream: TextIO | None = None) -> None:
        self._describe = describe
        self._stream = sys.stdout if stream is None else stream
        self._interactive = self._stream.isatty()
        self._progress = Progress("starting", 0.0)
        self._start = time.perf_counter()
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    @property
    def seconds(self) -> float:
        """Since the bar was made."""
        return time.perf_counter() - self._start

    def __enter__(self) -> ProgressBar:
        if self._interactive:
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        if self._interactive:
            self._ticker.join()
            self._write("\r\x1b[K")

    def __call__(self, progress: Progress) -> None:
        """Be told."""
        if progress.record is not None:
            if line := self._describe(progress.record):
                self.log(line)
            return
        new = progress.stage != self._progress.stage
        self._progress = progress
        if new and not self._interactive:
            self.log(f"{progress.stage} ...")

    def log(self, line: str) -> None:
        """Leave a line."""
        clear = "\r\x1b[K" if self._interactive else ""
        self._write(f"{clear}{self.seconds:7.1f} s  {line}\n")

    def _tick(self) -> None:
        while not self._end.wait(REFRESH):
            self._write(f"\r\x1b[K{self._line()}")

    def _line(self) -> str:
        done, total = self._progress.done, self._progress.total
        if total and done:
            full = BAR * min(done, total) // total
            bar, count = "#" * full + "." * (BAR - full), f" {done}/{total}"
        else:  # a block that goes to and fro
            place = int(self.seconds / REFRESH) % (2 * BAR - 6)
            place = min(place, 2 * BAR - 6 - place)
            bar, count = "." * place + "###" + "." * (BAR - 3 - place), ""
        line = f"{self.seconds:7.1f} s  [{bar}] {self._progress.stage}{count}"
        # A line that wraps cannot be wiped.
        return line[: shutil.get_terminal_size().columns - 1]

    def _write(self, text: str) -> None:
        with self._lock:
            self._stream.write(text)
            self._stream.flush()
