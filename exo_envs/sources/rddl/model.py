"""From a description to a model, step by step: an :class:`ExoMDP` of compiled expressions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import check_choice, check_flag, check_whole, shown
from exo_envs.core.batches import as_action, as_batch, as_size, as_values, flat_rows, flatten
from exo_envs.core.ends import DONE, CarriedEnd
from exo_envs.core.errors import ArgumentError, unknown_name
from exo_envs.core.mdp import (
    BoolArray,
    ExoMDP,
    FloatArray,
    IntArray,
    Ranges,
    State,
    Successors,
    Variable,
)
from exo_envs.sources.rddl.actions import enforce_preconditions, limits_of, tabulate_actions
from exo_envs.sources.rddl.description import Description, check_shared_draws, find_exogenous
from exo_envs.sources.rddl.expressions import GraphNode, Program, leaves
from exo_envs.sources.rddl.grounding import Grounder
from exo_envs.sources.rddl.intervals import (
    check_bounds,
    drop_constants,
    find_bounds,
    keep_draws_valid,
    keep_within_bounds,
)
from exo_envs.sources.rddl.loading import NoExogenousFluentsWarning, RDDLRefusedError, load
from exo_envs.sources.rddl.operations import Array
from exo_envs.sources.rddl.rewards import split_reward
from exo_envs.sources.rddl.variables import defer, merge_exclusive

#: Actions that a model may have at most, unless the user says otherwise.
MAX_ACTIONS = 10_000


def from_rddl(
    domain: Any,
    instance: Any,
    *,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    action_values: Mapping[str, Sequence[Any]] | None = None,
    max_concurrent: int | None = None,
    max_actions: int = MAX_ACTIONS,
    preconditions: str = "enforce",
    merge: bool = True,
    horizon: int | None = None,
    discount: float | None = None,
) -> RDDLMDP:
    """Import an RDDL description as a batched model.

    A state fluent is exogenous if no action reaches it, directly or through other fluents. What
    cannot be represented exactly is refused by name; nothing is approximated. See docs/rddl.md.

    Args:
        domain: a name of rddlrepository, the path of a domain file, or its text.
        instance: the number of an instance, the path of an instance file, or its text.
        bounds: the smallest and the largest value of fluents (of all objects, ``"stock"``, or of
            some, ``"stock___w1"``), where neither an invariant nor what can be reached from the
            initial state says so, or too generously. A value that would leave them stays at the
            bound.
        action_values: a finite choice of values for action fluents.
        max_concurrent: the number of action fluents that may be set at once, if fewer than the
            instance allows.
        max_actions: refuse more actions than this.
        preconditions: with ``"enforce"``, an action whose precondition does not hold in a state
            does there what the default action does; with ``"ignore"`` it is taken all the same, as
            pyRDDLGym does by default.
        merge: whether fluents of which at most one can hold, as is proved, become one variable.
        horizon: the length of an episode, if not the instance's.
        discount: the weight of the next step's reward, if not the instance's.

    Raises:
        ImportError: pyRDDLGym (or rddlrepository) is missing.
        RDDLRefusedError: the description cannot be represented; a ``ValueError``.

    Warns:
        NoExogenousFluentsWarning: actions reach every fluent. The model has no exogenous variable.
    """
    check_choice("treatment of preconditions", preconditions, ("enforce", "ignore"))
    merge = check_flag("merge", merge)
    model = load(domain, instance)
    if model.observ_fluents:
        raise RDDLRefusedError(
            "partially-observable",
            f"{model.domain_name!r} shows observations ({', '.join(model.observ_fluents)}) instead "
            "of its state; import the MDP version of it",
        )
    rddl = Description(
        name=f"{model.domain_name}, {model.instance_name}",
        horizon=check_whole("horizon", model.horizon if horizon is None else horizon, 1),
        discount=float(model.discount if discount is None else discount),
    )
    Grounder(model, rddl).ground()
    most = min(int(model.max_allowed_actions), len(rddl.action_kinds))
    if max_concurrent is not None:
        most = min(most, check_whole("max_concurrent", max_concurrent, 0))
    rddl.actions = tabulate_actions(
        rddl,
        action_values=action_values or {},
        most_at_once=most,
        most_actions=check_whole("max_actions", max_actions, 1),
    )
    stated = _stated_bounds(rddl, bounds or {})
    if preconditions == "enforce":
        enforce_preconditions(rddl)
    find_bounds(rddl, stated)
    while drop_constants(rddl):  # without these, others may turn out not to change either
        find_bounds(rddl, stated)
    keep_within_bounds(rddl)
    if merge:
        merge_exclusive(rddl)
    rddl.exogenous = find_exogenous(rddl)
    check_shared_draws(rddl)
    defer(rddl)
    check_bounds(rddl)
    keep_draws_valid(rddl)
    split_reward(rddl)
    if not rddl.exogenous:
        constants = rddl.constants
        more = f" and {len(constants) - 3} more" if len(constants) > 3 else ""
        unchanging = f" ({', '.join(constants[:3])}{more} never do)" if constants else ""
        warnings.warn(
            f"actions reach every fluent of {model.domain_name!r} that changes{unchanging}: the "
            "model has no exogenous variable, and nothing to mask",
            NoExogenousFluentsWarning,
            stacklevel=2,
        )
    ends_by_x = not rddl.looks_at(rddl.terminal).isdisjoint(rddl.exogenous)
    return (CarriedRDDLMDP if ends_by_x else RDDLMDP)(rddl)


def _stated_bounds(
    rddl: Description, bounds: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """The bounds that the user gives or an invariant states, and those of the types."""
    known = {*rddl.kinds, *(rddl.lifted[name][0] for name in rddl.kinds)}
    for name, pair in bounds.items():
        if name not in known:
            raise unknown_name("state fluent", name, sorted(known))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not pair[0] < pair[1]:
            raise ArgumentError(f"bounds of {name!r} are a pair (low, high), not {shown(pair)}")
    stated = limits_of(rddl.graph.conjuncts(rddl.invariants), "state")
    for name, kind in rddl.kinds.items():
        lifted = rddl.lifted[name][0]
        if kind == "bool":
            stated[name] = (0, 1)
        elif name in rddl.values:
            stated[name] = (0, len(rddl.values[name]) - 1)
        elif name in bounds or lifted in bounds:
            low, high = bounds.get(name, bounds.get(lifted, (0, 0)))
            stated[name] = (float(low), float(high))
            if not low <= rddl.initial[name] <= high:
                raise ArgumentError(
                    f"{name!r} begins with {rddl.initial[name]}, which is outside its bounds "
                    f"{low} and {high}"
                )
    return stated


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

    def __init__(self, rddl: Description) -> None:
        self._description = rddl
        self.name = rddl.name
        self.action_names = rddl.actions.names
        self.value_names = {name: v for name, v in rddl.values.items() if name in rddl.kinds}
        self.constants = rddl.constants
        self.parents = rddl.parents()
        looked_at = rddl.looks_at(rddl.terminal)
        self.end_looks_at = tuple(name for name in rddl.exogenous if name in looked_at)
        self.notes = tuple(rddl.notes)
        self._n, self._x = _Part(rddl, rddl.endogenous), _Part(rddl, rddl.exogenous)
        self.endogenous_variables = self._n.variables
        self.exogenous_variables = self._x.variables
        self.num_actions = len(rddl.actions.names)
        self.discount = rddl.discount
        self.horizon = rddl.horizon
        scopes = [scope for scope in rddl.terms if scope]
        if any(len(scope) > 1 for scope in scopes):
            self.reward_scopes = tuple(scopes)
        # Otherwise there is a column for each exogenous variable, as in the paper.
        self._columns = [self.reward_scopes.index(scope) for scope in scopes]
        self._terms = Program([rddl.terms[scope] for scope in scopes])
        self._own_reward = Program([rddl.terms.get((), rddl.graph.constant(0.0))])
        self._terminal = Program([rddl.terminal])
        self._never_ends = rddl.terminal is rddl.graph.false
        self._fluents = Program(list(rddl.fluents.values()))

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
        return State(np.tile(self._n.initial, (size, 1)), np.tile(self._x.initial, (size, 1)))

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        values, part = as_values("exogenous", exogenous, self.exogenous_variables), self._x
        x = flat_rows(values)
        return part.write(part.moves(part.read(x), len(x), rng), values.dtype).reshape(values.shape)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
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
        values = as_values("endogenous", endogenous, self.endogenous_variables)
        shape, (n,), a = flatten(self, (values,), action)
        known = self._n.read(n) | self._description.actions.values(a)
        (found,) = self._own_reward(known, len(a))
        return np.array(found, dtype=np.float64).reshape(shape)

    def is_terminal(self, state: State) -> BoolArray:
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

    def _known(self, n: Array, x: Array, a: Array) -> dict[GraphNode, Any]:
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
        index, columns = as_action(self, action), self._description.actions.columns
        return {name: column[index].item() for name, column in columns.items()}

    @cached_property
    def connected_mask(self) -> tuple[str, ...]:
        """The exogenous variables that the dependency graph connects with n' or the reward.

        No other variable can matter for what the agent does. These may matter: the graph knows
        who looks at whom, not whether it makes a difference.
        """
        rddl = self._description
        moves = leaves(rddl.settled_following(rddl.endogenous), "state")
        found = {leaf.value for leaf in moves}.union(self.end_looks_at, *rddl.terms)
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

    def __init__(self, rddl: Description) -> None:
        model = RDDLMDP(rddl)
        vars(self).update(vars(model))  # what became of the description
        CarriedEnd.__init__(self, model, model.end_looks_at)
        note = (
            f"the end of an episode depends on exogenous variables "
            f"({', '.join(self.end_looks_at)}); it is carried in {DONE.name!r}, and comes one step "
            "later, which pays nothing"
        )
        self.notes += (note,)

    def fluents(self, state: State) -> dict[str, NDArray[Any]]:
        return self.model.fluents(self.without_end(state))


class _Part:
    """One part of the state: rows as values of leaves, and how it moves."""

    def __init__(self, rddl: Description, names: tuple[str, ...]) -> None:
        self.moves = Program(rddl.settled_following(names))
        bounds = [rddl.bounds[name] for name in names]
        self._leaves = [rddl.leaf(name) for name in names]
        self._offsets = [
            int(low) if leaf.kind == "int" else 0
            for leaf, (low, _) in zip(self._leaves, bounds, strict=True)
        ]
        self.variables = tuple(
            Variable(leaf.value, low=low, high=high)
            if leaf.kind == "real"
            else Variable(leaf.value, 2 if leaf.kind == "bool" else int(high - low) + 1)
            for leaf, (low, high) in zip(self._leaves, bounds, strict=True)
        )
        initial = [rddl.initial[name] - o for name, o in zip(names, self._offsets, strict=True)]
        self.initial: Array = np.array(initial, dtype=Ranges(self.variables).dtype)

    def read(self, rows: Array) -> dict[GraphNode, Any]:
        """The values of an array (B, variables)."""
        columns = np.ascontiguousarray(rows.T)
        truths = columns != 0
        known: dict[GraphNode, Any] = {}
        for j, (leaf, offset) in enumerate(zip(self._leaves, self._offsets, strict=True)):
            if leaf.kind == "bool":
                known[leaf] = truths[j]
            elif leaf.kind == "real":
                known[leaf] = columns[j]
            else:
                known[leaf] = columns[j].astype(np.int64, copy=False) + offset
        return known

    def write(self, values: list[Array], dtype: np.dtype[Any]) -> Array:
        """The array (B, variables) of next values, each of shape (B,)."""
        rows = np.empty((len(values), len(values[0]) if values else 0), dtype=dtype)
        for row, column, offset in zip(rows, values, self._offsets, strict=True):
            row[:] = column if offset == 0 else column - offset
        return np.ascontiguousarray(rows.T)
