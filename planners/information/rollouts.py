"""Exogenous rollouts: the data that reduced models are estimated from.

x moves by itself, so its rollouts need no policy and are the same for every mask: they are
collected once, for all variables, and shared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs import ExoMDP, State
from exo_envs.errors import unknown_name
from exo_envs.inputs import check_whole
from exo_envs.mdp import BoolArray, IntArray
from planners.arrays import Ints

#: One rollout in this many is held out: it measures the fit and takes no part in it.
HOLD_OUT = 8
#: Transitions that are collected by default.
NUM_TRANSITIONS = 100_000
#: An environment that is stepped one state at a time is asked for this many times fewer.
SLOWER = 10
#: Rollouts at least: what never changes within an episode is seen once in each.
MIN_ROLLOUTS = 200
#: Values at most, over all rollouts, steps and variables, unless MIN_ROLLOUTS have more.
MAX_VALUES = 250_000_000


@dataclass(frozen=True, eq=False)
class ExogenousData:
    """Rollouts x_0 ... x_T of exogenous variables, in the smallest type that holds their values.

    The ``seed`` names the collection. What is later asked of the model about it (see
    :mod:`planners.information.interventions`) draws its noise from this, so that it does not
    matter in which order masks are looked at.
    """

    names: tuple[str, ...]
    sizes: Ints  # (m,)
    values: NDArray[np.integer[Any]]  # (rollouts, T + 1, m)
    initial_endogenous: Ints  # (rollouts, k): the n that each x_0 was drawn with
    seed: int

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
                adapted environment.
            rng: where the randomness comes from; by default seed 0.
            num_steps: T; by default the model's horizon.
        """
        rng = np.random.default_rng(0) if rng is None else rng
        steps = mdp.horizon if num_steps is None else num_steps
        check_whole("num_steps", steps, 1)
        if num_rollouts is None:
            transitions = NUM_TRANSITIONS // (1 if mdp.is_batched else SLOWER)
            affordable = MAX_VALUES // ((steps + 1) * max(1, len(mdp.exogenous_variables)))
            num_rollouts = max(MIN_ROLLOUTS, min(math.ceil(transitions / steps), affordable))
        values, endogenous = _roll_out(mdp, num_rollouts, steps, rng, mdp.exogenous_names)
        seed = int(rng.integers(2**63))
        return cls(mdp.exogenous_names, mdp.exogenous_sizes, values, endogenous, seed)

    def extend(self, mdp: ExoMDP, num_rollouts: int, rng: np.random.Generator) -> ExogenousData:
        """These rollouts and ``num_rollouts`` more: whatever is counted in both parts adds up."""
        values, endogenous = _roll_out(mdp, num_rollouts, self.num_steps, rng, self.names)
        return replace(
            self,
            values=np.concatenate([self.values, values]),
            initial_endogenous=np.concatenate([self.initial_endogenous, endogenous]),
        )

    def restrict(self, names: Sequence[str]) -> ExogenousData:
        """The same rollouts of fewer variables."""
        columns = self.positions(names)
        values = np.ascontiguousarray(self.values[:, :, columns])
        return replace(self, names=tuple(names), sizes=self.sizes[columns], values=values)

    @property
    def num_rollouts(self) -> int:
        """The number of rollouts."""
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

    def sample(self, size: int, rng: np.random.Generator) -> Ints:
        """Draw ``size`` values of x from all but the last steps, shape (size, m)."""
        rollout = rng.integers(self.num_rollouts, size=size)
        return self.values[rollout, rng.integers(self.num_steps, size=size)].astype(np.int64)


def _roll_out(
    mdp: ExoMDP, num_rollouts: int, num_steps: int, rng: np.random.Generator, names: Sequence[str]
) -> tuple[NDArray[np.integer[Any]], Ints]:
    check_whole("num_rollouts", num_rollouts, 1)
    # A slice where everything is kept: no copy of each step.
    everything = names == mdp.exogenous_names
    columns: Any = slice(None) if everything else mdp.exogenous_indices(names)
    sizes = mdp.exogenous_sizes[columns]
    state = mdp.sample_initial(int(num_rollouts), rng)
    x = state.exogenous
    values = np.empty((num_rollouts, num_steps + 1, len(sizes)), dtype=_smallest_type(sizes))
    values[:, 0] = x[:, columns]
    for t in range(1, num_steps + 1):
        x = mdp.sample_exogenous(x, rng)
        values[:, t] = x[:, columns]
    return values, np.asarray(state.endogenous, dtype=np.int64)


def _smallest_type(sizes: Ints) -> Any:
    largest = int(sizes.max(initial=1)) - 1
    types = (np.uint8, np.int16, np.int32, np.int64)
    return next(dtype for dtype in types if largest <= np.iinfo(dtype).max)
