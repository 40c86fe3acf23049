"""Fluents of which at most one holds become one variable: where the robot is, not 49 cells.

That at most one holds is proved: it is so at the start, and for each member, each action and each
outcome of a draw, at most one member can hold after a step in which only that one did.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from exo_envs.sources.rddl.actions import ActionTable
from exo_envs.sources.rddl.grounding import ground_name
from exo_envs.sources.rddl.intervals import Interval, intervals
from exo_envs.sources.rddl.nodes import Node, leaves, sorted_nodes
from exo_envs.sources.rddl.process import Process

#: Numbers that a proof may compute at most, nodes times cases.
MOST_NUMBERS = 1_000_000


def merge_exclusive(
    process: Process, actions: ActionTable, lifted: Mapping[str, tuple[str, tuple[str, ...]]]
) -> dict[str, tuple[str, ...]]:
    """Merge all groups for which the proof succeeds.

    Returns:
        The values of each new variable: the name of the fluent that holds, or ``none``.
    """
    merged: dict[str, tuple[str, ...]] = {}
    for name, members in _candidates(process, lifted):
        if not all(member in process.kinds for member in members) or name in process.kinds:
            continue
        holds = _at_most_one(process, actions, members)
        if holds is None:
            continue
        merged[name] = members if holds == "exactly" else ("none", *members)
        _replace(process, name, merged[name])
    return merged


def _candidates(
    process: Process, lifted: Mapping[str, tuple[str, tuple[str, ...]]]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Groups of groundings of one fluent that agree in some of the objects, the largest first."""
    by_fluent: dict[str, list[str]] = defaultdict(list)
    for name, kind in process.kinds.items():
        if kind == "bool" and lifted[name][1]:
            by_fluent[lifted[name][0]].append(name)
    for fluent, names in by_fluent.items():
        arity = len(lifted[names[0]][1])
        for count in range(arity):
            for kept in itertools.combinations(range(arity), count):
                groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
                for name in names:
                    groups[tuple(lifted[name][1][i] for i in kept)].append(name)
                for objects, members in groups.items():
                    if (
                        len(members) > 1
                        and sum(process.initial[m] for m in _here(process, members)) <= 1
                    ):
                        yield ground_name(fluent, objects), tuple(members)


def _here(process: Process, members: Sequence[str]) -> list[str]:
    return [member for member in members if member in process.initial]


def _at_most_one(process: Process, actions: ActionTable, members: Sequence[str]) -> str | None:
    """``exactly`` or ``most``: one of the fluents always holds, or at most one; else None.

    If the values of other variables have to be looked at one by one, that is done in a second
    attempt.
    """
    begin = sum(process.initial[member] for member in members)
    roots = process.settled([process.following[member] for member in members])
    for look_closely in (False, True):
        for with_none in (False, True) if begin else (True,):
            cases = _cases(process, actions, roots, members, with_none, look_closely)
            if cases is None:
                return None
            sure, possible = _count(roots, {**process.box(), **cases})
            if not with_none and np.all(sure == 1) and np.all(possible == 1):
                return "exactly"
            if with_none and np.all(possible <= 1):
                return "most"
    return None


def _count(roots: list[Node], known: Mapping[Node, Interval]) -> tuple[Any, Any]:
    """How many roots surely hold and how many may, for each case."""
    found = intervals(roots, known)
    return sum(f.low for f in found), sum(f.high for f in found)


def _cases(
    process: Process,
    actions: ActionTable,
    roots: list[Node],
    members: Sequence[str],
    with_none: bool,
    look_closely: bool,
) -> dict[Node, Interval] | None:
    """Every member that may hold, with every action and every outcome of a draw.

    With ``look_closely`` also with every value of as many other variables as there is room for.
    """
    nodes = sorted_nodes(roots)
    chosen = leaves(roots, "action")
    columns = [actions.columns[leaf.value] for leaf in chosen]
    rows = np.unique(np.stack(columns, axis=1), axis=0) if columns else np.zeros((1, 0))
    axes: list[Any] = [np.arange(len(members) + with_none), np.arange(len(rows))]
    split: list[Node] = []
    for node in nodes:
        count = outcomes(node) if node.op == "random" else None
        if count is not None:
            split.append(node)
            axes.append(np.arange(count))
    cells = len(nodes) * math.prod(map(len, axes))
    if cells > MOST_NUMBERS:
        return None
    if look_closely:
        own = {process.leaf(member) for member in members}
        box = process.box()
        others = [leaf for leaf in leaves(roots, "state") if leaf not in own]
        for leaf in sorted(
            (leaf for leaf in others if leaf.kind != "real"),
            key=lambda leaf: box[leaf].high - box[leaf].low,
        ):
            width = box[leaf].high - box[leaf].low + 1
            if cells * width <= MOST_NUMBERS:
                cells *= width
                split.append(leaf)
                axes.append(np.arange(box[leaf].low, box[leaf].high + 1))
    held, row, *values = (axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij"))
    cases = {process.leaf(member): Interval.of(held == j) for j, member in enumerate(members)}
    for column, leaf in zip(rows.T, chosen, strict=True):
        cases[leaf] = Interval.of(column[row])
    for node, value in zip(split, values, strict=True):
        cases[node] = Interval.of(value)
    return cases


def outcomes(node: Node) -> int | None:
    """How many values a draw has, if a fixed number."""
    name = node.value[0]
    if name == "Bernoulli":
        return 2
    return len(node.args) if name in ("Discrete", "UnnormDiscrete") else None


def _replace(process: Process, name: str, values: tuple[str, ...]) -> None:
    """Put the new variable in the place of its members."""
    graph = process.graph
    members = [value for value in values if value != "none"]
    following = [graph.true if value == "none" else process.following[value] for value in values]
    initial = next((j for j, v in enumerate(values) if v != "none" and process.initial[v]), 0)
    leaves_now = {m: process.leaf(m) for m in members}
    leaves_then = {m: process.next_leaf(m) for m in members}
    process.forget(members)
    process.kinds[name] = "int"
    process.bounds[name] = (0, len(values) - 1)
    process.initial[name] = initial
    process.following[name] = graph.which(following)
    values_of: dict[Node, Node] = {}
    for j, value in enumerate(values):
        if value != "none":
            constant = graph.constant(j)
            values_of[leaves_now[value]] = graph.compare("==", process.leaf(name), constant)
            values_of[leaves_then[value]] = graph.compare("==", process.next_leaf(name), constant)
    process.replace(values_of)
