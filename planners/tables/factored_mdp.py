"""MDPs whose every probability is a table: what planners plan in.

A :class:`FactoredMDP` is an :class:`~exo_envs.ExoMDP` that can also be looked into: the exogenous
dynamics are one conditional table per variable given a few parents, the endogenous dynamics are
:class:`~planners.DecisionLists`, the reward is a table per exogenous variable. A
:class:`~planners.TabulatedReducedMDP` is one; small models can be written down as one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from exo_envs import ExoMDP, State, Successors, Variable
from exo_envs.mdp import BoolArray, FloatArray, IntArray
from planners.arrays import Ints, joint_index, joint_values
from planners.tables.decision_lists import DecisionLists
from planners.tables.factors import Factor, Factors
from planners.tables.indexing import num_endogenous_states

if TYPE_CHECKING:
    from planners.information import ExogenousData
    from planners.memory import MaskMemory


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
        sizes, shape = self.exogenous_sizes, (self.num_endogenous_states, self.num_actions)
        shapes: list[tuple[str, Any, tuple[int, ...]]] = [
            ("base_reward", self.base_reward, shape),
            ("terminal", self.terminal, shape[:1]),
            *((f"terms[{i}]", self.terms[i], (sizes[i], *shape)) for i in self.terms),
        ]
        for name, table, wanted in shapes:
            if table.shape != wanted:
                raise ValueError(f"{name} has shape {table.shape}, not {wanted}")
        if not callable(self._factors):
            self.factors  # noqa: B018

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """The dynamics of each exogenous variable."""
        factors = tuple(self._factors() if callable(self._factors) else self._factors)
        sizes = self.exogenous_sizes
        if len(factors) != len(sizes):
            raise ValueError(f"there are {len(factors)} factors for {len(sizes)} variables")
        for variable, factor in zip(self.exogenous_variables, factors, strict=True):
            rows = math.prod(int(sizes[parent]) for parent in factor.parents)
            highest = factor.values.max(initial=0)
            if len(factor.starts) != rows + 1 or highest >= variable.size:
                raise ValueError(
                    f"the factor of {variable.name!r} has {len(factor.starts) - 1} rows and values "
                    f"up to {highest}; it should have {rows} rows and values below {variable.size}"
                )
        self._factors = factors
        return factors

    @cached_property
    def all_factors(self) -> Factors:
        """The same in one record, to sample from."""
        return Factors.of(self.factors, self.exogenous_sizes)

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

    # --- the ExoMDP -----------------------------------------------------------------------

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """Draw from the initial states."""
        chosen = rng.integers(len(self.initial.endogenous), size=size)
        return State(self.initial.endogenous[chosen], self.initial.exogenous[chosen])

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """Each variable by itself, given its parents."""
        return self.all_factors.sample(exogenous, rng.random(exogenous.shape))

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """By the decision lists."""
        batch_shape = state.endogenous.shape[:-1]
        uniform = rng.random(math.prod(batch_shape))
        following = self.decision_lists.sample(*self._lanes(state, action), uniform)
        return joint_values(following.reshape(batch_shape), self.endogenous_sizes)

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors:
        """By the decision lists."""
        batch_shape = state.endogenous.shape[:-1]
        targets, probabilities = self.decision_lists.successors(*self._lanes(state, action))
        shape = (*batch_shape, targets.shape[1])
        return Successors(
            joint_values(targets.reshape(shape), self.endogenous_sizes),
            probabilities.reshape(shape),
        )

    def _lanes(self, state: State, action: IntArray) -> tuple[Ints, Ints, Ints]:
        """The flat index of n, the action and x, as the decision lists take them."""
        n = self.endogenous_index(state.endogenous)
        return (
            n.reshape(-1),
            np.broadcast_to(action, n.shape).reshape(-1).astype(np.int64),
            state.exogenous.reshape(n.size, state.exogenous.shape[-1]).astype(np.int64),
        )

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
