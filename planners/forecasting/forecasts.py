"""Forecasts: the distribution of each variable h steps ahead, given a few variables now.

The joint transition of a large mask cannot be tabulated, and chaining one-step tables would treat
dependent variables as independent again and again. A forecast asks the rollouts directly: where
variable i stood h steps after its context (itself and a few parents) had this value. Rare
contexts lean on the variable's own value, and that on its overall distribution.
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
from planners.arrays import Ints
from planners.information.rollouts import Memo

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
        memo: Memo | None = None,
    ) -> Forecasts:
        """Count in ``rollouts``; ``parents[i]`` is the context of variable i besides itself.

        What is in the ``memo``, if one is given, was counted in these rollouts before.
        """
        all_sizes: Ints = np.asarray(sizes, dtype=np.int64)
        memo = Memo.empty(len(all_sizes)) if memo is None else memo
        by_variable = cache(lambda: np.ascontiguousarray(np.moveaxis(rollouts, -1, 0)))
        contexts, tables, chosen = [], [], []
        for i, others in parents.items():
            context = (i, *(j for j in others if j != i))
            fit = partial(_fit_one, by_variable, all_sizes, context, horizon)
            rows, table = memo.get("forecast", context, fit, setting=horizon)
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
    by_variable: Callable[[], Rollouts], sizes: Ints, context: tuple[int, ...], horizon: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The context lookup and the table (rows, horizon, size) of one variable."""
    size = int(sizes[context[0]])
    num_contexts = math.prod(int(sizes[j]) for j in context)
    if num_contexts > MAX_CONTEXTS:
        raise ValueError(f"a context of {num_contexts} values is too large to look up")
    values = by_variable()[context[0]]
    joint = values.astype(np.int32)
    for j in context[1:]:
        joint *= sizes[j]
        joint += by_variable()[j]
    contexts, group = _number(joint, num_contexts, size)
    counts = _count(contexts, joint, values, len(group), size, horizon)
    own = _sum(counts, group, size)
    marginal = own.sum(axis=0) + 1.0 / size
    marginal /= marginal.sum(axis=-1, keepdims=True)
    coarse = np.empty((size, horizon, size))
    _shrink(own, marginal[None], np.zeros(size, dtype=np.int64), coarse)
    if len(context) == 1:
        return np.arange(size, dtype=np.int32), coarse.astype(np.float32)
    table = np.empty((len(group) + size, horizon, size), dtype=np.float32)
    _shrink(counts, coarse, group, table)
    table[len(group) :] = coarse
    return contexts, table


@njit(cache=True)
def _number(joint: Any, num_contexts: int, size: int) -> Any:
    """The row of every context, and the own value in each row of a context that occurs.

    Contexts that never occur share the rows of the variable's own values, behind the others.
    """
    rows = np.full(num_contexts, -1, np.int32)
    for context in joint.flat:
        rows[context] = 0
    own = np.empty((rows == 0).sum(), np.int64)
    found = 0
    for context in range(num_contexts):
        value = context // (num_contexts // size)
        if rows[context] < 0:
            rows[context] = len(own) + value
        else:
            own[found] = value
            rows[context] = found
            found += 1
    return rows, own


@njit(cache=True)
def _count(contexts: Any, joint: Any, values: Any, rows: int, size: int, horizon: int) -> Any:
    """How often each value came h = 1 ... horizon steps after each row."""
    counts = np.zeros((rows, horizon, size), np.int32)
    rollouts, steps = values.shape
    for r in range(rollouts):
        for t in range(steps):
            here = counts[contexts[joint[r, t]]]
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
