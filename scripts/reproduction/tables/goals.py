"""Section 6.3: the masks of two goals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from reproduction.tables.averages import Records, average, select
from reproduction.tables.table import Table
from shared.intervals import Interval


def goal_tables(records: Records) -> list[Table]:
    """What the robot looks at for either goal, and where that differs."""
    goals = select(records, experiment="goals")
    by_goal = {goal: select(goals, goal=goal) for goal in ("fixed", "movable")}
    if not all(by_goal.values()):
        return []
    kinds = sorted({name.split("_")[0] for r in goals for name in r["mask"]})
    summary = tuple(
        (
            goal,
            average(found, "returns"),
            average(found, "variables"),
            *(Interval.of(_count(record, kind) for record in found) for kind in kinds),
            len(found),
        )
        for goal, found in by_goal.items()
    )
    columns = ("goal", "average true returns", "variables", *kinds, "trials")
    shares = {goal: _shares(found) for goal, found in by_goal.items()}
    names = sorted({*shares["fixed"], *shares["movable"]}, key=_natural)
    rows = tuple(
        (name, shares["fixed"].get(name, 0.0), shares["movable"].get(name, 0.0))
        for name in names
        if (shares["fixed"].get(name, 0.0) > 0.5) != (shares["movable"].get(name, 0.0) > 0.5)
    )
    return [
        Table("ExoCrowd: two goals", columns, summary),
        Table(
            "ExoCrowd: variables that differ",
            ("variable", 'share of masks, goal="fixed"', 'share of masks, goal="movable"'),
            rows,
            "In most masks for one goal, and not in most for the other.",
        ),
    ]


def differing_variables(fixed: Sequence[str], movable: Sequence[str]) -> dict[str, list[str]]:
    """The variables that only one of two masks has."""
    return {
        "fixed": [name for name in fixed if name not in movable],
        "movable": [name for name in movable if name not in fixed],
    }


def _count(record: dict[str, Any], kind: str) -> int:
    return sum(name.split("_")[0] == kind for name in record["mask"])


def _shares(records: Records) -> dict[str, float]:
    counts = Counter(name for record in records for name in record["mask"])
    return {name: round(count / len(records), 3) for name, count in counts.items()}


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Numbers in a name count as numbers: object_2 comes before object_10."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in name.split("_"))
