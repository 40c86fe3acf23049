"""Which values the variables can have within an episode: bounds, and fluents that never change."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np

from exo_envs.sources.rddl.actions import ActionTable
from exo_envs.sources.rddl.intervals import Interval, intervals
from exo_envs.sources.rddl.nodes import Node, sorted_nodes
from exo_envs.sources.rddl.process import Process

#: Combinations of values for which the next value of one variable is looked at, at most.
MOST_LANES = 4096
Bounds = tuple[float, float]


def find_bounds(
    process: Process, actions: ActionTable, stated: Mapping[str, Bounds], horizon: int
) -> None:
    """Set ``process.bounds`` to what can be reached from the initial state within an episode.

    Real variables that are still growing at the end have the bounds that are stated, or none:
    intervals are too loose for those that were found to mean much.

    Args:
        process: its bounds are replaced.
        actions: the choices of the agent.
        stated: bounds that the user or an invariant gives; values stay within these.
        horizon: the number of steps.
    """
    names = list(process.kinds)
    roots = process.settled([process.following[name] for name in names])
    chosen = actions.intervals()
    bounds = {name: (float(process.initial[name]),) * 2 for name in names}
    moving: set[str] = set()
    for _ in range(horizon):
        known = {process.leaf(name): Interval(*bounds[name]) for name in names} | chosen
        found = intervals(roots, known)
        moving = set()
        for name, root, interval in zip(names, roots, found, strict=True):
            old = bounds[name]
            new = _merged(process, name, old, interval, stated)
            if new != old and process.kinds[name] == "int":
                exact = by_values(process, root, name, known)
                new = _merged(process, name, old, exact, stated)
            if new != old:
                bounds[name] = new
                moving.add(name)
        if not moving:
            break
    for name in moving:
        if process.kinds[name] == "real":
            bounds[name] = stated.get(name, (-math.inf, math.inf))
    process.bounds = bounds


def _merged(
    process: Process, name: str, old: Bounds, found: Interval, stated: Mapping[str, Bounds]
) -> Bounds:
    low, high = float(np.min(found.low)), float(np.max(found.high))
    if process.kinds[name] == "int":
        low, high = (
            (math.floor(low) if math.isfinite(low) else low),
            (math.ceil(high) if math.isfinite(high) else high),
        )
    least, most = stated.get(name, (-math.inf, math.inf))
    low, high = min(max(low, least), most), max(min(high, most), least)
    return min(low, old[0]), max(high, old[1])


def by_values(process: Process, root: Node, name: str, known: Mapping[Node, Interval]) -> Interval:
    """The interval of an expression, looked at for each value of its whole variables apart.

    ``if month == 0 then 2 else month - 1`` never is -1, which no interval of month tells.
    """
    whole = [
        leaf
        for leaf in sorted_nodes([root])
        if leaf.op in ("state", "action") and leaf.kind != "real" and leaf in known
    ]
    own = process.leaf(name)
    whole.sort(key=lambda leaf: (leaf is not own, known[leaf].high - known[leaf].low))
    grid: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
    taken: list[Node] = []
    for leaf in whole:
        low, high = known[leaf]
        width = high - low + 1
        if width * math.prod(map(len, grid)) <= MOST_LANES:
            grid.append(np.arange(low, high + 1, dtype=np.float64))
            taken.append(leaf)
    if not taken:
        return intervals([root], known)[0]
    lanes = np.array(list(itertools.product(*grid))).T
    exact = {leaf: Interval(lane, lane) for leaf, lane in zip(taken, lanes, strict=True)}
    return intervals([root], {**known, **exact})[0]


def drop_constants(process: Process) -> tuple[str, ...]:
    """Put the values of variables that never change into all expressions."""
    constant = [name for name, (low, high) in process.bounds.items() if low == high]
    values = {
        process.leaf(name): process.graph.constant(process.initial[name], process.kinds[name])
        for name in constant
    }
    values |= {
        process.next_leaf(name): process.graph.constant(process.initial[name], process.kinds[name])
        for name in constant
    }
    process.forget(constant)
    process.replace(values)
    return tuple(constant)
