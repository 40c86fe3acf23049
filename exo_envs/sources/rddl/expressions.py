"""Grounded expressions: a graph of nodes, and programs that compute them for whole batches.

Equal parts are one node, constants are worked out at once. Every node has a ``uid`` larger than
those of its arguments, so sorting nodes by it puts arguments first. A random node carries a tag:
two draws of one distribution stay two draws, and a draw that several expressions look at stays one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from exo_envs.sources.rddl.operations import (
    COMPARISONS,
    COMPUTED,
    DISTRIBUTIONS,
    DTYPES,
    FOLDS,
    FUNCTIONS,
    Array,
    Kind,
    numeric_kind,
)

T = TypeVar("T")
LeafKind: TypeAlias = Literal["state", "action", "next"]
LEAVES = ("state", "action", "next")
_TYPES: dict[Kind, Any] = {"bool": bool, "int": int, "real": float}
_KINDS = {value_type: kind for kind, value_type in _TYPES.items()}


@dataclass(frozen=True, slots=True, eq=False)
class GraphNode:
    """One operation of a grounded expression; compared by identity.

    Attributes:
        op: ``constant``, a leaf (``state``, ``action``, ``next``), ``random``, or an operation.
        args: the nodes it is applied to.
        value: the value of a constant, the name of a leaf, the (distribution, tag) of a draw.
        kind: the type of its values.
        uid: larger than the uid of every argument.
    """

    op: str
    args: tuple[GraphNode, ...]
    value: Any
    kind: Kind
    uid: int

    @property
    def is_constant(self) -> bool:
        """Whether it has one value, whatever the state."""
        return self.op == "constant"

    def __repr__(self) -> str:
        return show(self)


class Graph:
    """Makes nodes; equal ones are made once."""

    def __init__(self) -> None:
        self._nodes: dict[Any, GraphNode] = {}
        self._tags = 0
        self.true = self.constant(True)
        self.false = self.constant(False)

    def _make(self, op: str, args: tuple[GraphNode, ...], value: Any, kind: Kind) -> GraphNode:
        key = (op, tuple(a.uid for a in args), value, kind)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = GraphNode(op, args, value, kind, len(self._nodes))
        return node

    # --- leaves ---------------------------------------------------------------------------

    def constant(self, value: Any, kind: Kind | None = None) -> GraphNode:
        value = value.item() if isinstance(value, np.generic) else value
        kind = kind or _KINDS.get(type(value), "real")
        return self._make("constant", (), _TYPES[kind](value), kind)

    def leaf(self, op: LeafKind, name: str, kind: Kind) -> GraphNode:
        """The value of a grounded fluent: now (``state``), chosen (``action``), then (``next``)."""
        return self._make(op, (), name, kind)

    def random(self, distribution: str, args: Sequence[GraphNode], kind: Kind) -> GraphNode:
        self._tags += 1
        return self._make("random", tuple(args), (distribution, self._tags), kind)

    # --- truth values ---------------------------------------------------------------------

    def truth(self, node: GraphNode) -> GraphNode:
        """The node as a truth value; numbers other than 0 are true."""
        return node if node.kind == "bool" else self.compare("!=", node, self.constant(0))

    def all(self, nodes: Iterable[GraphNode]) -> GraphNode:
        return self._join("and", nodes, neutral=self.true, absorbing=self.false)

    def any(self, nodes: Iterable[GraphNode]) -> GraphNode:
        return self._join("or", nodes, neutral=self.false, absorbing=self.true)

    def conjuncts(self, nodes: Iterable[GraphNode]) -> Sequence[GraphNode]:
        """What has to hold one by one for all of some nodes to hold."""
        together = self.all(nodes)
        return together.args if together.op == "and" else (together,)

    def _join(
        self, op: str, nodes: Iterable[GraphNode], neutral: GraphNode, absorbing: GraphNode
    ) -> GraphNode:
        parts: dict[GraphNode, None] = {}
        for node in nodes:  # lazily: what comes after a decided one is never grounded
            flag = self.truth(node)
            if flag is absorbing:
                return absorbing
            for part in flag.args if flag.op == op else (flag,):
                if part is not neutral:
                    parts[part] = None
        if len(parts) < 2:
            return next(iter(parts), neutral)
        if any(part.op == "not" and part.args[0] in parts for part in parts):
            return absorbing
        return self._make(op, tuple(parts), None, "bool")

    def negate(self, node: GraphNode) -> GraphNode:
        node = self.truth(node)
        if node.is_constant:
            return self.constant(not node.value)
        return node.args[0] if node.op == "not" else self._make("not", (node,), None, "bool")

    def compare(self, op: str, left: GraphNode, right: GraphNode) -> GraphNode:
        """One of ``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``."""
        if op in (">", ">="):
            op, left, right = {">": "<", ">=": "<="}[op], right, left
        if left.is_constant and right.is_constant:
            return self.constant(bool(COMPARISONS[op](left.value, right.value)))
        if left is right and left.op != "random":
            return self.constant(op in ("==", "<="))
        if op in ("==", "!="):
            if left.is_constant:
                left, right = right, left
            if left.kind == "bool" and right.is_constant and right.value in (0, 1):
                return left if (op == "==") == bool(right.value) else self.negate(left)
            if op == "!=":
                return self.negate(self.compare("==", left, right))
        return self._make(op, (self.number(left), self.number(right)), None, "bool")

    # --- numbers --------------------------------------------------------------------------

    def number(self, node: GraphNode) -> GraphNode:
        """The node as a number: true is 1."""
        if node.kind != "bool":
            return node
        if node.is_constant:
            return self.constant(int(node.value))
        return self._make("int", (node,), None, "int")

    def add(self, nodes: Iterable[GraphNode]) -> GraphNode:
        return self._combine("add", nodes, operator.add, 0)

    def multiply(self, nodes: Iterable[GraphNode]) -> GraphNode:
        return self._combine("mul", nodes, operator.mul, 1)

    def _combine(
        self, op: str, nodes: Iterable[GraphNode], combine: Callable[[Any, Any], Any], neutral: int
    ) -> GraphNode:
        parts: list[GraphNode] = []
        constant: Any = neutral
        for node in nodes:
            for part in node.args if node.op == op else (self.number(node),):
                if part.is_constant:
                    constant = combine(constant, part.value)
                else:
                    parts.append(part)
        if not parts or (op == "mul" and constant == 0):
            return self.constant(constant)
        if constant != neutral:
            parts.append(self.constant(constant))
        if len(parts) == 1:
            return parts[0]
        return self._make(op, tuple(parts), None, numeric_kind(p.kind for p in parts))

    def minus(self, node: GraphNode) -> GraphNode:
        return self.multiply((self.constant(-1), node))

    def divide(self, left: GraphNode, right: GraphNode) -> GraphNode:
        """The quotient, a real number."""
        left, right = self.number(left), self.number(right)
        if right.is_constant and right.value != 0:
            if left.is_constant:
                return self.constant(left.value / right.value, "real")
            if right.value == 1:
                return self.multiply((left, self.constant(1.0)))
        return self._make("quotient", (left, right), None, "real")

    def choose(self, condition: GraphNode, then: GraphNode, otherwise: GraphNode) -> GraphNode:  # noqa: PLR0911
        condition = self.truth(condition)
        if condition.is_constant:
            return then if condition.value else otherwise
        if then is otherwise:
            return then
        if then.kind == "bool" and otherwise.kind == "bool":
            if then.is_constant and then.value:
                return self.any((condition, otherwise))
            if then.is_constant:
                return self.all((self.negate(condition), otherwise))
            if otherwise.is_constant and otherwise.value:
                return self.any((self.negate(condition), then))
            if otherwise.is_constant:
                return self.all((condition, then))
            return self._make("if", (condition, then, otherwise), None, "bool")
        then, otherwise = self.number(then), self.number(otherwise)
        kind = numeric_kind((then.kind, otherwise.kind))
        return self._make("if", (condition, then, otherwise), None, kind)

    def function(self, name: str, args: Sequence[GraphNode]) -> GraphNode:
        """A function of :data:`exo_envs.sources.rddl.operations.FUNCTIONS`."""
        function = FUNCTIONS[name]
        args = tuple(self.number(arg) for arg in args)
        kind = function.kind or numeric_kind(arg.kind for arg in args)
        if all(arg.is_constant for arg in args):
            with np.errstate(all="ignore"):
                return self.constant(function.compute(*(np.asarray(a.value) for a in args)), kind)
        return self._make(name, args, None, kind)

    def clip(self, node: GraphNode, low: float, high: float) -> GraphNode:
        node = self.number(node)
        for name, bound in (("max", low), ("min", high)):
            if np.isfinite(bound):
                node = self.function(name, (node, self.constant(bound, node.kind)))
        return node

    # --- rewriting ------------------------------------------------------------------------

    def substitute(
        self, roots: Sequence[GraphNode], values: Mapping[GraphNode, GraphNode]
    ) -> list[GraphNode]:
        """The same expressions with some nodes replaced; draws stay the draws they were."""
        return fold(roots, self.rebuild, values) if values else list(roots)

    def rebuild(self, node: GraphNode, args: Sequence[GraphNode]) -> GraphNode:
        """The operation of a node, with other arguments."""
        if all(new is old for new, old in zip(args, node.args, strict=True)):
            return node
        if node.op == "random":
            return self._make("random", tuple(args), node.value, node.kind)
        return self.apply(node.op, args)

    def apply(self, op: str, args: Sequence[GraphNode]) -> GraphNode:
        if op in _MAKERS:
            return _MAKERS[op](self, args)
        return self.compare(op, *args) if op in COMPARISONS else self.function(op, args)


_MAKERS: dict[str, Callable[[Graph, Sequence[GraphNode]], GraphNode]] = {
    "and": Graph.all,
    "or": Graph.any,
    "add": Graph.add,
    "mul": Graph.multiply,
    "not": lambda graph, args: graph.negate(*args),
    "int": lambda graph, args: graph.number(*args),
    "quotient": lambda graph, args: graph.divide(*args),
    "if": lambda graph, args: graph.choose(*args),
}


def sorted_nodes(roots: Iterable[GraphNode]) -> list[GraphNode]:
    """All nodes below some roots, arguments first."""
    found: set[GraphNode] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(node.args)
    return sorted(found, key=lambda node: node.uid)


def fold(
    roots: Iterable[GraphNode],
    visit: Callable[[GraphNode, list[T]], T],
    known: Mapping[GraphNode, T],
) -> list[T]:
    """What ``visit`` makes of some expressions: of each node, and of what came of its arguments.

    What is ``known`` of a node already is taken as it is.
    """
    found: dict[GraphNode, T] = {}
    for node in sorted_nodes(roots):
        is_known = node in known
        found[node] = known[node] if is_known else visit(node, [found[arg] for arg in node.args])
    return [found[root] for root in roots]


def leaves(roots: Iterable[GraphNode], *ops: str) -> list[GraphNode]:
    """The leaves (or draws) of some types below some roots."""
    return [node for node in sorted_nodes(roots) if node.op in ops]


def draws(node: GraphNode) -> list[GraphNode]:
    return leaves([node], "random")


def reaching(root: GraphNode, op: str) -> set[GraphNode]:
    """The parts of an expression that look at a leaf (or a draw) of some type, these included."""
    found: set[GraphNode] = set()
    for node in sorted_nodes([root]):
        if node.op == op or any(arg in found for arg in node.args):
            found.add(node)
    return found


def outcomes(draw: GraphNode) -> int | None:
    """How many values a draw has, if a fixed number."""
    name = draw.value[0]
    if name == "Bernoulli":
        return 2
    return len(draw.args) if name in ("Discrete", "UnnormDiscrete") else None


def show(node: GraphNode, depth: int = 4) -> str:
    """A short text of an expression, for messages."""
    if node.is_constant or node.op in LEAVES:
        return f"{node.value}'" if node.op == "next" else str(node.value)
    name = node.value[0] if node.op == "random" else node.op
    if depth == 0:
        return f"{name}(...)"
    return f"{name}({', '.join(show(arg, depth - 1) for arg in node.args)})"


# --- programs ------------------------------------------------------------------------------------


class _Instruction(NamedTuple):
    compute: Callable[..., Any]
    arguments: tuple[int, ...]
    result: int
    finished: tuple[int, ...]  # places that nothing later looks at


class Program:
    """Computes the values of some expressions.

    Attributes:
        is_random: whether something is drawn.
    """

    def __init__(self, roots: Sequence[GraphNode]) -> None:
        nodes = sorted_nodes(roots)
        place = {node: i for i, node in enumerate(nodes)}
        self._roots = [(place[root], DTYPES[root.kind]) for root in roots]
        self._inputs = [(node, place[node]) for node in nodes if node.op in LEAVES]
        self._constants: list[Any] = [
            DTYPES[node.kind](node.value) if node.is_constant else None for node in nodes
        ]
        self.is_random = any(node.op == "random" for node in nodes)
        work, kept = [n for n in nodes if n.op not in (*LEAVES, "constant")], set(roots)
        last = {arg: node for node in work for arg in node.args}
        self._instructions = [
            _Instruction(
                _operation(node),
                tuple(place[arg] for arg in node.args),
                place[node],
                tuple(
                    place[arg]
                    for arg in dict.fromkeys(node.args)
                    if last[arg] is node and not arg.is_constant and arg not in kept
                ),
            )
            for node in work
        ]

    def __call__(
        self, values: Mapping[GraphNode, Any], size: int, rng: np.random.Generator | None = None
    ) -> list[Array]:
        """The value of each expression, shape (size,), given those of the leaves.

        The values are numbers or arrays (size,); the generator draws what is random.
        """
        found: list[Any] = self._constants.copy()
        for node, place in self._inputs:
            found[place] = values[node]
        with np.errstate(all="ignore"):  # in branches that a lane does not take
            for compute, arguments, result, finished in self._instructions:
                found[result] = compute(rng, size, *[found[a] for a in arguments])
                for place in finished:
                    found[place] = None
        return [
            np.broadcast_to(np.asarray(found[place], dtype=dtype), (size,))
            for place, dtype in self._roots
        ]


def _operation(node: GraphNode) -> Callable[..., Any]:
    """A function of the generator, the number of lanes and the arguments that computes a node."""
    if node.op == "random":
        return DISTRIBUTIONS[node.value[0]].draw
    if node.op in FOLDS:
        return partial(_fold, FOLDS[node.op], len({a.kind for a in node.args}) == 1)
    compute = COMPUTED[node.op]
    return lambda rng, size, *args: compute(*args)


def _fold(function: Any, in_place: bool, _rng: Any, _size: int, *values: Any) -> Any:
    """One after another; with ``in_place``, all values are of one type."""
    result = function(values[0], values[1])
    in_place = in_place and np.ndim(result) > 0
    for value in values[2:]:
        result = function(result, value, out=result) if in_place else function(result, value)
    return result
