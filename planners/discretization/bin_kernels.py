"""Kernels that put bins in place of values, and values in place of bins.

They are plain loops over lanes, with all bins of a lane one after another: a model of thousands of
variables has thousands of bins. Positions are not checked here but in
:mod:`planners.discretization.coarse`.
"""

from __future__ import annotations

from typing import Any

from exo_envs.compiled.functions import njit


@njit(cache=True)
def find_bins(values: Any, columns: Any, edges: Any, starts: Any, out: Any) -> None:
    """Write the bins of values, shape (lanes, m), to ``out``, and whole values as they are.

    The smallest values of the bins of column ``columns[k]`` are ``edges[starts[k]:starts[k + 1]]``.
    What is below the first bin belongs to it.
    """
    for b in range(len(values)):
        for j in range(values.shape[1]):
            out[b, j] = values[b, j]
        for k in range(len(columns)):
            value = values[b, columns[k]]
            low, high = starts[k], starts[k + 1]  # the bin is from low on, and below high
            while high - low > 1:
                middle = (low + high) // 2
                if edges[middle] <= value:
                    low = middle
                else:
                    high = middle
            out[b, columns[k]] = low - starts[k]


@njit(cache=True)
def look_up_bins(values: Any, columns: Any, tables: Any, starts: Any, out: Any) -> None:
    """:func:`find_bins` of whole values, from tables of the bin of each value.

    The table of column ``columns[k]`` is ``tables[starts[k]:starts[k + 1]]``. A value outside of
    it belongs to the nearest bin.
    """
    for b in range(len(values)):
        for j in range(values.shape[1]):
            out[b, j] = values[b, j]
        for k in range(len(columns)):
            place = starts[k] + max(0, values[b, columns[k]])
            out[b, columns[k]] = tables[min(place, starts[k + 1] - 1)]


@njit(cache=True)
def stand_in(states: Any, columns: Any, stand_ins: Any, starts: Any, chosen: Any) -> None:
    """Put values in place of the bins in some columns of states, shape (lanes, m).

    ``stand_ins[starts[k] + i]`` are the values that stand for the i-th bin of column
    ``columns[k]``. Which of them is taken is ``chosen``, shape (lanes, columns), or (1, columns) if
    it is the same in all lanes.
    """
    own = len(chosen) > 1
    for b in range(len(states)):
        for k in range(len(columns)):
            i = int(states[b, columns[k]])
            states[b, columns[k]] = stand_ins[starts[k] + i, chosen[b * own, k]]
