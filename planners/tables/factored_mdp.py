"""MDPs whose every probability is a table: what planners plan in.

A :class:`FactoredMDP` is an :class:`~exo_envs.ExoMDP` that can also be looked into: the exogenous
dynamics are one conditional table per variable given a few parents, the endogenous dynamics are
:class:`~planners.DecisionLists`, the reward is a table per exogenous variable, and one for each
group of variables that pay together. A :class:`~planners.TabulatedReducedMDP` is one; small models
can be written down as one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from exo_envs.core.arguments import (
    as_array,
    check_discount,
    check_horizon,
    check_kind,
    check_names,
    check_shape,
    check_whole,
    real_numbers,
    whole_numbers,
)
from exo_envs.core.batches import as_lanes, as_pairs, as_size, endogenous_lanes, exogenous_lanes
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import (
    BoolArray,
    ExoMDP,
    FloatArray,
    IntArray,
    State,
    Successors,
    Variable,
    as_pair,
)
from planners.core.arrays import Ints, joint_index, joint_values
from planners.tables.decision_lists import DecisionLists, list_successors, sample_lists
from planners.tables.factors import Factor, Factors
from planners.tables.indexing import (
    Scope,
    in_order,
    num_endogenous_states,
    refuse_large_scope,
    scope_rows,
    scope_shape,
)

if TYPE_CHECKING:
    from planners.core.memory import Memory
    from planners.samples.rollouts import ExogenousData


class FactoredMDP(ExoMDP):
    """An MDP given by tables.

    Its reward terms are one for each exogenous variable, of which those without a table pay
    nothing, and behind them one for each of ``joint_terms``.

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
        joint_terms: (i, j, ...) -> the table of what these variables, by increasing positions, pay
            together, shape (joint values in C order, N, A); by default there are none, as in the
            paper.
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
        joint_terms: Mapping[Scope, FloatArray] | None = None,
        data: ExogenousData | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.endogenous_variables = _variables("endogenous_variables", endogenous_variables)
        self.exogenous_variables = _variables("exogenous_variables", exogenous_variables)
        self.num_actions = check_whole("num_actions", num_actions, 1)
        self.discount = check_discount("discount", discount)
        self.horizon = check_horizon("horizon", horizon)
        self._factors = factors
        self.decision_lists = decision_lists
        self._check_decision_lists()
        shape, sizes = (self.num_endogenous_states, num_actions), self.exogenous_sizes
        self.base_reward = real_numbers("base_reward", base_reward, shape)
        check_kind("terms", terms, Mapping)
        paying = whole_numbers("terms", sorted(terms), 0, len(sizes)).tolist()
        self.terms = {i: real_numbers(f"terms[{i}]", terms[i], (sizes[i], *shape)) for i in paying}
        self.joint_terms = self._as_joint_terms({} if joint_terms is None else joint_terms, shape)
        if self.joint_terms:
            names = self.exogenous_names
            together = [tuple(names[i] for i in scope) for scope in self.joint_terms]
            self.reward_scopes = (*((name,) for name in names), *together)
        self.terminal = as_array("terminal", terminal).astype(np.bool_)
        check_shape("terminal", self.terminal, shape[:1])
        self.initial = self._as_initial(initial)
        self.data = data
        self.memory = memory
        if not callable(factors):  # what is estimated later is of these variables
            self.factors  # noqa: B018
            if data is not None:
                data.check(self.exogenous_variables, self.endogenous_variables)

    def _check_decision_lists(self) -> None:
        check_kind("decision_lists", self.decision_lists, DecisionLists)
        self.decision_lists = lists = self.decision_lists.checked()
        own = self.num_endogenous_states, self.num_actions, self.exogenous_sizes.tolist()
        theirs = lists.num_states, lists.num_actions, lists.sizes.tolist()
        if own != theirs:
            raise ArgumentError(
                f"the decision lists are of {theirs[0]} states, {theirs[1]} actions and variables "
                f"of sizes {theirs[2]}; the model has {own[0]}, {own[1]} and {own[2]}"
            )

    def _as_joint_terms(
        self, joint_terms: Mapping[Scope, FloatArray], shape: tuple[int, int]
    ) -> dict[Scope, FloatArray]:
        """Tables by scopes of several variables each, in order."""
        check_kind("joint_terms", joint_terms, Mapping)
        sizes, found = self.exogenous_sizes, {}
        for given, table in joint_terms.items():
            check_kind("a scope of joint_terms", given, tuple)
            scope = tuple(whole_numbers("a scope of joint_terms", given, 0, len(sizes)).tolist())
            if len(scope) < 2 or list(scope) != sorted(set(scope)):
                raise ArgumentError(
                    f"a scope of joint_terms has two or more positions, increasing, not {scope}; "
                    "what one variable pays belongs to terms"
                )
            refuse_large_scope(scope, self.exogenous_names, sizes, math.prod(shape))
            rows = math.prod(scope_shape(scope, sizes))
            found[scope] = real_numbers(f"joint_terms[{scope}]", table, (rows, *shape))
        return {scope: found[scope] for scope in sorted(found)}

    def _as_initial(self, initial: State) -> State:
        """The initial states as arrays (states, k) and (states, m), with values in range."""
        parts = []
        for part, values in zip(State._fields, initial, strict=True):
            sizes = self.endogenous_sizes if part == "endogenous" else self.exogenous_sizes
            array = as_array(f"the {part} part of the initial states", values)
            if array.ndim != 2 or array.shape[1] != len(sizes) or not len(array):
                raise ArgumentError(
                    f"the {part} part of the initial states has shape {array.shape}; "
                    f"it should be (states, {len(sizes)})"
                )
            whole_numbers(f"the {part} part of the initial states", array.reshape(-1), 0)
            if (array >= sizes).any():
                raise ArgumentError(
                    f"the {part} part of the initial states has values up to "
                    f"{array.max(axis=0).tolist()}; the sizes are {sizes.tolist()}"
                )
            parts.append(array.astype(np.int64, copy=False))
        if len(parts[0]) != len(parts[1]):
            raise ArgumentError(
                f"there are {len(parts[0])} initial n and {len(parts[1])} initial x"
            )
        return State(*parts)

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        factors = tuple(self._factors() if callable(self._factors) else self._factors)
        sizes = self.exogenous_sizes
        if len(factors) != len(sizes):
            raise ArgumentError(f"there are {len(factors)} factors for {len(sizes)} variables")
        for variable, factor in zip(self.exogenous_variables, factors, strict=True):
            check_kind(f"the factor of {variable.name!r}", factor, Factor)
            factor.check(variable.name, sizes, variable.size)
        self._factors = factors
        return factors

    def exogenous_table(self, name: str) -> tuple[tuple[str, ...], FloatArray]:
        """The parents of a variable, and P(x'_i | parents), shape (*sizes of the parents, size)."""
        (i,) = self.exogenous_indices([name]).tolist()
        factor, names, sizes = self.factors[i], self.exogenous_names, self.exogenous_sizes
        shape = [*(int(sizes[j]) for j in factor.parents), int(sizes[i])]
        table = factor.to_table(int(sizes[i])).reshape(shape)
        return tuple(names[j] for j in factor.parents), table

    @property
    def scoped_terms(self) -> dict[Scope, FloatArray]:
        """``terms`` and ``joint_terms`` by their scopes, in the order of their last variables."""
        return in_order({(i,): table for i, table in self.terms.items()} | self.joint_terms)

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
        shape, n = endogenous_lanes(self, endogenous)
        return joint_index(n, self.endogenous_sizes).reshape(shape[:-1])

    # --- the ExoMDP -----------------------------------------------------------------------

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        chosen = rng.integers(len(self.initial.endogenous), size=as_size(self, size))
        return State(self.initial.endogenous[chosen], self.initial.exogenous[chosen])

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        shape, x = exogenous_lanes(self, exogenous)
        return self.all_factors.sample(x, rng.random(x.shape)).reshape(shape)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        shape, (n, x, actions) = as_lanes(self, state, action)
        uniform = rng.random(len(actions))
        following = sample_lists(self.decision_lists, self.endogenous_index(n), actions, x, uniform)
        return joint_values(following.reshape(shape), self.endogenous_sizes)

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors:
        """Every n' that the decision list of a lane gives a probability."""
        shape, (n, x, actions) = as_lanes(self, state, action)
        index = self.endogenous_index(n)
        targets, probabilities = list_successors(self.decision_lists, index, actions, x)
        shape = (*shape, targets.shape[1])
        return Successors(
            joint_values(targets.reshape(shape), self.endogenous_sizes),
            probabilities.reshape(shape),
        )

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """From the tables; zero in terminal states."""
        shape, (n, x, actions) = as_lanes(self, state, action)
        index = self.endogenous_index(n)
        alive = ~self.terminal[index]
        columns = x.shape[-1] + len(self.joint_terms)
        out = np.zeros((len(x), columns))
        for i, table in self.terms.items():
            out[:, i] = np.where(alive, table[x[:, i], index, actions], 0.0)
        for column, (scope, table) in enumerate(self.joint_terms.items(), x.shape[-1]):
            row = scope_rows(scope, x, self.exogenous_sizes)
            out[:, column] = np.where(alive, table[row, index, actions], 0.0)
        return out.reshape(*shape, columns)

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        shape, n, actions = as_pairs(self, endogenous, action)
        index = self.endogenous_index(n)
        paid = np.where(self.terminal[index], 0.0, self.base_reward[index, actions])
        return paid.reshape(shape)

    def is_terminal(self, state: State) -> BoolArray:
        shape, n = endogenous_lanes(self, as_pair(state).endogenous)
        return self.terminal[self.endogenous_index(n)].reshape(shape[:-1])


def _variables(name: str, variables: Any) -> tuple[Variable, ...]:
    """A tuple of variables; refuses other things, and a name that occurs twice."""
    found = tuple(variables) if isinstance(variables, Sequence) else (variables,)
    for variable in found:
        check_kind(f"each of {name}", variable, Variable)
    check_names(name, [variable.name for variable in found])
    return found
