"""Which actions there are: all choices of values for the action fluents, as a table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from exo_envs.core.arguments import check_choice, shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.sources.rddl.description import ActionTable, Description
from exo_envs.sources.rddl.expressions import GraphNode, Program, leaves
from exo_envs.sources.rddl.loading import RDDLRefusedError
from exo_envs.sources.rddl.operations import DTYPES


def tabulate_actions(
    rddl: Description,
    *,
    action_values: Mapping[str, Sequence[Any]],
    most_at_once: int,
    most_actions: int,
) -> ActionTable:
    """All actions that the description allows in some state, the default one first."""
    kinds, graph = rddl.action_kinds, rddl.graph
    known = sorted({*kinds, *(rddl.lifted[name][0] for name in kinds)})
    for name in action_values:
        check_choice("action fluent", name, known)
    preconditions = graph.conjuncts(rddl.preconditions)
    limits = limits_of(preconditions, "action")
    choices = {
        name: _choice(rddl, name, action_values, limits.get(name, (-math.inf, math.inf)))
        for name in kinds
    }
    count = _count(choices, rddl.default, most_at_once)
    if count > most_actions:
        raise RDDLRefusedError(
            "too-many-actions",
            f"{len(choices)} action fluents with {math.prod(map(len, choices.values())):,} "
            f"combinations, at most {most_at_once} of them set at once, make {count:,} actions; "
            f"max_actions is {most_actions:,}. Give max_concurrent or action_values",
        )
    rows = list(_assignments(choices, rddl.default, most_at_once))
    columns = {
        name: np.array([row[name] for row in rows], dtype=DTYPES[kinds[name]]) for name in choices
    }
    nodes = {name: graph.leaf("action", name, kinds[name]) for name in choices}
    everywhere = graph.all(node for node in preconditions if not leaves([node], "state"))
    (allowed,) = Program([everywhere])(
        {leaf: columns[name] for name, leaf in nodes.items()}, len(rows)
    )
    if not allowed.any():
        raise RDDLRefusedError(
            "too-many-actions", "no action keeps the action-preconditions; action_values may help"
        )
    columns = {name: column[allowed] for name, column in columns.items()}
    for name, values in choices.items():
        unused = set(values) - set(columns[name].tolist())
        if unused and (name in action_values or rddl.lifted[name][0] in action_values):
            raise ArgumentError(
                f"{name!r} cannot be {min(unused)}: no action with it keeps the preconditions and "
                f"sets at most {most_at_once} fluents"
            )
    names = tuple(_name(rddl, row) for row in itertools.compress(rows, allowed))
    return ActionTable(names, columns, nodes)


def enforce_preconditions(rddl: Description) -> None:
    """Let an action whose precondition does not hold in a state do there what the default does."""
    graph = rddl.graph
    conjuncts = graph.conjuncts(rddl.preconditions)
    needed = graph.all(node for node in conjuncts if leaves([node], "state"))
    if needed.is_constant:
        return
    defaults = {
        rddl.actions.leaves[name]: graph.constant(rddl.default[name], kind)
        for name, kind in rddl.action_kinds.items()
    }
    rddl.replace({leaf: graph.choose(needed, leaf, value) for leaf, value in defaults.items()})
    rddl.notes.append(
        "an action whose precondition does not hold does what the default action does"
    )


def limits_of(conjuncts: Sequence[GraphNode], op: str) -> dict[str, tuple[float, float]]:
    """The bounds that conditions of the form ``fluent <= constant`` state."""
    limits: dict[str, tuple[float, float]] = {}
    for condition in conjuncts:
        is_negated = condition.op == "not"
        node = condition.args[0] if is_negated else condition
        if node.op not in ("<", "<="):
            continue
        left, right = reversed(node.args) if is_negated else node.args  # not (a < b) is b <= a
        strict = (node.op == "<") != is_negated
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


def _choice(
    rddl: Description,
    name: str,
    action_values: Mapping[str, Sequence[Any]],
    limits: tuple[float, float],
) -> tuple[Any, ...]:
    lifted, kind, (low, high) = rddl.lifted[name][0], rddl.action_kinds[name], limits
    values = action_values.get(name, action_values.get(lifted))
    if values is not None:
        return _given_values(name, kind, values)
    if kind == "bool":
        return (False, True)
    if name in rddl.values:
        return tuple(range(len(rddl.values[name])))
    if kind == "real":
        raise RDDLRefusedError(
            "real-actions",
            f"{lifted!r} is a real-valued action; give a finite choice of it, as in "
            f"action_values={{{lifted!r}: (0.0, 1.0)}}",
        )
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RDDLRefusedError(
            "unbounded",
            f"the action {name!r} has no {'largest' if math.isfinite(low) else 'smallest'} value "
            f"that the preconditions state; give action_values={{{lifted!r}: range(...)}}",
        )
    return tuple(range(math.ceil(low), math.floor(high) + 1))


def _given_values(name: str, kind: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, (str, bytes)) or not np.iterable(values):
        raise ArgumentTypeError(
            f"action_values of {name!r} are a sequence of numbers, not {shown(values)}"
        )
    numbers = tuple(dict.fromkeys(np.asarray(list(values), dtype=np.float64).tolist()))
    if not numbers or not np.all(np.isfinite(numbers)):
        raise ArgumentError(f"action_values of {name!r} are finite numbers, not {shown(values)}")
    if kind == "real":
        return numbers
    if any(number != math.floor(number) for number in numbers):
        raise ArgumentError(f"{name!r} takes whole numbers, not {shown(values)}")
    return tuple(int(number) for number in numbers)


def _count(choices: Mapping[str, tuple[Any, ...]], default: Mapping[str, Any], most: int) -> int:
    """How many assignments have at most so many values that are not the default."""
    counts = [1]  # by the number of values that are not the default
    for name, values in choices.items():
        stay = default[name] in values
        others = len(values) - stay
        one_more = [0, *(others * count for count in counts)]
        counts = [stay * a + b for a, b in zip([*counts, 0], one_more, strict=True)][: most + 1]
    return sum(counts)


def _assignments(
    choices: Mapping[str, tuple[Any, ...]], default: Mapping[str, Any], most: int
) -> Iterator[dict[str, Any]]:
    """The assignments, those with fewer values that are not the default first."""
    others = {name: [v for v in values if v != default[name]] for name, values in choices.items()}
    fixed = [name for name, values in choices.items() if default[name] not in values]
    free = [name for name in choices if name not in fixed]
    for extra in range(min(most - len(fixed), len(free)) + 1):
        for more in itertools.combinations(free, extra):
            changed = [name for name in choices if name in fixed or name in more]
            for values in itertools.product(*(others[name] for name in changed)):
                yield {**default, **dict(zip(changed, values, strict=True))}


def _name(rddl: Description, row: Mapping[str, Any]) -> str:
    parts = []
    for name, value in row.items():
        if value == rddl.default[name]:
            continue
        if rddl.action_kinds[name] == "bool" and value:
            parts.append(name)
        elif name in rddl.values:
            parts.append(f"{name}={rddl.values[name][value]}")
        else:
            parts.append(f"{name}={value:g}")
    return ", ".join(parts) or "noop"
