"""Forecasts: the distribution of each variable h steps ahead, given a few variables now.

The joint transition of a large mask cannot be tabulated, and chaining one-step tables would treat
dependent variables as independent again and again. A forecast asks the rollouts directly: where
variable i stood h steps after its *forecast parents*, itself and a few others, had these values.
Rare values of the parents lean on the variable's own value, and that on its overall distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import njit
from exo_envs.compiled.ranges import ROUNDING
from exo_envs.core.arguments import check_whole, exact, exact_reals, exact_starts
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import IntArray
from planners.core.arrays import Ints, join, joint_index, starts_of
from planners.core.memory import LARGE, Key, Memory, Shelf

Rollouts = NDArray[np.integer[Any]]  # (rollouts, steps + 1, m)

#: The weight of the coarser forecast in a finer one, in samples.
SHRINKAGE = 4.0
#: Steps ahead that forecasts may go.
MAX_HORIZON = 1_000_000
#: Joint values that the forecast parents of a variable may have.
MAX_JOINT_VALUES = 4_000_000


def _looked_at(key: Key) -> list[int]:
    return list(key[2:])


#: (horizon, number of rollouts, *forecast parents) -> the row of each of their joint values, and
#: the table. Fewer rollouts are those that are not held out.
FORECASTS = Shelf[Key, tuple[NDArray[np.int32], NDArray[np.float32]]](
    "forecasts", LARGE, about=_looked_at
)


class Forecasts(NamedTuple):
    """P(x_i at t + h | its forecast parents at t) for some variables i and h = 1 ... horizon.

    What belongs to each variable is kept one variable after another.
    """

    variables: Ints  # (f,): those that are forecast
    horizon: int
    sizes: Ints  # (m,): of all variables of the mask
    parent_starts: Ints  # (f + 1,)
    parents: Ints  # the forecast parents of each variable, itself first
    lookup_starts: Ints  # (f + 1,)
    lookup: NDArray[np.int32]  # joint value of the parents -> row
    table_starts: Ints  # (f + 1,)
    tables: NDArray[np.float32]  # the probabilities, (rows, horizon, size) of each variable

    @classmethod
    def fit(
        cls,
        rollouts: Rollouts,
        sizes: Ints,
        parents: Mapping[int, Sequence[int]],
        horizon: int,
        memory: Memory,
    ) -> Forecasts:
        """Count in ``rollouts``.

        Args:
            rollouts: exogenous trajectories.
            sizes: of their variables.
            parents: the forecast parents of each variable to forecast, besides itself.
            horizon: how far to forecast.
            memory: of these rollouts.
        """
        chosen, lookups, tables = [], [], []
        for looked_at, lookup, table in fit_tables(rollouts, sizes, parents, horizon, memory):
            chosen.append(looked_at)
            lookups.append(lookup)
            tables.append(table.reshape(-1))
        laid_out: list[Any] = []
        for pieces, dtype in ((chosen, np.int64), (lookups, np.int32), (tables, np.float32)):
            laid_out += [starts_of(pieces), join(pieces, dtype)]
        return cls(np.array(list(parents), dtype=np.int64), horizon, sizes, *laid_out)

    def check(self) -> None:
        """Refuse arrays that do not belong together, such as those of a damaged file."""
        sizes = exact("sizes", self.sizes, least=1, below=2**31)
        count = len(exact("variables", self.variables, below=len(sizes)))
        check_whole("horizon", self.horizon, 1, MAX_HORIZON)
        parents = exact("parents", self.parents, below=len(sizes))
        lookup = exact("lookup", self.lookup, dtype=np.int32)
        tables = exact_reals("tables", self.tables, low=0.0, high=1.0 + ROUNDING)
        pieces = (
            exact_starts("parent_starts", self.parent_starts, count, len(parents), at_least=1),
            exact_starts("lookup_starts", self.lookup_starts, count, len(lookup), at_least=1),
            exact_starts("table_starts", self.table_starts, count, len(tables), at_least=1),
        )
        for f, variable in enumerate(self.variables.tolist()):
            own, values, table = (slice(*starts[f : f + 2].tolist()) for starts in pieces)
            joint = math.prod(sizes[parents[own]].tolist())
            rows, left = divmod(table.stop - table.start, self.horizon * int(sizes[variable]))
            if parents[own.start] != variable or joint != values.stop - values.start or left:
                raise ArgumentError(
                    f"the forecast of variable {variable} looks at {parents[own].tolist()} of "
                    f"{joint} joint values; {values.stop - values.start} are looked up in a table "
                    f"of {table.stop - table.start} probabilities"
                )
            exact(f"the lookup of variable {variable}", lookup[values], 0, rows, dtype=np.int32)

    def probabilities(self, exogenous: IntArray, which: int) -> NDArray[np.float32]:
        """The forecast of the which-th variable for a batch, shape (B, horizon, size)."""
        which = check_whole("which", which, 0, len(self.variables) - 1)
        parents = self.parents[slice(*self.parent_starts[which : which + 2])]
        x = np.clip(exogenous, 0, self.sizes - 1).astype(np.int64)
        joint = joint_index(x[:, parents], self.sizes[parents])
        tables = self.tables[slice(*self.table_starts[which : which + 2])]
        tables = tables.reshape(-1, self.horizon, int(self.sizes[self.variables[which]]))
        return tables[self.lookup[self.lookup_starts[which] + joint]]


def fit_tables(
    rollouts: Rollouts,
    sizes: Ints,
    parents: Mapping[int, Sequence[int]],
    horizon: int,
    memory: Memory,
) -> Iterator[tuple[Ints, NDArray[np.int32], NDArray[np.float32]]]:
    """For each variable what its forecast looks at, the lookup and the table, as remembered."""
    by_variable = cache(lambda: np.ascontiguousarray(np.moveaxis(rollouts, -1, 0)))
    for i, others in parents.items():
        looked_at = (i, *(j for j in others if j != i))
        lookup, table = memory.get(
            FORECASTS,
            (horizon, len(rollouts), *memory.key(looked_at)),
            partial(_fit_one, by_variable, sizes, looked_at, horizon),
        )
        yield np.array(looked_at, dtype=np.int64), lookup, table


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
    lookup, group = _number(joint, num_values, size)
    all_counts = np.zeros((len(group) + size, horizon, size), dtype=np.int32)
    counts = all_counts[: len(group)]
    _count(lookup, joint, values, counts)
    bounds = np.searchsorted(group, np.arange(size + 1))  # joint values come in this order
    own = np.stack([counts[a:b].sum(axis=0, dtype=np.float64) for a, b in pairwise(bounds)])
    marginal = own.sum(axis=0) + 1.0 / size
    marginal /= marginal.sum(axis=-1, keepdims=True)
    coarse = np.empty((size, horizon, size))
    _shrink(own, marginal[None], np.zeros(size, dtype=np.int64), coarse)
    if len(parents) == 1:
        return np.arange(size, dtype=np.int32), coarse.astype(np.float32)
    table = all_counts.view(np.float32)  # in place of the counts: most time goes into new memory
    _shrink(counts, coarse, group, table[: len(group)])
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
    occur = 0
    for value in range(num_values):
        occur += rows[value] == 0
    own = np.empty(occur, np.int64)
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
def _count(lookup: Any, joint: Any, values: Any, counts: Any) -> None:
    """Add how often each value came h = 1 ... horizon steps after each row."""
    horizon = counts.shape[1]
    rollouts, steps = values.shape
    for r in range(rollouts):
        for t in range(steps):
            here = counts[lookup[joint[r, t]]]
            for h in range(min(horizon, steps - 1 - t)):
                here[h, values[r, t + 1 + h]] += 1


@njit(cache=True)
def _shrink(counts: Any, coarser: Any, groups: Any, out: Any) -> None:
    """Frequencies, with ``SHRINKAGE`` samples' worth of the coarser distribution.

    They may take the place of the counts: each is read before anything is written over it.
    """
    rows, horizon, size = counts.shape
    for row in range(rows):
        for h in range(horizon):
            total = SHRINKAGE
            for v in range(size):
                total += counts[row, h, v]
            for v in range(size):
                near = SHRINKAGE * coarser[groups[row], h, v]
                out[row, h, v] = (counts[row, h, v] + near) / total
