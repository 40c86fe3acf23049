"""Variables in the place of others: one for fluents of which at most one holds, and deferred ones.

Where a robot is becomes one variable, not 49 cells. That at most one of them holds is proved: it is
so at the start, and for each member, each action and each outcome of a draw, at most one member can
hold after a step in which only that one did.

An endogenous fluent that looks at x' in the same step is *deferred*. The stock after a day is what
was there before the demand, less the demand of that day, which is drawn in the same step: given the
state, n' and x' are not independent. The part that does not look at x' is. So that part is stored,
under the name ``stock_before``, and the stock is worked out from it and the demand that has become
known since. The agent knows neither more nor less than in the description.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from exo_envs.sources.rddl.description import Description
from exo_envs.sources.rddl.expressions import (
    Graph,
    GraphNode,
    Program,
    fold,
    leaves,
    outcomes,
    reaching,
    sorted_nodes,
)
from exo_envs.sources.rddl.grounding import ground_name
from exo_envs.sources.rddl.intervals import Interval, intervals, possible_values, values_apart
from exo_envs.sources.rddl.loading import RDDLRefusedError
from exo_envs.sources.rddl.operations import FOLDS

#: Numbers that a proof may compute at most, nodes times cases.
MOST_NUMBERS = 1_000_000
#: Values among which the initial one of what is stored is looked for, at most.
MOST_VALUES = 1_000_000


# --- at most one of several -----------------------------------------------------------------------


def merge_exclusive(rddl: Description) -> None:
    """Merge all groups for which the proof succeeds.

    The values of a new variable are the names of the fluents that hold, or ``none``.
    """
    for name, members in list(_candidates(rddl)):
        if not all(member in rddl.kinds for member in members) or name in rddl.kinds:
            continue
        holds = _at_most_one(rddl, members)
        if holds is not None:
            rddl.values[name] = members if holds == "exactly" else ("none", *members)
            _merge(rddl, name)


def _candidates(rddl: Description) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Groups of groundings of one fluent that agree in some of the objects, the largest first."""
    by_fluent: dict[str, list[str]] = defaultdict(list)
    for name, kind in rddl.kinds.items():
        if kind == "bool" and rddl.lifted[name][1]:
            by_fluent[rddl.lifted[name][0]].append(name)
    for fluent, names in by_fluent.items():
        arity = len(rddl.lifted[names[0]][1])
        for count in range(arity):
            for kept in itertools.combinations(range(arity), count):
                groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
                for name in names:
                    groups[tuple(rddl.lifted[name][1][i] for i in kept)].append(name)
                for objects, members in groups.items():
                    if len(members) > 1 and sum(rddl.initial[m] for m in members) <= 1:
                        yield ground_name(fluent, objects), tuple(members)


def _at_most_one(rddl: Description, members: tuple[str, ...]) -> str | None:
    """``exactly`` or ``most``: one of the fluents always holds, or at most one; else None.

    If the values of other variables have to be looked at one by one, that is done in a second
    attempt.
    """
    begin = sum(rddl.initial[member] for member in members)
    roots = rddl.settled_following(members)
    for look_closely in (False, True):
        for with_none in (False, True) if begin else (True,):
            cases = _cases(rddl, roots, members, with_none, look_closely)
            if cases is None:
                return None
            found = intervals(roots, {**possible_values(rddl), **cases})
            sure, possible = sum(f.low for f in found), sum(f.high for f in found)
            if not with_none and np.all(sure == 1) and np.all(possible == 1):
                return "exactly"
            if with_none and np.all(possible <= 1):
                return "most"
    return None


def _cases(
    rddl: Description,
    roots: list[GraphNode],
    members: tuple[str, ...],
    with_none: bool,
    look_closely: bool,
) -> dict[GraphNode, Interval] | None:
    """Every member that may hold, with every action and every outcome of a draw.

    With ``look_closely`` also with every value of as many other variables as there is room for.
    """
    nodes, chosen = sorted_nodes(roots), leaves(roots, "action")
    columns = [rddl.actions.columns[leaf.value] for leaf in chosen]
    rows = np.unique(np.stack(columns, axis=1), axis=0) if columns else np.zeros((1, 0))
    split = {node: np.arange(outcomes(node) or 0) for node in nodes if node.op == "random"}
    split = {node: values for node, values in split.items() if len(values)}
    axes = [np.arange(len(members) + with_none), np.arange(len(rows))]
    cells = len(nodes) * math.prod(map(len, (*axes, *split.values())))
    if cells > MOST_NUMBERS:
        return None
    if look_closely:
        own, known = {rddl.leaf(member) for member in members}, possible_values(rddl)
        others = [n for n in leaves(roots, "state") if n not in own and n.kind != "real"]
        others.sort(key=lambda leaf: known[leaf].high - known[leaf].low)
        split |= values_apart(others, known, MOST_NUMBERS / cells)
    lanes = (axis.reshape(-1) for axis in np.meshgrid(*axes, *split.values(), indexing="ij"))
    held, row, *values = lanes
    cases = {rddl.leaf(member): Interval.of(held == j) for j, member in enumerate(members)}
    for column, leaf in zip(rows.T, chosen, strict=True):
        cases[leaf] = Interval.of(column[row])
    return cases | {node: Interval.of(value) for node, value in zip(split, values, strict=True)}


def _merge(rddl: Description, name: str) -> None:
    graph, values = rddl.graph, rddl.values[name]
    members = {value: j for j, value in enumerate(values) if value != "none"}
    position = graph.constant(0)  # in the values of the new variable
    for value, j in members.items():
        position = graph.choose(rddl.following[value], graph.constant(j), position)
    initial = next((j for value, j in members.items() if rddl.initial[value]), 0)
    now, then = ({m: leaf(m) for m in members} for leaf in (rddl.leaf, rddl.next_leaf))
    rddl.forget(members)
    rddl.kinds[name] = "int"
    rddl.bounds[name] = (0, len(values) - 1)
    rddl.initial[name] = initial
    rddl.following[name] = position
    values_of: dict[GraphNode, GraphNode] = {}
    for value, j in members.items():
        constant = graph.constant(j)
        values_of[now[value]] = graph.compare("==", rddl.leaf(name), constant)
        values_of[then[value]] = graph.compare("==", rddl.next_leaf(name), constant)
    rddl.replace(values_of)


# --- what looks at x' -----------------------------------------------------------------------------


def defer(rddl: Description) -> None:
    """Replace endogenous variables that look at x' by what they are before that."""
    own, known = rddl.endogenous, possible_values(rddl)
    settled = rddl.settled([rddl.following[name] for name in own], own)
    rddl.following.update(zip(own, settled, strict=True))
    late = [name for name in own if leaves([rddl.following[name]], "next")]
    if not late:
        return
    stored: dict[GraphNode, str] = {}
    parts = {name: _pieces(rddl, name) for name in late}
    for name in late:
        pieces = list(dict.fromkeys(itertools.chain(*parts[name].values())))
        for number, piece in enumerate(piece for piece in pieces if piece not in stored):
            stored[piece] = f"{name}_before" if len(pieces) == 1 else f"{name}_before_{number + 1}"
    new_leaves = {}
    for piece, name in stored.items():
        (interval,) = intervals([piece], known)
        rddl.kinds[name] = piece.kind
        rddl.bounds[name] = (float(np.min(interval.low)), float(np.max(interval.high)))
        rddl.following[name] = piece
        new_leaves[piece] = rddl.leaf(name)
    become_known = {rddl.next_leaf(name): rddl.leaf(name) for name in rddl.exogenous}
    values = {}
    for name in late:  # it is an expression of the new variables, and of x as it is now
        root = _with_pieces(rddl.graph, rddl.following[name], parts[name], new_leaves)
        (values[rddl.leaf(name)],) = rddl.graph.substitute([root], become_known)
    _find_initial(rddl, values, list(stored.values()))
    # Rewards look at next values: those of the old variables are written out beforehand.
    rddl.reward, rddl.terminal = rddl.settled([rddl.reward, rddl.terminal], late)
    rddl.forget(late)
    rddl.replace(values)
    rddl.notes.append(
        f"looks at exogenous values of the same step, and is stored as it is before: "
        f"{', '.join(late)}"
    )


def _pieces(rddl: Description, name: str) -> dict[GraphNode, list[GraphNode]]:
    """The parts of n' that look at x', and the arguments of each that do not; a sum's are one."""
    looking = reaching(rddl.following[name], "next")
    for draw in leaves(looking, "random"):
        if draw in looking:
            other = leaves([draw], "next")[0].value
            raise RDDLRefusedError(
                "next-state",
                f"{name!r} is drawn by a {draw.value[0]} whose chances look at the exogenous "
                f"{other + chr(39)!r} of the same step",
            )
    pieces: dict[GraphNode, list[GraphNode]] = {}
    waiting = [rddl.following[name]]
    while waiting:
        node = waiting.pop()
        free = [arg for arg in node.args if arg not in looking and not arg.is_constant]
        is_sum = free and node.op in FOLDS
        pieces[node] = [rddl.graph.apply(node.op, free)] if is_sum else free
        waiting.extend(arg for arg in node.args if arg in looking)
    return pieces


def _with_pieces(
    graph: Graph,
    root: GraphNode,
    pieces: dict[GraphNode, list[GraphNode]],
    new_leaves: dict[GraphNode, GraphNode],
) -> GraphNode:
    """The expression, with a leaf in the place of each of its pieces."""

    def replaced(node: GraphNode, args: list[GraphNode]) -> GraphNode:
        if node not in pieces:
            return new_leaves.get(node, node)
        if node.op not in FOLDS:
            return graph.rebuild(node, args)
        pairs = zip(node.args, args, strict=True)
        rest = [new for old, new in pairs if old in pieces or old.is_constant]
        return graph.apply(node.op, rest + [new_leaves[piece] for piece in pieces[node]])

    return fold([root], replaced, {})[0]


def _find_initial(rddl: Description, values: dict[GraphNode, GraphNode], stored: list[str]) -> None:
    """Values of what is stored from which the initial values of the description follow."""
    waiting = {leaf.value: root for leaf, root in values.items()}
    while waiting:
        unknown = {
            fluent: [n for n in stored if n in rddl.looks_at(root) and n not in rddl.initial]
            for fluent, root in waiting.items()
        }
        ready = min(unknown, key=lambda fluent: len(unknown[fluent]))
        found = _solve(rddl, ready, waiting.pop(ready), unknown[ready])
        rddl.initial.update(zip(unknown[ready], found, strict=True))


def _solve(rddl: Description, fluent: str, root: GraphNode, names: list[str]) -> tuple[Any, ...]:
    """Values of some variables with which an expression is the fluent's initial value."""
    wanted, bounds = rddl.initial[fluent], [rddl.bounds[name] for name in names]
    refused = RDDLRefusedError(
        "initial-state",
        f"{fluent!r} looks at exogenous values of the same step, and no values of "
        f"{', '.join(names) or 'nothing'} were found from which it begins with {wanted}",
    )
    is_real = any(rddl.kinds[name] == "real" for name in names)
    if is_real or math.prod(high - low + 1 for low, high in bounds) > MOST_VALUES:
        raise refused
    grids = [np.arange(low, high + 1).astype(np.int64) for low, high in bounds]
    lanes = np.array(list(itertools.product(*grids)), dtype=np.int64).reshape(-1, len(names))
    known: dict[GraphNode, Any] = {}
    for leaf in leaves([root], "state"):
        if leaf.value in names:
            column = lanes[:, names.index(leaf.value)]
            known[leaf] = column != 0 if leaf.kind == "bool" else column
        else:
            known[leaf] = rddl.initial[leaf.value]
    (found,) = Program([root])(known, len(lanes))
    matches = np.flatnonzero(found == wanted)
    if not len(matches):
        raise refused
    return tuple(lanes[matches[0]].tolist())
