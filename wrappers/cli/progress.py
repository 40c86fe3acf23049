"""Progress of a learner: a live line on a terminal, log lines elsewhere."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as LiveLine
from rich.text import Text
from typing_extensions import Self

from planners.core.planner import PlanCutShortWarning
from wrappers.cli.console import wrap
from wrappers.fitting.history import Progress, Record
from wrappers.fitting.session import LearningStoppedWarning

#: Without a terminal: seconds between two lines about one stage.
PATIENCE_SECONDS = 15.0
#: Libraries whose warnings are for their programmers, not for the users of a command.
CHATTER = r"(gymnasium|numba|pkg_resources|pygame|torch|tensorboard|stable_baselines3)(\.|$)"


class ProgressBar:
    """A learner's callback that shows progress.

    On a terminal it is one line that moves, also while nothing is reported: a compiler at work
    reports nothing. Elsewhere it is a line for each stage, and now and then one that says how far
    it is. Steps leave a line in either case.

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
        self._describe, self._hidden = describe, hidden
        self._console = Console(file=sys.stderr if stream is None else stream)
        self._is_live = self._console.is_interactive and not hidden
        self._live = LiveLine(
            TextColumn("{task.elapsed:7.1f} s "),
            BarColumn(20),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            refresh_per_second=5,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            disable=not self._is_live,
        )
        self._live.add_task("starting", total=None)
        self._stage = "starting"
        self._start = self._last = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since the bar was made."""
        return time.perf_counter() - self._start

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __call__(self, progress: Progress) -> None:
        """Show a progress report; learners call this."""
        if progress.record is not None:
            if line := self._describe(progress.record):
                self.log(line)
            return
        is_new, self._stage = progress.stage != self._stage, progress.stage
        is_counted = bool(progress.total and progress.done)
        told = progress.stage + (f" {progress.done}/{progress.total}" if is_counted else "")
        told += f": {progress.detail}" if progress.detail else ""
        (task,) = self._live.tasks
        task.description, task.completed = told, progress.done
        task.total = progress.total if is_counted else None  # without one the bar goes to and fro
        if not self._is_live and is_new:
            self.log(f"{progress.stage} ...")
        elif not self._is_live and time.perf_counter() - self._last > PATIENCE_SECONDS:
            self.log(told)

    def stage(self, stage: str) -> None:
        self(Progress(stage, self.seconds))

    def log(self, line: str) -> None:
        """Leave a line, with the time before it."""
        if not self._hidden:
            told = wrap(line, indent=11)  # the letters of the time
            self._leave([f"{self.seconds:7.1f} s  {told[0].lstrip()}", *told[1:]])

    def warn(self, message: str) -> None:
        """Leave a line without the time, also if the bar is hidden."""
        self._leave(wrap(f"warning: {message}", hanging=2))

    def _leave(self, lines: list[str]) -> None:
        self._last = time.perf_counter()
        self._console.print(Text("\n".join(lines)), soft_wrap=True)


@contextmanager
def plain_warnings(show: Callable[[str], object]) -> Iterator[None]:
    """Within it, a warning is a sentence, and libraries do not chatter.

    That learning was stopped or plans were cut short is for the command to say beside the mask.
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
