"""Rows of arrays that are written in place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Of as many values, those of lanes that have ended are found by index; of fewer, all are read.
FEW_VALUES = 2048


def overwrite(values: Any, by: Any, lanes: NDArray[np.bool_]) -> Any:
    """Replace the rows of some lanes, in place: what a model returns is ours to write to.

    Args:
        values: (..., m).
        by: a number, or an array; whole floats are whole numbers.
        lanes: which rows, shape (...).
    """
    if lanes.shape != values.shape[:-1]:  # parts of different batch shapes are broadcast
        shape = np.broadcast_shapes(lanes.shape, values.shape[:-1])
        values = np.broadcast_to(values, (*shape, values.shape[-1]))
        lanes = np.broadcast_to(lanes, shape)
    if not values.flags.writeable:
        values = values.copy()
    if values.size < FEW_VALUES or (isinstance(by, np.ndarray) and by.shape != values.shape):
        np.copyto(values, by, where=lanes[..., None], casting="unsafe")
    else:
        values[lanes] = by[lanes] if isinstance(by, np.ndarray) else by
    return values
