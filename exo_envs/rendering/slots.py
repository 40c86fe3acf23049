"""Spots for things that share a place."""

from __future__ import annotations

import math


def slots(count: int, width: float, depth: float) -> list[tuple[float, float]]:
    """``count`` points side by side around (0, 0), in rows if they are many.

    >>> slots(1, 0.8, 0.4), slots(2, 0.8, 0.4)
    ([(0.0, 0.0)], [(-0.2, 0.0), (0.2, 0.0)])
    """
    if count == 0:
        return []
    columns = min(count, max(2, math.ceil(math.sqrt(count * width / depth))))
    rows = math.ceil(count / columns)
    points = []
    for index in range(count):
        row, column = divmod(index, columns)
        in_row = min(columns, count - row * columns)
        points.append((((column + 0.5) / in_row - 0.5) * width, ((row + 0.5) / rows - 0.5) * depth))
    return points
