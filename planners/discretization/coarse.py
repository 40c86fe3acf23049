"""Variables of very many values, seen in bins.

No data can tell what each of ten million values does, and no table can hold it. So an exogenous
variable of more than ``MANY_VALUES`` values is seen in *bins*: neighbouring values, as many samples
of the rollouts in each. Values that occur often have a bin of their own, rare ones are merged. A
bin is a function of the value, so a test with bins is as valid as one with values; it finds
thresholds and trends, and it cannot see what differs within a bin.

A real variable is in bins, too, and these begin where it makes a difference
(:mod:`planners.discretization.bin_edges`); real variables of n are seen on grids
(:mod:`planners.discretization.grid`).

Rollouts are in bins from the beginning (:class:`~planners.dependence.ExogenousData`). Who asks the
model about them asks a :class:`CoarseMDP`, which puts values that occurred in place of bins; and
policies that were planned in bins are played as
:class:`~planners.discretization.binned_policy.BinnedPolicy`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.batches import endogenous_lanes, exogenous_lanes
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import (
    REAL_SIZE,
    BoolArray,
    ExoMDP,
    FloatArray,
    IntArray,
    State,
    Variable,
    as_pair,
)
from planners.core.arrays import starts_of
from planners.discretization.bin_edges import Responses, bin_limits, bin_starts, edges_by_change
from planners.discretization.bin_kernels import find_bins, look_up_bins, stand_in
from planners.discretization.grid import Grid

#: A variable of more values than this is seen in bins.
MANY_VALUES = 256
#: Bins that a variable has at most, besides those of single values that occur as often as a bin.
MAX_BINS = 64
#: Bins are so few that the joint values of two variables have this many samples each.
SAMPLES_PER_CELL = 20
#: Values that a variable has at most if its bins are looked up in a table of all values.
MAX_TABLE = 2**13
#: Values that stand for a bin where the model is asked about it.
NUM_STAND_INS = 8
#: Those of them that a model is asked about that answers one question at a time.
FEW_STAND_INS = (2, 5)


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of one variable."""

    name: str
    size: int  # how many values the variable has
    starts: NDArray[Any]  # (bins,): the smallest value of each bin, increasing
    stand_ins: NDArray[Any]  # (bins, NUM_STAND_INS): values of each bin, as they occurred

    def __post_init__(self) -> None:
        """Refuse what are no bins: they may come from a file."""
        starts, values = np.asarray(self.starts), np.asarray(self.stand_ins)
        kinds = {part.dtype.kind for part in (starts, values)}
        fits = kinds <= ({"f"} if self.size == REAL_SIZE else {"i", "u"})
        if (
            not fits
            or not all(np.isfinite(part).all() for part in (starts, values))
            or starts.ndim != 1
            or not len(starts)
            or values.shape != (len(starts), NUM_STAND_INS)
            or (np.diff(starts) <= 0).any()
            or (self.of_values(values) != np.arange(len(starts))[:, None]).any()
        ):
            raise ArgumentError(
                f"the bins of {self.name!r} start at increasing numbers, whole if it is not real, "
                f"and {NUM_STAND_INS} values stand for each of them"
            )

    @classmethod
    def of(cls, variable: Variable, values: IntArray) -> Bins:
        """Bins for values that occurred, shape (samples,): about as many of them in each."""
        ordered = np.sort(values, axis=None).astype(np.int64)
        distinct, first, counts = np.unique(ordered, return_index=True, return_counts=True)
        wanted = min(MAX_BINS, max(2, math.isqrt(len(ordered) // SAMPLES_PER_CELL)))
        if len(distinct) > wanted:
            rank = (first + counts / 2) * wanted // len(ordered)
            is_frequent = counts * wanted >= len(ordered)
            opens = np.ones(len(distinct), dtype=bool)
            opens[1:] = (np.diff(rank) > 0) | is_frequent[1:] | is_frequent[:-1]
            distinct, first = distinct[opens], first[opens]
        return cls(variable.name, int(variable.size), distinct, _stand_ins(ordered, first))

    @classmethod
    def of_real(cls, variable: Variable, values: NDArray[Any], responses: Responses) -> Bins:
        """Bins for values of a real variable: where it makes a difference, and equal shares."""
        ordered = np.sort(values, axis=None).astype(np.float64)
        j = responses.mdp.exogenous_names.index(variable.name)
        by_samples, most = bin_limits(len(ordered))
        inner = ordered[:-1] if len(ordered) > 1 else ordered
        first = bin_starts(ordered, edges_by_change(responses, j, inner, most), by_samples)
        return cls(variable.name, int(variable.size), ordered[first], _stand_ins(ordered, first))

    def __len__(self) -> int:
        """The number of bins."""
        return len(self.starts)

    @cached_property
    def bin_of_value(self) -> NDArray[np.int64]:
        """The bin of each value that a variable of whole numbers has, shape (size,)."""
        return self.of_values(np.arange(self.size))

    def of_values(self, values: IntArray) -> NDArray[np.int64]:
        """The bin of each value; what is below the first belongs to it."""
        return np.maximum(np.searchsorted(self.starts, values, side="right") - 1, 0)


def _stand_ins(ordered: NDArray[Any], first: NDArray[Any]) -> NDArray[Any]:
    """Values for each bin, spread evenly over its samples: where they begin is given."""
    ends = np.append(first[1:], len(ordered))
    share = (np.arange(NUM_STAND_INS) + 0.5) / NUM_STAND_INS
    return ordered[first[:, None] + ((ends - first)[:, None] * share).astype(np.int64)]


def bins_of(model: ExoMDP) -> Sequence[Bins | Grid]:
    """The bins and grids that a reduced model has in place of values; mostly none."""
    return getattr(model, "bins", ())


@dataclass(frozen=True, eq=False)
class Binning:
    """The bins of some variables of x, laid out as kernels take them: once for many batches."""

    width: int  # m, of all variables
    columns: NDArray[np.int64]  # (k,): the variables that have bins
    #: The smallest values of the bins, and where those of each variable start, (k + 1,).
    edges: tuple[NDArray[Any], NDArray[np.int64]]
    #: The same of the bin of each value; None if some variable has too many values.
    tables: tuple[NDArray[np.int16], NDArray[np.int64]] | None

    @classmethod
    def of(cls, names: Sequence[str], bins: Sequence[Bins | Grid]) -> Binning:
        """Of those of all variables that have bins."""
        binned = [each for each in bins if isinstance(each, Bins)]
        place = {name: j for j, name in enumerate(names)}
        columns = np.array([place[each.name] for each in binned], dtype=np.int64)
        edges = [each.starts for each in binned]
        made = len(place), columns, (np.concatenate([*edges, np.zeros(0)]), starts_of(edges))
        if any(each.size > MAX_TABLE for each in binned):
            return cls(*made, None)
        tables = [each.bin_of_value.astype(np.int16) for each in binned]
        return cls(*made, (np.concatenate([*tables, np.zeros(0, np.int16)]), starts_of(tables)))

    def put(self, exogenous: IntArray) -> IntArray:
        """The same x, shape (..., m), with bins in place of values where there are bins."""
        if not len(self.columns):
            return exogenous
        if self.width != exogenous.shape[-1]:
            raise ArgumentError(
                f"x has {exogenous.shape[-1]} variables, not the {self.width} named"
            )
        values = np.ascontiguousarray(exogenous)
        if values.dtype.kind != "f":
            values = values.astype(np.int64, copy=False)
        out = np.empty(values.shape, dtype=np.int64)
        lanes = values.reshape(-1, self.width), out.reshape(-1, self.width)
        if values.dtype.kind != "f" and self.tables is not None:
            look_up_bins(lanes[0], self.columns, *self.tables, lanes[1])
        else:
            find_bins(lanes[0], self.columns, *self.edges, lanes[1])
        return out


def put_in_bins(exogenous: IntArray, names: Sequence[str], bins: Sequence[Bins | Grid]) -> IntArray:
    """The same x, shape (..., m), with bins in place of values where there are bins."""
    if not any(isinstance(each, Bins) for each in bins):
        return exogenous
    return Binning.of(names, bins).put(exogenous)


def put_on_grid(
    endogenous: IntArray,
    names: Sequence[str],
    bins: Sequence[Bins | Grid],
    uniform: NDArray[Any] | None = None,
) -> IntArray:
    """The same n, shape (..., k), with points of grids in place of values where there are grids.

    Args:
        endogenous: n.
        names: of its variables.
        bins: of which some are grids.
        uniform: a number for each value and grid, shape (..., grids), that decides between the two
            points around it; without, it is the nearest one.
    """
    points = {}
    for k, each in enumerate(each for each in bins if isinstance(each, Grid)):
        j = names.index(each.name)
        values = endogenous[..., j]
        points[j] = each.nearest(values) if uniform is None else each.split(values, uniform[..., k])
    return _replace(endogenous, points)


def _replace(values: IntArray, columns: Mapping[int, IntArray]) -> IntArray:
    """Values (..., variables) with other columns in place of some; then all are whole."""
    if not columns:
        return values
    out = np.empty(values.shape, dtype=np.int64)
    rest = [j for j in range(values.shape[-1]) if j not in columns]
    out[..., rest] = values[..., rest]
    for j, column in columns.items():
        out[..., j] = column
    return out


def coarsened(mdp: ExoMDP, bins: Sequence[Bins | Grid]) -> ExoMDP:
    """The model in bins; the model itself if there are none, or if it is in bins already."""
    mdp.exogenous_indices([own.name for own in bins if isinstance(own, Bins)])
    sizes = {v.name: v.size for v in (*mdp.endogenous_variables, *mdp.exogenous_variables)}
    return mdp if all(sizes[own.name] == len(own) for own in bins) else CoarseMDP(mdp, bins)


class CoarseMDP(ExoMDP):
    """A model whose variables of very many values are bins, and real variables of n grids.

    Where it is asked about a bin, the model behind it is asked about one of the values that stand
    for the bin, drawn by chance. What a bin pays is the mean over these values.
    """

    def __init__(self, model: ExoMDP, bins: Sequence[Bins | Grid]) -> None:
        self.model = model
        self.bins = tuple(bins)
        self.grids = tuple(own for own in bins if isinstance(own, Grid))
        self._binned = tuple(own for own in bins if isinstance(own, Bins))
        self.declare_as(model)
        sizes = {own.name: len(own) for own in bins}
        self.endogenous_variables, self.exogenous_variables = (
            tuple(Variable(v.name, sizes[v.name]) if v.name in sizes else v for v in variables)
            for variables in (model.endogenous_variables, model.exogenous_variables)
        )
        self._columns = model.exogenous_indices([own.name for own in self._binned]).astype(np.int64)
        self._endogenous_names = tuple(v.name for v in model.endogenous_variables)
        # In another order for each bin: so what two of them pay together is not that of their
        # smallest values, of their next ones, and so on.
        order = np.tile(np.arange(NUM_STAND_INS), (len(self._binned), 1))
        self._orders = np.random.default_rng(0).permuted(order, axis=1)
        if not model.is_batched:
            self._orders = np.array([np.roll(FEW_STAND_INS, k) for k in range(len(order))])

    @cached_property
    def _stand_ins(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The values that stand for all bins, (bins, NUM_STAND_INS), and where variables start."""
        dtype = self.model.dtype_of("exogenous")
        parts = [np.asarray(own.stand_ins, dtype=dtype) for own in self._binned]
        return np.concatenate(parts), starts_of(parts)

    @property
    def has_bins(self) -> bool:
        """Whether some exogenous variable is seen in bins."""
        return bool(self._binned)

    def refine(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """A value of each bin, by chance: as much of it whatever the bins are."""
        if not self._binned:
            return exogenous
        shape, lanes = exogenous_lanes(self, exogenous)
        chosen = rng.integers(NUM_STAND_INS, size=(len(lanes), len(self._binned)))
        return self._stand_in(lanes, chosen).reshape(shape)

    def refine_some(
        self, values: IntArray, columns: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """:meth:`refine` of some values of x only, shape (...), whose columns are given."""
        columns = np.broadcast_to(columns, values.shape)
        if values.size and not ((values >= 0) & (values < self.exogenous_sizes[columns])).all():
            raise ArgumentError("there is a bin, or a value, that its variable does not have")
        out = np.array(values, dtype=self.model.dtype_of("exogenous"))
        place = np.full(len(self.exogenous_sizes), -1)
        place[self._columns] = np.arange(len(self._columns))
        of = place[columns]
        binned = of >= 0
        if not binned.any():
            return out
        chosen = rng.integers(NUM_STAND_INS, size=values.shape)
        stand_ins, starts = self._stand_ins
        out[binned] = stand_ins[starts[of[binned]] + values[binned], chosen[binned]]
        return out

    def values(self, exogenous: IntArray, chosen: Any) -> IntArray:
        """Values in place of bins: which of those that stand for each, shape (..., bins)."""
        shape, lanes = exogenous_lanes(self, exogenous)
        every = np.asarray(chosen, np.int64)
        if every.size and not 0 <= every.min() <= every.max() < NUM_STAND_INS:
            raise ArgumentError(f"chosen are numbers of stand-ins, below {NUM_STAND_INS}")
        number = len(self._binned)
        if not number:
            return np.array(lanes, dtype=self.model.dtype_of("exogenous")).reshape(shape)
        if every.ndim > 1:  # else it is the same in all lanes, and not copied for each
            every = np.broadcast_to(every, (*shape[:-1], number))
        every = np.ascontiguousarray(np.broadcast_to(every, (*every.shape[:-1], number)))
        return self._stand_in(lanes, every.reshape(-1, number)).reshape(shape)

    def _stand_in(self, lanes: IntArray, chosen: NDArray[np.int64]) -> IntArray:
        """Values in place of bins that are known to be sound, by as many choices or by one."""
        out = np.array(lanes, dtype=self.model.dtype_of("exogenous"))
        stand_in(out, self._columns, *self._stand_ins, chosen)
        return out

    def in_bins(self, exogenous: IntArray) -> IntArray:
        """Bins in place of values."""
        return self._binning.put(exogenous)

    @cached_property
    def _binning(self) -> Binning:
        return Binning.of(self.exogenous_names, self._binned)

    def at_points(self, endogenous: IntArray) -> IntArray:
        """The values of n at the points of the grids."""
        if not self.grids:
            return endogenous
        shape, n = endogenous_lanes(self, endogenous)
        out = n.astype(self.model.dtype_of("endogenous"))
        for own in self.grids:
            place = self._endogenous_names.index(own.name)
            out[:, place] = own.points[n[:, place]]
        return out.reshape(shape)

    def on_grid(self, endogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """Points of the grids in place of values, one of the two around each by chance."""
        if not self.grids:
            return endogenous
        uniform = rng.random((*endogenous.shape[:-1], len(self.grids)))
        return put_on_grid(endogenous, self._endogenous_names, self.grids, uniform)

    def _standing(self, state: State, number: int) -> State:
        """The same states with one of the values that stand for each bin."""
        n, x = self.at_points(state.endogenous), state.exogenous
        if self._binned:
            x = self.values(x, self._orders[:, number])
        return State(n, x)

    # --- the ExoMDP -----------------------------------------------------------------------

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """Of the model, in bins."""
        state = self.model.sample_initial(size, rng)
        return State(self.on_grid(state.endogenous, rng), self.in_bins(state.exogenous))

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """Of the model from values of the bins, in bins."""
        return self.in_bins(self.model.sample_exogenous(self.refine(exogenous, rng), rng))

    def trajectories(
        self, size: int, num_steps: int, rng: np.random.Generator
    ) -> tuple[State, Iterator[IntArray]]:
        """Of the model, in bins."""
        state, following = self.model.trajectories(size, num_steps, rng)
        begin = State(self.on_grid(state.endogenous, rng), self.in_bins(state.exogenous))
        return begin, map(self.in_bins, following)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """Of the model from values of the bins."""
        state = as_pair(state)
        fine = State(state.endogenous, self.refine(state.exogenous, rng))
        return self.sample_refined(fine, action, rng)

    def sample_refined(self, state: State, action: IntArray, rng: np.random.Generator) -> IntArray:
        """:meth:`sample_endogenous` of an x that has values in place of bins already."""
        fine = State(self.at_points(state.endogenous), state.exogenous)
        return self.on_grid(self.model.sample_endogenous(fine, action, rng), rng)

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """The mean of the model's over the values that stand for each bin."""
        state = as_pair(state)
        numbers = range(self.num_stand_ins)
        parts = [self.model.reward_terms(self._standing(state, k), action) for k in numbers]
        return np.mean(parts, axis=0)

    def reward_terms_at(self, state: State, action: IntArray, number: int) -> FloatArray:
        """The model's with one of the ``num_stand_ins`` values that stand for each bin.

        So it answers what variables pay that have no bins.
        """
        return self.model.reward_terms(self._standing(as_pair(state), number), action)

    @property
    def num_stand_ins(self) -> int:
        """Values of each bin over which what it pays is averaged."""
        return self._orders.shape[1] if self._binned else 1

    @property
    def binned(self) -> tuple[int, ...]:
        """The positions in x of the variables that have bins."""
        return tuple(self._columns.tolist())

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """Of the model."""
        return self.model.endogenous_reward(self.at_points(endogenous), action)

    def is_terminal(self, state: State) -> BoolArray:
        """Of the model, which does not look at x."""
        return self.model.is_terminal(self._standing(as_pair(state), 0))
