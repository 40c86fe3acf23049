"""Forecasts: the distribution of each variable h steps ahead, given a few variables now.

The joint transition of a large mask cannot be tabulated, and chaining one-step tables would treat
dependent variables as independent again and again. A forecast asks the rollouts directly: where
variable i stood h steps after its *forecast parents*, itself and a few others, had these values.
Rare values of the parents lean on the variable's own value, and that on its overall distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from exo_envs.mdp import IntArray
from planners.arrays import Ints, join, starts_of
from planners.memory import MaskMemory

Rollouts = NDArray[np.integer[Any]]  # (rollouts, steps + 1, m)

#: The weight of the coarser forecast in a finer one, in samples.
SHRINKAGE = 4.0
#: Joint values that the forecast parents of a variable may have.
MAX_JOINT_VALUES = 4_000_000


@dataclass(frozen=True)
class Forecasts:
    """P(x_i at t + h | its forecast parents at t) for some variables i and h = 1 ... horizon.

    Attributes:
        variables: the variables that are forecast.
        horizon: how far.
        sizes: of all variables of the mask.
        parents: the forecast parents of each variable, itself first.
        parent_starts: where each variable's parents begin.
        lookup: joint value of the parents -> row, for each variable one after another.
        lookup_starts: where each variable's lookup begins.
        tables: the probabilities, (rows, horizon, size) for each variable one after another.
        table_starts: where each variable's table begins.
    """

    variables: Ints  # (f,)
    horizon: int
    sizes: Ints  # (m,)
    parent_starts: Ints  # (f + 1,)
    parents: Ints
    lookup_starts: Ints  # (f + 1,)
    lookup: NDArray[np.int32]
    table_starts: Ints  # (f + 1,)
    tables: NDArray[np.float32]

    @classmethod
    def fit(
        cls,
        rollouts: Rollouts,
        sizes: IntArray,
        parents: dict[int, Sequence[int]],
        horizon: int,
        *,
        memory: MaskMemory | None = None,
    ) -> Forecasts:
        """Count in ``rollouts``.

        Args:
            rollouts: exogenous trajectories.
            sizes: of their variables.
            parents: the forecast parents of each variable to forecast, besides itself.
            horizon: how far to forecast.
            memory: of these rollouts, to share with other masks; by default a new one.
        """
        all_sizes: Ints = np.asarray(sizes, dtype=np.int64)
        memory = MaskMemory.fresh(len(all_sizes)) if memory is None else memory
        by_variable = cache(lambda: np.ascontiguousarray(np.moveaxis(rollouts, -1, 0)))
        lookups, tables, chosen = [], [], []
        for i, others in parents.items():
            looked_at = (i, *(j for j in others if j != i))
            lookup, table = memory.memory.forecasts.get(
                (horizon, *memory.key(looked_at)),
                partial(_fit_one, by_variable, all_sizes, looked_at, horizon),
            )
            lookups.append(lookup)
            tables.append(table.reshape(-1))
            chosen.append(np.array(looked_at, dtype=np.int64))
        return cls(
            np.array(list(parents), dtype=np.int64),
            horizon,
            all_sizes,
            starts_of(chosen),
            join(chosen, np.int64),
            starts_of(lookups),
            join(lookups, np.int32),
            starts_of(tables),
            join(tables, np.float32),
        )

    def rows(self, exogenous: IntArray) -> Ints:
        """Where the forecasts of a batch (B, m) begin in ``tables``, shape (B, f)."""
        return _rows(
            exogenous,
            self.horizon,
            self.variables,
            self.sizes,
            self.parent_starts,
            self.parents,
            self.lookup_starts,
            self.lookup,
            self.table_starts,
        )

    def probabilities(self, exogenous: IntArray, which: int) -> NDArray[np.float32]:
        """The forecast of the which-th variable for a batch, shape (B, horizon, size)."""
        size = int(self.sizes[self.variables[which]])
        starts = self.rows(exogenous)[:, which]
        block = np.arange(self.horizon * size)
        return self.tables[starts[:, None] + block].reshape(len(starts), self.horizon, size)


def _fit_one(
    by_variable: Callable[[], Rollouts], sizes: Ints, parents: tuple[int, ...], horizon: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The lookup and the table (rows, horizon, size) of the first of its forecast parents."""
    size = int(sizes[parents[0]])
    num_values = math.prod(int(sizes[j]) for j in parents)
    if num_values > MAX_JOINT_VALUES:
        raise ValueError(f"forecast parents of {num_values} joint values are too many to look up")
    values = by_variable()[parents[0]]
    joint = values.astype(np.int32)
    for j in parents[1:]:
        joint *= sizes[j]
        joint += by_variable()[j]
    lookup, group = _number(joint, num_values, size)
    counts = _count(lookup, joint, values, len(group), size, horizon)
    own = _sum(counts, group, size)
    marginal = own.sum(axis=0) + 1.0 / size
    marginal /= marginal.sum(axis=-1, keepdims=True)
    coarse = np.empty((size, horizon, size))
    _shrink(own, marginal[None], np.zeros(size, dtype=np.int64), coarse)
    if len(parents) == 1:
        return np.arange(size, dtype=np.int32), coarse.astype(np.float32)
    table = np.empty((len(group) + size, horizon, size), dtype=np.float32)
    _shrink(counts, coarse, group, table)
    table[len(group) :] = coarse
    return lookup, table


@njit(cache=True)
def _number(joint: Any, num_values: int, size: int) -> Any:
    """The row of every joint value, and the own value in each row of one that occurs.

    Joint values that never occur share the rows of the variable's own values, behind the others.
    """
    rows = np.full(num_values, -1, np.int32)
    for value in joint.flat:
        rows[value] = 0
    own = np.empty((rows == 0).sum(), np.int64)
    found = 0
    for value in range(num_values):
        own_value = value // (num_values // size)
        if rows[value] < 0:
            rows[value] = len(own) + own_value
        else:
            own[found] = own_value
            rows[value] = found
            found += 1
    return rows, own


@njit(cache=True)
def _count(lookup: Any, joint: Any, values: Any, rows: int, size: int, horizon: int) -> Any:
    """How often each value came h = 1 ... horizon steps after each row."""
    counts = np.zeros((rows, horizon, size), np.int32)
    rollouts, steps = values.shape
    for r in range(rollouts):
        for t in range(steps):
            here = counts[lookup[joint[r, t]]]
            for h in range(min(horizon, steps - 1 - t)):
                here[h, values[r, t + 1 + h]] += 1
    return counts


@njit(cache=True)
def _sum(counts: Any, groups: Any, num_groups: int) -> Any:
    """The counts of groups of rows."""
    out = np.zeros((num_groups, *counts.shape[1:]))
    for row in range(len(counts)):
        out[groups[row]] += counts[row]
    return out


@njit(cache=True)
def _shrink(counts: Any, coarser: Any, groups: Any, out: Any) -> None:
    """Frequencies, with ``SHRINKAGE`` samples' worth of the coarser distribution."""
    rows, horizon, size = counts.shape
    for row in range(rows):
        for h in range(horizon):
            total = SHRINKAGE
            for v in range(size):
                total += counts[row, h, v]
            for v in range(size):
                near = SHRINKAGE * coarser[groups[row], h, v]
                out[row, h, v] = (counts[row, h, v] + near) / total


@njit(cache=True)
def _rows(
    x: Any,
    horizon: int,
    variables: Any,
    sizes: Any,
    parent_starts: Any,
    parents: Any,
    lookup_starts: Any,
    lookup: Any,
    table_starts: Any,
) -> Any:
    out = np.empty((x.shape[0], len(variables)), np.int64)
    for lane in range(x.shape[0]):
        for f in range(len(variables)):
            value = 0
            for k in range(parent_starts[f], parent_starts[f + 1]):
                value = value * sizes[parents[k]] + x[lane, parents[k]]
            row = lookup[lookup_starts[f] + value]
            out[lane, f] = table_starts[f] + row * horizon * sizes[variables[f]]
    return out
