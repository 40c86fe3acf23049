"""Section 6.2: J and returns of one Crowd run, as its mask grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.tables.averages import Records, select
from reproduction.tables.table import Table
from wrappers import CorrelationalMaskLearner


def curve_of(records: Records) -> dict[str, Any] | None:
    """The Crowd run with growing masks; its points are in "history"."""
    return next(iter(select(records, experiment="large", method="curve")), None)


def curve_tables(records: Records) -> list[Table]:
    """The points of the curve of one Crowd run."""
    curve = curve_of(records)
    if curve is None:
        return []
    rows = tuple(
        (
            point["num_variables"],
            point["added"],
            *(round(point[name], 1) for name in ("value", "mean_return", "standard_error")),
        )
        for point in curve["history"]
    )
    columns = ("variables", "the last one added", "J", "mean return", "standard error")
    return [Table("ExoCrowd: growing masks", columns, rows, describe_turn(curve))]


def turning_point(points: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Two masks, one variable apart: the larger one earns more, and J is lower; None if nowhere.

    Of several such steps the first one from the top of J on.
    """
    top = max(range(len(points)), key=lambda k: points[k]["value"], default=0)
    for before, after in zip(points[top:], points[top + 1 :], strict=False):
        if (
            after["num_variables"] == before["num_variables"] + 1
            and after["value"] < before["value"]
            and after["mean_return"] > before["mean_return"]
        ):
            return before, after
    return None


def stop(points: Sequence[dict[str, Any]]) -> int:
    """The number of variables with which the paper's rule ends, at its default patience."""
    best, waited = points[0], 0
    for point in points[1:]:
        if waited == CorrelationalMaskLearner.patience:
            break
        best, waited = (point, 0) if point["value"] > best["value"] else (best, waited + 1)
    return int(best["num_variables"])


def describe_turn(curve: dict[str, Any]) -> str:
    """Where the rule ends, and where one more variable lowers J although returns rise."""
    ends = f"The rule ends with {stop(curve['history'])} variables."
    turn = turning_point(curve["history"])
    if turn is None:
        return f"{ends} In this run no single variable beyond the top of J raises returns."
    before, after = turn
    return (
        f"{ends} "
        f"Variable number {after['num_variables']} ({after['added']}) lowers J from "
        f"{before['value']:.1f} to {after['value']:.1f} although returns rise from "
        f"{before['mean_return']:.1f} to {after['mean_return']:.1f}."
    )
