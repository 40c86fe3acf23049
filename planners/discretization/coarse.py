"""Models and policies seen in bins and on grids (:mod:`planners.discretization.bins`).

Rollouts are in bins from the beginning (:class:`~planners.samples.rollouts.ExogenousData`). Their
questions to the model go through a :class:`CoarseMDP`, which puts values that occurred in place of
bins; and policies that were planned in bins are played as :class:`BinnedPolicy`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import njit
from exo_envs.core.batches import endogenous_lanes, exogenous_lanes
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, unknown_name
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
from planners.core.arrays import join, starts_of
from planners.core.files import Saved
from planners.core.planner import Plan
from planners.core.policy import Policy
from planners.discretization.bins import NUM_STAND_INS, Bins, Grid

#: Values of a bin, of those that stand for it, that a model is asked about that answers one
#: question at a time.
FEW_STAND_INS = (2, 5)


def bins_of(model: ExoMDP) -> Sequence[Bins | Grid]:
    """The bins and grids that a reduced model has in place of values; mostly none."""
    return getattr(model, "bins", ())


class Binning:
    """The bins of some variables of x, laid out as the kernel takes them: once for many batches.

    Args:
        names: of all variables of x.
        bins: of some of them.
    """

    def __init__(self, names: Sequence[str], bins: Sequence[Bins | Grid]) -> None:
        binned = [each for each in bins if isinstance(each, Bins)]
        place = {name: j for j, name in enumerate(names)}
        self.width = len(place)
        self.columns = np.array([place[each.name] for each in binned], dtype=np.int64)
        edges = [each.starts for each in binned]
        # The smallest values of the bins, and where those of each variable start.
        self.edges = join(edges, np.float64), starts_of(edges)

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
        _find_bins(lanes[0], self.columns, *self.edges, lanes[1])
        return out


@njit(cache=True)
def _find_bins(values: Any, columns: Any, edges: Any, starts: Any, out: Any) -> None:
    """Write the bins of values, shape (lanes, m), to ``out``, and whole values as they are.

    The smallest values of the bins of column ``columns[k]`` are ``edges[starts[k]:starts[k + 1]]``.
    A value below the first bin belongs to it. A model of thousands of variables has thousands of
    bins, so all of a lane are found one after another.
    """
    for b in range(len(values)):
        for j in range(values.shape[1]):
            out[b, j] = values[b, j]
        for k in range(len(columns)):
            value = values[b, columns[k]]
            low, high = starts[k], starts[k + 1]  # the bin is from low on, and below high
            while high - low > 1:
                middle = (low + high) // 2
                if edges[middle] <= value:
                    low = middle
                else:
                    high = middle
            out[b, columns[k]] = low - starts[k]


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
    grids = [each for each in bins if isinstance(each, Grid)]
    if not grids:
        return endogenous
    places = [names.index(each.name) for each in grids]
    out = np.empty(endogenous.shape, dtype=np.int64)
    rest = [j for j in range(len(names)) if j not in places]
    out[..., rest] = endogenous[..., rest]
    for k, (j, own) in enumerate(zip(places, grids, strict=True)):
        values = endogenous[..., j]
        out[..., j] = own.nearest(values) if uniform is None else own.split(values, uniform[..., k])
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
        self.binned = tuple(own for own in bins if isinstance(own, Bins))  # those of x
        self.declare_as(model)
        sizes = {own.name: len(own) for own in bins}
        self.endogenous_variables, self.exogenous_variables = (
            tuple(Variable(v.name, sizes[v.name]) if v.name in sizes else v for v in variables)
            for variables in (model.endogenous_variables, model.exogenous_variables)
        )
        self._columns = model.exogenous_indices([own.name for own in self.binned]).astype(np.int64)
        self._binning = Binning(self.exogenous_names, self.binned)
        self._endogenous_names = tuple(v.name for v in model.endogenous_variables)
        # In another order for each bin: so what two of them pay together is not that of their
        # smallest values, of their next ones, and so on.
        order = np.tile(np.arange(NUM_STAND_INS), (len(self.binned), 1))
        self._orders = np.random.default_rng(0).permuted(order, axis=1)
        if not model.is_batched:
            self._orders = np.array([np.roll(FEW_STAND_INS, k) for k in range(len(order))])

    @cached_property
    def _stand_ins(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The values that stand for all bins, (bins, NUM_STAND_INS), and where variables start."""
        dtype = self.model.dtype_of("exogenous")
        parts = [np.asarray(own.stand_ins, dtype=dtype) for own in self.binned]
        return np.concatenate(parts), starts_of(parts)

    def refine(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """A value of each bin, by chance: as much of it whatever the bins are."""
        if not self.binned:
            return exogenous
        shape, lanes = exogenous_lanes(self, exogenous)
        chosen = rng.integers(NUM_STAND_INS, size=(len(lanes), len(self.binned)))
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

    def values(self, exogenous: IntArray, chosen: IntArray) -> IntArray:
        """Values in place of bins: which of those that stand for each, shape (..., bins).

        With shape (bins,) they are the same in all lanes.
        """
        shape, lanes = exogenous_lanes(self, exogenous)
        return self._stand_in(lanes, chosen.reshape(-1, len(self.binned))).reshape(shape)

    def _stand_in(self, lanes: IntArray, chosen: IntArray) -> IntArray:
        stand_ins, starts = self._stand_ins
        out = np.array(lanes, dtype=self.model.dtype_of("exogenous"))
        out[:, self._columns] = stand_ins[starts[:-1] + lanes[:, self._columns], chosen]
        return out

    def in_bins(self, exogenous: IntArray) -> IntArray:
        return self._binning.put(exogenous)

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
        x = state.exogenous
        x = self.values(x, self._orders[:, number]) if self.binned else x
        return State(self.at_points(state.endogenous), x)

    # --- the ExoMDP -----------------------------------------------------------------------

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        state = self.model.sample_initial(size, rng)
        return State(self.on_grid(state.endogenous, rng), self.in_bins(state.exogenous))

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        return self.in_bins(self.model.sample_exogenous(self.refine(exogenous, rng), rng))

    def trajectories(
        self, size: int, num_steps: int, rng: np.random.Generator
    ) -> tuple[State, Iterator[IntArray]]:
        state, following = self.model.trajectories(size, num_steps, rng)
        begin = State(self.on_grid(state.endogenous, rng), self.in_bins(state.exogenous))
        return begin, map(self.in_bins, following)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
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
        numbers = range(self._orders.shape[1] if self.binned else 1)
        parts = [self.model.reward_terms(self._standing(state, k), action) for k in numbers]
        return np.mean(parts, axis=0)

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """What the model pays for n at the points of the grids."""
        return self.model.endogenous_reward(self.at_points(endogenous), action)

    def is_terminal(self, state: State) -> BoolArray:
        """Whether the model's episode is over, which does not depend on x."""
        return self.model.is_terminal(self._standing(as_pair(state), 0))


class BinnedPolicy(Policy, Saved):
    """A policy that looks at bins of some variables, asked about their values.

    Args:
        policy: the policy; from a file, the name of its class and what that was given.
        bins: of the variables of its mask that have very many values or real ones, and grids of
            the real variables of n (:mod:`planners.discretization.coarse`).
        endogenous_names: of the variables of n, in their order, if there are grids.
    """

    records = (Bins, Grid)

    def __init__(
        self,
        policy: Policy | Mapping[str, Mapping[str, Any]],
        bins: Sequence[Bins | Grid],
        endogenous_names: Sequence[str] = (),
    ) -> None:
        inner = _made(policy) if isinstance(policy, Mapping) else policy
        super().__init__(inner.mask, inner.full, inner.endogenous_size)
        self.endogenous_names = tuple(endogenous_names)
        for own in bins:
            kind, names = "variable of the mask", self.mask
            if isinstance(own, Grid):
                kind, names = "endogenous variable", self.endogenous_names
            if own.name not in names:
                raise unknown_name(kind, own.name, names)
        self.policy = inner
        self.bins = tuple(bins)
        self.real_parts = frozenset(
            "endogenous" if isinstance(own, Grid) else "exogenous"
            for own in bins
            if own.size == REAL_SIZE
        )
        self._binning = Binning(self.mask, self.bins)

    def arguments(self) -> dict[str, Any]:
        """What a file holds.

        Raises:
            TypeError: the policy inside cannot be saved, such as one of tree search.
        """
        kind = type(self.policy).__name__
        if not isinstance(self.policy, Saved):
            raise ArgumentTypeError(f"a {kind} cannot be saved")
        given = {"bins": self.bins, "endogenous_names": self.endogenous_names}
        return {"policy": {kind: self.policy.arguments()}, **given}

    def act(self, endogenous: NDArray[np.int64], exogenous: NDArray[np.int64]) -> IntArray:
        x: Any = self._binning.put(exogenous)
        n: Any = put_on_grid(endogenous, self.endogenous_names, self.bins)
        return self.policy.act(n, x)


def _made(content: Mapping[str, Mapping[str, Any]]) -> Policy:
    [(kind, given)] = content.items()
    if kind not in _kinds():
        raise unknown_name("kind of policy", kind, _kinds())
    policy: Policy = _kinds()[kind](**given)
    return policy


def _kinds() -> dict[str, Any]:
    """The policies that can be saved, by name."""
    kinds: list[type[Any]] = Policy.__subclasses__()
    return {
        kind.__name__: kind
        for kind in kinds
        if issubclass(kind, Saved) and not issubclass(kind, BinnedPolicy)
    }


def with_values(plan: Plan, model: ExoMDP) -> Plan:
    """The same plan for observations of values, if the model it was made in has bins."""
    mask = plan.policy.mask
    bins = [own for own in bins_of(model) if isinstance(own, Grid) or own.name in mask]
    names = [variable.name for variable in model.endogenous_variables]
    return replace(plan, policy=BinnedPolicy(plan.policy, bins, names)) if bins else plan
