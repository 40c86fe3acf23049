"""Forecasts: the distribution of each variable h steps ahead, given a few variables now.

The joint transition of a large mask cannot be tabulated, and chaining one-step tables would treat
dependent variables as independent again and again. A forecast asks the rollouts directly: where
variable i stood h steps after its context (itself and a few parents) had this value. Rare
contexts lean on the variable's own value, and that on its overall distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from exo_envs.mdp import IntArray

Ints = NDArray[np.int64]
Rollouts = NDArray[np.integer[Any]]  # (rollouts, steps + 1, m)

#: The weight of the coarser forecast in a context's forecast, in samples.
SHRINKAGE = 4.0
#: Contexts are looked up in an array of this many entries at most.
MAX_CONTEXTS = 4_000_000


@dataclass(frozen=True)
class Forecasts:
    """P(x_i at t + h | context of i at t) for some variables i and h = 1 ... horizon.

    Attributes:
        variables: the variables that are forecast.
        horizon: how far.
        sizes: of all variables of the mask.
        parents: the context of each forecast variable, itself first.
        contexts: context -> row, for each forecast variable one after another.
        context_starts: where each variable's contexts begin.
        tables: the probabilities, (rows, horizon, size) for each variable one after another.
        table_starts: where each variable's table begins.
    """

    variables: Ints  # (f,)
    horizon: int
    sizes: Ints  # (m,)
    parent_starts: Ints  # (f + 1,)
    parents: Ints
    context_starts: Ints  # (f + 1,)
    contexts: NDArray[np.int32]
    table_starts: Ints  # (f + 1,)
    tables: NDArray[np.float32]

    @classmethod
    def fit(
        cls,
        rollouts: Rollouts,
        sizes: IntArray,
        parents: dict[int, Sequence[int]],
        horizon: int,
    ) -> Forecasts:
        """Count in ``rollouts``; ``parents[i]`` is the context of variable i besides itself."""
        all_sizes: Ints = np.asarray(sizes, dtype=np.int64)
        contexts, tables, chosen = [], [], []
        for i, others in parents.items():
            context = (i, *(j for j in others if j != i))
            rows, table = _fit_one(rollouts, all_sizes, context, horizon)
            contexts.append(rows)
            tables.append(table.reshape(-1))
            chosen.append(np.array(context, dtype=np.int64))
        return cls(
            np.array(list(parents), dtype=np.int64),
            horizon,
            all_sizes,
            _starts(chosen),
            _join(chosen, np.int64),
            _starts(contexts),
            _join(contexts, np.int32),
            _starts(tables),
            _join(tables, np.float32),
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
            self.context_starts,
            self.contexts,
            self.table_starts,
        )

    def probabilities(self, exogenous: IntArray, which: int) -> NDArray[np.float32]:
        """The forecast of the which-th variable for a batch, shape (B, horizon, size)."""
        size = int(self.sizes[self.variables[which]])
        starts = self.rows(exogenous)[:, which]
        block = np.arange(self.horizon * size)
        return self.tables[starts[:, None] + block].reshape(len(starts), self.horizon, size)


def _starts(arrays: Sequence[NDArray[Any]]) -> Ints:
    return np.concatenate([[0], np.cumsum([len(a) for a in arrays])]).astype(np.int64)


def _join(arrays: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([*arrays, np.zeros(0, dtype)]).astype(dtype, copy=False)


def _fit_one(
    rollouts: Rollouts, sizes: Ints, context: tuple[int, ...], horizon: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The context lookup and the table (rows, horizon, size) of one variable."""
    i, size = context[0], int(sizes[context[0]])
    num_contexts = math.prod(int(sizes[j]) for j in context)
    if num_contexts > MAX_CONTEXTS:
        raise ValueError(f"a context of {num_contexts} values is too large to look up")
    joint = np.zeros(rollouts.shape[:2], dtype=np.int64)
    for j in context:
        joint = joint * sizes[j] + rollouts[..., j]
    values = np.ascontiguousarray(rollouts[..., i]).astype(np.int64)
    seen, row = np.unique(joint, return_inverse=True)
    row = row.reshape(joint.shape)
    # The last `size` rows know nothing but the variable's own value: for contexts never seen.
    own = _count(values, values, size, size, horizon)
    marginal = own.sum(axis=0) + 1.0 / size
    marginal /= marginal.sum(axis=-1, keepdims=True)
    own = _shrink(own, marginal)
    contexts = (len(seen) + np.arange(num_contexts) // (num_contexts // size)).astype(np.int32)
    contexts[seen] = np.arange(len(seen))
    if len(context) == 1:
        return np.arange(size, dtype=np.int32), own.astype(np.float32)
    counts = _count(row, values, len(seen), size, horizon)
    table = _shrink(counts, own[seen // (num_contexts // size)])
    return contexts, np.concatenate([table, own]).astype(np.float32)


def _shrink(counts: Any, towards: Any) -> Any:
    """Frequencies, with ``SHRINKAGE`` samples' worth of the coarser distribution."""
    return (counts + SHRINKAGE * towards) / (counts.sum(axis=-1, keepdims=True) + SHRINKAGE)


@njit(cache=True)
def _count(row: Any, values: Any, num_rows: int, size: int, horizon: int) -> Any:
    """How often each value came h = 1 ... horizon steps after each row."""
    counts = np.zeros((num_rows, horizon, size))
    rollouts, steps = values.shape
    for r in range(rollouts):
        for t in range(steps):
            here = row[r, t]
            for h in range(1, min(horizon, steps - 1 - t) + 1):
                counts[here, h - 1, values[r, t + h]] += 1.0
    return counts


@njit(cache=True)
def _rows(
    x: Any,
    horizon: int,
    variables: Any,
    sizes: Any,
    parent_starts: Any,
    parents: Any,
    context_starts: Any,
    contexts: Any,
    table_starts: Any,
) -> Any:
    out = np.empty((x.shape[0], len(variables)), np.int64)
    for lane in range(x.shape[0]):
        for f in range(len(variables)):
            context = 0
            for k in range(parent_starts[f], parent_starts[f + 1]):
                context = context * sizes[parents[k]] + x[lane, parents[k]]
            row = contexts[context_starts[f] + context]
            out[lane, f] = table_starts[f] + row * horizon * sizes[variables[f]]
    return out
