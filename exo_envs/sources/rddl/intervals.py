"""Between which numbers values lie: those of an expression, and of variables within an episode.

Intervals are arrays over lanes, so that an expression can be looked at for every value of a few
leaves at once while the others are anything in their range. What is said is safe, not tight.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from exo_envs.sources.rddl.description import Description
from exo_envs.sources.rddl.expressions import GraphNode, fold, leaves
from exo_envs.sources.rddl.loading import RDDLRefusedError
from exo_envs.sources.rddl.operations import COMPARISONS, DISTRIBUTIONS, FUNCTIONS, Array

#: Combinations of values for which the next value of one variable is looked at, at most.
MOST_LANES = 4096
#: Values of a whole variable, beyond which it counts as unbounded.
MOST_VALUES = 2**31
Bounds = tuple[float, float]


class Interval(NamedTuple):
    """The smallest and the largest value, numbers or arrays over lanes; truth is 0 or 1."""

    low: Any
    high: Any

    @classmethod
    def of(cls, value: Any) -> Interval:
        """The interval that holds one value, or one in each lane."""
        number = np.asarray(value, dtype=np.float64)
        return cls(number, number)

    @property
    def is_one(self) -> Any:
        """Where (in which lanes) it holds one value only."""
        return self.low == self.high


def intervals(roots: Sequence[GraphNode], known: Mapping[GraphNode, Interval]) -> list[Interval]:
    """The intervals of some expressions, given those of leaves (and of draws).

    Leaves that are not known may have any value.
    """
    with np.errstate(all="ignore"):
        return fold(roots, _interval_of, known)


def _interval_of(node: GraphNode, args: list[Interval]) -> Interval:
    """The interval of a node; where it would have no end that is a number, it has none."""
    if node.is_constant:
        return Interval.of(node.value)
    low, high = _interval(node, args)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    if node.kind == "bool":
        low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
    return Interval(low, high)


def _interval(node: GraphNode, args: list[Interval]) -> Interval:  # noqa: C901, PLR0911
    lows, highs = [a.low for a in args], [a.high for a in args]
    match node.op:
        case "state" | "action" | "next":
            end = np.float64(1 if node.kind == "bool" else np.inf)
            return Interval(np.float64(0) if node.kind == "bool" else -end, end)
        case "random":
            return _range_of_draw(node, args)
        case "and" | "or" | "add":
            join = {"and": np.minimum, "or": np.maximum, "add": np.add}[node.op]
            return Interval(reduce(join, lows), reduce(join, highs))
        case "not":
            return Interval(1 - highs[0], 1 - lows[0])
        case "int":
            return args[0]
        case "mul":
            product = args[0]
            for other in args[1:]:
                product = _hull(_times(a, b) for a in product for b in other)
            return product
        case "quotient":
            quotients = _hull(np.divide(a, b) for a in args[0] for b in args[1])
            through_zero = (lows[1] <= 0) & (highs[1] >= 0)
            return Interval(
                np.where(through_zero, -np.inf, quotients.low),
                np.where(through_zero, np.inf, quotients.high),
            )
        case "if":
            either = _hull((*args[1], *args[2]))
            return Interval(
                np.where(lows[0] == 1, lows[1], np.where(highs[0] == 0, lows[2], either.low)),
                np.where(lows[0] == 1, highs[1], np.where(highs[0] == 0, highs[2], either.high)),
            )
        case "==":
            same = args[0].is_one & args[1].is_one & (lows[0] == lows[1])
            apart = (highs[0] < lows[1]) | (highs[1] < lows[0])
            return Interval(same * 1.0, 1.0 - apart)
        case "<" | "<=":
            holds = COMPARISONS[node.op]
            return Interval(holds(highs[0], lows[1]) * 1.0, holds(lows[0], highs[1]) * 1.0)
    return _range_of_function(node.op, args)


def _range_of_function(name: str, args: list[Interval]) -> Interval:
    function = FUNCTIONS[name]
    lows, highs = [a.low for a in args], [a.high for a in args]
    if function.is_increasing:
        return Interval(_compute(name, lows), _compute(name, highs))
    settled = reduce(np.logical_and, [a.is_one for a in args])
    exact = _compute(name, lows)
    low: Any = np.float64(function.low)
    high: Any = np.float64(function.high)
    if name == "abs":
        ends = _hull((np.abs(lows[0]), np.abs(highs[0])))
        low, high = np.where((lows[0] <= 0) & (highs[0] >= 0), 0.0, ends.low), ends.high
    elif name == "pow" and np.all(args[1].is_one):
        low, high = _range_of_power(args[0], lows[1])
    elif name in ("mod", "fmod") and np.all(lows[1] > 0):
        low, high = np.float64(0), highs[1] - (1 if name == "mod" else 0)
    return Interval(np.where(settled, exact, low), np.where(settled, exact, high))


def _range_of_power(base: Interval, exponent: Any) -> tuple[Any, Any]:
    """Of a whole, positive exponent or a base that is not negative; else anything."""
    ends = _hull((np.power(base.low, exponent), np.power(base.high, exponent)))
    through_zero = (base.low <= 0) & (base.high >= 0)
    even = exponent % 2 == 0
    known = (exponent > 0) & ((exponent == np.floor(exponent)) | (base.low >= 0))
    low = np.where(through_zero & even, 0.0, ends.low)
    return np.where(known, low, -np.inf), np.where(known, ends.high, np.inf)


def _range_of_draw(node: GraphNode, args: list[Interval]) -> Interval:
    match node.value[0]:
        case "Bernoulli":
            return Interval((args[0].low >= 1) * 1.0, (args[0].high > 0) * 1.0)
        case "Discrete" | "UnnormDiscrete":
            return Interval(np.float64(0), np.float64(len(args) - 1))
        case "Uniform":
            return Interval(args[0].low, args[1].high)
        case "Binomial":
            return Interval(np.float64(0), args[0].high)
    distribution = DISTRIBUTIONS[node.value[0]]
    return Interval(np.float64(distribution.low), np.float64(distribution.high))


_ROUNDED: dict[str, Any] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,
    "sgn": np.sign,
}


def _compute(name: str, values: list[Any]) -> Array:
    """A function of numbers that may be infinite."""
    function = _ROUNDED.get(name, FUNCTIONS[name].compute)
    return np.asarray(function(*values), dtype=np.float64)


def _times(a: Any, b: Any) -> Any:
    """The product of two ends, where 0 times infinity is 0."""
    return np.where((a == 0) | (b == 0), 0.0, a * b)


def _hull(values: Any) -> Interval:
    values = list(values)
    return Interval(reduce(np.fmin, values), reduce(np.fmax, values))


# --- variables ------------------------------------------------------------------------------------


def possible_values(rddl: Description) -> dict[GraphNode, Interval]:
    """The interval of every variable and of every action fluent."""
    found = {rddl.leaf(name): Interval(*rddl.bounds[name]) for name in rddl.kinds}
    for name, leaf in rddl.actions.leaves.items():
        column = rddl.actions.columns[name]
        found[leaf] = Interval(float(column.min()), float(column.max()))
    return found


def find_bounds(rddl: Description, stated: Mapping[str, Bounds]) -> None:
    """Set the bounds to what can be reached from the initial state within an episode.

    Values stay within the bounds that are stated, by the user or an invariant. Real variables that
    are still growing at the end have these, or none: intervals are too loose for those that were
    found to mean much.
    """
    names = list(rddl.kinds)
    roots = rddl.settled_following(names)
    rddl.bounds = {name: (float(rddl.initial[name]),) * 2 for name in names}
    moving: set[str] = set()
    for _ in range(rddl.horizon):
        known = possible_values(rddl)
        found = intervals(roots, known)
        moving = set()
        for name, root, interval in zip(names, roots, found, strict=True):
            limits = stated.get(name, (-math.inf, math.inf))
            new = _merged(rddl, name, interval, limits)
            if new != rddl.bounds[name] and rddl.kinds[name] == "int":
                new = _merged(rddl, name, by_values(rddl, root, name, known), limits)
            if new != rddl.bounds[name]:
                rddl.bounds[name] = new
                moving.add(name)
        if not moving:
            break
    for name in moving:
        if rddl.kinds[name] == "real":
            rddl.bounds[name] = stated.get(name, (-math.inf, math.inf))


def _merged(rddl: Description, name: str, found: Interval, limits: Bounds) -> Bounds:
    """The bounds so far and what was found, within limits."""
    low, high = float(np.min(found.low)), float(np.max(found.high))
    if rddl.kinds[name] == "int":
        low = math.floor(low) if math.isfinite(low) else low
        high = math.ceil(high) if math.isfinite(high) else high
    (least, most), old = limits, rddl.bounds[name]
    low, high = min(max(low, least), most), max(min(high, most), least)
    return min(low, old[0]), max(high, old[1])


def by_values(
    rddl: Description, root: GraphNode, name: str, known: Mapping[GraphNode, Interval]
) -> Interval:
    """The interval of an expression, looked at for each value of its whole variables apart.

    ``if month == 0 then 2 else month - 1`` never is -1, which no interval of month tells.
    """
    own = rddl.leaf(name)
    whole = [n for n in leaves([root], "state", "action") if n.kind != "real" and n in known]
    whole.sort(key=lambda leaf: (leaf is not own, known[leaf].high - known[leaf].low))
    apart = values_apart(whole, known, MOST_LANES)
    lanes = np.array(list(itertools.product(*apart.values()))).T
    exact = {leaf: Interval.of(lane) for leaf, lane in zip(apart, lanes, strict=True)}
    return intervals([root], {**known, **exact})[0]


def values_apart(
    whole: Sequence[GraphNode], known: Mapping[GraphNode, Interval], room: float
) -> dict[GraphNode, Array]:
    """All values of as many leaves as have no more combinations than there is room for."""
    taken: dict[GraphNode, Array] = {}
    for leaf in whole:
        low, high = known[leaf]
        if (high - low + 1) * math.prod(map(len, taken.values())) <= room:
            taken[leaf] = np.arange(low, high + 1)
    return taken


def drop_constants(rddl: Description) -> bool:
    """Put the values of variables that never change into all expressions; whether there are any."""
    constant = [name for name, (low, high) in rddl.bounds.items() if low == high]
    values: dict[GraphNode, GraphNode] = {}
    for name in constant:
        value = rddl.graph.constant(rddl.initial[name], rddl.kinds[name])
        values |= {rddl.leaf(name): value, rddl.next_leaf(name): value}
    rddl.forget(constant)
    rddl.replace(values)
    rddl.constants += tuple(constant)
    return bool(constant)


def keep_within_bounds(rddl: Description) -> None:
    """Let values that a step would carry beyond their bounds stay there."""
    names = [name for name, kind in rddl.kinds.items() if kind != "bool"]
    roots = rddl.settled_following(names)
    clipped = []
    known = possible_values(rddl)
    for name, root in zip(names, roots, strict=True):
        bounds = rddl.bounds[name]
        if not _is_within(by_values(rddl, root, name, known), bounds):
            rddl.following[name] = rddl.graph.clip(rddl.following[name], *bounds)
            clipped.append(name)
    if clipped:
        rddl.notes.append(
            "values that a step would carry beyond their bounds stay there (from the initial "
            "state and within the horizon, only at bounds that the user or an invariant gives): "
            + ", ".join(clipped)
        )


def check_bounds(rddl: Description) -> None:
    """Refuse variables that may have any value, save for real exogenous ones."""
    for name, kind in rddl.kinds.items():
        low, high = rddl.bounds[name]
        wide = not math.isfinite(high - low) or (kind == "int" and high - low >= MOST_VALUES)
        if wide and not (kind == "real" and name in rddl.exogenous):
            part = "exogenous" if name in rddl.exogenous else "endogenous"
            fluent = rddl.lifted[name][0] if name in rddl.lifted else name
            what = "whole" if kind == "int" else "real"
            raise RDDLRefusedError(
                "unbounded",
                f"the {part} {what} fluent {name!r} has no bounds that follow from the "
                f"description; give bounds={{{fluent!r}: (low, high)}}",
            )


def keep_draws_valid(rddl: Description) -> None:
    """Keep chances between 0 and 1, variances from being negative, and so on, where needed."""
    graph, known = rddl.graph, possible_values(rddl)
    guarded: dict[GraphNode, GraphNode] = {}
    for draw in rddl.draws([*rddl.following.values(), rddl.reward]).values():
        ranges = DISTRIBUTIONS[draw.value[0]].ranges
        if not ranges:
            continue
        found = intervals(rddl.settled(list(draw.args)), known)
        args = [
            arg if _is_within(interval, bounds) else graph.clip(arg, *bounds)
            for arg, interval, bounds in zip(draw.args, found, ranges, strict=True)
        ]
        if args != [*draw.args]:
            guarded[draw] = graph.rebuild(draw, args)
    if guarded:
        rddl.replace(guarded)
        rddl.notes.append(
            "in states where a distribution would have an impossible argument (a negative "
            "variance, say), it has the nearest possible one: "
            + ", ".join(sorted({draw.value[0] for draw in guarded}))
        )


def _is_within(found: Interval, bounds: Bounds) -> bool:
    low, high = bounds
    return bool(np.min(found.low) >= low and np.max(found.high) <= high)
