"""Section 6.1: a small domain, where the best mask is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from reproduction.settings import METHODS
from reproduction.tables.averages import Records, average, cost_weights_of, methods_of, select
from reproduction.tables.table import Cell, Table
from shared.intervals import Interval


def small_tables(records: Records) -> list[Table]:
    """J, time and mask size against lambda; and where the best mask grows."""
    small = select(records, experiment="small")
    if not small:
        return []
    methods = methods_of(small)
    titles = {
        "J": "ExoGrid: J of the learned mask, on fresh trajectories",
        "seconds": "ExoGrid: seconds for a run",
        "variables": "ExoGrid: variables in the mask",
    }
    tables = [
        Table(
            title,
            ("λ", *(METHODS[method] for method in methods)),
            tuple(
                (
                    weight,
                    *(
                        average(select(small, method=method, cost_weight=weight), quantity)
                        for method in methods
                    ),
                )
                for weight in cost_weights_of(small)
            ),
        )
        for quantity, title in titles.items()
    ]
    growth = growth_table(small)
    return tables if growth is None else [*tables, growth]


def growth_table(records: Records) -> Table | None:
    """The lambdas at which the best mask grows, by brute force.

    In each trial J of every mask is a line in lambda, R(mask) - lambda |mask|, so the lambda below
    which the best mask has k variables or more is known exactly.
    """
    brute = select(records, experiment="small", method="brute force")
    trials = {record["key"]["trial"]: record["best_of_each_size"] for record in brute}
    if not trials:
        return None
    limits = [growth(best) for best in trials.values()]
    rows: list[tuple[Cell, ...]] = []
    for size in range(1, len(limits[0]) + 1):
        masks = Counter(tuple(best[size]["mask"]) for best in trials.values())
        mask, count = masks.most_common(1)[0]
        limit = Interval.of(each[size - 1] for each in limits)
        if limit.high > 0 or limit.mean > 0:
            rows.append((size, limit, ", ".join(mask), f"{count} of {len(trials)}"))
    return Table(
        "ExoGrid: the λ at which the best mask grows",
        ("variables, or more", "for λ below", "most frequent best mask of this size", "trials"),
        tuple(rows),
    )


def growth(best_of_each_size: Sequence[dict[str, Any]]) -> list[float]:
    """For k = 1, 2, ...: the lambda below which the best mask has k variables or more; 0 if none.

    A mask of k or more variables beats all smaller ones for lambda below
    max over j >= k of (min over i < k of (R_j - R_i) / (j - i)).
    """
    returns = [best["mean_return"] for best in best_of_each_size]
    return [
        max(
            0.0,
            *(
                min((returns[j] - returns[i]) / (j - i) for i in range(k))
                for j in range(k, len(returns))
            ),
        )
        for k in range(1, len(returns))
    ]
