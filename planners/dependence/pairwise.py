"""Pairs of variables: what each tells about each a step later, and which say the same.

What one variable tells about another is a table of counts away, and for m variables there are m^2
tables. The samples of a target, and of what it is conditioned on, are numbered by their joint value
once (:class:`~planners.dependence.contingency.Cases`); then every candidate is counted against
these numbers: as bits where it has few values and there are few cases, a bit for each sample, or
sample by sample (:func:`~planners.dependence.contingency.column_information`).

Two variables may also say the same: each value of one comes with one value of the other. A test
finds one of them and nothing in the other, and a planner needs one of them only. Which one is kept
is a matter of taste, so whoever reads a mask should know that there was a choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import INNER, njit
from exo_envs.compiled.threads import in_parts
from exo_envs.core.arguments import as_positions, check_kind
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import FloatArray, IntArray
from planners.core.arrays import Ints, join
from planners.dependence.contingency import (
    CaseCounts,
    Cases,
    Rows,
    column_information,
    counted_cases,
    indicators,
    table_information,
)
from planners.samples.rollouts import ExogenousData

#: Cells that are counted as bits, of all values but the first and all cases but the last, at most;
#: a table of more of them is faster.
MAX_BIT_CELLS = 512
#: Candidates that it takes to make turning the cases into bits worth while.
MIN_BIT_COLUMNS = 4
#: Values that a variable may have at most to be kept as bits, and cases.
MAX_BIT_VALUES, MAX_BIT_CASES = 64, 128
#: Contiguous columns are kept if those of all variables take at most this many bytes, and so are
#: bits; binary variables are kept as bits whatever they take.
KEPT_BYTES = 2**27
#: Contiguous columns that are not kept are made in a buffer of this many bytes.
BUFFER_BYTES = 2**22
#: Samples whose columns are copied at once: they stay in the second cache.
COPIED_SAMPLES = 4096
#: Words of 64 samples, over all pairs of rows, that make a second thread worth while.
WORDS_PER_THREAD = 2**20
#: Words of a row that are counted at a time, and rows that stay in the second cache meanwhile.
WORDS_PER_BLOCK, ROWS_PER_TILE = 512, 64
#: Pairs of rows of bits that are counted at once.
MAX_COUNTS = 2**24

#: How often a variable has to change, within rollouts and from one to the next, before two that
#: always changed together are the same.
MIN_CHANGES = 20
#: States in which variables are compared before they are compared in all.
COMPARED_STATES = 64


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
    columns, states = SampledColumns.of(data, chosen), SampledColumns.of(data, chosen, last=True)
    statistic, freedom = np.full((2, len(wanted), variables), np.nan)
    if not given_self:
        _count_all_bits(states, data.num_steps, wanted, statistic, freedom)
    for t, i in enumerate(wanted.tolist()):
        rest = np.flatnonzero(np.isnan(statistic[t]))
        if not len(rest):
            continue
        size, rows = int(data.sizes[i]), Rows.of(samples)
        if given_self:
            rows = rows.split(columns.column(i), size)
        later = states.column(i).reshape(len(chosen), -1)[:, 1:].reshape(-1)
        cases = Cases(rows, later, size)
        statistic[t, rest], freedom[t, rest] = columns.information(cases, rest)
    return PairwiseInformation(statistic, freedom, samples)


def _count_all_bits(
    states: SampledColumns,
    num_steps: int,
    targets: Ints,
    statistic: FloatArray,
    freedom: FloatArray,
) -> None:
    """Write what is counted as bits of all pairs at once: every bit is made once for all pairs."""
    sizes = np.where(states.num_bits > 0, states.sizes, 0)
    if not sizes.any():
        return
    now, starts = states.bits(np.flatnonzero(sizes)), states.bit_starts
    # The state that ends a rollout begins no transition. What follows a state is the next bit.
    begins = np.arange(len(states.states)) % (num_steps + 1) < num_steps
    (begin,) = indicators(begins.astype(np.uint8), np.arange(1, 2))
    later = np.empty_like(now)
    for row, bits in zip(later, now, strict=True):
        np.right_shift(bits, np.uint64(1), out=row)
        row[:-1] |= bits[1:] << np.uint64(63)
        np.bitwise_and(row, begin, out=row)
    later[-1] = begin
    everything = len(now) - 1
    for size in np.unique(sizes[targets][sizes[targets] > 0]).tolist():
        candidates = np.flatnonzero((sizes > 0) & ((sizes - 1) * (size - 1) <= MAX_BIT_CELLS))
        if not len(candidates):
            continue
        rows = np.append(_rows(starts, candidates), everything)
        own = np.flatnonzero(sizes[targets] == size)
        block = max(1, MAX_COUNTS // (size * len(rows)))
        for places in (own[k : k + block] for k in range(0, len(own), block)):
            wanted = np.append(_rows(starts, targets[places]), everything)
            counts = shared_bits(later, wanted, now, rows)
            for k, t in enumerate(places.tolist()):
                table = counts[k * (size - 1) : (k + 1) * (size - 1)]
                occurring = np.flatnonzero(table[:, -1])
                totals = table[occurring, -1].astype(np.int64)
                rest = counts[-1, -1] - totals.sum()
                totals = np.append(totals, rest) if rest else totals
                cases = counted_cases(np.array([0, len(totals)]), totals)
                given = table[occurring], counts[-1], sizes[candidates], cases
                statistic[t, candidates], freedom[t, candidates] = _of_bits(*given)


def _rows(starts: Ints, variables: IntArray) -> Ints:
    """Where the bits of some variables are."""
    return join([np.arange(starts[j], starts[j + 1]) for j in variables.tolist()], np.int64)


@dataclass(eq=False)
class SampledColumns:
    """Values of many variables in the same samples: a column each, counted against any cases."""

    values: NDArray[np.integer[Any]]  # (states, variables)
    states: NDArray[np.integer[Any]]  # (samples,): the row of ``values`` that each sample is
    sizes: Ints  # (variables,): how many values each has

    @classmethod
    def of(cls, data: ExogenousData, rollouts: IntArray, *, last: bool = False) -> SampledColumns:
        """All variables where the transitions of some rollouts begin; with the last states too."""
        rows = data.num_rollouts * (data.num_steps + 1)  # not -1: there may be no variables
        values = np.ascontiguousarray(data.values).reshape(rows, len(data.names))
        starts = np.asarray(rollouts, dtype=np.int64)[:, None] * (data.num_steps + 1)
        return cls(values, (starts + np.arange(data.num_steps + last)).reshape(-1), data.sizes)

    @property
    def nbytes(self) -> int:
        """The bytes that copies of the columns, and their bits, take once all are made."""
        samples = len(self.states)
        copies = self.values.itemsize * samples * len(self.sizes)
        return (copies if copies <= KEPT_BYTES else 0) + int(self.bit_starts[-1]) * samples // 8

    def information(self, cases: Cases, candidates: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """G of each candidate and the target given the rows, and its degrees of freedom."""
        statistic, freedom = np.zeros((2, len(candidates)))
        if cases.count == cases.rows.count:
            return statistic, freedom
        rows = self.num_bits[candidates]
        by_bits = (rows > 0) & (rows * (cases.count - 1) <= MAX_BIT_CELLS)
        if np.count_nonzero(by_bits) < MIN_BIT_COLUMNS or cases.count > MAX_BIT_CASES:
            by_bits[:] = False
        else:
            statistic[by_bits], freedom[by_bits] = self._by_bits(cases, candidates[by_bits])
        rest = np.flatnonzero(~by_bits)
        for part, columns in self._laid_out(rest, candidates):
            sizes = self.sizes[candidates[part]]
            statistic[part], freedom[part] = column_information(cases, columns, sizes)
        return statistic, freedom

    def column(self, j: int) -> IntArray:
        """The values of one variable, shape (samples,)."""
        return self._whole[j] if self._is_kept else self.values[self.states, j]

    def bits(self, variables: IntArray) -> NDArray[np.uint64]:
        """Bits of all variables, and of all samples, (rows, words), once those of some are made."""
        bits, is_made = self._bits
        new = np.unique(variables[~is_made[variables]])
        is_made[new] = True
        if self._is_kept:
            for j in new.tolist():
                own = slice(self.bit_starts[j], self.bit_starts[j + 1])
                bits[own] = indicators(self._whole[j], np.arange(1, self.sizes[j]))
            return bits
        rows, of = _rows(self.bit_starts, new), np.repeat(new, self.num_bits[new])
        wanted = (1 + rows - self.bit_starts[of]).astype(self.values.dtype)
        packed = bits.view(np.uint8).T
        for begin in range(0, len(self.states) if len(new) else 0, COPIED_SAMPLES):
            states = self.states[begin : begin + COPIED_SAMPLES, None]
            block = self.values[states, of]
            made = np.packbits(block == wanted, axis=0, bitorder="little")
            packed[begin // 8 : begin // 8 + len(made), rows] = made
        return bits

    def _by_bits(self, cases: Cases, candidates: IntArray) -> FloatArray:
        """What candidates tell, counted in bits that are made now if they were not before."""
        bits, case_bits = self.bits(candidates), cases.bits
        rows = _rows(self.bit_starts, candidates)
        counts = shared_bits(case_bits, np.arange(len(case_bits)), bits, rows)
        return _of_bits(counts, counts.sum(axis=0), self.sizes[candidates], cases.counted)

    def _laid_out(
        self, which: NDArray[np.intp], candidates: NDArray[Any]
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
        """Some of the candidates, and their contiguous columns, a buffer full at a time."""
        column_bytes = max(1, len(self.states) * self.values.itemsize)
        block = max(1, BUFFER_BYTES // column_bytes)
        for begin in range(0, len(which), block):
            part = which[begin : begin + block]
            columns = candidates[part]
            if self._is_kept:
                yield part, self._whole[columns]
            else:
                yield part, np.stack([self.column(j) for j in columns.tolist()])

    @property
    def _is_kept(self) -> bool:
        return len(self.states) * len(self.sizes) * self.values.itemsize <= KEPT_BYTES

    @cached_property
    def _whole(self) -> NDArray[Any]:
        """A contiguous copy of all columns, shape (variables, samples)."""
        whole = np.empty((len(self.sizes), len(self.states)), self.values.dtype)
        for begin in range(0, len(self.states), COPIED_SAMPLES):
            part = slice(begin, begin + COPIED_SAMPLES)
            whole[:, part] = self.values[self.states[part]].T
        return whole

    @cached_property
    def num_bits(self) -> Ints:
        """The rows of bits of each variable, one for each value but the first; 0 if it has none."""
        rows = np.where(self.sizes <= MAX_BIT_VALUES, self.sizes - 1, 0)
        if rows.sum() * len(self.states) > 8 * KEPT_BYTES:
            rows[rows > 1] = 0
        return rows

    @cached_property
    def bit_starts(self) -> Ints:
        """Where the bits of each variable start, (variables + 1,)."""
        return np.append(0, np.cumsum(self.num_bits))

    @cached_property
    def _bits(self) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Bits of the variables and, in the last row, of all samples; and whose bits are made."""
        bits = np.zeros((self.bit_starts[-1] + 1, -(-len(self.states) // 64)), dtype=np.uint64)
        bits[-1:] = indicators(np.zeros(len(self.states), dtype=np.uint8), np.arange(1))
        return bits, np.zeros(len(self.sizes), dtype=bool)


def shared_bits(
    first: NDArray[np.uint64], own: Ints, second: NDArray[np.uint64], other: Ints
) -> NDArray[np.int32]:
    """How many bits rows of one array share with rows of another, shape (own, other).

    The words are shared by as many threads as Numba may use.
    """
    least = max(1, WORDS_PER_THREAD // max(1, len(own) * len(other)))
    counts: Any = in_parts(_shared_bits, first.shape[1], first, own, second, other, least=least)
    return sum(counts)


def _of_bits(counts: Any, totals: Any, sizes: Ints, counted: CaseCounts) -> FloatArray:
    """G and its freedom of candidates, shape (2, candidates).

    Args:
        counts: samples of each case and each value but the first, (cases, rows); nobody looks at
            the last case.
        totals: samples of each value but the first, (rows,).
        sizes: of the candidates.
        counted: what is known of the cases.
    """
    found = np.zeros((2, len(sizes)))
    _tables_of_bits(np.ascontiguousarray(counts), totals, sizes, counted, found)
    return found


def duplicates(data: ExogenousData, variable: int) -> tuple[int, ...]:
    """The other variables that are a one-to-one function of this one in all states.

    There are none if it hardly changes: then all that hardly change look the same.

    Args:
        data: the rollouts.
        variable: its position in the data.

    >>> values = np.random.default_rng(0).integers(2, size=(10, 20, 3))
    >>> values[:, :, 2] = 1 - values[:, :, 0]
    >>> names, sizes = ("sun", "noise", "rain"), np.array([2, 2, 2])
    >>> data = ExogenousData(names, sizes, values, np.zeros((10, 1), int), 0)
    >>> duplicates(data, 0), duplicates(data, 1)
    ((2,), ())
    """
    (j,) = as_positions("variable", [variable], len(data.names)).tolist()
    states = data.values.reshape(-1, len(data.names))
    changed = np.flatnonzero(states[1:, j] != states[:-1, j])
    if len(changed) < MIN_CHANGES:
        return ()
    # Few others change as it does in a few states, before and after; those are compared in all.
    chosen = changed[np.linspace(0, len(changed) - 1, COMPARED_STATES // 2).astype(np.int64)]
    few = states[np.concatenate([chosen, chosen + 1])]
    first = np.stack([(few == row).argmax(axis=0) for row in few])  # row with the same value
    alike = np.flatnonzero((first == first[:, [j]]).all(axis=0)).tolist()

    def split(rows: Rows, k: int) -> Rows:
        return rows.split(np.ascontiguousarray(states[:, k]), int(data.sizes[k]))

    whole = Rows.of(len(states))
    own = split(whole, j)
    return tuple(
        k for k in alike if k != j and split(own, k).count == own.count == split(whole, k).count
    )


@njit(**INNER)
def _population(word: Any) -> Any:
    """How many bits of a word are set; compilers make one instruction of it."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@njit(cache=True, nogil=True)
def _shared_bits(begin: int, end: int, first: Any, own: Any, second: Any, other: Any) -> Any:
    """:func:`shared_bits` of some words; a word of one row is compared with four others at once."""
    counts = np.zeros((len(own), len(other)), np.int32)
    most = len(other) - 1
    for low in range(begin, end, WORDS_PER_BLOCK):
        high = min(end, low + WORDS_PER_BLOCK)
        for tile in range(0, len(own), ROWS_PER_TILE):
            for j in range(0, len(other), 4):
                a, b = second[other[j], low:high], second[other[min(j + 1, most)], low:high]
                c = second[other[min(j + 2, most)], low:high]
                d = second[other[min(j + 3, most)], low:high]
                for i in range(tile, min(tile + ROWS_PER_TILE, len(own))):
                    row = first[own[i], low:high]
                    na = nb = nc = nd = np.uint64(0)
                    for w in range(high - low):
                        na += _population(row[w] & a[w])
                        nb += _population(row[w] & b[w])
                        nc += _population(row[w] & c[w])
                        nd += _population(row[w] & d[w])
                    for k, number in enumerate((na, nb, nc, nd)):
                        if j + k <= most:
                            counts[i, j + k] += np.int32(number)
    return counts


@njit(cache=True)
def _tables_of_bits(counts: Any, totals: Any, sizes: Any, counted: Any, found: Any) -> None:
    """Write G and degrees of freedom of candidates, whose tables are made of shared bits.

    What is left over belongs to the last case, and to the first value of the candidate.
    """
    # Loops, not slices: these take Numba a second to compile.
    totals_of_cases, row, most = counted[1], 0, 0
    cases = len(totals_of_cases)
    for j in range(len(sizes)):
        most = max(most, sizes[j])
    table = np.empty(most * cases, np.int32)
    for j in range(len(sizes)):
        for k in range(cases):
            table[k] = totals_of_cases[k]
        for value in range(1, sizes[j]):
            rest = totals[row]
            for k in range(cases - 1):
                number = counts[k, row]
                table[value * cases + k] = number
                table[k] -= number
                rest -= number
            table[value * cases + cases - 1] = rest
            table[cases - 1] -= rest
            row += 1
        found[0, j], found[1, j] = table_information(table, sizes[j], counted)
