"""Endogenous fluents that look at x' in the same step.

The stock after a day is what was there before the demand, less the demand of that day, which is
drawn in the same step: given the state, n' and x' are not independent. What is independent is the
part that does not look at x'. So that part is stored, under the name ``stock_before``, and the
stock is worked out from it and the demand that has become known since. The agent knows neither
more nor less than in the description.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from exo_envs.sources.rddl.errors import RDDLRefusedError
from exo_envs.sources.rddl.intervals import Interval, intervals
from exo_envs.sources.rddl.nodes import Node, leaves, reaching, sorted_nodes
from exo_envs.sources.rddl.process import Process
from exo_envs.sources.rddl.program import Program

#: Values among which the initial one of what is stored is looked for, at most.
MOST_VALUES = 1_000_000
_JOINED = ("add", "mul", "and", "or")


def defer(process: Process, exogenous: tuple[str, ...], known: dict[Node, Interval]) -> None:
    """Replace endogenous variables that look at x' by what they are before that.

    Args:
        process: is changed.
        exogenous: the exogenous variables.
        known: the intervals of variables and actions.
    """
    own = [name for name in process.kinds if name not in exogenous]
    settled = process.settled([process.following[name] for name in own], own)
    process.following.update(zip(own, settled, strict=True))
    late = [name for name in own if leaves([process.following[name]], "next")]
    if not late:
        return
    stored: dict[Node, str] = {}
    for name in late:
        _check_draws(process, name)
        pieces = _pieces(process, process.following[name])
        for number, piece in enumerate(piece for piece in pieces if piece not in stored):
            stored[piece] = f"{name}_before" if len(pieces) == 1 else f"{name}_before_{number + 1}"
    _introduce(process, exogenous, late, stored, known)
    process.notes.append(
        f"looks at exogenous values of the same step, and is stored as it is before: "
        f"{', '.join(late)}"
    )


def _check_draws(process: Process, name: str) -> None:
    root = process.following[name]
    looking = reaching([root], lambda node: node.op == "next")
    for node in sorted_nodes([root]):
        if node.op == "random" and node in looking:
            other = leaves([node], "next")[0].value
            raise RDDLRefusedError(
                "next-state",
                f"{name!r} is drawn by a {node.value[0]} whose chances look at the exogenous "
                f"{other + chr(39)!r} of the same step",
            )


def _pieces(process: Process, root: Node) -> list[Node]:
    """The largest parts of an expression that do not look at x'; sums are split in two."""
    looking = reaching([root], lambda node: node.op == "next")
    pieces: dict[Node, None] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        free = [arg for arg in node.args if arg not in looking and not arg.is_constant]
        if free and node.op in _JOINED:
            pieces[_joined(process, node.op, free)] = None
        else:
            pieces.update(dict.fromkeys(free))
        waiting.extend(arg for arg in node.args if arg in looking)
    return list(pieces)


def _joined(process: Process, op: str, nodes: list[Node]) -> Node:
    graph = process.graph
    join = {"add": graph.add, "mul": graph.multiply, "and": graph.all, "or": graph.any}[op]
    return join(nodes)


def _introduce(
    process: Process,
    exogenous: tuple[str, ...],
    late: list[str],
    stored: dict[Node, str],
    known: dict[Node, Interval],
) -> None:
    """Make the new variables; an old one is an expression of them and of x as it is now."""
    graph = process.graph
    new_leaves = {}
    for piece, name in stored.items():
        (interval,) = intervals([piece], known)
        process.kinds[name] = piece.kind
        process.bounds[name] = (float(np.min(interval.low)), float(np.max(interval.high)))
        process.following[name] = piece
        new_leaves[piece] = process.leaf(name)
    become_known = {process.next_leaf(name): process.leaf(name) for name in exogenous}
    values = {}
    for name in late:
        root = _with_pieces(process, process.following[name], new_leaves)
        (values[process.leaf(name)],) = graph.substitute([root], become_known)
    _find_initial(process, values, list(stored.values()))
    # Rewards look at next values: those of the old variables are written out beforehand.
    process.reward, process.terminal = process.settled([process.reward, process.terminal], late)
    process.forget(late)
    process.replace(values)


def _with_pieces(process: Process, root: Node, new_leaves: dict[Node, Node]) -> Node:
    looking = reaching([root], lambda node: node.op == "next")
    graph = process.graph
    done: dict[Node, Node] = {}
    for node in sorted_nodes([root]):
        if node not in looking:
            done[node] = new_leaves.get(node, node)
            continue
        if node.op == "next":
            done[node] = node
            continue
        if node.op in _JOINED:
            free = [arg for arg in node.args if arg not in looking and not arg.is_constant]
            rest = [done[arg] for arg in node.args if arg in looking or arg.is_constant]
            if free:
                rest.append(new_leaves[_joined(process, node.op, free)])
            done[node] = _joined(process, node.op, rest)
        else:
            done[node] = graph.rebuild(node, [done[arg] for arg in node.args])
    return done[root]


def _find_initial(process: Process, values: dict[Node, Node], stored: list[str]) -> None:
    """Values of what is stored from which the initial values of the description follow."""
    waiting = {leaf.value: root for leaf, root in values.items()}
    while waiting:
        ready = min(waiting, key=lambda n: len(_unknown(process, waiting[n], stored)))
        root = waiting.pop(ready)
        names = _unknown(process, root, stored)
        for name, value in zip(names, _solve(process, ready, root, names), strict=True):
            process.initial[name] = value


def _unknown(process: Process, root: Node, stored: list[str]) -> list[str]:
    return [n for n in stored if n in process.looks_at(root) and n not in process.initial]


def _solve(process: Process, fluent: str, root: Node, names: list[str]) -> tuple[Any, ...]:
    wanted = process.initial[fluent]
    grids = []
    for name in names:
        low, high = process.bounds[name]
        if process.kinds[name] == "real" or not math.isfinite(high - low):
            raise _no_initial(fluent, wanted, names)
        grids.append(np.arange(low, high + 1).astype(np.int64))
    if math.prod(map(len, grids)) > MOST_VALUES:
        raise _no_initial(fluent, wanted, names)
    lanes = np.array(list(itertools.product(*grids)), dtype=np.int64).reshape(-1, len(names))
    known: dict[Node, Any] = {}
    for leaf in leaves([root], "state"):
        if leaf.value in names:
            column = lanes[:, names.index(leaf.value)]
            known[leaf] = column != 0 if leaf.kind == "bool" else column
        else:
            known[leaf] = process.initial[leaf.value]
    (found,) = Program([root])(known, len(lanes))
    matches = np.flatnonzero(found == wanted)
    if not len(matches):
        raise _no_initial(fluent, wanted, names)
    return tuple(lanes[matches[0]].tolist())


def _no_initial(fluent: str, wanted: Any, names: list[str]) -> RDDLRefusedError:
    return RDDLRefusedError(
        "initial-state",
        f"{fluent!r} looks at exogenous values of the same step, and no values of "
        f"{', '.join(names) or 'nothing'} were found from which it begins with {wanted}",
    )
