"""Odd inputs for every public entry point, in processes of their own so that a crash is counted.

    python scripts/fuzz.py --minutes 30                # all entries: models, files, learners ...
    python scripts/fuzz.py --only models --minutes 5   # those whose names begin so; see --list
    python scripts/fuzz.py --only user-bugs            # 222 bugs of users, each named by fit or not
    python scripts/fuzz.py --replay models/grid:17:0   # one case again: entry:number:seed
    python scripts/fuzz.py --soak --minutes 10         # memory, descriptors, threads over time

Every case should come to a result or to an error that says what is wrong. Anything else is a
failure: it is listed with the command that shows it, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from reliability import entries  # noqa: F401 - puts them on the list
from reliability.registry import ENTRIES, Entry, chosen
from reliability.report import num_bad, print_causes, print_table, write_files
from reliability.runner import Campaign
from reliability.soak import soak
from reliability.worker import quiet, replay, work
from shared.folders import Claim, FolderError
from shared.script import run_script


def main() -> None:
    arguments = parse()
    if arguments.worker:
        work(arguments.worker, arguments.seed)
        return
    run_script(lambda: run(arguments))


def run(arguments: argparse.Namespace) -> int:
    """What was asked for; 0 if all is well."""
    if arguments.list:
        print("\n".join(name for name, one in ENTRIES.items() if not one.hidden))
        return 0
    if arguments.replay:
        return 0 if replay(arguments.replay) else 1
    if arguments.soak:
        return 0 if soak_for(arguments.minutes or 10.0) else 1
    picked = chosen(arguments.only)
    try:
        claim = Claim(arguments.output)  # before the minutes are spent
    except FolderError as error:
        raise SystemExit(f"error: {error}") from error
    with claim:
        return attack(picked, arguments)


def attack(picked: Sequence[Entry], arguments: argparse.Namespace) -> int:
    """Give odd inputs to some entries, and report; 0 if nothing bad came of it."""
    minutes = arguments.minutes
    if minutes is None and arguments.inputs is None and any(one.cases is None for one in picked):
        minutes = 30.0
    campaign = Campaign(
        picked,
        seed=arguments.seed,
        minutes=minutes,
        inputs=arguments.inputs,
        jobs=arguments.jobs,
        say=lambda words: print(words, file=sys.stderr, flush=True),
    )
    try:
        campaign.run()
    except KeyboardInterrupt:
        print("stopped; this is what was tried so far")
    print_table(campaign)
    print_causes(campaign)
    write_files(campaign, arguments.output)
    if bad := num_bad(campaign):
        print(f"\n{bad:,} of them should not have happened; all of those are listed in")
        print(arguments.output / "failures.jsonl")
    return 1 if bad else 0


def soak_for(minutes: float) -> bool:
    """Whether nothing grows over so many minutes."""
    quiet()
    soaked = soak(minutes=minutes, say=lambda words: print(words, flush=True))
    grown = soaked.growth
    print(
        f"{soaked.rounds} rounds: {grown.resident / 2**20:+.1f} MB, "
        f"{grown.descriptors:+d} descriptors, {grown.threads:+d} threads"
    )
    if problem := soaked.problem():
        print(f"that is too much: {problem}")
    return soaked.problem() is None


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, help="how long; by default 30")
    parser.add_argument("--inputs", type=int, help="stop after about so many inputs")
    parser.add_argument("--seed", type=int, default=0, help="of all cases; by default 0")
    parser.add_argument(
        "--only", action="append", default=[], metavar="ENTRY", help="may be given again"
    )
    parser.add_argument("--replay", metavar="CASE", help="try one case: entry:number:seed")
    parser.add_argument("--soak", action="store_true", help="look at what grows over time")
    parser.add_argument("--list", action="store_true", help="name the entries")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes; by default 2")
    parser.add_argument("--output", type=Path, default=Path("outputs") / "fuzz", help="folder")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
