"""Which process measures what, and when: the two trees take turns, row by row."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.table.rows import Row

CHILD = Path(__file__).with_name("child.py")
#: Characters of a failed process's last words.
MOST_CHARACTERS = 160


@dataclass(frozen=True)
class Effort:
    """How long is measured.

    Attributes:
        seconds: of a round of those that run for some time.
        turns: at most, for each tree.
        rounds: at most, in a process.
    """

    seconds: float = 0.5
    turns: int = 10
    rounds: int = 10


class RowError(Exception):
    """A row that could not be measured, and why."""


def cores_here() -> int:
    """That this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def measure(row: Row, trees: dict[str, Path], effort: Effort) -> dict[str, dict[str, Any]]:
    """The best figures of a row for each tree, or the error that stopped it.

    Args:
        row: what is measured.
        trees: by the name of their column; they take turns in this order.
        effort: how long.
    """
    if row.cores is not None and row.cores > cores_here():
        missing = {"error": f"needs {row.cores} cores, has {cores_here()}", "skipped": True}
        return dict.fromkeys(trees, missing)
    turns: dict[str, list[dict[str, Any]]] = {name: [] for name in trees}
    errors: dict[str, str] = {}
    for _ in range(min(row.turns, effort.turns)):
        for name, tree in trees.items():
            if name in errors:
                continue
            try:
                turns[name].append(run_child(row, tree, effort))
            except RowError as error:
                errors[name] = str(error)
    return {
        name: {"error": errors[name]} if name in errors else best(row, turns[name])
        for name in trees
    }


def best(row: Row, turns: list[dict[str, Any]]) -> dict[str, Any]:
    """The best figures of all turns; what is said beside them must hold in all."""
    choose = min if row.unit == "s" else max
    return {
        **turns[-1],
        "ours": choose(figure for turn in turns for figure in turn["ours"]),
        "peers": {
            name: choose(figure for turn in turns for figure in turn["peers"][name])
            for name in turns[0]["peers"]
        },
        "holds": all(turn["holds"] for turn in turns),
    }


def profile(row: Row, tree: Path, effort: Effort) -> list[str]:
    """The functions that take most of a row's time, as lines; what went wrong, if it did.

    One core is used, because Python's profiler sees one thread.
    """
    try:
        return run_child(row, tree, effort, profiled=True)["profile"]
    except RowError as error:
        return [str(error)]


def run_child(row: Row, tree: Path, effort: Effort, *, profiled: bool = False) -> dict[str, Any]:
    """What one process finds."""
    cores = 1 if profiled else row.cores
    job = {
        "tree": str(tree),
        "contest": row.contest,
        "options": row.options,
        "cores": cores,
        "seconds": effort.seconds,
        "rounds": min(row.rounds, effort.rounds),
        "profile": profiled,
    }
    with tempfile.TemporaryDirectory(prefix="exo-envs-") as scratch:
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        if cores == 1:
            environment |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        if row.empty_cache:
            environment["NUMBA_CACHE_DIR"] = scratch
        try:
            done = subprocess.run(
                [sys.executable, str(CHILD), json.dumps(job)],
                cwd=scratch,
                env=environment,
                capture_output=True,
                text=True,
                timeout=row.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise RowError(f"no end after {row.timeout:,.0f} s") from None
    if done.returncode != 0:
        raise RowError(last_words(done))
    return json.loads(done.stdout.splitlines()[-1])


def last_words(done: subprocess.CompletedProcess[str]) -> str:
    """Why a process failed, in a line."""
    if done.returncode < 0:
        return f"killed by {signal.Signals(-done.returncode).name}"
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return f"failed: {lines[-1][:MOST_CHARACTERS]}"
