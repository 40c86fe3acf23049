"""The process that watches: it hands out cases, and notices who dies, hangs or fails."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reliability.reach import WATCHED
from reliability.registry import Entry
from reliability.verdict import Kind
from reliability.worker import MOST_CASES, Board

SCRIPT = Path(__file__).resolve().parents[1] / "fuzz.py"
#: Seconds that a worker may take to warm up; with cold caches it compiles everything first.
WARM_UP = 900.0
#: Seconds of work that a batch should be.
BATCH_SECONDS = 1.0
#: A worker with more bytes in memory is replaced.
MOST_RESIDENT = 3 * 2**30
#: Crashes and hangs of one entry that are confirmed alone; of more than these it is known.
CONFIRMED = 5
#: A case is slow, and does not hang, if alone it ends within this many times its limit.
PATIENCE = 3.0


@dataclass
class Tally:
    """What came of an entry's cases."""

    entry: Entry
    following: int = 0  # the number of the next case
    seconds: float = 0.0
    running: int = 0  # batches
    counts: Counter[Kind] = field(default_factory=Counter)
    rest: list[tuple[int, int]] = field(default_factory=list)  # of batches that were cut short

    @property
    def inputs(self) -> int:
        """Cases that were tried."""
        return sum(self.counts.values())

    @property
    def is_exhausted(self) -> bool:
        """Whether all cases of a catalogue were handed out."""
        all_taken = self.entry.cases is not None and self.following >= self.entry.cases
        return all_taken and not self.rest

    def take(self) -> tuple[int, int]:
        """The next batch: its first number, and how many."""
        if self.rest:
            return self.rest.pop()
        pace = self.seconds / self.inputs if self.inputs else 0.1
        count = max(1, min(MOST_CASES, int(BATCH_SECONDS / max(pace, 1e-6))))
        if self.entry.cases is not None:
            count = min(count, self.entry.cases - self.following)
        first, self.following = self.following, self.following + count
        return first, count

    def return_rest(self, first: int, count: int) -> None:
        """What is left of a batch that was cut short is tried later."""
        if count > 0:
            self.rest.append((first, count))


class Campaign:
    """All entries, tried for a while; the first cases of each, however busy the machine is.

    Args:
        entries: what to try.
        seed: of all cases.
        minutes: for how long; None if until ``inputs`` have been tried.
        inputs: how many at most; None if for ``minutes``.
        jobs: worker processes.
        say: is told what goes on.
    """

    def __init__(
        self,
        entries: list[Entry],
        *,
        seed: int = 0,
        minutes: float | None = None,
        inputs: int | None = None,
        jobs: int = 2,
        say: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.tallies = {one.name: Tally(one) for one in entries}
        self.failures: list[dict[str, Any]] = []
        self.reached: set[str] = set()
        self.seed, self.minutes, self.inputs, self.jobs = seed, minutes, inputs, jobs
        self.seconds = 0.0
        self._say = say
        self._lock = threading.Lock()
        self._confirmed: Counter[tuple[str, Kind]] = Counter()
        self._start = time.monotonic()
        self._stop = threading.Event()

    def run(self) -> None:
        """Try cases until the time is up."""
        with tempfile.TemporaryDirectory() as folder:
            first = _Worker(Path(folder), 0, self.seed)  # alone, since what it compiles is kept
            self._start = time.monotonic()
            threads = [
                threading.Thread(
                    target=self._serve, args=(Path(folder), k, first if k == 0 else None)
                )
                for k in range(self.jobs)
            ]
            for thread in threads:
                thread.start()
            try:
                for thread in threads:
                    while thread.is_alive():
                        thread.join(1.0)
            finally:
                self._stop.set()
                for thread in threads:
                    thread.join()
        self.seconds = time.monotonic() - self._start

    @property
    def total(self) -> int:
        """Cases that were tried."""
        return sum(tally.inputs for tally in self.tallies.values())

    def _next(self) -> tuple[Tally, int, int] | None:
        """The batch of the entry that has had the least of its share."""
        with self._lock:
            elapsed = time.monotonic() - self._start
            if self._stop.is_set() or (self.inputs and self.total >= self.inputs):
                return None
            open_ = [tally for tally in self.tallies.values() if not tally.is_exhausted]
            if self.minutes is not None and elapsed > 60 * self.minutes:
                open_ = [tally for tally in open_ if tally.following < WATCHED]
            if not open_:
                return None
            tally = min(
                open_, key=lambda t: (t.seconds + t.running * BATCH_SECONDS) / t.entry.weight
            )
            tally.running += 1
            return tally, *tally.take()

    def _serve(self, folder: Path, which: int, worker: _Worker | None) -> None:
        try:
            while task := self._next():
                worker = worker or _Worker(folder, which, self.seed)
                if not self._batch(worker, *task):
                    worker.close()
                    worker = None
        finally:
            if worker is not None:
                worker.close()

    def _batch(self, worker: _Worker, tally: Tally, first: int, count: int) -> bool:
        """Try a batch; whether the worker can go on."""
        entry, began = tally.entry, time.monotonic()
        done, fate = worker.try_cases(entry, first, count, lambda said: self._note(entry, said))
        with self._lock:
            tally.counts.update(done)
            self.reached.update(worker.reached)
        if fate is not None:
            self._attribute(entry, first + len(done), fate, worker)
            tally.return_rest(first + len(done) + 1, count - len(done) - 1)
        with self._lock:
            tally.running -= 1
            tally.seconds += time.monotonic() - began
        return fate is None and worker.resident < MOST_RESIDENT

    def _attribute(self, entry: Entry, number: int, fate: Kind, worker: _Worker) -> None:
        """A case took the worker with it: see whether it does so alone, and count it."""
        case = f"{entry.name}:{number}:{self.seed}"
        self._say(f"{fate.name.lower()} in {case}")
        remark = worker.last_words()
        kind = fate
        if self._confirmed[entry.name, fate] < CONFIRMED:
            alone, said = try_alone(case, PATIENCE * entry.limit)
            if alone is fate:
                self._confirmed[entry.name, fate] += 1
            elif fate is Kind.HANG:
                kind = alone  # it was only slow
            remark = f"{'alone too' if alone is fate else f'alone: {alone.name}'}; {said or remark}"
        with self._lock:
            self.tallies[entry.name].counts[kind] += 1
        if kind > Kind.CLEAR:
            self._note(entry, {"number": number, "kind": kind.name, "message": remark, "where": ""})

    def _note(self, entry: Entry, said: dict[str, Any]) -> None:
        case = f"{entry.name}:{said['number']}:{self.seed}"
        with self._lock:
            self.failures.append({"case": case, "entry": entry.name, **said})


class _Worker:
    """A worker process, seen from outside."""

    def __init__(self, folder: Path, which: int, seed: int) -> None:
        self._errors = (folder / f"errors-{which}-{time.monotonic_ns()}").open("w+b")
        path = folder / f"board-{which}-{time.monotonic_ns()}"
        self.board = Board(path, make=True)
        self.resident = 0
        self.reached: set[str] = set()
        command = [sys.executable, str(SCRIPT), "--worker", str(path), "--seed", str(seed)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )
        self._pending = b""
        answer = self._answer(time.monotonic() + WARM_UP)
        if not answer or not answer.get("ready"):
            self.close()
            raise SystemExit(f"error: a worker did not start: {self.last_words()}")

    def try_cases(
        self, entry: Entry, first: int, count: int, note: Callable[[dict[str, Any]], None]
    ) -> tuple[list[Kind], Kind | None]:
        """What came of a batch, up to the case that ended the worker, and how it did."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{entry.name} {first} {count}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            return [], Kind.CRASH
        while True:
            answer = self._answer(time.monotonic() + 0.5)
            place, seconds = self.board.current()
            if answer is None:  # nothing to hear
                if place >= 0 and seconds > entry.limit:
                    self._kill()
                    return self.board.kinds(count)[:place], Kind.HANG
            elif not answer:
                self._process.wait()
                return self.board.kinds(count)[: max(place, 0)], Kind.CRASH
            elif "done" in answer:
                self.resident = answer["resident"]
                self.reached.update(answer["reached"])
                return [Kind(number) for number in answer["done"]], None
            else:
                note(answer)

    def _answer(self, deadline: float) -> dict[str, Any] | None:
        """The next line; empty if there will be none, None if there is none by the deadline."""
        assert self._process.stdout is not None
        stream = self._process.stdout.fileno()
        while b"\n" not in self._pending:
            ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            piece = os.read(stream, 1 << 16)
            if not piece:
                return {}
            self._pending += piece
        line, _, self._pending = self._pending.partition(b"\n")
        return json.loads(line)

    def _kill(self) -> None:
        """End it; before that it says where it is."""
        self._process.send_signal(signal.SIGUSR1)
        time.sleep(0.2)
        self._process.kill()
        self._process.wait()

    def last_words(self) -> str:
        """The end of what it wrote to the error stream, and how it ended."""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        starts = [k for k, line in enumerate(lines) if "most recent call first" in line]
        told = lines[starts[-1] :][:6] if starts else lines[-4:]
        return f"exit code {self._process.poll()}; " + " | ".join(line.strip() for line in told)

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def try_alone(case: str, limit: float) -> tuple[Kind, str]:
    """What a case does in a process of its own."""
    command = [sys.executable, str(SCRIPT), "--replay", case]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return Kind.HANG, ""
    said = " | ".join(line.strip() for line in done.stdout.splitlines()[-2:])
    if done.returncode < 0:
        told = " | ".join(line.strip() for line in done.stderr.splitlines()[:6])
        return Kind.CRASH, f"{signal.Signals(-done.returncode).name}; {told}"
    return (Kind.RESULT if done.returncode == 0 else Kind.INTERNAL), said
