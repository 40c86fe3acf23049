"""Forecasts: the distribution of each variable h steps ahead, given a few variables now.

The joint transition of a large mask cannot be tabulated, and chaining one-step tables would treat
dependent variables as independent again and again. A forecast asks the rollouts directly: where
variable i stood h steps after its *forecast parents*, itself and a few others, had these values.
Rare values of the parents lean on the variable's own value, and that on its overall distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import njit
from exo_envs.compiled.ranges import ROUNDING
from exo_envs.core.arguments import check_whole, exact, exact_reals
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import FloatArray, IntArray
from planners.core.arrays import Ints, joint_index
from planners.core.memory import MORE_BYTES, Key, Memory, Shelf

Rollouts = NDArray[np.integer[Any]]  # (rollouts, steps + 1, m)

#: The weight of the coarser forecast in a finer one, in samples.
SHRINKAGE_SAMPLES = 4.0
#: Steps ahead that forecasts may go.
MAX_HORIZON = 1_000_000
#: Joint values that the forecast parents of a variable may have.
MAX_JOINT_VALUES = 4_000_000


def _looked_at(key: Key) -> list[int]:
    return list(key[2:])


#: (horizon, number of rollouts, *forecast parents) -> the row of each of their joint values, and
#: the table. Fewer rollouts are those that are not held out.
FORECASTS = Shelf[Key, tuple[NDArray[np.int32], NDArray[np.float32]]](
    "forecasts", MORE_BYTES, about=_looked_at
)


class Forecasts(NamedTuple):
    """P(x_i at t + h | its forecast parents at t) for some variables i and h = 1 ... horizon.

    The tables of a large mask take tens of megabytes, and those of similar masks are mostly the
    same: the arrays of a variable are shared by all masks in which it looks at the same.
    """

    variables: Ints  # (f,): those that are forecast
    horizon: int
    sizes: Ints  # (m,): of all variables of the mask
    parents: tuple[Ints, ...]  # the forecast parents of each variable, itself first
    lookups: tuple[NDArray[np.int32], ...]  # of each, joint value of the parents -> row
    tables: tuple[NDArray[np.float32], ...]  # of each, (rows, horizon, size)

    @classmethod
    def fit(
        cls,
        rollouts: Rollouts,
        sizes: Ints,
        parents: Mapping[int, Sequence[int]],
        horizon: int,
        memory: Memory,
    ) -> Forecasts:
        """Count in ``rollouts``, which ``memory`` is about.

        ``parents`` are those of each variable to forecast, besides itself.
        """
        by_variable = cache(lambda: np.ascontiguousarray(np.moveaxis(rollouts, -1, 0)))
        chosen, found = [], []
        for i, others in parents.items():
            looked_at = (i, *(j for j in others if j != i))
            key = (horizon, len(rollouts), *memory.key(looked_at))
            if (fitted := memory.find(FORECASTS, key)) is None:
                fitted = _fit_one(by_variable, sizes, looked_at, horizon)
                memory.keep(FORECASTS, key, fitted)
            found.append(fitted)
            chosen.append(np.array(looked_at, dtype=np.int64))
        lookups, tables = zip(*found, strict=True) if found else ((), ())
        variables = np.array(list(parents), dtype=np.int64)
        return cls(variables, horizon, sizes, tuple(chosen), lookups, tables)

    def check(self) -> None:
        """Refuse arrays that do not belong together, such as those of a damaged file."""
        sizes = exact("sizes", self.sizes, least=1, below=2**31)
        count = len(exact("variables", self.variables, below=len(sizes)))
        check_whole("horizon", self.horizon, 1, MAX_HORIZON)
        if {len(own) for own in (self.parents, self.lookups, self.tables)} != {count}:
            raise ArgumentError(f"{count} variables have as many parents, lookups and tables")
        for i, own, lookup, table in zip(
            self.variables.tolist(), self.parents, self.lookups, self.tables, strict=True
        ):
            parents = exact(f"the parents of variable {i}", own, below=len(sizes))
            shape = (-1, self.horizon, int(sizes[i]))
            joint = math.prod(sizes[parents].tolist())
            name = f"the table of variable {i}"
            exact_reals(name, table, (len(table), *shape[1:]), low=0.0, high=1.0 + ROUNDING)
            if not len(parents) or parents[0] != i or lookup.shape != (joint,):
                raise ArgumentError(
                    f"the forecast of variable {i} looks at {parents.tolist()} of {joint} joint "
                    f"values, and has a lookup of shape {lookup.shape}"
                )
            exact(f"the lookup of variable {i}", lookup, 0, len(table), dtype=np.int32)

    def probabilities(self, exogenous: IntArray, which: int) -> NDArray[np.float32]:
        """The forecast of the which-th variable for a batch, shape (B, horizon, size)."""
        which = check_whole("which", which, 0, len(self.variables) - 1)
        parents = self.parents[which]
        x = np.clip(exogenous, 0, self.sizes - 1).astype(np.int64)
        joint = joint_index(x[:, parents], self.sizes[parents])
        found: NDArray[np.float32] = self.tables[which][self.lookups[which][joint]]
        return found


def _fit_one(
    by_variable: Callable[[], Rollouts], sizes: Ints, parents: tuple[int, ...], horizon: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The lookup and the table (rows, horizon, size) of the first of its forecast parents."""
    size = int(sizes[parents[0]])
    num_values = math.prod(int(sizes[j]) for j in parents)
    if num_values > MAX_JOINT_VALUES:
        raise ArgumentError(
            f"forecast parents of {num_values} joint values are too many to look up"
        )
    values = by_variable()[parents[0]]
    joint = values.astype(np.int32)
    for j in parents[1:]:
        joint *= sizes[j]
        joint += by_variable()[j]
    # Joint values that never occur share the rows of the own values, behind the others.
    occurs = np.zeros(num_values, dtype=np.bool_)
    occurs[joint.reshape(-1)] = True
    own_values = np.arange(num_values, dtype=np.int32) // (num_values // size)
    group = own_values[occurs]
    lookup = np.where(occurs, occurs.cumsum(dtype=np.int32) - 1, len(group) + own_values)
    all_counts = np.zeros((len(group) + size, horizon, size), dtype=np.int32)
    counts = all_counts[: len(group)]
    _count(lookup, joint, values, counts)
    # Joint values come in the order of the own value.
    of_value = [slice(*bounds) for bounds in pairwise(np.searchsorted(group, np.arange(size + 1)))]
    own = np.stack([counts[rows].sum(axis=0, dtype=np.float64) for rows in of_value])
    marginal = own.sum(axis=0) + 1.0 / size
    coarse = _shrunk(own, marginal / marginal.sum(axis=-1, keepdims=True))
    if len(parents) == 1:
        return np.arange(size, dtype=np.int32), coarse.astype(np.float32)
    table = all_counts.view(np.float32)  # in place of the counts: most time goes into new memory
    for rows, coarser in zip(of_value, coarse, strict=True):
        table[rows] = _shrunk(counts[rows], coarser)
    table[len(group) :] = coarse
    return lookup, table


def _shrunk(counts: NDArray[Any], coarser: FloatArray) -> FloatArray:
    """Frequencies, with ``SHRINKAGE_SAMPLES`` of the coarser distribution among the samples."""
    total = SHRINKAGE_SAMPLES + counts.sum(axis=-1, keepdims=True)
    frequencies: FloatArray = (counts + SHRINKAGE_SAMPLES * coarser) / total
    return frequencies


@njit(cache=True)
def _count(lookup: Any, joint: Any, values: Any, counts: Any) -> None:
    """Add how often each value came h = 1 ... horizon steps after each row."""
    horizon = counts.shape[1]
    rollouts, steps = values.shape
    for r in range(rollouts):
        for t in range(steps):
            here = counts[lookup[joint[r, t]]]
            for h in range(min(horizon, steps - 1 - t)):
                here[h, values[r, t + 1 + h]] += 1
