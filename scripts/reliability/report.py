"""What a run of the fuzzer says: a table, the causes of failures, and files with all of them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from reliability.reach import all_names
from reliability.runner import Campaign
from reliability.verdict import Kind

#: Name of a column -> what it counts, all if None, and its width.
COLUMNS: dict[str, tuple[Kind | None, int]] = {
    "inputs": (None, 9),
    "results": (Kind.RESULT, 9),
    "clear": (Kind.CLEAR, 9),
    "internal": (Kind.INTERNAL, 9),
    "wrong": (Kind.WRONG, 6),
    "hangs": (Kind.HANG, 6),
    "crashes": (Kind.CRASH, 8),
}
BAD = (Kind.INTERNAL, Kind.WRONG, Kind.HANG, Kind.CRASH)
WIDTH = 80
#: Causes that are shown, the most frequent first.
SHOWN = 40


def print_table(campaign: Campaign) -> None:
    """One line for each entry, and their sum."""
    rows = [
        (
            name,
            [tally.inputs if kind is None else tally.counts[kind] for kind, _ in COLUMNS.values()],
        )
        for name, tally in campaign.tallies.items()
    ]
    rows.append(("all", [sum(column) for column in zip(*(row for _, row in rows), strict=True)]))
    widths = [width for _, width in COLUMNS.values()]
    print(_line("", ["", "", "errors", "errors"], widths).rstrip())
    print(_line("entry", COLUMNS, widths))
    for name, numbers in rows:
        print(_line(name, [f"{number:,}" for number in numbers], widths))
    print(f"\n{campaign.total:,} inputs in {campaign.seconds:.0f} s, seed {campaign.seed}")
    bugs = campaign.tallies.get("user-bugs")
    if bugs is not None and bugs.is_exhausted:
        print(f"{bugs.counts[Kind.RESULT]} of {bugs.inputs} bugs of users are named by fit")


def _line(name: str, cells: Iterable[str], widths: Iterable[int]) -> str:
    return f"{name:23}" + "".join(
        f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=False)
    )


def causes(failures: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Failures by where and how they happened, the most frequent first."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for failure in failures:
        kind = failure["message"].partition(":")[0][:60]
        area = failure["where"] or failure["entry"]
        groups[f"{failure['kind'].lower()} {area} {kind}"].append(failure)
    return sorted(groups.items(), key=lambda group: -len(group[1]))


def print_causes(campaign: Campaign) -> None:
    """What went wrong, with a command that shows it."""
    grouped = causes(campaign.failures)
    for cause, failures in grouped[:SHOWN]:
        first = failures[0]
        print(f"\n{len(failures):>5} x {cause}"[:WIDTH])
        print(f"        {first['message']}"[:WIDTH])
        print(f"        python scripts/fuzz.py --replay {first['case']}")
    if len(grouped) > SHOWN:
        print(f"\n... and {len(grouped) - SHOWN} other causes")


def write_files(campaign: Campaign, folder: Path) -> None:
    """All failures, one a line, and a summary."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "failures.jsonl").open("w", encoding="utf-8") as file:
        for failure in campaign.failures:
            replay = f"python scripts/fuzz.py --replay {failure['case']}"
            file.write(json.dumps({**failure, "replay": replay}) + "\n")
    summary = {
        "seed": campaign.seed,
        "seconds": round(campaign.seconds, 1),
        "inputs": campaign.total,
        "entries": {
            name: {kind.name.lower(): tally.counts[kind] for kind in Kind if kind}
            for name, tally in campaign.tallies.items()
        },
        "unreached": sorted(all_names() - campaign.reached),
    }
    text = json.dumps(summary, indent=2) + "\n"
    (folder / "summary.json").write_text(text, encoding="utf-8")


def num_bad(campaign: Campaign) -> int:
    """How many cases came to something that should not have happened."""
    return sum(tally.counts[kind] for tally in campaign.tallies.values() for kind in BAD)
