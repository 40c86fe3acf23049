"""Information between all pairs of variables, now and a step later, counted many at a time.

What one variable tells about another is a table of counts away, and for m variables there are m^2
tables. Where nothing is conditioned on, pairs of variables of few values are counted all at once
(:mod:`planners.dependence.indicators`). Otherwise the samples of a target, and of what it is
conditioned on, are numbered by their joint value once
(:class:`~planners.dependence.contingency.Cases`); then every candidate is counted against these
numbers in the way that suits its table:

* two values and few cases: a bit for each sample, and populations of bits that both have;
* tables that fit in the cache: counted whole, from contiguous columns;
* large tables: row by row, where only cells that are counted in are ever touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.threads import in_parts
from exo_envs.core.arguments import as_positions, check_kind
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import FloatArray, IntArray
from planners.core.arrays import Ints
from planners.dependence import counting_kernels as kernels
from planners.dependence.contingency import SMALL_TABLE, Cases, Rows
from planners.dependence.g_statistic import sparse_information
from planners.dependence.indicators import by_indicators, indicator_information
from planners.samples.rollouts import ExogenousData

#: Cases that are counted as bits at most; with more of them a table is faster.
MAX_BIT_CASES = 128
#: Binary candidates that it takes to make turning the cases into bits worth while.
MIN_BIT_COLUMNS = 4
#: Cells, in all and per sample, of a table that is counted whole: of a larger one most are empty.
LARGE_TABLE, CELLS_PER_SAMPLE = 2**15, 4
#: Contiguous columns are kept if those of all variables take at most this many bytes.
KEPT_BYTES = 2**27
#: Contiguous columns that are not kept are made in a buffer of this many bytes.
BUFFER_BYTES = 2**22
#: Samples, over all candidates whose tables are counted, that make a second thread worth while.
SAMPLES_PER_THREAD = 2**22


class PairwiseInformation(NamedTuple):
    """What each variable now tells about each target a step later."""

    statistic: FloatArray  # (t, m): G, twice the samples times the plug-in mutual information
    freedom: FloatArray  # (t, m): its degrees of freedom, of the values that occur
    samples: int  # the transitions that were counted

    @property
    def plug_in(self) -> FloatArray:
        """The plug-in estimate of the (conditional) mutual information, in nats."""
        return self.statistic / (2.0 * self.samples)

    @property
    def corrected(self) -> FloatArray:
        """The same less its bias under independence, freedom / (2 samples), not below 0."""
        return np.maximum(0.0, self.statistic - self.freedom) / (2.0 * self.samples)


def pairwise_information(
    data: ExogenousData,
    targets: Sequence[int] | IntArray | None = None,
    given_self: bool = False,
    rollouts: Sequence[int] | IntArray | None = None,
) -> PairwiseInformation:
    """I(x_j ; x'_i), or I(x_j ; x'_i | x_i), for every variable j now and target i a step later.

    The work is proportional to targets times variables times transitions, with a factor from
    about 0.01 ns (two binary variables) to 1 ns, and several for tables of many thousand cells.

    Args:
        data: the rollouts.
        targets: the positions of the targets in the data; by default all variables, which for m
            of them makes m^2 results.
        given_self: whether to condition on the target's own present value.
        rollouts: which rollouts to count; by default all.

    >>> values = np.array([[[0, 0], [1, 0], [0, 1], [1, 0], [0, 1]]])  # one rollout, x1' = x0
    >>> no_n = np.zeros((1, 0), dtype=np.int64)
    >>> data = ExogenousData(("x0", "x1"), np.array([2, 2]), values, no_n, seed=0)
    >>> pairwise_information(data, targets=[1]).plug_in.round(3)
    array([[0.693, 0.216]])
    """
    check_kind("data", data, ExogenousData)
    variables = len(data.names)
    wanted = as_positions("targets", targets, variables)
    chosen = as_positions("rollouts", rollouts, data.num_rollouts)
    samples = len(chosen) * data.num_steps
    if samples == 0:
        raise ArgumentError("there is nothing to count: no transition in the chosen rollouts")
    columns = Columns.of(data, chosen)
    statistic, freedom = np.empty((2, len(wanted), variables))
    by_bits = np.zeros((len(wanted), variables), dtype=bool)
    if not given_self:
        by_bits = by_indicators(data.sizes[wanted], data.sizes)
        indicator_information(columns, wanted, MAX_BIT_CASES, statistic, freedom)
    for t, i in enumerate(wanted.tolist()):
        rest = np.flatnonzero(~by_bits[t])
        if not len(rest):
            continue
        size = int(data.sizes[i])
        rows = Rows.of(samples)
        if given_self:
            rows = rows.split(data.before(i, chosen), size)
        cases = Cases(rows, data.after(i, chosen), size)
        statistic[t, rest], freedom[t, rest] = columns.information(cases, rest)
    return PairwiseInformation(statistic, freedom, samples)


@dataclass(eq=False)
class Columns:
    """Values of many variables in the same samples: a column each, counted against any cases."""

    values: NDArray[np.integer[Any]]  # (states, variables)
    states: NDArray[np.uint64]  # (samples,): the row of ``values`` that each sample is
    sizes: Ints  # (variables,): how many values each has
    pays_to_pack: bool = True  # whether columns are counted against often enough to make bits

    @classmethod
    def of(cls, data: ExogenousData, rollouts: IntArray) -> Columns:
        """All variables now, in the transitions of some rollouts; copies nothing."""
        rows = data.num_rollouts * (data.num_steps + 1)  # not -1: there may be no variables
        values = np.ascontiguousarray(data.values).reshape(rows, len(data.names))
        starts = np.asarray(rollouts, dtype=np.int64)[:, None] * (data.num_steps + 1)
        states = (starts + np.arange(data.num_steps)).reshape(-1)
        return cls(values, states.astype(np.uint64), data.sizes)

    @classmethod
    def contiguous(cls, columns: IntArray, size: int) -> Columns:
        """Some columns of the same size that are contiguous already, shape (variables, samples)."""
        states = np.arange(columns.shape[1], dtype=np.uint64)
        new = cls(columns.T, states, np.full(len(columns), size, dtype=np.int64), False)
        new._kept = columns, np.ones(len(columns), dtype=bool)
        return new

    @property
    def nbytes(self) -> int:
        """The bytes that the copies of the columns take once all of them are made."""
        copies = self.values.itemsize * len(self.states) * len(self.sizes)
        bits = np.count_nonzero(self.sizes == 2) * len(self.states) // 8
        return (copies if copies <= KEPT_BYTES else 0) + int(bits)

    def information(self, cases: Cases, candidates: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """G of each candidate and the target given the rows, and its degrees of freedom."""
        candidates = candidates.astype(np.int64)
        statistic, freedom = np.zeros((2, len(candidates)))
        if cases.count == cases.rows.count:
            return statistic, freedom
        sizes = self.sizes[candidates]
        by_bits = sizes == 2
        if not self.pays_to_pack or cases.count > MAX_BIT_CASES or by_bits.sum() < MIN_BIT_COLUMNS:
            by_bits[:] = False
        else:
            statistic[by_bits], freedom[by_bits] = self._by_bits(cases, candidates[by_bits])
        largest = max(SMALL_TABLE, min(LARGE_TABLE, CELLS_PER_SAMPLE * len(cases.rows.row)))
        is_large = sizes * cases.count > largest
        for which, way in ((~by_bits & ~is_large, _by_tables), (~by_bits & is_large, _by_rows)):
            for part, laid_out, slots in self._laid_out(np.flatnonzero(which), candidates):
                statistic[part], freedom[part] = way(cases, laid_out, slots, sizes[part])
        return np.maximum(statistic, 0.0, out=statistic), freedom

    def column(self, j: int) -> IntArray:
        """The values of one variable, shape (samples,)."""
        ((_, laid_out, slots),) = self._laid_out(np.zeros(1, np.intp), np.array([j]))
        return np.asarray(laid_out[slots[0]])

    def _by_bits(self, cases: Cases, candidates: Ints) -> Any:
        packed, population, is_packed, slots = self._bits
        new = np.unique(candidates[~is_packed[candidates]])
        if len(new):
            kernels.pack_columns(self.values, self.states, new, slots[new], packed, population)
            is_packed[new] = True
        own = slots[candidates]
        return kernels.bit_information(packed, population, own, cases.bits, cases.counted)

    def _laid_out(
        self, which: NDArray[np.intp], candidates: Ints
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[Any], Ints]]:
        """Some of the candidates, contiguous arrays, and which of these are theirs."""
        if not len(which):
            return
        column_bytes = len(self.states) * self.values.itemsize
        if column_bytes * len(self.sizes) <= KEPT_BYTES:
            kept, is_kept = self._kept
            columns = candidates[which]
            new = columns[~is_kept[columns]]
            if len(new):  # neighbouring columns share a cache line, so they are copied too
                blocks = np.arange(len(self.sizes)) // kernels.BLOCK
                new = np.flatnonzero(np.isin(blocks, new // kernels.BLOCK) & ~is_kept)
                kernels.lay_out(self.values, self.states, new, new, kept)
                is_kept[new] = True
            yield which, kept, columns
            return
        block = max(1, min(len(which), BUFFER_BYTES // column_bytes))
        buffer = np.empty((block, len(self.states)), self.values.dtype)
        for begin in range(0, len(which), block):
            part = which[begin : begin + block]
            slots = np.arange(len(part))
            kernels.lay_out(self.values, self.states, candidates[part], slots, buffer)
            yield part, buffer, slots

    @cached_property
    def _kept(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Contiguous columns, and which of them are filled."""
        kept = np.empty((len(self.sizes), len(self.states)), self.values.dtype)
        return kept, np.zeros(len(self.sizes), dtype=bool)

    @cached_property
    def _bits(self) -> tuple[NDArray[np.uint64], Ints, NDArray[np.bool_], Ints]:
        """The bits of binary variables, how many are set, which variables' are known, and where.

        Memory that is not written to is not taken from the machine. The bits of binary variables
        are beside each other, because it is taken in pages that are larger than those of one.
        """
        is_binary, words = self.sizes == 2, -(-len(self.states) // 64)
        slots = np.cumsum(is_binary) - 1
        number = int(np.count_nonzero(is_binary))
        packed = np.zeros((number, words), dtype=np.uint64)
        known = np.zeros(len(self.sizes), dtype=bool)
        return packed, np.zeros(number, dtype=np.int64), known, slots


def _by_tables(cases: Cases, laid_out: NDArray[Any], slots: Ints, sizes: Ints) -> Any:
    """The candidates are shared by as many threads as Numba may use, if there are many samples."""
    found, counted = np.empty((2, len(slots))), cases.counted

    def part(first: int, last: int) -> None:
        own = slice(first, last)
        kernels.table_information(laid_out, slots[own], sizes[own], counted, *found[:, own])

    in_parts(part, len(slots), least=max(1, SAMPLES_PER_THREAD // len(cases.rows.row)))
    return found


def _by_rows(cases: Cases, laid_out: NDArray[Any], slots: Ints, sizes: Ints) -> Any:
    rows, target = cases.rows.grouped, (cases.target, cases.size)
    columns = zip(slots.tolist(), sizes.tolist(), strict=True)
    found = [sparse_information(*rows, *target, laid_out[slot], size) for slot, size in columns]
    return np.array(found).T
