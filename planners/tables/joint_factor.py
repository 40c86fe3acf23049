"""The joint factor of several exogenous variables, in sparse rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.mdp import IntArray
from planners.arrays import Ints, joint_values
from planners.tables.factored_mdp import Factor


class SparseRows(NamedTuple):
    """Distributions over whole numbers, one a row: row r is ``starts[r] : starts[r + 1]``."""

    starts: IntArray  # (rows + 1,)
    values: IntArray  # (entries,)
    probabilities: NDArray[np.float64]  # (entries,)


def joint_rows(
    factors: Sequence[Factor],
    group: Sequence[int],
    parents: Sequence[int],
    sizes: Ints,
    strides: Sequence[int],
) -> SparseRows:
    """P(x'_i for i in group | parents): one row for each joint value of the parents (C order).

    The parents include those of every variable of the group (one with a single value may be left
    out). A joint value of x' is given as the sum of the values times the ``strides``, one stride
    for each variable of the group. Rows sum to one.
    """
    if len(group) == 1 and factors[group[0]].parents == tuple(parents):
        factor = factors[group[0]]
        lengths = np.diff(factor.starts)
        sums = np.add.reduceat(factor.probabilities, factor.starts[:-1])
        return SparseRows(
            factor.starts,
            factor.values * strides[0],
            factor.probabilities / np.repeat(sums, lengths),
        )
    shape = [int(sizes[parent]) for parent in parents]
    rows = math.prod(shape)
    parts = joint_values(np.arange(rows), shape).T
    digits = dict(zip(parents, parts, strict=True))
    row = np.arange(rows)  # of each entry so far
    values = np.zeros(rows, dtype=np.int64)
    probabilities = np.ones(rows)
    for i, stride in zip(group, strides, strict=True):
        factor = factors[i]
        own = np.zeros(rows, dtype=np.int64)  # the row of this factor in each joint row
        for parent in factor.parents:
            own = own * int(sizes[parent]) + digits.get(parent, 0)
        firsts = factor.starts[own][row]
        counts = (factor.starts[own + 1] - factor.starts[own])[row]
        entry = np.repeat(np.arange(len(row)), counts)
        within = np.arange(len(entry)) - np.repeat(np.cumsum(counts) - counts, counts)
        chosen = firsts[entry] + within
        row = row[entry]
        values = values[entry] + factor.values[chosen] * stride
        probabilities = probabilities[entry] * factor.probabilities[chosen]
    lengths = np.bincount(row, minlength=rows)
    sums = np.bincount(row, weights=probabilities, minlength=rows)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return SparseRows(starts, values, probabilities / sums[row])
