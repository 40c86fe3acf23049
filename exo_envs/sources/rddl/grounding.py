"""From a parsed description to a graph: every fluent of every tuple of objects by itself.

pyRDDLGym parses, and knows the objects and the values of non-fluents. Its own grounder has no
``Discrete`` and no ``switch``, and keeps what non-fluents already decide; so grounding is done
here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from exo_envs.sources.rddl.description import Description
from exo_envs.sources.rddl.expressions import Graph, GraphNode, LeafKind
from exo_envs.sources.rddl.loading import RDDLRefusedError
from exo_envs.sources.rddl.operations import DISTRIBUTIONS, FUNCTIONS, Kind

Bindings = Mapping[str, str]  # parameter -> object


class Grounder:
    """Grounds a lifted model of pyRDDLGym: its fluents, and how they move."""

    def __init__(self, model: Any, rddl: Description) -> None:
        from pyRDDLGym.core.compiler.initializer import RDDLValueInitializer

        self.model, self.rddl, self.graph = model, rddl, rddl.graph
        self.values = RDDLValueInitializer(model).initialize()
        self.inlined: dict[tuple[str, tuple[str, ...]], GraphNode | None] = {}  # None: being made

    def ground(self) -> None:
        model, rddl = self.model, self.rddl
        for fluent in (*model.state_fluents, *model.action_fluents):
            self._declare(fluent)
        for fluent, primed in model.next_state.items():
            for objects in self._tuples(model.variable_params[fluent]):
                rddl.following[ground_name(fluent, objects)] = self._inline(primed, objects)
        rddl.reward = self.graph.number(self.expression(model.reward, {}))
        rddl.invariants, rddl.preconditions, terminations = (
            [self.graph.truth(self.expression(e, {})) for e in expressions]
            for expressions in (model.invariants, model.preconditions, model.terminations)
        )
        rddl.terminal = self.graph.any(terminations)
        rddl.fluents = {name: rddl.leaf(name) for name in rddl.kinds}

    def _declare(self, fluent: str) -> None:
        model, rddl = self.model, self.rddl
        values = np.asarray(self.values[fluent])
        is_action = fluent in model.action_fluents
        kinds, defaults = (
            (rddl.action_kinds, rddl.default) if is_action else (rddl.kinds, rddl.initial)
        )
        for index, objects in enumerate(self._tuples(model.variable_params[fluent])):
            name = ground_name(fluent, objects)
            kinds[name] = self._kind(fluent)
            defaults[name] = values.reshape(-1)[index].item()
            rddl.lifted[name] = (fluent, objects)
            if model.variable_ranges[fluent] in model.type_to_objects:
                rddl.values[name] = self._objects(model.variable_ranges[fluent])

    # --- objects --------------------------------------------------------------------------

    def _objects(self, type_name: str) -> tuple[str, ...]:
        return tuple(self.model.type_to_objects[type_name])

    def _tuples(self, types: Sequence[str]) -> Iterator[tuple[str, ...]]:
        return itertools.product(*(self._objects(t) for t in types or ()))

    def _kind(self, fluent: str) -> Kind:
        declared = self.model.variable_ranges[fluent]
        return declared if declared in ("bool", "int", "real") else "int"

    # --- expressions ----------------------------------------------------------------------

    def expression(self, expression: Any, bound: Bindings) -> GraphNode:
        graph, (group, op), args = self.graph, expression.etype, expression.args
        match group:
            case "constant":
                return graph.constant(args)
            case "pvar":
                return self._fluent(args, bound)
            case "control":
                return self._if(args, bound) if op == "if" else self._switch(args, bound)
            case "randomvar":
                return self._random(expression, bound)
            case "func":
                if op not in FUNCTIONS or len(args) != FUNCTIONS[op].arity:
                    raise _unsupported(f"the function {op} of {len(args)} arguments", expression)
                return graph.function(op, list(self._each(args, bound)))
        if op not in OPERATORS:
            raise _unsupported(f"{op} ({group})", expression)
        over = self._for_objects if group == "aggregation" else self._each
        return OPERATORS[op](graph, over(args, bound))

    def _each(self, args: Iterable[Any], bound: Bindings) -> Iterator[GraphNode]:
        return (self.expression(arg, bound) for arg in args)

    def _for_objects(self, args: Sequence[Any], bound: Bindings) -> Iterator[GraphNode]:
        """The last argument for all ways to bind the parameters before it."""
        *parameters, inner = args
        names = [name for _, (name, _) in parameters]
        for objects in self._tuples([type_name for _, (_, type_name) in parameters]):
            yield self.expression(inner, {**bound, **dict(zip(names, objects, strict=True))})

    # --- fluents --------------------------------------------------------------------------

    def _fluent(self, args: Any, bound: Bindings) -> GraphNode:
        name, arguments = args
        if not arguments and name not in self.model.variable_types:
            return self._object_value(bound.get(name, name))
        choices = [self._object(argument, bound) for argument in arguments or ()]
        if all(isinstance(choice, str) for choice in choices):
            return self._fluent_of(name, tuple(str(choice) for choice in choices))
        return self._selected(name, choices)

    def _object(self, argument: Any, bound: Bindings) -> str | GraphNode:
        """The object that an argument of a fluent names, or the node that does."""
        if isinstance(argument, str):
            return bound[argument] if argument in bound else self.model.strip_literal(argument)
        if argument.etype[0] == "pvar" and not argument.args[1]:
            name = argument.args[0]
            if name in bound:
                return bound[name]
            if name not in self.model.variable_types:
                return str(self.model.strip_literal(name))
        return self.expression(argument, bound)

    def _object_value(self, name: str) -> GraphNode:
        """An object as a number, its position in its type."""
        return self.graph.constant(int(self.model.object_to_index[self.model.strip_literal(name)]))

    def _selected(self, name: str, choices: Sequence[str | GraphNode]) -> GraphNode:
        """A fluent of a fluent: the values for all objects, and the choice among them."""
        types = self.model.variable_params[name]
        options = [
            [(choice, None)]
            if isinstance(choice, str)
            else [
                (o, self.graph.compare("==", choice, self.graph.constant(i)))
                for i, o in enumerate(self._objects(type_name))
            ]
            for choice, type_name in zip(choices, types, strict=True)
        ]
        node: GraphNode | None = None
        for combination in itertools.product(*options):
            value = self._fluent_of(name, tuple(o for o, _ in combination))
            holds = self.graph.all(test for _, test in combination if test is not None)
            node = value if node is None else self.graph.choose(holds, value, node)
        assert node is not None
        return node

    def _fluent_of(self, name: str, objects: tuple[str, ...]) -> GraphNode:
        variable_type = self.model.variable_types[name]
        if variable_type == "non-fluent":
            index = tuple(self.model.object_to_index[o] for o in objects)
            return self.graph.constant(np.asarray(self.values[name])[index].item())
        if variable_type not in _LEAVES:
            return self._inline(name, objects)
        fluent = self.model.prev_state.get(name, name)
        grounded = ground_name(fluent, objects)
        return self.graph.leaf(_LEAVES[variable_type], grounded, self._kind(fluent))

    def _inline(self, name: str, objects: tuple[str, ...]) -> GraphNode:
        """The expression of an intermediate fluent, or of a state fluent's next value."""
        key = (name, objects)
        if key not in self.inlined:
            self.inlined[key] = None
            parameters, expression = self.model.cpfs[name]
            bound = dict(zip((p for p, _ in parameters), objects, strict=True))
            node = self.expression(expression, bound)
            kind = self._kind(self.model.prev_state.get(name, name))
            node = self.graph.truth(node) if kind == "bool" else self.graph.number(node)
            if kind == "real" and node.is_constant:
                node = self.graph.constant(node.value, "real")
            self.inlined[key] = node
        made = self.inlined[key]
        if made is None:
            raise RDDLRefusedError("cycle", f"{ground_name(*key)!r} is defined by itself")
        return made

    # --- choices and draws ----------------------------------------------------------------

    def _if(self, args: Any, bound: Bindings) -> GraphNode:
        condition, then, otherwise = args
        holds = self.graph.truth(self.expression(condition, bound))
        if holds.is_constant:  # what is never reached need not be supported
            return self.expression(then if holds.value else otherwise, bound)
        return self.graph.choose(holds, *self._each((then, otherwise), bound))

    def _switch(self, args: Any, bound: Bindings) -> GraphNode:
        graph, (switch, *cases) = self.graph, args
        chosen = self.expression(switch, bound)
        listed = dict(case for kind, case in cases if kind == "case")
        rest = [case for kind, case in cases if kind != "case"]
        nodes = [
            (self._object_value(literal), self.expression(result, bound))
            for literal, result in listed.items()
        ]
        node = self.expression(rest[0], bound) if rest else nodes.pop()[1]
        for value, result in nodes:
            node = graph.choose(graph.compare("==", chosen, value), result, node)
        return node

    def _random(self, expression: Any, bound: Bindings) -> GraphNode:
        graph, (_, op), args = self.graph, expression.etype, expression.args
        if op in ("KronDelta", "DiracDelta"):
            return self.expression(args[0], bound)
        if op in ("Discrete(p)", "UnnormDiscrete(p)"):
            *parameters, (weight,) = args
            weights = list(self._for_objects([*parameters, weight], bound))
            return graph.random(op.removesuffix("(p)"), weights, "int")
        if op in ("Discrete", "UnnormDiscrete"):
            return graph.random(op, self._weights(args, bound), "int")
        if op not in DISTRIBUTIONS or len(args) != len(DISTRIBUTIONS[op].ranges):
            raise _unsupported(f"the distribution {op} of {len(args)} arguments", expression)
        nodes = [graph.number(node) for node in self._each(args, bound)]
        if op == "Bernoulli" and nodes[0].is_constant and nodes[0].value in (0, 1):
            return graph.constant(bool(nodes[0].value))
        return graph.random(op, nodes, DISTRIBUTIONS[op].kind)

    def _weights(self, args: Any, bound: Bindings) -> list[GraphNode]:
        """The chances of a ``Discrete``, in the order of its type; what is not listed has none."""
        (_, type_name), *cases = args
        chances = {
            self.model.strip_literal(literal): self.graph.number(self.expression(chance, bound))
            for _, (literal, chance) in cases
        }
        none = self.graph.constant(0.0)
        return [chances.get(name, none) for name in self._objects(type_name)]


# --- operators -----------------------------------------------------------------------------------


def _difference(graph: Graph, nodes: Iterator[GraphNode]) -> GraphNode:
    first, *others = nodes
    return graph.add([first, *map(graph.minus, others)]) if others else graph.minus(first)


def _not_or_either(graph: Graph, nodes: Iterator[GraphNode]) -> GraphNode:
    """Of one truth value that it does not hold, of two that only one does."""
    first, *others = map(graph.truth, nodes)
    return graph.compare("!=", first, *others) if others else graph.negate(first)


def _comparison(op: str, graph: Graph, nodes: Iterator[GraphNode]) -> GraphNode:
    return graph.compare("!=" if op == "~=" else op, *nodes)


def _average(graph: Graph, nodes: Iterator[GraphNode]) -> GraphNode:
    values = list(nodes)
    return graph.divide(graph.add(values), graph.constant(len(values)))


def _extreme(name: str, graph: Graph, nodes: Iterator[GraphNode]) -> GraphNode:
    """The smallest or the largest one (``min``, ``max``)."""
    return reduce(lambda a, b: graph.function(name, (a, b)), map(graph.number, nodes))


def _position(better: str, graph: Graph, nodes: Iterator[GraphNode]) -> GraphNode:
    """The position of the first one than which no other is smaller (``<``) or larger (``>``)."""
    best, *others = map(graph.number, nodes)
    position = graph.constant(0)
    for j, value in enumerate(others, start=1):
        is_better = graph.compare(better, value, best)
        position = graph.choose(is_better, graph.constant(j), position)
        best = graph.choose(is_better, value, best)
    return position


#: What an operator, or an aggregation over objects, makes of its operands. These are grounded one
#: by one as they are taken.
OPERATORS: dict[str, Callable[[Graph, Iterator[GraphNode]], GraphNode]] = {
    **dict.fromkeys(("+", "sum"), Graph.add),
    **dict.fromkeys(("*", "prod"), Graph.multiply),
    **dict.fromkeys(("^", "&", "forall"), Graph.all),
    **dict.fromkeys(("|", "exists"), Graph.any),
    "-": _difference,
    "/": lambda graph, nodes: graph.divide(*nodes),
    "~": _not_or_either,
    "=>": lambda graph, nodes: graph.any((graph.negate(next(nodes)), *nodes)),
    "<=>": lambda graph, nodes: graph.compare("==", *map(graph.truth, nodes)),
    **{op: partial(_comparison, op) for op in ("==", "~=", "<", "<=", ">", ">=")},
    "avg": _average,
    "minimum": partial(_extreme, "min"),
    "maximum": partial(_extreme, "max"),
    "argmin": partial(_position, "<"),
    "argmax": partial(_position, ">"),
}
_LEAVES: dict[str, LeafKind] = {
    "state-fluent": "state",
    "action-fluent": "action",
    "next-state-fluent": "next",
}


def ground_name(fluent: str, objects: Sequence[str]) -> str:
    """The name of a fluent of some objects, as pyRDDLGym writes it: ``obstacle-at___x1__y2``."""
    return f"{fluent}___{'__'.join(objects)}" if objects else fluent


def _unsupported(what: str, expression: Any) -> RDDLRefusedError:
    from pyRDDLGym.core.debug.decompiler import RDDLDecompiler

    text = " ".join(RDDLDecompiler().decompile_expr(expression).split())
    return RDDLRefusedError("unsupported-operation", f"{what} is not supported, in {text[:200]!r}")
