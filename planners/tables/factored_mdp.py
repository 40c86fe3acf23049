"""MDPs whose every probability is a table: what planners plan in.

A :class:`FactoredMDP` is an :class:`~exo_envs.ExoMDP` that can also be looked into: the exogenous
dynamics are one conditional table per variable given a few parents, the endogenous dynamics are
:class:`~planners.DecisionLists`, the reward is a table per exogenous variable. A
:class:`~planners.TabulatedReducedMDP` is one; small models can be written down as one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from exo_envs import ExoMDP, State, Variable
from exo_envs.mdp import BoolArray, FloatArray, IntArray
from planners.arrays import Ints, join, joint_index, joint_values, starts_of, subset_index
from planners.tables.decision_lists import DecisionLists
from planners.tables.indexing import num_endogenous_states

if TYPE_CHECKING:
    from planners.information import ExogenousData
    from planners.memory import MaskMemory


@dataclass(frozen=True)
class Factor:
    """P(x'_i | parents) in sparse rows, one for each joint value of the parents (C order)."""

    parents: tuple[int, ...]
    starts: Ints  # (rows + 1,)
    values: Ints  # (entries,), increasing within a row
    probabilities: FloatArray  # (entries,)

    @classmethod
    def from_table(cls, parents: Sequence[int], table: FloatArray) -> Factor:
        """From a dense table of shape (*parent sizes, size), or (rows, size)."""
        rows = np.asarray(table, dtype=np.float64).reshape(-1, np.shape(table)[-1])
        if not np.allclose(rows.sum(axis=1), 1.0) or (rows < 0).any():
            raise ValueError("every row of a factor's table is a probability distribution")
        row, value = np.nonzero(rows)
        starts = np.concatenate([[0], np.bincount(row, minlength=len(rows)).cumsum()])
        return cls(tuple(int(p) for p in parents), starts, value, rows[row, value])

    def to_table(self, size: int) -> FloatArray:
        """The dense table, shape (rows, size)."""
        table = np.zeros((len(self.starts) - 1, size))
        table[np.repeat(np.arange(len(table)), np.diff(self.starts)), self.values] = (
            self.probabilities
        )
        return table


class Factors(NamedTuple):
    """The factors of all exogenous variables, one after another."""

    sizes: Ints  # (m,)
    parent_starts: Ints  # (m + 1,)
    parents: Ints
    row_starts: Ints  # (m + 1,)
    entry_starts: Ints  # (rows + 1,)
    values: Ints  # (entries,)
    probabilities: FloatArray  # (entries,)

    @classmethod
    def join(cls, factors: Sequence[Factor], sizes: Ints) -> Factors:
        """From the factor of each variable."""
        entries = starts_of([factor.values for factor in factors])
        rows = [factor.starts[:-1] + entries[i] for i, factor in enumerate(factors)]
        return cls(
            sizes=sizes,
            parent_starts=starts_of([factor.parents for factor in factors]),
            parents=join([factor.parents for factor in factors], np.int64),
            row_starts=starts_of(rows),
            entry_starts=join([*rows, entries[-1:]], np.int64),
            values=join([factor.values for factor in factors], np.int64),
            probabilities=join([factor.probabilities for factor in factors], np.float64),
        )

    def sample(self, exogenous: IntArray, rng: np.random.Generator) -> Ints:
        """Draw x' given x, shape (..., m): each variable by itself, given its parents."""
        # Not -1: without variables the number of lanes does not follow from the size.
        lanes = math.prod(exogenous.shape[:-1])
        flat = exogenous.reshape(lanes, exogenous.shape[-1])
        return _sample(self, flat, rng.random(flat.shape)).reshape(exogenous.shape)


class FactoredMDP(ExoMDP):
    """An MDP given by tables.

    Args:
        endogenous_variables: the variables of n, whose joint value has N values (C order).
        exogenous_variables: the m variables of x.
        num_actions: A.
        discount: the paper's gamma.
        horizon: the length of an episode.
        factors: the dynamics of each exogenous variable, or a function that makes them when they
            are first asked for.
        decision_lists: the endogenous dynamics.
        base_reward: what depends on no exogenous variable, shape (N, A).
        terms: i -> the table R^i of shape (size_i, N, A), for the variables that pay.
        terminal: which n are terminal, shape (N,).
        initial: states from which ``sample_initial`` draws uniformly.
        data: rollouts of the exogenous variables that forecasts are counted in; without them, those
            are drawn from the tables. Where they were estimated from the same rollouts, forecasts
            know what the tables leave out.
        memory: what was counted in the ``data`` before, shared with models of other masks; pickles
            leave it out.
    """

    def __init__(
        self,
        *,
        endogenous_variables: tuple[Variable, ...],
        exogenous_variables: tuple[Variable, ...],
        num_actions: int,
        discount: float,
        horizon: int,
        factors: Sequence[Factor] | Callable[[], Sequence[Factor]],
        decision_lists: DecisionLists,
        base_reward: FloatArray,
        terms: Mapping[int, FloatArray],
        terminal: BoolArray,
        initial: State,
        data: ExogenousData | None = None,
        memory: MaskMemory | None = None,
    ) -> None:
        self.endogenous_variables = endogenous_variables
        self.exogenous_variables = exogenous_variables
        self.num_actions = num_actions
        self.discount = discount
        self.horizon = horizon
        self._factors = factors
        self.decision_lists = decision_lists
        self.base_reward = np.asarray(base_reward, dtype=np.float64)
        self.terms = {int(i): np.asarray(table, np.float64) for i, table in terms.items()}
        self.terminal = np.asarray(terminal, dtype=np.bool_)
        self.initial = State(*(np.asarray(part, dtype=np.int64) for part in initial))
        self.data = data
        self.memory = memory
        self._check_sizes()

    def _check_sizes(self) -> None:
        states, sizes = self.num_endogenous_states, self.exogenous_sizes
        wrong = [
            f"{name} has shape {array.shape}, not {shape}"
            for name, array, shape in (
                ("base_reward", self.base_reward, (states, self.num_actions)),
                ("terminal", self.terminal, (states,)),
                *(
                    (f"the terms of {self.exogenous_names[i]!r}", table, shape)
                    for i, table in self.terms.items()
                    for shape in [(sizes[i], states, self.num_actions)]
                ),
            )
            if array.shape != shape
        ]
        if not callable(self._factors):
            wrong += self._wrong_factors(self._factors)
        if wrong:
            raise ValueError("; ".join(wrong))

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """The dynamics of each exogenous variable."""
        factors = tuple(self._factors() if callable(self._factors) else self._factors)
        wrong = self._wrong_factors(factors)
        if wrong:
            raise ValueError("; ".join(wrong))
        self._factors = factors
        return factors

    @cached_property
    def _joined_factors(self) -> Factors:
        return Factors.join(self.factors, self.exogenous_sizes)

    def _wrong_factors(self, factors: Sequence[Factor]) -> list[str]:
        sizes, wrong = self.exogenous_sizes, []
        if len(factors) != len(sizes):
            wrong.append(f"there are {len(factors)} factors for {len(sizes)} variables")
        for variable, factor in zip(self.exogenous_variables, factors, strict=False):
            rows = math.prod(int(sizes[parent]) for parent in factor.parents)
            if len(factor.starts) != rows + 1:
                wrong.append(f"the factor of {variable.name!r} needs {rows} rows")
            elif len(factor.values) and factor.values.max() >= variable.size:
                wrong.append(f"the factor of {variable.name!r} has the value {factor.values.max()}")
        return wrong

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the memory, with the factors made."""
        self.factors  # noqa: B018
        return {**self.__dict__, "memory": None}

    @cached_property
    def num_endogenous_states(self) -> int:
        """N: the number of joint values of the endogenous variables."""
        return num_endogenous_states(self)

    def endogenous_index(self, endogenous: IntArray) -> Ints:
        """The flat index of n, shape (...)."""
        return joint_index(endogenous, self.endogenous_sizes)

    def endogenous_values(self, index: IntArray) -> Ints:
        """The variables of n from its flat index, shape (..., k)."""
        return joint_values(index, self.endogenous_sizes)

    # --- the ExoMDP -----------------------------------------------------------------------

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """Draw from the initial states."""
        chosen = rng.integers(len(self.initial.endogenous), size=size)
        return State(self.initial.endogenous[chosen], self.initial.exogenous[chosen])

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """Each variable by itself, given its parents."""
        return self._joined_factors.sample(exogenous, rng)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """By the decision lists."""
        batch_shape = state.endogenous.shape[:-1]
        n = self.endogenous_index(state.endogenous)
        following = self.decision_lists.sample(
            n.reshape(-1),
            np.broadcast_to(action, batch_shape).reshape(-1).astype(np.int64),
            state.exogenous.reshape(n.size, state.exogenous.shape[-1]).astype(np.int64),
            rng.random(n.size),
        )
        return self.endogenous_values(following.reshape(batch_shape))

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """From the tables; zero in terminal states."""
        n = self.endogenous_index(state.endogenous)
        out = np.zeros(state.exogenous.shape)
        for i, table in self.terms.items():
            out[..., i] = np.where(self.terminal[n], 0.0, table[state.exogenous[..., i], n, action])
        return out

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """From the table; zero in terminal states."""
        n = self.endogenous_index(endogenous)
        return np.where(self.terminal[n], 0.0, self.base_reward[n, action])

    def is_terminal(self, state: State) -> BoolArray:
        """From the table."""
        return np.asarray(self.terminal[self.endogenous_index(state.endogenous)])


@njit(cache=True)
def _sample(factors: Any, x: Any, uniform: Any) -> Any:
    sizes, parent_starts, parents, row_starts, entry_starts, values, probabilities = factors
    out = np.empty(x.shape, np.int64)
    for lane in range(x.shape[0]):
        for i in range(x.shape[1]):
            start, end = parent_starts[i], parent_starts[i + 1]
            row = row_starts[i] + subset_index(x[lane], parents, start, end, sizes)
            below = 0.0
            chosen = 0
            for entry in range(entry_starts[row], entry_starts[row + 1]):
                chosen = values[entry]
                below += probabilities[entry]
                if uniform[lane, i] < below:
                    break
            out[lane, i] = chosen
    return out
