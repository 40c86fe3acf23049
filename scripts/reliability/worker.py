"""The process that tries cases. If it dies, its board says in which case.

The watcher writes lines ``entry first count`` to its input. It answers with lines of JSON: one for
each failure when it happens, and one when the batch is done.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import mmap
import os
import signal
import struct
import sys
import time
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from reliability.odd import Odd
from reliability.reach import Watch
from reliability.registry import ENTRIES, Entry, odd_of
from reliability.verdict import RESULT, Kind, Verdict, judge

#: Cases at most in a batch: the board has a byte for each.
MOST_CASES = 500
#: Bytes of address space that a worker may take beyond what it has after warming up.
MEMORY = 3 * 2**30
PR_SET_PDEATHSIG = 1  # of prctl
_HEAD = struct.Struct("qd")  # the case that is tried, or -1; and when it began


class Board:
    """A few bytes that the worker writes and the watcher reads, also after the worker's death."""

    def __init__(self, path: Path, *, make: bool = False) -> None:
        size = _HEAD.size + MOST_CASES
        if make:
            path.write_bytes(b"\0" * size)
        with path.open("r+b") as file:
            self._bytes = mmap.mmap(file.fileno(), size)
        if make:
            self.rest()

    def begin(self, place: int) -> None:
        """Case number ``place`` of the batch begins."""
        _HEAD.pack_into(self._bytes, 0, place, time.monotonic())

    def end(self, place: int, kind: Kind) -> None:
        """It has ended."""
        self._bytes[_HEAD.size + place] = kind

    def rest(self) -> None:
        """No case is being tried, and none of the next batch has been."""
        self._bytes[_HEAD.size :] = b"\0" * MOST_CASES
        _HEAD.pack_into(self._bytes, 0, -1, time.monotonic())

    def current(self) -> tuple[int, float]:
        """The place of the case that is being tried, or -1, and for how many seconds."""
        place, began = _HEAD.unpack_from(self._bytes, 0)
        return place, time.monotonic() - began

    def kinds(self, count: int) -> list[Kind]:
        """What came of the first cases of the batch."""
        return [Kind(byte) for byte in self._bytes[_HEAD.size : _HEAD.size + count]]


def attempt(one: Entry, number: int, seed: int) -> tuple[Odd, Verdict]:
    """Try one case."""
    odd = odd_of(one.name, number, seed)
    try:
        one.run(odd)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - that is what is looked for
        return odd, judge(error)
    return odd, RESULT


def quiet() -> None:
    """Nobody is there to read warnings about values that are odd on purpose."""
    warnings.simplefilter("ignore")
    os.environ["SDL_VIDEODRIVER"] = "dummy"


def work(board_path: Path, seed: int) -> None:
    """Try batches of cases until the input ends."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    _end_with_parent()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever anybody prints goes elsewhere
    quiet()
    from reliability import subjects

    board, watch = Board(board_path), Watch()
    subjects.warm_up()
    _limit_memory()
    _tell(answers, ready=True)
    for line in sys.stdin:
        name, first, count = line.split()
        _batch(ENTRIES[name], int(first), int(count), seed, board, watch, answers)


def _end_with_parent() -> None:
    """A case that hangs must not outlive whoever watches it (Linux)."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _batch(
    one: Entry, first: int, count: int, seed: int, board: Board, watch: Watch, answers: TextIO
) -> None:
    board.rest()
    start = time.perf_counter()
    for place in range(count):
        board.begin(place)
        with watch.during(first + place):
            odd, verdict = attempt(one, first + place, seed)
        board.end(place, verdict.kind)
        if verdict.kind > Kind.CLEAR:
            said = {"kind": verdict.kind.name, "message": verdict.message, "where": verdict.where}
            _tell(answers, number=first + place, story=odd.story(), **said)
        del odd
    seconds = time.perf_counter() - start
    kinds = board.kinds(count)
    board.rest()
    _tell(
        answers,
        done=[int(kind) for kind in kinds],
        seconds=seconds,
        resident=resident_bytes(),
        reached=watch.news(),
    )


def _tell(answers: TextIO, **content: Any) -> None:
    answers.write(json.dumps(content) + "\n")
    answers.flush()


def resident_bytes() -> int:
    """What this process has in memory; 0 where nobody says."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _limit_memory() -> None:
    """An input that asks for absurd amounts gets a MemoryError, which is an internal error."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (ImportError, OSError):
        return
    limit = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def replay(case: str) -> bool:
    """Try one case in this process and say what came of it; whether that is fine."""
    name, number, seed = parse_case(case)
    faulthandler.enable()
    quiet()
    odd = odd_of(name, number, seed)
    try:
        ENTRIES[name].run(odd)
        verdict = RESULT
    except BaseException as error:  # noqa: BLE001 - that is what is looked for
        traceback.print_exc()
        verdict = judge(error)
    print(f"{case}: {verdict.kind.name}: {verdict.message}")
    print(f"  called: {odd.story()}")
    return verdict.kind <= Kind.CLEAR


def parse_case(case: str) -> tuple[str, int, int]:
    """``entry:number:seed``."""
    name, _, rest = case.partition(":")
    number, _, seed = rest.partition(":")
    if name not in ENTRIES:
        raise SystemExit(f"error: no entry is called {name!r}; --list names them")
    if not number.isdigit() or not (seed or "0").isdigit():
        raise SystemExit(f"error: a case is entry:number:seed, not {case!r}")
    return name, int(number), int(seed or 0)
