"""Exogenous rollouts: the data that reduced models are estimated from.

x moves by itself, so its rollouts need no policy and are the same for every mask: they are
collected once, for all variables, and shared.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.checked_mdp import checked, unchecked
from exo_envs.core.arguments import (
    KERNEL_TYPES,
    as_generator,
    as_positions,
    check_horizon,
    check_names,
    check_rollouts,
    check_whole,
    whole_numbers,
)
from exo_envs.core.arguments import MAX_VALUES as MOST_VALUES
from exo_envs.core.errors import ArgumentError, unknown_name
from exo_envs.core.mdp import BoolArray, ExoMDP, IntArray, State, Variable
from exo_envs.sources.tables.model import TraceMDP
from planners.core.arrays import Ints, chunks
from planners.core.evaluation import walk
from planners.discretization.bins import MAX_SINGLE_VALUES, Bins, Grid, Responses, fit_grids
from planners.discretization.coarse import Binning, coarsened, put_on_grid

#: One rollout in this many is held out: it measures the fit and takes no part in it.
HOLD_OUT = 8
#: Transitions that are collected by default.
NUM_TRANSITIONS = 100_000
#: An environment that is stepped one state at a time is asked for this many times fewer.
SLOW_MODEL_DIVISOR = 10
#: Rollouts at least: what never changes within an episode is seen once in each.
MIN_ROLLOUTS = 200
#: Bytes, over all rollouts, steps and variables, up to which more than MIN_ROLLOUTS are taken.
MAX_BYTES = 2**30
#: Walks of an agent that acts at random, and their steps at most: they show which n occur.
NUM_WALKS, WALK_STEPS = 80, 64
#: Values of one variable at most: tables of the counts of two of them have as many cells squared.
MAX_SIZE = 2**14

#: Values of x that stand for their distribution in the rollouts.
NUM_BACKGROUNDS = 20_000


@dataclass(frozen=True, eq=False)
class ExogenousData:
    """Rollouts x_0 ... x_T of exogenous variables, in the smallest type that holds their values.

    Variables of very many values are in ``bins`` (:mod:`planners.discretization.coarse`), and
    their sizes are the numbers of these.

    The ``seed`` names the collection. What is later asked of the model about it (see
    :mod:`planners.dependence.interventions`) draws its noise from this, so that it does not
    matter in which order masks are looked at.
    """

    names: tuple[str, ...]
    sizes: Ints  # (m,)
    values: NDArray[np.integer[Any]]  # (rollouts, T + 1, m)
    initial_endogenous: IntArray  # (rollouts, k): the n that each x_0 was drawn with
    seed: int
    bins: tuple[Bins | Grid, ...] = ()  # of what is not seen value by value: of x, then of n

    def __post_init__(self) -> None:
        """Refuse values out of range, such as those of a damaged file: kernels follow them."""
        names = check_names("the names of the rollouts", self.names)
        sizes = whole_numbers(
            "the sizes of the rollouts", self.sizes, 1, MAX_SIZE + 1, length=len(names)
        )
        values = _values("values", self.values, 3)
        if len(values) < 1 or values.shape[1] < 2:
            raise ArgumentError(f"the rollouts have no transitions: their shape is {values.shape}")
        _check_range("values", values, names, sizes)
        endogenous = _values("initial_endogenous", self.initial_endogenous, 2)
        if len(endogenous) != len(values):
            raise ArgumentError(f"there are {len(values)} rollouts and {len(endogenous)} initial n")
        seed = check_whole("the seed of the rollouts", self.seed, 0)
        made = names, sizes, values, endogenous.astype(np.int64, copy=False), seed
        for field, value in zip(fields(self), made, strict=False):
            object.__setattr__(self, field.name, value)

    @classmethod
    def collect(
        cls,
        mdp: ExoMDP,
        num_rollouts: int | None = None,
        rng: np.random.Generator | None = None,
        *,
        num_steps: int | None = None,
    ) -> ExogenousData:
        """Roll out P(x_0) and P(x' | x): no policy, no action.

        Args:
            mdp: the model.
            num_rollouts: how many; by default about 100,000 transitions' worth, or 10,000 from an
                adapted environment. A record (:class:`~exo_envs.TraceMDP`) has only so many that do
                not overlap, and there are never more: a transition that was recorded once counts
                once.
            rng: where the randomness comes from; by default seed 0.
            num_steps: T; by default the model's horizon.
        """
        rng = as_generator("rng", rng, default=0)
        steps = check_horizon("num_steps", mdp.horizon if num_steps is None else num_steps)
        if mdp.is_recorded:
            num_rollouts, steps = _of_record(mdp, num_rollouts, steps)
        if num_rollouts is None:
            transitions = NUM_TRANSITIONS // (1 if mdp.is_batched else SLOW_MODEL_DIVISOR)
            width = max(1, len(mdp.exogenous_variables))
            if (mdp.exogenous_sizes > MAX_SINGLE_VALUES).any():  # values take more bytes than bins
                width *= np.dtype(_smallest_type(mdp.exogenous_sizes)).itemsize
            affordable = MAX_BYTES // ((steps + 1) * width)
            fewest = max(1, min(MIN_ROLLOUTS, MOST_VALUES // ((steps + 1) * width)))
            num_rollouts = max(fewest, min(math.ceil(transitions / steps), affordable))
        names = mdp.exogenous_names
        values, endogenous = _roll_out(mdp, num_rollouts, steps, rng)
        bins = _fit_bins(checked(mdp), values, rng)
        sizes = np.array([v.size for v in coarsened(mdp, bins).exogenous_variables], np.int64)
        values = _in_bins(values, names, bins, _smallest_type(sizes))
        endogenous = put_on_grid(endogenous, _names(mdp.endogenous_variables), bins)
        return cls(names, sizes, values, endogenous, int(rng.integers(2**63)), bins)

    def beginning_with(self, endogenous: IntArray) -> ExogenousData:
        """The same rollouts of x, drawn with another n each, shape (rollouts, k)."""
        if np.array_equal(endogenous, self.initial_endogenous):
            return self
        return replace(self, initial_endogenous=endogenous)

    def restrict(self, names: Sequence[str]) -> ExogenousData:
        """The same rollouts of fewer variables."""
        columns = self.positions(names)
        values = np.ascontiguousarray(self.values[:, :, columns])
        bins = tuple(own for own in self.bins if isinstance(own, Grid) or own.name in names)
        fewer = copy.copy(self)  # not made anew: its values were looked at before
        changed = {"names": tuple(names), "sizes": self.sizes[columns], "values": values}
        vars(fewer).update(**changed, bins=bins)
        return fewer

    def check(self, exogenous: Sequence[Variable], endogenous: Sequence[Variable]) -> None:
        names, of_n = _names(exogenous), _names(endogenous)
        sizes = [variable.size for variable in exogenous]
        if self.names != names:
            raise ArgumentError(f"the rollouts are of {self.names}, not of {names}")
        if self.sizes.tolist() != sizes:
            raise ArgumentError(
                f"the rollouts are of variables of {self.sizes} values, not {sizes}"
            )
        limits: Ints = np.array([variable.size for variable in endogenous], dtype=np.int64)
        _check_range("initial_endogenous", self.initial_endogenous, of_n, limits)

    @property
    def num_rollouts(self) -> int:
        """Rollouts in all, held out or not."""
        return self.values.shape[0]

    @property
    def num_steps(self) -> int:
        """T: the transitions of one rollout."""
        return self.values.shape[1] - 1

    @property
    def held_out(self) -> BoolArray:
        """Which rollouts are held out, shape (rollouts,): every eighth, however they grew."""
        return np.arange(self.num_rollouts) % HOLD_OUT == HOLD_OUT - 1

    @property
    def fitted(self) -> NDArray[np.intp]:
        """The rollouts that are not held out."""
        return np.flatnonzero(~self.held_out)

    def positions(self, names: Sequence[str]) -> NDArray[np.intp]:
        """Where the named variables are in ``values``."""
        places = {name: i for i, name in enumerate(self.names)}
        for name in names:
            if name not in places:
                raise unknown_name("variable of the data", name, self.names)
        return np.array([places[name] for name in names], dtype=np.intp)

    def before(self, i: int, rollouts: Any) -> IntArray:
        """x_i where a transition begins, in some rollouts, shape (rollouts * T,)."""
        return self.values[rollouts, :-1, i].reshape(-1)

    def after(self, i: int, rollouts: Any) -> IntArray:
        """x_i where a transition ends, in some rollouts, shape (rollouts * T,)."""
        return self.values[rollouts, 1:, i].reshape(-1)

    def initial(self) -> State:
        """The states in which the rollouts begin."""
        return State(self.initial_endogenous, self.values[:, 0].astype(np.int64))

    def sample(self, size: int, rng: np.random.Generator, columns: IntArray | None = None) -> Ints:
        """Draw ``size`` values of x, or of some variables, from all but the last steps: (size, m).

        Args:
            size: how many.
            rng: where the randomness comes from.
            columns: the positions of the variables; by default all.
        """
        rollout = rng.integers(self.num_rollouts, size=size)
        step = rng.integers(self.num_steps, size=size)
        if columns is None:
            return self.values[rollout, step].astype(np.int64)
        chosen = as_positions("columns", columns, len(self.names))
        return self.values[rollout[:, None], step[:, None], chosen].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Backgrounds:
    """Values of x that occur in the rollouts: the distribution that dropped variables have.

    The first ``num_independent`` come from different rollouts.
    """

    data: ExogenousData
    rollout: Ints  # (backgrounds,)
    step: Ints  # (backgrounds,)
    num_independent: int

    @classmethod
    def draw(cls, data: ExogenousData, rng: np.random.Generator) -> Backgrounds:
        """Steps of all rollouts, as many of each."""
        rollouts = data.num_rollouts
        repeats = max(1, min(data.num_steps, NUM_BACKGROUNDS // rollouts))
        steps = rng.permuted(np.tile(np.arange(data.num_steps), (rollouts, 1)), axis=1)
        chosen = np.ascontiguousarray(steps[:, :repeats].T).reshape(-1)
        return cls(data, np.tile(np.arange(rollouts), repeats), chosen, rollouts)

    def __len__(self) -> int:
        return len(self.rollout)

    def column(self, j: int) -> Ints:
        """The values of one variable, shape (backgrounds,)."""
        return self.data.values[self.rollout, self.step, j].astype(np.int64)

    def rows(self, part: slice) -> Ints:
        """All variables in some backgrounds, shape (len(part), m)."""
        return self.data.values[self.rollout[part], self.step[part]].astype(np.int64)


def _names(variables: Sequence[Variable]) -> tuple[str, ...]:
    return tuple(variable.name for variable in variables)


def _fit_bins(
    mdp: ExoMDP, values: NDArray[Any], rng: np.random.Generator
) -> tuple[Bins | Grid, ...]:
    """Bins for variables of very many values, then grids for the real variables of n."""
    many = np.flatnonzero(mdp.exogenous_sizes > MAX_SINGLE_VALUES).tolist()
    is_real = mdp.exogenous_ranges.is_real or mdp.endogenous_ranges.is_real
    lanes = NUM_WALKS if mdp.is_batched else NUM_WALKS // SLOW_MODEL_DIVISOR
    met = walk(mdp, lanes, min(mdp.horizon, WALK_STEPS), rng) if is_real else None
    responses = None if met is None else Responses(mdp, met, rng)
    bins = []
    for j in many:
        variable, column = mdp.exogenous_variables[j], values[:, :-1, j]
        if variable.is_real and responses is not None:
            bins.append(Bins.of_real(variable, column, responses))
        else:
            bins.append(Bins.of(variable, column))
    return (*bins, *(() if met is None else fit_grids(mdp, met)))


def _in_bins(
    values: NDArray[Any], names: Sequence[str], bins: Sequence[Bins | Grid], dtype: Any
) -> NDArray[Any]:
    """Rollouts in bins, in a type that holds them; a few rollouts at a time, to save memory."""
    if not any(isinstance(own, Bins) for own in bins):
        return values.astype(dtype, copy=False)
    out, binning = np.empty(values.shape, dtype=dtype), Binning(names, bins)
    for part in chunks(len(values), math.prod(values.shape[1:])):
        out[part] = binning.put(values[part])
    return out


def _values(name: str, values: Any, ndim: int) -> NDArray[Any]:
    """Whole numbers of so many dimensions, in a type that kernels take."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ArgumentError(f"{name} of the rollouts does not hold whole numbers")
    if array.ndim != ndim:
        raise ArgumentError(f"{name} of the rollouts has shape {array.shape}")
    return array if array.dtype in KERNEL_TYPES else array.astype(np.int64)


def _check_range(name: str, values: NDArray[Any], names: Sequence[str], sizes: Ints) -> None:
    """Refuse values that the variables (last axis) cannot have."""
    if values.shape[-1] != len(names):
        raise ArgumentError(
            f"{name} of the rollouts has shape {values.shape}, not (..., {len(names)})"
        )
    rows = values.reshape(-1, values.shape[-1]) if values.size else values[..., :0]
    high = rows.max(axis=0, initial=0)
    low = rows.min(axis=0, initial=0) if values.dtype.kind == "i" else np.zeros_like(high)
    for j in np.flatnonzero((low < 0) | (high >= sizes)).tolist():
        raise ArgumentError(
            f"{name} of the rollouts: those of {names[j]!r} are from 0 to {sizes[j] - 1}, "
            f"but the data has {low[j]} to {high[j]}"
        )


def _of_record(mdp: ExoMDP, num_rollouts: int | None, steps: int) -> tuple[int | None, int]:
    """How many rollouts of how many steps a record has that share no transition."""
    model = unchecked(mdp)
    if not isinstance(model, TraceMDP):
        return num_rollouts, steps
    steps = max(1, min(steps, model.record.longest - 1))
    most = model.record.num_separate(steps)
    return most if num_rollouts is None else min(num_rollouts, most), steps


def _roll_out(
    mdp: ExoMDP, num_rollouts: int, num_steps: int, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Values of x, (rollouts, num_steps + 1, m), and the initial n, (rollouts, k)."""
    mdp = checked(mdp)
    width = len(mdp.exogenous_variables)
    num_rollouts = check_rollouts("num_rollouts", num_rollouts, num_steps + 1, width)
    dtype = np.float64 if mdp.exogenous_ranges.is_real else _smallest_type(mdp.exogenous_sizes)
    values = np.empty((num_rollouts, num_steps + 1, width), dtype=dtype)
    # Of thousands of variables a part of the rollouts is stepped at a time: what the model returns
    # takes eight bytes for each value. A record is followed from its beginning to its end.
    whole = [slice(0, num_rollouts)]
    parts = whole if mdp.is_recorded else chunks(num_rollouts, width)
    endogenous = [mdp.write_trajectories(values[part], rng) for part in parts]
    return values, np.concatenate(endogenous)


def _smallest_type(sizes: Ints) -> Any:
    largest = int(sizes.max(initial=1)) - 1
    types = (np.uint8, np.int16, np.int32, np.int64)
    return next(dtype for dtype in types if largest <= np.iinfo(dtype).max)
