"""Exogenous dynamics P(x' | x): a table for each variable given a few parents.

Tables are given, or fitted to rollouts and tried on those that were held out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import njit
from exo_envs.compiled.ranges import wrong_row
from exo_envs.core.arguments import as_array, check_starts, check_whole, real_numbers, whole_numbers
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import FloatArray, IntArray
from planners.core.arrays import Ints, joint_index, joint_values, subset_index
from planners.core.memory import MORE_BYTES, Key, Memory, Shelf
from planners.dependence.contingency import count_table, smooth
from planners.dependence.parents import ParentSearch
from planners.samples.rollouts import ExogenousData
from planners.tables.ragged import SparseTables, sparse_rows

#: Gives the parents of some variables among all, by name.
KnownParents = Callable[[Sequence[str]], Mapping[str, Collection[str]]]

#: In the log-loss, a value that a table thinks impossible counts as having this probability.
LOG_LOSS_FLOOR = 1e-6


@dataclass(frozen=True)
class Factor:
    """P(x'_i | parents) in sparse rows, one for each joint value of the parents (C order)."""

    parents: tuple[int, ...]
    starts: Ints  # (rows + 1,)
    values: Ints  # (entries,), increasing within a row
    probabilities: FloatArray  # (entries,)

    def __post_init__(self) -> None:
        values = whole_numbers("values", self.values, 0)
        starts = as_array("starts", self.starts)
        probabilities = real_numbers(
            "probabilities", self.probabilities, values.shape, finite=False
        )
        sound = {
            "parents": tuple(whole_numbers("parents", self.parents, 0).tolist()),
            "starts": check_starts("starts", starts, max(starts.size - 1, 0), len(values)),
            "values": values,
            "probabilities": probabilities,
        }
        for name, value in sound.items():
            object.__setattr__(self, name, value)
        wrong = wrong_row(self.starts, probabilities, True)
        if wrong >= 0:
            raise ArgumentError(
                f"row {wrong} of a factor is no probability distribution: its probabilities are "
                f"{probabilities[slice(*self.starts[wrong : wrong + 2])]}"
            )

    def check(self, name: str, sizes: Ints, size: int) -> None:
        """Refuse a factor that is not one of a variable among others of these sizes.

        Args:
            name: of the variable.
            sizes: of all variables.
            size: of this one.
        """
        parents = whole_numbers(f"the parents of {name!r}", self.parents, 0, len(sizes))
        if len(np.unique(parents)) < len(parents):
            raise ArgumentError(f"{name!r} has a parent twice: {self.parents}")
        rows = math.prod(sizes[parents].tolist())
        highest = self.values.max(initial=0)
        if len(self.starts) != rows + 1 or highest >= size:
            raise ArgumentError(
                f"the factor of {name!r} has {len(self.starts) - 1} rows and values "
                f"up to {highest}; it should have {rows} rows and values below {size}"
            )

    @classmethod
    def from_table(cls, parents: Sequence[int], table: FloatArray) -> Factor:
        """From a dense table of shape (*parent sizes, size), or (rows, size)."""
        array = np.asarray(table, dtype=np.float64)
        if not array.ndim or not array.size:
            raise ArgumentError(f"a factor's table has shape (..., size), not {array.shape}")
        rows = array.reshape(-1, array.shape[-1])
        if not np.allclose(rows.sum(axis=1), 1.0) or (rows < 0).any():
            raise ArgumentError("every row of a factor's table is a probability distribution")
        return cls(tuple(parents), *sparse_rows(rows))

    def to_table(self, size: int) -> FloatArray:
        """The dense table, shape (rows, size)."""
        size = check_whole("size", size, int(self.values.max(initial=0)) + 1)
        table = np.zeros((len(self.starts) - 1, size))
        row = np.repeat(np.arange(len(table)), np.diff(self.starts))
        table[row, self.values] = self.probabilities
        return table


class Factors(NamedTuple):
    """The factors of all variables, to sample from."""

    sizes: Ints  # (m,)
    tables: SparseTables

    @classmethod
    def of(cls, factors: Sequence[Factor], sizes: Ints) -> Factors:
        tables = [(f.parents, f.starts, f.values, f.probabilities) for f in factors]
        return cls(sizes, SparseTables.of(tables))

    def sample(self, exogenous: IntArray, uniform: FloatArray) -> Ints:
        """Draw x': values and uniform numbers of shape (..., m) give (..., m)."""
        # Not -1: without variables the number of lanes does not follow from the size.
        flat = math.prod(exogenous.shape[:-1]), exogenous.shape[-1]
        drawn: Ints = _sample(self, exogenous.reshape(flat), uniform.reshape(flat))
        return drawn.reshape(exogenous.shape)


@njit(cache=True)
def _sample(factors: Any, x: Any, uniform: Any) -> Any:
    sizes, ((parents, parent_starts), row_starts, (values, starts), probabilities) = factors
    out = np.empty(x.shape, np.int64)
    for lane in range(x.shape[0]):
        for i in range(x.shape[1]):
            start, end = parent_starts[i], parent_starts[i + 1]
            row = row_starts[i] + subset_index(x[lane], parents, start, end, sizes)
            below = 0.0
            chosen = 0
            for entry in range(starts[row], starts[row + 1]):
                chosen = values[entry]
                below += probabilities[entry]
                if uniform[lane, i] < below:
                    break
            out[lane, i] = chosen
    return out


def joint_factor(
    factors: Sequence[Factor],
    group: Sequence[int],
    parents: Sequence[int],
    sizes: Sequence[int] | IntArray,
    strides: Sequence[int],
) -> Factor:
    """P(x'_i for i in group | parents), with rows that sum to one.

    The parents include those of every variable of the group (one with a single value may be left
    out). A joint value of x' is given as the sum of the values times the ``strides``, one stride
    for each variable of the group.
    """
    if len(group) == 1 and factors[group[0]].parents == tuple(parents):
        factor = factors[group[0]]
        sums = np.add.reduceat(factor.probabilities, factor.starts[:-1])
        probabilities = factor.probabilities / np.repeat(sums, np.diff(factor.starts))
        return replace(factor, values=factor.values * strides[0], probabilities=probabilities)
    shape = [int(sizes[parent]) for parent in parents]
    rows = math.prod(shape)
    digits = dict(zip(parents, joint_values(np.arange(rows), shape).T, strict=True))
    row = np.arange(rows)  # of each entry so far
    values = np.zeros(rows, dtype=np.int64)
    probabilities = np.ones(rows)
    for i, stride in zip(group, strides, strict=True):
        factor = factors[i]
        own = np.zeros(rows, dtype=np.int64)  # the row of this factor in each joint row
        for parent in factor.parents:
            own = own * int(sizes[parent]) + digits.get(parent, 0)
        counts = np.diff(factor.starts)[own][row]
        entry = np.repeat(np.arange(len(row)), counts)
        within = np.arange(len(entry)) - np.repeat(np.cumsum(counts) - counts, counts)
        chosen = factor.starts[own][row][entry] + within
        row = row[entry]
        values = values[entry] + factor.values[chosen] * stride
        probabilities = probabilities[entry] * factor.probabilities[chosen]
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows))])
    sums = np.bincount(row, weights=probabilities, minlength=rows)
    return Factor(tuple(parents), starts, values, probabilities / sums[row])


class Fit(NamedTuple):
    """Factors and how well they predict held-out transitions."""

    factors: tuple[Factor, ...]
    log_loss: FloatArray  # (m,), nats per transition
    marginal_log_loss: FloatArray  # (m,): the same without any parents


def fit_mask(
    search: ParentSearch,
    names: tuple[str, ...],
    suspects: Mapping[int, Mapping[int, float]],
    known_parents: KnownParents | None,
    smoothing: float,
) -> Fit:
    """The tables of a mask's variables, given parents in the mask, and how well they predict.

    Parents that are known, and are all in the mask, are not looked for again.

    Args:
        search: looks for parents.
        names: of the mask.
        suspects: what acts on which variable, by position.
        known_parents: gives those of variables among all.
        smoothing: see :func:`fit_factors`.
    """
    known = {} if known_parents is None else known_parents(names)
    if not isinstance(known, Mapping):
        raise ArgumentTypeError(f"known_parents returns a mapping of names, not {known!r}")
    data, parents = search.data, {}
    columns = data.positions(names).tolist()
    for i, name in zip(columns, names, strict=True):
        if name in known and set(names).issuperset(known[name]):
            parents[i] = tuple(data.positions(tuple(known[name])).tolist())
        else:
            parents[i] = search.parents(i, columns, suspects.get(i))
    return fit_factors(data, parents, smoothing, memory=search.memory)


def factors_later(fit: Callable[[], Fit]) -> Callable[[], tuple[Factor, ...]]:
    """The factors of a fit that is made when they are first asked for."""
    return lambda: fit().factors


def _fitted_variables(key: tuple[int, Key, float]) -> list[int]:
    return [key[0], *key[1]]


#: (i, parents, smoothing) -> the table of x'_i, its log-loss, and that without parents.
FACTORS = Shelf[tuple[int, Key, float], tuple[Factor, float, float]](
    "factors", MORE_BYTES, about=_fitted_variables
)


def transition_counts(
    data: ExogenousData, i: int, parents: Sequence[int], rollouts: Any
) -> NDArray[np.int64]:
    """How often x'_i came after each joint value of its parents, shape (*their sizes, size).

    Counts of two collections add up to those of the two together.
    """
    shape = [int(data.sizes[j]) for j in parents]
    target = data.after(i, rollouts)
    before = np.array([data.before(j, rollouts) for j in parents]).reshape(len(shape), len(target))
    codes = joint_index(before.T, shape)
    size = int(data.sizes[i])
    return count_table(codes, math.prod(shape), target, size).reshape(*shape, size)


def fit_factors(
    data: ExogenousData,
    parents: Mapping[int, Sequence[int]],
    smoothing: float,
    *,
    memory: Memory | None = None,
) -> Fit:
    """Count the table of each variable given its parents, and try it on what was held out.

    Variables are positions in the data; in the factors they are positions in ``parents``. The
    memory, if there is one, is that of the data.
    """
    memory = Memory() if memory is None else memory
    memory.bind(data=data)
    place = {i: k for k, i in enumerate(parents)}
    factors, losses = [], np.empty((2, len(parents)))
    for i, given in parents.items():
        key = (i, tuple(given), smoothing)
        if (fitted := memory.find(FACTORS, key)) is None:
            fitted = memory.keep(FACTORS, key, _fit_one(data, i, given, smoothing))
        factor, loss, marginal_loss = fitted
        losses[:, place[i]] = loss, marginal_loss
        factors.append(replace(factor, parents=tuple(place[j] for j in given)))
    return Fit(tuple(factors), *losses)


def _fit_one(
    data: ExogenousData, i: int, parents: Sequence[int], smoothing: float
) -> tuple[Factor, float, float]:
    """The factor of one variable, its log-loss, and that of its overall distribution."""
    counts = transition_counts(data, i, parents, data.fitted)
    table = smooth(counts, smoothing)
    factor = Factor.from_table(parents, table)
    held_out = np.flatnonzero(data.held_out)
    if not len(held_out):
        return factor, math.nan, math.nan
    seen = transition_counts(data, i, parents, held_out)
    overall = counts.reshape(-1, counts.shape[-1]).sum(axis=0)
    return factor, _log_loss(seen, table), _log_loss(seen, overall / overall.sum())


def _log_loss(counts: NDArray[np.int64], probabilities: FloatArray) -> float:
    surprise = -np.log(np.maximum(probabilities, LOG_LOSS_FLOOR))
    return float((counts * surprise).sum() / counts.sum())
