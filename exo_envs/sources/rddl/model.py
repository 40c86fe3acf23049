"""The imported model: an :class:`ExoMDP` whose dynamics are compiled expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import check_whole
from exo_envs.core.batches import as_batch, as_size, as_values, flat_rows, flatten
from exo_envs.core.ends import DONE, CarriedEnd
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray, IntArray, State, Successors, Variable
from exo_envs.sources.rddl.actions import ActionTable
from exo_envs.sources.rddl.nodes import Node, leaves
from exo_envs.sources.rddl.operations import Array
from exo_envs.sources.rddl.process import Process
from exo_envs.sources.rddl.program import Program

#: What a model says about its description.
RDDL_ATTRIBUTES = (
    *("action_names", "value_names", "constants", "parents", "end_looks_at", "notes", "name"),
)


@dataclass(frozen=True)
class Design:
    """What a model is made of.

    Attributes:
        process: the variables and their expressions.
        exogenous: the variables of x.
        actions: all actions.
        terms: the reward by the exogenous variables that it looks at.
        parents: the exogenous variables that each exogenous variable looks at.
        values: what the values of a variable are called, where they have names.
        constants: fluents that never change.
        enums: what the values of a fluent of an enumerated type are called.
        name: of the domain and the instance.
        discount: the weight of the next step's reward.
        horizon: the length of an episode.
    """

    process: Process
    exogenous: tuple[str, ...]
    actions: ActionTable
    terms: Mapping[tuple[str, ...], Node]
    parents: Mapping[str, tuple[str, ...]]
    values: Mapping[str, tuple[str, ...]]
    constants: tuple[str, ...]
    name: str
    discount: float
    horizon: int


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

    def __init__(self, design: Design) -> None:
        """Compile the expressions."""
        self._design = design
        process = design.process
        names = process.kinds
        own = tuple(name for name in names if name not in design.exogenous)
        self.endogenous_variables = tuple(_variable(process, name) for name in own)
        self.exogenous_variables = tuple(_variable(process, name) for name in design.exogenous)
        self.num_actions = len(design.actions.names)
        self.discount = design.discount
        self.horizon = design.horizon
        self.action_names = design.actions.names
        self.value_names = dict(design.values)
        self.constants = design.constants
        self.parents = dict(design.parents)
        self.notes = tuple(process.notes)
        self.name = design.name
        self._actions = design.actions
        scopes = [scope for scope in design.terms if scope]
        if any(len(scope) > 1 for scope in scopes):
            self.reward_scopes = tuple(scopes)
        # Otherwise there is a column for each exogenous variable, as in the paper.
        columns = {scope: i for i, scope in enumerate(self.reward_scopes)}
        self._term_columns = [columns[scope] for scope in scopes]
        graph = process.graph
        self._parts = {
            "endogenous": _Columns(process, own),
            "exogenous": _Columns(process, design.exogenous),
        }
        self._moves = {
            "endogenous": Program(process.settled([process.following[name] for name in own])),
            "exogenous": Program(process.settled([process.following[n] for n in design.exogenous])),
        }
        self._terms = Program([design.terms[scope] for scope in scopes])
        self._own_reward = Program([design.terms.get((), graph.constant(0.0))])
        self._terminal = (
            None
            if process.terminal.is_constant and not process.terminal.value
            else Program([process.terminal])
        )
        looked_at = process.looks_at(process.terminal)
        self.end_looks_at = tuple(name for name in design.exogenous if name in looked_at)
        self._fluents = dict(process.fluents)
        self._initial = [
            np.array([_stored(process, name) for name in part.names], dtype=self.dtype_of(which))
            for which, part in self._parts.items()
        ]
        self._moving = {
            leaf.value
            for root in process.settled([process.following[name] for name in own])
            for leaf in leaves([root], "state")
        } | {name for scope in scopes for name in scope}

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as a description; it is compiled again."""
        return type(self), (self._design,)

    def __deepcopy__(self, memo: dict[int, Any]) -> RDDLMDP:
        """Nothing in a model changes: a copy is the model itself."""
        return self

    # --- the model ------------------------------------------------------------------------

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """The initial state of the instance, ``size`` times."""
        size = as_size(self, size)
        n, x = (np.tile(values, (size, 1)) for values in self._initial)
        return State(n, x)

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """P(x'|x)."""
        values = as_values("exogenous", exogenous, self.exogenous_variables)
        x = flat_rows(values)
        known = self._parts["exogenous"].read(x)
        found = self._moves["exogenous"](known, len(x), rng)
        return self._parts["exogenous"].write(found, values.dtype).reshape(values.shape)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """P(n'|n,a,x)."""
        shape, n, x, a = as_batch(self, state, action)
        found = self._moves["endogenous"](self._known(n, x, a), len(a), rng)
        return self._parts["endogenous"].write(found, n.dtype).reshape(*shape, n.shape[-1])

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """What a step pays, by the exogenous variables that it depends on; means over draws."""
        shape, n, x, a = as_batch(self, state, action)
        terms = np.zeros((len(a), len(self.reward_scopes)))
        found = self._terms(self._known(n, x, a), len(a))
        for column, values in zip(self._term_columns, found, strict=True):
            terms[:, column] = values
        return terms.reshape(*shape, terms.shape[-1])

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """What a step pays whatever x is."""
        values = as_values("endogenous", endogenous, self.endogenous_variables)
        shape, (n,), a = flatten(self, (values,), action)
        (found,) = self._own_reward(
            self._parts["endogenous"].read(n) | self._actions.values(a), len(a)
        )
        return np.array(found, dtype=np.float64).reshape(shape)

    def is_terminal(self, state: State) -> BoolArray:
        """Whether a termination condition of the description holds."""
        if self._terminal is None:
            return super().is_terminal(state)
        if self.end_looks_at:
            shape, n, x, _ = as_batch(self, state, 0)
            known = self._parts["endogenous"].read(n) | self._parts["exogenous"].read(x)
        else:
            values = as_values("endogenous", state[0], self.endogenous_variables)
            shape, n = values.shape[:-1], flat_rows(values)
            known = self._parts["endogenous"].read(n)
        (found,) = self._terminal(known, len(n))
        return np.array(found, dtype=np.bool_).reshape(shape)

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors | None:
        """The one n' that follows, if nothing of n is drawn; else None."""
        if self._moves["endogenous"].is_random:
            return None
        return Successors.certain(self.sample_endogenous(state, action, np.random.default_rng(0)))

    def _known(self, n: Array, x: Array, a: Array) -> dict[Node, Any]:
        return (
            self._parts["endogenous"].read(n)
            | self._parts["exogenous"].read(x)
            | self._actions.values(a)
        )

    # --- the description ------------------------------------------------------------------

    def fluents(self, state: State) -> dict[str, NDArray[Any]]:
        """The grounded state fluents of the description, each of the shape of the batch.

        Values of enumerated types are positions, as in pyRDDLGym's vectorised simulator.
        """
        shape, n, x, _ = as_batch(self, state, 0)
        known = self._parts["endogenous"].read(n) | self._parts["exogenous"].read(x)
        found = self._fluent_program(known, len(n))
        return {
            name: np.array(values).reshape(shape)
            for name, values in zip(self._fluents, found, strict=True)
        }

    @cached_property
    def _fluent_program(self) -> Program:
        return Program(list(self._fluents.values()))

    def action_fluents(self, action: int) -> dict[str, Any]:
        """What an action sets the grounded action fluents to."""
        index = check_whole("action", action, 0)
        if index >= self.num_actions:
            raise ArgumentError(
                f"there is no action {index}; actions are 0 ... {self.num_actions - 1}"
            )
        return {name: column[index].item() for name, column in self._actions.columns.items()}

    @cached_property
    def connected_mask(self) -> tuple[str, ...]:
        """The exogenous variables that the dependency graph connects with n' or the reward.

        No other variable can matter for what the agent does. These may matter: the graph knows
        who looks at whom, not whether it makes a difference.
        """
        found = {name for name in self.exogenous_names if name in self._moving}
        found.update(self.end_looks_at)
        while True:
            more = {parent for name in found for parent in self.parents[name]} - found
            if not more:
                return tuple(name for name in self.exogenous_names if name in found)
            found |= more


class CarriedRDDLMDP(CarriedEnd, RDDLMDP):
    """A model made from an RDDL description that ends episodes by what x is.

    The end is carried in the endogenous variable ``done`` (:func:`exo_envs.carry_end`).

    Attributes:
        model: the model without that variable.
    """

    model: RDDLMDP

    def __init__(self, design: Design) -> None:
        """Compile the expressions of the description, and carry its end."""
        self._design = design
        model = RDDLMDP(design)
        CarriedEnd.__init__(self, model, model.end_looks_at)
        for name in RDDL_ATTRIBUTES:
            setattr(self, name, getattr(model, name))
        self._moving = model._moving
        note = (
            f"the end of an episode depends on exogenous variables "
            f"({', '.join(self.end_looks_at)}); it is carried in {DONE.name!r}, and comes one step "
            "later, which pays nothing"
        )
        self.notes += (note,)

    def fluents(self, state: State) -> dict[str, NDArray[Any]]:
        """Of the model."""
        return self.model.fluents(self.without_end(state))

    def action_fluents(self, action: int) -> dict[str, Any]:
        """Of the model."""
        return self.model.action_fluents(action)


def model_of(design: Design) -> RDDLMDP:
    """The model of a description; if its end depends on x, with the end in n."""
    looked_at = design.process.looks_at(design.process.terminal)
    return (RDDLMDP if looked_at.isdisjoint(design.exogenous) else CarriedRDDLMDP)(design)


class _Columns:
    """One part of the state as values of leaves."""

    def __init__(self, process: Process, names: tuple[str, ...]) -> None:
        self.names = names
        self.kinds = [process.kinds[name] for name in names]
        self.leaves = [process.leaf(name) for name in names]
        self.offsets = [_offset(process, name) for name in names]

    def read(self, rows: Array) -> dict[Node, Any]:
        """The values of an array (B, variables)."""
        columns = np.ascontiguousarray(rows.T)
        truths = columns != 0
        known: dict[Node, Any] = {}
        for j, (leaf, kind, offset) in enumerate(
            zip(self.leaves, self.kinds, self.offsets, strict=True)
        ):
            if kind == "bool":
                known[leaf] = truths[j]
            elif kind == "real":
                known[leaf] = columns[j]
            else:
                known[leaf] = columns[j].astype(np.int64, copy=False) + offset
        return known

    def write(self, values: list[Array], dtype: np.dtype[Any]) -> Array:
        """The same way back."""
        size = len(values[0]) if values else 0
        return _table(
            [v if o == 0 else v - o for v, o in zip(values, self.offsets, strict=True)], size, dtype
        )


def _table(columns: list[Array], size: int, dtype: np.dtype[Any]) -> Array:
    rows = np.empty((len(columns), size), dtype=dtype)
    for row, column in zip(rows, columns, strict=True):
        row[:] = column
    return np.ascontiguousarray(rows.T)


def _offset(process: Process, name: str) -> int:
    return int(process.bounds[name][0]) if process.kinds[name] == "int" else 0


def _stored(process: Process, name: str) -> Any:
    return process.initial[name] - _offset(process, name)


def _variable(process: Process, name: str) -> Variable:
    low, high = process.bounds[name]
    match process.kinds[name]:
        case "bool":
            return Variable(name, 2)
        case "int":
            return Variable(name, int(high - low) + 1)
    return Variable(name, low=low, high=high)
