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
    Node,
    Program,
    leaves,
    outcomes,
    reaching,
    sorted_nodes,
)
from exo_envs.sources.rddl.grounding import ground_name
from exo_envs.sources.rddl.intervals import Interval, box, intervals
from exo_envs.sources.rddl.loading import RDDLRefusedError

#: Numbers that a proof may compute at most, nodes times cases.
MOST_NUMBERS = 1_000_000
#: Values among which the initial one of what is stored is looked for, at most.
MOST_VALUES = 1_000_000
_JOINED = ("add", "mul", "and", "or")


# --- at most one of several -----------------------------------------------------------------------


def merge_exclusive(given: Description) -> None:
    """Merge all groups for which the proof succeeds.

    The values of a new variable are the names of the fluents that hold, or ``none``.
    """
    for name, members in list(_candidates(given)):
        if not all(member in given.kinds for member in members) or name in given.kinds:
            continue
        holds = _at_most_one(given, members)
        if holds is not None:
            given.values[name] = members if holds == "exactly" else ("none", *members)
            _merge(given, name)


def _candidates(given: Description) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Groups of groundings of one fluent that agree in some of the objects, the largest first."""
    by_fluent: dict[str, list[str]] = defaultdict(list)
    for name, kind in given.kinds.items():
        if kind == "bool" and given.lifted[name][1]:
            by_fluent[given.lifted[name][0]].append(name)
    for fluent, names in by_fluent.items():
        arity = len(given.lifted[names[0]][1])
        for count in range(arity):
            for kept in itertools.combinations(range(arity), count):
                groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
                for name in names:
                    groups[tuple(given.lifted[name][1][i] for i in kept)].append(name)
                for objects, members in groups.items():
                    if len(members) > 1 and sum(given.initial[m] for m in members) <= 1:
                        yield ground_name(fluent, objects), tuple(members)


def _at_most_one(given: Description, members: tuple[str, ...]) -> str | None:
    """``exactly`` or ``most``: one of the fluents always holds, or at most one; else None.

    If the values of other variables have to be looked at one by one, that is done in a second
    attempt.
    """
    begin = sum(given.initial[member] for member in members)
    roots = given.settled_following(members)
    for look_closely in (False, True):
        for with_none in (False, True) if begin else (True,):
            cases = _cases(given, roots, members, with_none, look_closely)
            if cases is None:
                return None
            found = intervals(roots, {**box(given), **cases})
            sure, possible = sum(f.low for f in found), sum(f.high for f in found)
            if not with_none and np.all(sure == 1) and np.all(possible == 1):
                return "exactly"
            if with_none and np.all(possible <= 1):
                return "most"
    return None


def _cases(
    given: Description,
    roots: list[Node],
    members: tuple[str, ...],
    with_none: bool,
    look_closely: bool,
) -> dict[Node, Interval] | None:
    """Every member that may hold, with every action and every outcome of a draw.

    With ``look_closely`` also with every value of as many other variables as there is room for.
    """
    nodes, chosen = sorted_nodes(roots), leaves(roots, "action")
    columns = [given.actions.columns[leaf.value] for leaf in chosen]
    rows = np.unique(np.stack(columns, axis=1), axis=0) if columns else np.zeros((1, 0))
    axes: list[Any] = [np.arange(len(members) + with_none), np.arange(len(rows))]
    split = [node for node in nodes if node.op == "random" and outcomes(node)]
    axes += [np.arange(outcomes(node) or 0) for node in split]
    cells = len(nodes) * math.prod(map(len, axes))
    if cells > MOST_NUMBERS:
        return None
    if look_closely:
        own, known = {given.leaf(member) for member in members}, box(given)
        others = [n for n in leaves(roots, "state") if n not in own and n.kind != "real"]
        for leaf in sorted(others, key=lambda leaf: known[leaf].high - known[leaf].low):
            low, high = known[leaf]
            if cells * (high - low + 1) <= MOST_NUMBERS:
                cells *= high - low + 1
                split.append(leaf)
                axes.append(np.arange(low, high + 1))
    held, row, *values = (axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij"))
    cases = {given.leaf(member): Interval.of(held == j) for j, member in enumerate(members)}
    for column, leaf in zip(rows.T, chosen, strict=True):
        cases[leaf] = Interval.of(column[row])
    return cases | {node: Interval.of(value) for node, value in zip(split, values, strict=True)}


def _merge(given: Description, name: str) -> None:
    """Put the new variable in the place of its members."""
    graph, values = given.graph, given.values[name]
    members = {value: j for j, value in enumerate(values) if value != "none"}
    following = [graph.true if value == "none" else given.following[value] for value in values]
    initial = next((j for value, j in members.items() if given.initial[value]), 0)
    now, then = ({m: leaf(m) for m in members} for leaf in (given.leaf, given.next_leaf))
    given.forget(members)
    given.kinds[name] = "int"
    given.bounds[name] = (0, len(values) - 1)
    given.initial[name] = initial
    given.following[name] = graph.which(following)
    values_of: dict[Node, Node] = {}
    for value, j in members.items():
        constant = graph.constant(j)
        values_of[now[value]] = graph.compare("==", given.leaf(name), constant)
        values_of[then[value]] = graph.compare("==", given.next_leaf(name), constant)
    given.replace(values_of)


# --- what looks at x' -----------------------------------------------------------------------------


def defer(given: Description) -> None:
    """Replace endogenous variables that look at x' by what they are before that."""
    own, known = given.endogenous, box(given)
    settled = given.settled([given.following[name] for name in own], own)
    given.following.update(zip(own, settled, strict=True))
    late = [name for name in own if leaves([given.following[name]], "next")]
    if not late:
        return
    stored: dict[Node, str] = {}
    for name in late:
        _check_draws(given, name)
        pieces = list(_pieces(given.graph, given.following[name]))
        for number, piece in enumerate(piece for piece in pieces if piece not in stored):
            stored[piece] = f"{name}_before" if len(pieces) == 1 else f"{name}_before_{number + 1}"
    new_leaves = {}
    for piece, name in stored.items():
        (interval,) = intervals([piece], known)
        given.kinds[name] = piece.kind
        given.bounds[name] = (float(np.min(interval.low)), float(np.max(interval.high)))
        given.following[name] = piece
        new_leaves[piece] = given.leaf(name)
    become_known = {given.next_leaf(name): given.leaf(name) for name in given.exogenous}
    values = {}
    for name in late:  # it is an expression of the new variables, and of x as it is now
        root = _with_pieces(given.graph, given.following[name], new_leaves)
        (values[given.leaf(name)],) = given.graph.substitute([root], become_known)
    _find_initial(given, values, list(stored.values()))
    # Rewards look at next values: those of the old variables are written out beforehand.
    given.reward, given.terminal = given.settled([given.reward, given.terminal], late)
    given.forget(late)
    given.replace(values)
    given.notes.append(
        f"looks at exogenous values of the same step, and is stored as it is before: "
        f"{', '.join(late)}"
    )


def _looking(root: Node) -> set[Node]:
    """The parts of an expression that look at x'."""
    return reaching([root], lambda node: node.op == "next")


def _check_draws(given: Description, name: str) -> None:
    looking = _looking(given.following[name])
    for node in sorted(looking, key=lambda node: node.uid):
        if node.op == "random":
            other = leaves([node], "next")[0].value
            raise RDDLRefusedError(
                "next-state",
                f"{name!r} is drawn by a {node.value[0]} whose chances look at the exogenous "
                f"{other + chr(39)!r} of the same step",
            )


def _pieces(graph: Graph, root: Node) -> dict[Node, None]:
    """The largest parts of an expression that do not look at x'; sums are split in two."""
    looking = _looking(root)
    pieces: dict[Node, None] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        free = [arg for arg in node.args if arg not in looking and not arg.is_constant]
        if free and node.op in _JOINED:
            pieces[_joined(graph, node.op, free)] = None
        else:
            pieces.update(dict.fromkeys(free))
        waiting.extend(arg for arg in node.args if arg in looking)
    return pieces


def _with_pieces(graph: Graph, root: Node, new_leaves: dict[Node, Node]) -> Node:
    """The expression, with a leaf in the place of each of its pieces."""
    looking = _looking(root)
    done: dict[Node, Node] = {}
    for node in sorted_nodes([root]):
        if node not in looking:
            done[node] = new_leaves.get(node, node)
        elif node.op in _JOINED:
            free = [arg for arg in node.args if arg not in looking and not arg.is_constant]
            rest = [done[arg] for arg in node.args if arg not in free]
            if free:
                rest.append(new_leaves[_joined(graph, node.op, free)])
            done[node] = _joined(graph, node.op, rest)
        else:
            done[node] = graph.rebuild(node, [done[arg] for arg in node.args])
    return done[root]


def _joined(graph: Graph, op: str, nodes: list[Node]) -> Node:
    join = {"add": graph.add, "mul": graph.multiply, "and": graph.all, "or": graph.any}[op]
    return join(nodes)


def _find_initial(given: Description, values: dict[Node, Node], stored: list[str]) -> None:
    """Values of what is stored from which the initial values of the description follow."""
    waiting = {leaf.value: root for leaf, root in values.items()}

    def unknown(fluent: str) -> list[str]:
        looked_at = given.looks_at(waiting[fluent])
        return [name for name in stored if name in looked_at and name not in given.initial]

    while waiting:
        ready = min(waiting, key=lambda fluent: len(unknown(fluent)))
        names = unknown(ready)
        found = _solve(given, ready, waiting.pop(ready), names)
        given.initial.update(zip(names, found, strict=True))


def _solve(given: Description, fluent: str, root: Node, names: list[str]) -> tuple[Any, ...]:
    """Values of some variables with which an expression is the fluent's initial value."""
    wanted, bounds = given.initial[fluent], [given.bounds[name] for name in names]
    refused = RDDLRefusedError(
        "initial-state",
        f"{fluent!r} looks at exogenous values of the same step, and no values of "
        f"{', '.join(names) or 'nothing'} were found from which it begins with {wanted}",
    )
    is_real = any(given.kinds[name] == "real" for name in names)
    if is_real or math.prod(high - low + 1 for low, high in bounds) > MOST_VALUES:
        raise refused
    grids = [np.arange(low, high + 1).astype(np.int64) for low, high in bounds]
    lanes = np.array(list(itertools.product(*grids)), dtype=np.int64).reshape(-1, len(names))
    known: dict[Node, Any] = {}
    for leaf in leaves([root], "state"):
        if leaf.value in names:
            column = lanes[:, names.index(leaf.value)]
            known[leaf] = column != 0 if leaf.kind == "bool" else column
        else:
            known[leaf] = given.initial[leaf.value]
    (found,) = Program([root])(known, len(lanes))
    matches = np.flatnonzero(found == wanted)
    if not len(matches):
        raise refused
    return tuple(lanes[matches[0]].tolist())
