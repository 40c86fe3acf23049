"""The sub-command ``all``: its options, what it keeps, and what it prints."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.table.report import cells, missed, profiles, table
from benchmarks.table.rows import ROWS, Row
from benchmarks.table.runner import Effort, cores_here, measure, profile
from benchmarks.table.trees import BEFORE, ROOT, commit_of, describe_now, tree_of

OUTPUT = ROOT / "outputs" / "table.jsonl"
QUICK = Effort(seconds=0.1, turns=1, rounds=2)
#: Two Ctrl-C within so many seconds end the command; one skips a row.
PATIENCE = 2.0
Results = list[tuple[Row, dict[str, Any]]]


def add_command(commands: Any) -> None:
    """The sub-command ``all`` of scripts/benchmark.py."""
    groups = ", ".join(dict.fromkeys(row.group for row in ROWS))
    parser = commands.add_parser(
        "all",
        help="one table of all that is to be fast, before and now",
        description="Each row is measured in processes of its own, on the sources here and on "
        "those of an earlier commit, in turns, beside a peer or a limit. Ctrl-C skips a row, "
        "twice it ends.",
    )
    parser.add_argument(
        "--only", nargs="+", metavar="ROW", default=[""], help=f"{groups}, or as step/crowd-512"
    )
    parser.add_argument("--quick", action="store_true", help="short rows only, and few rounds")
    parser.add_argument("--before", metavar="COMMIT", default=BEFORE, help="default: %(default)s")
    parser.add_argument("--without-before", action="store_true", help="only the sources here")
    parser.add_argument("--threads", type=int, help="only rows that use at most so many cores")
    parser.add_argument("--seconds", type=float, help="of a round of stepping")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--profile", action="store_true", help="of all rows, not of missed ones")
    which.add_argument("--without-profile", action="store_true")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="results are added here")
    parser.add_argument("--from", type=Path, dest="file", help="print what an --output holds")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Measure and print, or print again."""
    rows = chosen(arguments)
    if arguments.file is not None:
        print_results(read(arguments.file, rows))
        return
    effort = QUICK if arguments.quick else Effort()
    if arguments.seconds is not None:
        effort = Effort(arguments.seconds, effort.turns, effort.rounds)
    trees, missing = find_trees(arguments)
    names = f"before: {missing or str(commit_of(arguments.before))[:12]}; now: {describe_now()}"
    print(f"{names}; cores: {cores_here()}; Python {platform.python_version()}\n", flush=True)
    results: Results = []
    interrupted = -PATIENCE
    for row in rows:
        try:
            result = one_row(row, trees, missing, effort, arguments)
        except KeyboardInterrupt:
            if time.monotonic() - interrupted < PATIENCE:
                break
            interrupted = time.monotonic()
            skipped = {"error": "interrupted", "skipped": True}
            result = {"before": skipped, "now": skipped}
        results.append((row, result))
        append(arguments.output, row, names, result)
        print(" | ".join(cells(row, result)), file=sys.stderr, flush=True)
    print_results(results)


def chosen(arguments: argparse.Namespace) -> list[Row]:
    """The rows that are asked for, by their names or by how these begin."""
    wanted: set[str] = set()
    for name in arguments.only:
        found = {row.name for row in ROWS if row.name == name}
        found = found or {row.name for row in ROWS if row.name.startswith(name)}
        if not found:
            known = ", ".join(row.name for row in ROWS)
            print(f"error: no row is called {name!r}; there are {known}", file=sys.stderr)
            raise SystemExit(2)
        wanted |= found
    return [
        row
        for row in ROWS
        if row.name in wanted
        and (row.quick or not arguments.quick)
        and (arguments.threads is None or (row.cores or cores_here()) <= arguments.threads)
    ]


def find_trees(arguments: argparse.Namespace) -> tuple[dict[str, Path], str]:
    """The trees by their columns, and why there is none of the commit before."""
    if arguments.without_before:
        return {"now": ROOT}, "not asked for"
    commit = commit_of(arguments.before)
    if commit is None:
        return {"now": ROOT}, "not here"
    return {"before": tree_of(commit, ROOT / "outputs" / "trees"), "now": ROOT}, ""


def one_row(
    row: Row, trees: dict[str, Path], missing: str, effort: Effort, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Both sides of a row, and its profile if it is wanted."""
    used = trees if row.before else {"now": trees["now"]}
    why = missing if row.before else "not tried"
    result: dict[str, Any] = {"before": {"error": why}, **measure(row, used, effort)}
    if arguments.profile or (missed(row, result) and not arguments.without_profile):
        result["profile"] = profile(row, trees["now"], effort)
    return result


def append(file: Path, row: Row, names: str, result: dict[str, Any]) -> None:
    """Keep a result: one line of JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    when = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    record = {"row": row.name, "when": when, "trees": names, "load": load, **result}
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(record) + "\n")


def read(file: Path, rows: list[Row]) -> Results:
    """The last result of each row: both of its sides are of one run."""
    if not file.is_file():
        print(f"error: there is no file {file}", file=sys.stderr)
        raise SystemExit(2)
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    last = {record["row"]: record for record in records}
    return [(row, last[row.name]) for row in rows if row.name in last]


def print_results(results: Results) -> None:
    """The table, and the profiles below it."""
    print(table(results))
    told = profiles(results)
    if told:
        print(f"\n{told}")
