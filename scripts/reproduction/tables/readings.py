"""Section 5.3: what else the text of the paper's rule may mean, and where that leads."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from reproduction.settings import METHODS
from reproduction.tables.averages import Records, average, methods_of, select
from reproduction.tables.table import Cell, Table
from shared.intervals import Interval


def reading_tables(records: Records) -> list[Table]:
    """What each reading finds, and where it stops."""
    readings = select(records, experiment="readings")
    rows: list[tuple[Cell, ...]] = []
    for domain in sorted({r["key"]["domain"] for r in readings}, reverse=True):
        there = select(readings, domain=domain)
        for method in methods_of(there):
            found = select(there, method=method)
            tried = [_steps(record, "add") for record in found]
            first = Counter(_kind(steps[0]) if steps else "nothing" for steps in tried)
            ((favourite, times),) = first.most_common(1)
            rows.append(
                (
                    METHODS[method],
                    domain,
                    average(found, "returns"),
                    average(found, "variables"),
                    Interval.of(len(_steps(r, "start")[0]["candidate"]) for r in found),
                    Interval.of(map(len, tried)),
                    f"{favourite} ({times} of {len(found)})",
                    Interval.of(_agents(record) for record in found),
                    len(found),
                )
            )
    columns = (
        *("reading", "domain", "average true returns", "variables", "of the first phase"),
        *("tried after that", "tried first", "agents' variables in the mask", "trials"),
    )
    note = "The first row of a domain is the default of CorrelationalMaskLearner."
    return [Table("Readings of the paper's rule", columns, tuple(rows), note)] if rows else []


def _steps(record: dict[str, Any], action: str) -> list[dict[str, Any]]:
    return [step for step in record["history"] if step["action"] == action]


def _kind(step: dict[str, Any]) -> str:
    """What was tried, whichever of its kind it was: porter_*_cell."""
    return re.sub(r"_\d+", "_*", step["candidate"][0])


def _agents(record: dict[str, Any]) -> int:
    return sum(name.startswith(("porter", "wanderer", "technician")) for name in record["mask"])
