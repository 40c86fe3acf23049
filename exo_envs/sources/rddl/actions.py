"""Which actions there are: all choices of values for the action fluents, as a table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exo_envs.core.arguments import shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, unknown_name
from exo_envs.sources.rddl.errors import RDDLRefusedError
from exo_envs.sources.rddl.grounding import Grounded
from exo_envs.sources.rddl.intervals import Interval
from exo_envs.sources.rddl.nodes import Node, leaves
from exo_envs.sources.rddl.operations import Array
from exo_envs.sources.rddl.program import DTYPES, Program


@dataclass(frozen=True)
class ActionTable:
    """All actions.

    Attributes:
        names: of the actions, for people.
        columns: the value of each action fluent, shape (actions,) each.
        leaves: the node of each action fluent.
    """

    names: tuple[str, ...]
    columns: dict[str, Array]
    leaves: dict[str, Node]

    def values(self, actions: Array) -> dict[Node, Array]:
        """What a batch of actions sets the fluents to."""
        return {leaf: self.columns[name][actions] for name, leaf in self.leaves.items()}

    def intervals(self) -> dict[Node, Interval]:
        """The smallest and the largest value of each fluent."""
        return {
            leaf: Interval(float(self.columns[name].min()), float(self.columns[name].max()))
            for name, leaf in self.leaves.items()
        }


def tabulate_actions(
    grounded: Grounded,
    *,
    action_values: Mapping[str, Sequence[Any]],
    most_at_once: int,
    most_actions: int,
) -> ActionTable:
    """All actions that the description allows in some state, the default one first.

    Raises:
        RDDLRefusedError: a fluent has no finite choice (``real-actions``, ``unbounded``), or there
            are too many actions (``too-many-actions``).
    """
    choices = _choices(grounded, action_values)
    count = _count(choices, grounded.default, most_at_once)
    if count > most_actions:
        raise RDDLRefusedError(
            "too-many-actions",
            f"{len(choices)} action fluents with {math.prod(map(len, choices.values())):,} "
            f"combinations, at most {most_at_once} of them set at once, make {count:,} actions; "
            f"max_actions is {most_actions:,}. Give max_concurrent or action_values",
        )
    rows = list(_assignments(choices, grounded.default, most_at_once))
    kinds = grounded.action
    columns = {
        name: np.array([row[i] for row in rows], dtype=DTYPES[kinds[name]])
        for i, name in enumerate(choices)
    }
    nodes = {name: grounded.graph.leaf("action", name, kinds[name]) for name in choices}
    allowed = _allowed(grounded, ActionTable((), columns, nodes), len(rows))
    if not allowed.any():
        raise RDDLRefusedError(
            "too-many-actions", "no action keeps the action-preconditions; action_values may help"
        )
    columns = {name: column[allowed] for name, column in columns.items()}
    for name, values in choices.items():
        lifted = grounded.lifted[name][0]
        unused = set(values) - set(columns[name].tolist())
        if unused and (name in action_values or lifted in action_values):
            raise ArgumentError(
                f"{name!r} cannot be {min(unused)}: no action with it keeps the preconditions and "
                f"sets at most {most_at_once} fluents"
            )
    kept = [row for row, keep in zip(rows, allowed, strict=True) if keep]
    names = tuple(_name(grounded, tuple(choices), row) for row in kept)
    return ActionTable(names, columns, nodes)


def state_dependent_preconditions(grounded: Grounded) -> list[Node]:
    """What an action must keep in a state; the others are kept by every action of the table."""
    return [node for node in _conjuncts(grounded) if leaves([node], "state")]


def _conjuncts(grounded: Grounded) -> list[Node]:
    together = grounded.graph.all(grounded.preconditions)
    return list(together.args) if together.op == "and" else [together]


def _choices(grounded: Grounded, given: Mapping[str, Sequence[Any]]) -> dict[str, tuple[Any, ...]]:
    """The values of each action fluent."""
    known = {*grounded.action, *(grounded.lifted[name][0] for name in grounded.action)}
    for name in given:
        if name not in known:
            raise unknown_name("action fluent", name, sorted(known))
    limits = limits_of(_conjuncts(grounded), "action")
    choices = {}
    for name, kind in grounded.action.items():
        lifted = grounded.lifted[name][0]
        values = given.get(name, given.get(lifted))
        if values is not None:
            choices[name] = _given_values(name, kind, values)
        elif kind == "bool":
            choices[name] = (False, True)
        elif name in grounded.domain_of:
            choices[name] = tuple(range(len(grounded.domain_of[name])))
        elif kind == "real":
            raise RDDLRefusedError(
                "real-actions",
                f"{lifted!r} is a real-valued action; give a finite choice of it, as in "
                f"action_values={{{lifted!r}: (0.0, 1.0)}}",
            )
        else:
            choices[name] = _whole_choice(name, lifted, limits.get(name, (-math.inf, math.inf)))
    return choices


def _given_values(name: str, kind: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, (str, bytes)) or not np.iterable(values):
        raise ArgumentTypeError(
            f"action_values of {name!r} are a sequence of numbers, not {shown(values)}"
        )
    numbers = tuple(dict.fromkeys(np.asarray(list(values), dtype=np.float64).tolist()))
    if not numbers or not np.all(np.isfinite(numbers)):
        raise ArgumentError(f"action_values of {name!r} are finite numbers, not {shown(values)}")
    if kind != "real" and any(number != math.floor(number) for number in numbers):
        raise ArgumentError(f"{name!r} takes whole numbers, not {shown(values)}")
    return numbers if kind == "real" else tuple(int(number) for number in numbers)


def _whole_choice(name: str, lifted: str, limits: tuple[float, float]) -> tuple[int, ...]:
    low, high = limits
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RDDLRefusedError(
            "unbounded",
            f"the action {name!r} has no {'largest' if np.isfinite(low) else 'smallest'} value "
            f"that the preconditions state; give action_values={{{lifted!r}: range(...)}}",
        )
    return tuple(range(math.ceil(low), math.floor(high) + 1))


def limits_of(conjuncts: Sequence[Node], op: str) -> dict[str, tuple[float, float]]:
    """The bounds that conditions of the form ``fluent <= constant`` state."""
    limits: dict[str, tuple[float, float]] = {}
    for node in conjuncts:
        if node.op not in ("<", "<=") and not (node.op == "not" and node.args[0].op in ("<", "<=")):
            continue
        strict, (left, right) = node.op == "<", node.args if node.op != "not" else node.args[0].args
        if node.op == "not":  # not (a < b) is b <= a
            strict, left, right = node.args[0].op == "<=", right, left
        leaf, bound = (left, right) if left.op == op else (right, left)
        if leaf.op != op or not bound.is_constant:
            continue
        step = 1 if strict and leaf.kind == "int" else 0
        low, high = limits.get(leaf.value, (-math.inf, math.inf))
        if leaf is left:
            high = min(high, bound.value - step)
        else:
            low = max(low, bound.value + step)
        limits[leaf.value] = (low, high)
    return limits


def _others(values: tuple[Any, ...], default: Any) -> tuple[Any, ...]:
    return tuple(value for value in values if value != default)


def _count(choices: Mapping[str, tuple[Any, ...]], default: Mapping[str, Any], most: int) -> int:
    """How many assignments have at most so many values that are not the default."""
    counts = [1]  # by the number of values that are not the default
    for name, values in choices.items():
        others = len(_others(values, default[name]))
        stay = 1 if default[name] in values else 0
        padded = [*counts, 0]
        counts = [
            stay * padded[k] + (others * padded[k - 1] if k else 0)
            for k in range(min(len(padded), most + 1))
        ]
    return sum(counts)


def _assignments(
    choices: Mapping[str, tuple[Any, ...]], default: Mapping[str, Any], most: int
) -> Iterator[tuple[Any, ...]]:
    """The assignments, those with fewer values that are not the default first."""
    names = list(choices)
    fixed = [i for i, name in enumerate(names) if default[name] not in choices[name]]
    free = [i for i in range(len(names)) if i not in fixed]
    for extra in range(min(most - len(fixed), len(free)) + 1):
        for positions in itertools.combinations(free, extra):
            changed = sorted((*fixed, *positions))
            options = [_others(choices[names[i]], default[names[i]]) for i in changed]
            for values in itertools.product(*options):
                row = [default[name] for name in names]
                for i, value in zip(changed, values, strict=True):
                    row[i] = value
                yield tuple(row)


def _allowed(grounded: Grounded, table: ActionTable, count: int) -> Array:
    """Which assignments keep the preconditions that look at actions alone."""
    fixed = [node for node in _conjuncts(grounded) if not leaves([node], "state")]
    (allowed,) = Program([grounded.graph.all(fixed)])(table.values(np.arange(count)), count)
    return allowed


def _name(grounded: Grounded, fluents: tuple[str, ...], row: tuple[Any, ...]) -> str:
    """What an action sets, for people."""
    parts = []
    for name, value in zip(fluents, row, strict=True):
        if value == grounded.default[name]:
            continue
        if grounded.action[name] == "bool" and value:
            parts.append(name)
        elif name in grounded.domain_of:
            parts.append(f"{name}={grounded.domain_of[name][value]}")
        else:
            parts.append(f"{name}={value:g}")
    return ", ".join(parts) or "noop"
