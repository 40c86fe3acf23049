"""The imported model: an :class:`ExoMDP` whose dynamics are compiled expressions."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import check_whole
from exo_envs.core.batches import as_batch, as_size, as_values, flat_rows, flatten
from exo_envs.core.ends import DONE, CarriedEnd
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray, IntArray, State, Successors, Variable
from exo_envs.sources.rddl.description import Description
from exo_envs.sources.rddl.expressions import Node, Program, leaves
from exo_envs.sources.rddl.operations import Array


class RDDLMDP(ExoMDP):
    """A model made from an RDDL description; :func:`exo_envs.from_rddl` makes it.

    Whole variables are stored from 0 on; :meth:`fluents` has the values of the description.

    Attributes:
        action_names: what each action sets, ``noop`` for the default one.
        value_names: what the values of a variable are called, where they have names.
        constants: the fluents that never change, which are no variables.
        parents: the exogenous variables that each exogenous variable looks at.
        end_looks_at: the exogenous variables that the end of an episode depends on.
        notes: what the import did that a user should know.
    """

    def __init__(self, description: Description) -> None:
        """Compile the expressions."""
        self._describe(description)
        given, graph = description, description.graph
        self._parts = {
            "endogenous": _Part(given, given.endogenous),
            "exogenous": _Part(given, given.exogenous),
        }
        self.endogenous_variables, self.exogenous_variables = (
            part.variables for part in self._parts.values()
        )
        self.num_actions = len(given.actions.names)
        self.discount = given.discount
        self.horizon = given.horizon
        scopes = [scope for scope in given.terms if scope]
        if any(len(scope) > 1 for scope in scopes):
            self.reward_scopes = tuple(scopes)
        # Otherwise there is a column for each exogenous variable, as in the paper.
        self._columns = [self.reward_scopes.index(scope) for scope in scopes]
        self._terms = Program([given.terms[scope] for scope in scopes])
        self._own_reward = Program([given.terms.get((), graph.constant(0.0))])
        self._terminal = Program([given.terminal])
        self._never_ends = given.terminal is graph.false
        self._fluents = Program(list(given.fluents.values()))

    def _describe(self, given: Description) -> None:
        """Set the attributes that say what became of the description."""
        self._description = given
        self.name = given.name
        self.action_names = given.actions.names
        self.value_names = {name: v for name, v in given.values.items() if name in given.kinds}
        self.constants = given.constants
        self.parents = given.parents()
        looked_at = given.looks_at(given.terminal)
        self.end_looks_at = tuple(name for name in given.exogenous if name in looked_at)
        self.notes = tuple(given.notes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as a description; it is compiled again."""
        return type(self), (self._description,)

    def __deepcopy__(self, memo: dict[int, Any]) -> RDDLMDP:
        """Nothing in a model changes: a copy is the model itself."""
        return self

    # --- the model ------------------------------------------------------------------------

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """The initial state of the instance, ``size`` times."""
        size = as_size(self, size)
        n, x = (
            np.tile(np.array(part.initial, dtype=self.dtype_of(which)), (size, 1))
            for which, part in self._parts.items()
        )
        return State(n, x)

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """P(x'|x)."""
        values, part = as_values("exogenous", exogenous, self.exogenous_variables), self._x
        x = flat_rows(values)
        return part.write(part.moves(part.read(x), len(x), rng), values.dtype).reshape(values.shape)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """P(n'|n,a,x)."""
        shape, n, x, a = as_batch(self, state, action)
        found = self._n.moves(self._known(n, x, a), len(a), rng)
        return self._n.write(found, n.dtype).reshape(*shape, n.shape[-1])

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """What a step pays, by the exogenous variables that it depends on; means over draws."""
        shape, n, x, a = as_batch(self, state, action)
        terms = np.zeros((len(a), len(self.reward_scopes)))
        found = self._terms(self._known(n, x, a), len(a))
        for column, values in zip(self._columns, found, strict=True):
            terms[:, column] = values
        return terms.reshape(*shape, terms.shape[-1])

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """What a step pays whatever x is."""
        values = as_values("endogenous", endogenous, self.endogenous_variables)
        shape, (n,), a = flatten(self, (values,), action)
        known = self._n.read(n) | self._description.actions.values(a)
        (found,) = self._own_reward(known, len(a))
        return np.array(found, dtype=np.float64).reshape(shape)

    def is_terminal(self, state: State) -> BoolArray:
        """Whether a termination condition of the description holds."""
        if self._never_ends:
            return super().is_terminal(state)
        if self.end_looks_at:
            shape, n, x, _ = as_batch(self, state, 0)
            known = self._n.read(n) | self._x.read(x)
        else:
            values = as_values("endogenous", state[0], self.endogenous_variables)
            shape, n = values.shape[:-1], flat_rows(values)
            known = self._n.read(n)
        (found,) = self._terminal(known, len(n))
        return np.array(found, dtype=np.bool_).reshape(shape)

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors | None:
        """The one n' that follows, if nothing of n is drawn; else None."""
        if self._n.moves.is_random:
            return None
        return Successors.certain(self.sample_endogenous(state, action, np.random.default_rng(0)))

    @property
    def _n(self) -> _Part:
        return self._parts["endogenous"]

    @property
    def _x(self) -> _Part:
        return self._parts["exogenous"]

    def _known(self, n: Array, x: Array, a: Array) -> dict[Node, Any]:
        return self._n.read(n) | self._x.read(x) | self._description.actions.values(a)

    # --- the description ------------------------------------------------------------------

    def fluents(self, state: State) -> dict[str, NDArray[Any]]:
        """The grounded state fluents of the description, each of the shape of the batch.

        Values of enumerated types are positions, as in pyRDDLGym's vectorised simulator.
        """
        shape, n, x, _ = as_batch(self, state, 0)
        found = self._fluents(self._n.read(n) | self._x.read(x), len(n))
        return {
            name: np.array(values).reshape(shape)
            for name, values in zip(self._description.fluents, found, strict=True)
        }

    def action_fluents(self, action: int) -> dict[str, Any]:
        """What an action sets the grounded action fluents to."""
        index, columns = check_whole("action", action, 0), self._description.actions.columns
        if index >= self.num_actions:
            raise ArgumentError(
                f"there is no action {index}; actions are 0 ... {self.num_actions - 1}"
            )
        return {name: column[index].item() for name, column in columns.items()}

    @cached_property
    def connected_mask(self) -> tuple[str, ...]:
        """The exogenous variables that the dependency graph connects with n' or the reward.

        No other variable can matter for what the agent does. These may matter: the graph knows
        who looks at whom, not whether it makes a difference.
        """
        given = self._description
        moves = leaves(given.settled_following(given.endogenous), "state")
        found = {leaf.value for leaf in moves}.union(self.end_looks_at, *given.terms)
        waiting = [name for name in self.exogenous_names if name in found]
        found = set(waiting)
        while waiting:
            more = set(self.parents[waiting.pop()]) - found
            found |= more
            waiting.extend(more)
        return tuple(name for name in self.exogenous_names if name in found)


class CarriedRDDLMDP(CarriedEnd, RDDLMDP):
    """A model made from an RDDL description that ends episodes by what x is.

    The end is carried in the endogenous variable ``done`` (:func:`exo_envs.carry_end`).

    Attributes:
        model: the model without that variable.
    """

    model: RDDLMDP

    def __init__(self, description: Description) -> None:
        """Compile the expressions of the description, and carry its end."""
        model = RDDLMDP(description)
        self._describe(description)
        CarriedEnd.__init__(self, model, model.end_looks_at)
        note = (
            f"the end of an episode depends on exogenous variables "
            f"({', '.join(self.end_looks_at)}); it is carried in {DONE.name!r}, and comes one step "
            "later, which pays nothing"
        )
        self.notes += (note,)

    def fluents(self, state: State) -> dict[str, NDArray[Any]]:
        """Of the model."""
        return self.model.fluents(self.without_end(state))


class _Part:
    """One part of the state: rows as values of leaves, and how it moves."""

    def __init__(self, given: Description, names: tuple[str, ...]) -> None:
        self.moves = Program(given.settled_following(names))
        bounds = [given.bounds[name] for name in names]
        self._leaves = [given.leaf(name) for name in names]
        self._offsets = [
            int(low) if leaf.kind == "int" else 0
            for leaf, (low, _) in zip(self._leaves, bounds, strict=True)
        ]
        self.initial = [
            given.initial[name] - offset for name, offset in zip(names, self._offsets, strict=True)
        ]
        self.variables = tuple(
            Variable(leaf.value, low=low, high=high)
            if leaf.kind == "real"
            else Variable(leaf.value, 2 if leaf.kind == "bool" else int(high - low) + 1)
            for leaf, (low, high) in zip(self._leaves, bounds, strict=True)
        )

    def read(self, rows: Array) -> dict[Node, Any]:
        """The values of an array (B, variables)."""
        columns = np.ascontiguousarray(rows.T)
        truths = columns != 0
        known: dict[Node, Any] = {}
        for j, (leaf, offset) in enumerate(zip(self._leaves, self._offsets, strict=True)):
            if leaf.kind == "bool":
                known[leaf] = truths[j]
            elif leaf.kind == "real":
                known[leaf] = columns[j]
            else:
                known[leaf] = columns[j].astype(np.int64, copy=False) + offset
        return known

    def write(self, values: list[Array], dtype: np.dtype[Any]) -> Array:
        """The same way back."""
        rows = np.empty((len(values), len(values[0]) if values else 0), dtype=dtype)
        for row, column, offset in zip(rows, values, self._offsets, strict=True):
            row[:] = column if offset == 0 else column - offset
        return np.ascontiguousarray(rows.T)
