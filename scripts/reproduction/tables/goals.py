"""Section 6.3: the masks of two goals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from exo_envs.domains.crowd import CrowdParameters
from reproduction.settings import METHODS
from reproduction.tables.averages import Records, average, methods_of, select
from reproduction.tables.table import Table
from shared.intervals import Interval

#: Rows, and columns, of a quarter of ExoCrowd's floor.
HALF = CrowdParameters().grid_size // 2


def goal_tables(records: Records) -> list[Table]:
    """What the robot looks at for either goal, and where that differs."""
    goals = select(records, experiment="goals")
    groups = {
        (method, goal): found
        for method in methods_of(goals)
        for goal in ("fixed", "movable")
        if (found := select(goals, method=method, goal=goal))
    }
    if not groups:
        return []
    kinds = sorted({name.split("_")[0] for r in goals for name in r["mask"]})
    summary = tuple(
        (
            METHODS[method],
            goal,
            average(found, "returns"),
            average(found, "variables"),
            *(Interval.of(_count(record, kind) for record in found) for kind in kinds),
            ", ".join(name for name in _typical(found) if _is_lower_left(name)) or "none",
            len(found),
        )
        for (method, goal), found in groups.items()
    )
    columns = (
        *("algorithm", "goal", "average true returns", "variables", *kinds),
        *("lower-left cells in most masks", "trials"),
    )
    differing = (
        _differing(METHODS[method], groups[method, "fixed"], groups[method, "movable"])
        for method in methods_of(goals)
        if (method, "fixed") in groups and (method, "movable") in groups
    )
    return [Table("ExoCrowd: two goals", columns, summary), *differing]


def _differing(title: str, fixed: Records, movable: Records) -> Table:
    """The variables that most masks for one goal have, and most for the other do not."""
    shares = _shares(fixed), _shares(movable)
    names = sorted({*shares[0], *shares[1]}, key=_natural)
    found = [(name, *(share.get(name, 0.0) for share in shares)) for name in names]
    return Table(
        f"ExoCrowd: variables that differ ({title})",
        ("variable", 'share of masks, goal="fixed"', 'share of masks, goal="movable"'),
        tuple(row for row in found if (row[1] > 0.5) != (row[2] > 0.5)),
        "In most masks for one goal, and not in most for the other.",
    )


def _typical(records: Records) -> list[str]:
    """The variables that most masks have."""
    return sorted((name for name, share in _shares(records).items() if share > 0.5), key=_natural)


def _is_lower_left(name: str) -> bool:
    """Whether a variable is the occupancy of a cell in the lower-left quarter of the floor."""
    kind, *cell = name.split("_")
    return kind == "occupancy" and int(cell[0]) >= HALF and int(cell[1]) < HALF


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
