"""Forecasts whose tables are shared by all masks that need them.

The tables of a large mask take tens of megabytes, and those of similar masks are mostly the same.
So they are not copied together: each stays where it was counted, and kernels are given the address
of each. Only a file has them one after another (:class:`Forecasts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from exo_envs.core.arguments import check_whole
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import IntArray
from planners.core.arrays import Ints, join, joint_index, starts_of
from planners.core.memory import Memory
from planners.forecasting.forecasts import Forecasts, Rollouts, fit_tables


class Addresses(NamedTuple):
    """Forecasts as kernels read them: the tables by where they are in memory."""

    variables: Ints  # (f,)
    horizon: int
    sizes: Ints  # (m,)
    parent_starts: Ints  # (f + 1,)
    parents: Ints
    lookups: Ints  # (f,): addresses of the rows of joint values, int32
    tables: Ints  # (f,): addresses of the probabilities, float32


@dataclass(frozen=True, eq=False)
class SharedForecasts:
    """The same as :class:`Forecasts`, with arrays of each variable that others may have, too."""

    variables: Ints  # (f,): those that are forecast
    horizon: int
    sizes: Ints  # (m,): of all variables of the mask
    parents: tuple[Ints, ...]  # the forecast parents of each variable, itself first
    lookups: tuple[NDArray[np.int32], ...]  # of each, joint value of the parents -> row
    tables: tuple[NDArray[np.float32], ...]  # of each, (rows, horizon, size)

    def __post_init__(self) -> None:
        """Refuse arrays in which a kernel would read beside the tables."""
        for i, parents, lookup, table in zip(
            self.variables.tolist(), self.parents, self.lookups, self.tables, strict=True
        ):
            shape = (len(table), self.horizon, int(self.sizes[i]))
            sound = (
                lookup.shape == (np.prod(self.sizes[parents], dtype=np.float64),)
                and table.shape == shape
                and lookup.dtype == np.int32
                and table.dtype == np.float32
                and lookup.flags.c_contiguous
                and table.flags.c_contiguous
            )
            if not sound or lookup.min() < 0 or lookup.max() >= len(table):
                raise ArgumentError(
                    f"the forecast of variable {i} has no row for some joint values"
                )

    @classmethod
    def fit(
        cls,
        rollouts: Rollouts,
        sizes: Ints,
        parents: Mapping[int, Sequence[int]],
        horizon: int,
        memory: Memory,
    ) -> SharedForecasts:
        """Count in ``rollouts``; see :meth:`Forecasts.fit`."""
        found = zip(*fit_tables(rollouts, sizes, parents, horizon, memory), strict=True)
        chosen, lookups, tables = (tuple(own) for own in found) if parents else ((), (), ())
        return cls(np.array(list(parents), dtype=np.int64), horizon, sizes, chosen, lookups, tables)

    @classmethod
    def of(cls, given: Forecasts | SharedForecasts) -> SharedForecasts:
        """Parts of the arrays of forecasts, without a copy."""
        if isinstance(given, SharedForecasts):
            return given
        parents, lookups, tables = (
            tuple(own[a:b] for a, b in pairwise(starts.tolist()))
            for own, starts in _laid_out(given)
        )
        shaped = tuple(
            table.reshape(-1, given.horizon, int(given.sizes[i]))
            for i, table in zip(given.variables.tolist(), tables, strict=True)
        )
        return cls(given.variables, given.horizon, given.sizes, parents, lookups, shaped)

    def joined(self) -> Forecasts:
        """All tables one after another, in new arrays."""
        flat = [table.reshape(-1) for table in self.tables]
        laid_out: list[Any] = []
        for pieces, dtype in (
            (self.parents, np.int64),
            (self.lookups, np.int32),
            (flat, np.float32),
        ):
            laid_out += [starts_of(pieces), join(pieces, dtype)]
        return Forecasts(self.variables, self.horizon, self.sizes, *laid_out)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has other addresses."""
        return SharedForecasts, tuple(getattr(self, own.name) for own in fields(self))

    @cached_property
    def addresses(self) -> Addresses:
        """For kernels, as long as this object lives: it keeps the arrays where they are."""
        return Addresses(
            self.variables,
            self.horizon,
            self.sizes,
            starts_of(self.parents),
            join(self.parents, np.int64),
            np.array([own.ctypes.data for own in self.lookups], dtype=np.int64),
            np.array([own.ctypes.data for own in self.tables], dtype=np.int64),
        )

    def probabilities(self, exogenous: IntArray, which: int) -> NDArray[np.float32]:
        """The forecast of the which-th variable for a batch, shape (B, horizon, size)."""
        which = check_whole("which", which, 0, len(self.variables) - 1)
        parents = self.parents[which]
        x = np.clip(exogenous, 0, self.sizes - 1).astype(np.int64)
        joint = joint_index(x[:, parents], self.sizes[parents])
        found: NDArray[np.float32] = self.tables[which][self.lookups[which][joint]]
        return found


def _laid_out(given: Forecasts) -> Iterator[tuple[NDArray[Any], Ints]]:
    """The arrays that hold something of each variable, and where that of each begins."""
    yield given.parents, given.parent_starts
    yield given.lookup, given.lookup_starts
    yield given.tables, given.table_starts


def _reads(kind: Any) -> Any:
    """A function for kernels: the number of this type that is ``index`` behind an address."""

    def typed(_typing: Any, _address: Any, _index: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            address, index = arguments
            pointed = context.get_value_type(kind).as_pointer()
            return builder.load(builder.gep(builder.inttoptr(address, pointed), [index]))

        return kind(types.int64, types.int64), generate

    return intrinsic(typed)


#: In kernels, (address, index) -> one of the probabilities of a table.
probability_at: Any = _reads(types.float32)
#: In kernels, (address, index) -> one of the rows of a lookup.
row_at: Any = _reads(types.int32)
