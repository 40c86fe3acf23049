"""Results chosen by their keys, and what they are on average."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reproduction.settings import METHODS
from shared.intervals import Interval

Records = Sequence[dict[str, Any]]

#: What is averaged over trials.
QUANTITIES: dict[str, Callable[[dict[str, Any]], float]] = {
    "J": lambda record: record["value"],
    "returns": lambda record: record["mean_return"],
    "seconds": lambda record: record["measured"]["seconds"],
    "variables": lambda record: len(record["mask"]),
}


def select(records: Records, **key: Any) -> list[dict[str, Any]]:
    """The records whose key has these values."""
    return [r for r in records if all(r["key"][name] == value for name, value in key.items())]


def average(records: Records, quantity: str) -> Interval:
    """One of :data:`QUANTITIES` over trials."""
    return Interval.of(map(QUANTITIES[quantity], records))


def methods_of(records: Records) -> list[str]:
    """The methods that there are results of, in the order of :data:`METHODS`."""
    there = {record["key"]["method"] for record in records}
    return [method for method in METHODS if method in there]


def cost_weights_of(records: Records) -> list[float]:
    """The lambdas that there are results of."""
    return sorted({record["key"]["cost_weight"] for record in records})


def difference(more: Records, less: Records, quantity: str) -> Interval:
    """One method less another, trial by trial."""
    value = QUANTITIES[quantity]
    base = {record["key"]["trial"]: value(record) for record in less}
    return Interval.of(
        value(record) - base[record["key"]["trial"]]
        for record in more
        if record["key"]["trial"] in base
    )
