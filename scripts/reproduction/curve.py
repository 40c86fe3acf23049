"""The curve of one Crowd run (section 6.2): J and returns against the number of variables."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

from wrappers.fitting.history import History


def points_of(history: History) -> list[dict[str, Any]]:
    """What the masks were worth that the paper's rule grew: one point for each, the smallest first.

    The first one is what pays. Every other one has one variable more than the one before, whether
    J increased with it or not.
    """
    points: list[dict[str, Any]] = []
    for record in history:
        if record.action not in ("start", "add") or record.half_width is None:
            continue
        size = points[-1]["num_variables"] + 1 if points else len(record.candidate)
        points.append(
            {
                "num_variables": size,
                "added": record.candidate[-1] if record.action == "add" else None,
                "value": record.value,
                "mean_return": record.mean_return,
                "standard_error": record.half_width / NormalDist().inv_cdf(0.975),
            }
        )
    return points
