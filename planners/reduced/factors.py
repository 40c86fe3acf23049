"""Fitting P(x'_i | parents) to rollouts, and trying it on rollouts that were held out."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.errors import ArgumentTypeError
from exo_envs.core.mdp import FloatArray
from planners.core.arrays import joint_index
from planners.core.memory import LARGE, Key, Memory, Shelf
from planners.dependence.contingency import count_table, smooth
from planners.dependence.parents import ParentSearch
from planners.samples.rollouts import ExogenousData
from planners.tables.factors import Factor

#: Gives the parents of some variables among all, by name.
KnownParents = Callable[[Sequence[str]], Mapping[str, Collection[str]]]

#: In the log-loss, a value that a table thinks impossible counts as having this probability.
LOG_LOSS_FLOOR = 1e-6


class Fit(NamedTuple):
    """Factors and how well they predict held-out transitions."""

    factors: tuple[Factor, ...]
    log_loss: FloatArray  # (m,), nats per transition
    marginal_log_loss: FloatArray  # (m,): the same without any parents


@dataclass(eq=False)
class LaterFit:
    """The fit of a mask, made when it is first asked for: there are planners that do without.

    Parents that are known, and are all in the mask, are not looked for again.
    """

    search: ParentSearch
    names: tuple[str, ...]  # of the mask
    suspects: Mapping[int, Mapping[int, float]]  # what acts on which variable, by position
    known_parents: KnownParents | None
    smoothing: float

    @cached_property
    def made(self) -> Fit:
        """The fit."""
        known = {} if self.known_parents is None else self.known_parents(self.names)
        if not isinstance(known, Mapping):
            raise ArgumentTypeError(f"known_parents returns a mapping of names, not {known!r}")
        data, mask = self.search.data, set(self.names)
        columns, parents = data.positions(self.names).tolist(), {}
        for i, name in zip(columns, self.names, strict=True):
            if name in known and mask.issuperset(known[name]):
                parents[i] = tuple(data.positions(tuple(known[name])).tolist())
            else:
                parents[i] = self.search.parents(i, columns, self.suspects.get(i))
        return fit_factors(data, parents, self.smoothing, memory=self.search.memory)

    def factors(self) -> tuple[Factor, ...]:
        """The tables of the masked variables."""
        return self.made.factors


def _fitted_variables(key: tuple[int, Key, float]) -> list[int]:
    return [key[0], *key[1]]


#: (i, parents, smoothing) -> the table of x'_i, its log-loss, and that without parents.
FACTORS = Shelf[tuple[int, Key, float], tuple[Factor, float, float]](
    "factors", LARGE, about=_fitted_variables
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
