"""Between which numbers the value of an expression lies, given as much of its leaves.

Intervals are arrays over lanes, so that an expression can be looked at for every value of a few
leaves at once while the others are anything in their range. What is said is safe, not tight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from exo_envs.sources.rddl.nodes import Node, sorted_nodes
from exo_envs.sources.rddl.operations import DISTRIBUTIONS, FUNCTIONS, Array


class Interval(NamedTuple):
    """The smallest and the largest value, numbers or arrays over lanes; truth is 0 or 1."""

    low: Any
    high: Any

    @classmethod
    def of(cls, value: Any) -> Interval:
        """One value."""
        number = np.asarray(value, dtype=np.float64)
        return cls(number, number)

    @property
    def is_one(self) -> Any:
        """Where nothing is open."""
        return self.low == self.high


UNKNOWN_TRUTH = Interval(np.float64(0), np.float64(1))
ANYTHING = Interval(np.float64(-np.inf), np.float64(np.inf))


def intervals(roots: Sequence[Node], known: Mapping[Node, Interval]) -> list[Interval]:
    """The intervals of some expressions.

    Args:
        roots: the expressions.
        known: those of leaves (and of draws that are looked at one outcome at a time); other
            leaves may have any value.
    """
    found: dict[Node, Interval] = {}
    with np.errstate(all="ignore"):
        for node in sorted_nodes(roots):
            if node in known:
                found[node] = known[node]
            elif node.is_constant:
                found[node] = Interval.of(node.value)
            else:
                found[node] = _safe(node, _interval(node, [found[arg] for arg in node.args]))
    return [found[root] for root in roots]


def _safe(node: Node, interval: Interval) -> Interval:
    """Without numbers that are none."""
    low = np.where(np.isnan(interval.low), -np.inf, interval.low)
    high = np.where(np.isnan(interval.high), np.inf, interval.high)
    if node.kind == "bool":
        low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
    return Interval(low, high)


def _interval(node: Node, args: list[Interval]) -> Interval:  # noqa: C901, PLR0911, PLR0912
    lows, highs = [a.low for a in args], [a.high for a in args]
    match node.op:
        case "state" | "action" | "next":
            return UNKNOWN_TRUTH if node.kind == "bool" else ANYTHING
        case "random":
            return _range_of_draw(node, args)
        case "and":
            return Interval(_reduce(np.minimum, lows), _reduce(np.minimum, highs))
        case "or":
            return Interval(_reduce(np.maximum, lows), _reduce(np.maximum, highs))
        case "not":
            return Interval(1 - highs[0], 1 - lows[0])
        case "int":
            return args[0]
        case "add":
            return Interval(_reduce(np.add, lows), _reduce(np.add, highs))
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
        case "which":
            return Interval(np.float64(0), np.float64(len(args) - 1))
        case "==":
            same = args[0].is_one & args[1].is_one & (lows[0] == lows[1])
            apart = (highs[0] < lows[1]) | (highs[1] < lows[0])
            return Interval(same * 1.0, 1.0 - apart)
        case "<":
            return Interval((highs[0] < lows[1]) * 1.0, (lows[0] < highs[1]) * 1.0)
        case "<=":
            return Interval((highs[0] <= lows[1]) * 1.0, (lows[0] <= highs[1]) * 1.0)
    return _range_of_function(node.op, args)


def _range_of_function(name: str, args: list[Interval]) -> Interval:
    function = FUNCTIONS[name]
    lows, highs = [a.low for a in args], [a.high for a in args]
    if function.is_increasing:
        return Interval(_compute(name, lows), _compute(name, highs))
    settled = _reduce(np.logical_and, [a.is_one for a in args])
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


def _range_of_draw(node: Node, args: list[Interval]) -> Interval:
    name = node.value[0]
    distribution = DISTRIBUTIONS[name]
    low, high = np.float64(distribution.low), np.float64(distribution.high)
    if name == "Bernoulli":
        return Interval((args[0].low >= 1) * 1.0, (args[0].high > 0) * 1.0)
    if name in ("Discrete", "UnnormDiscrete"):
        return Interval(np.float64(0), np.float64(len(args) - 1))
    if name == "Uniform":
        return Interval(args[0].low, args[1].high)
    if name == "Binomial":
        return Interval(np.float64(0), args[0].high)
    return Interval(low, high)


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
    return Interval(_reduce(np.fmin, values), _reduce(np.fmax, values))


def _reduce(function: Any, values: Sequence[Any]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return result
