"""From a parsed description to a graph: every fluent of every tuple of objects by itself.

pyRDDLGym parses, and knows the objects and the values of non-fluents. Its own grounder has no
``Discrete`` and no ``switch``, and keeps what non-fluents already decide; so grounding is done
here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from exo_envs.sources.rddl.description import Description
from exo_envs.sources.rddl.expressions import Node
from exo_envs.sources.rddl.loading import RDDLRefusedError
from exo_envs.sources.rddl.operations import DISTRIBUTIONS, FUNCTIONS, Kind

Bindings = Mapping[str, str]  # parameter -> object


def ground(model: Any, rddl: Description) -> None:
    """Ground a lifted model of pyRDDLGym: its fluents, and how they move."""
    _Grounder(model, rddl).ground()


class _Grounder:
    def __init__(self, model: Any, rddl: Description) -> None:
        from pyRDDLGym.core.compiler.initializer import RDDLValueInitializer

        self.model, self.rddl, self.graph = model, rddl, rddl.graph
        self.values = RDDLValueInitializer(model).initialize()
        self.inlined: dict[tuple[str, tuple[str, ...]], Node] = {}
        self.open: list[tuple[str, tuple[str, ...]]] = []
        self.dispatch: dict[str, Callable[[Any, str, Any, Bindings], Node]] = {
            "arithmetic": self._arithmetic,
            "boolean": self._boolean,
            "relational": self._relational,
            "aggregation": self._aggregation,
            "func": self._function,
            "control": self._control,
            "randomvar": self._random,
        }

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

    def _bindings(self, parameters: Sequence[Any], outer: Bindings) -> Iterator[Bindings]:
        """The ways to bind the parameters of an aggregation."""
        names = [name for _, (name, _) in parameters]
        for objects in self._tuples([type_name for _, (_, type_name) in parameters]):
            yield {**outer, **dict(zip(names, objects, strict=True))}

    # --- expressions ----------------------------------------------------------------------

    def expression(self, expression: Any, bound: Bindings) -> Node:
        group, op = expression.etype
        if group == "constant":
            return self.graph.constant(expression.args)
        if group == "pvar":
            return self._fluent(expression, bound)
        if group not in self.dispatch:
            raise _unsupported(f"{op} ({group})", expression)
        return self.dispatch[group](expression, op, expression.args, bound)

    def _fluent(self, expression: Any, bound: Bindings) -> Node:
        name, arguments = expression.args
        if not arguments and name not in self.model.variable_types:
            return self._object_value(name, bound)
        choices = [self._object(argument, bound) for argument in arguments or ()]
        if all(isinstance(choice, str) for choice in choices):
            return self._fluent_of(name, tuple(str(choice) for choice in choices))
        return self._selected(name, choices)

    def _object(self, argument: Any, bound: Bindings) -> str | Node:
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

    def _object_value(self, name: str, bound: Bindings) -> Node:
        value = bound[name] if name in bound else self.model.strip_literal(name)
        return self.graph.constant(int(self.model.object_to_index[value]))

    def _selected(self, name: str, choices: Sequence[str | Node]) -> Node:
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
        node: Node | None = None
        for combination in itertools.product(*options):
            value = self._fluent_of(name, tuple(o for o, _ in combination))
            holds = self.graph.all(test for _, test in combination if test is not None)
            node = value if node is None else self.graph.choose(holds, value, node)
        assert node is not None
        return node

    def _fluent_of(self, name: str, objects: tuple[str, ...]) -> Node:
        match self.model.variable_types[name]:
            case "non-fluent":
                index = tuple(self.model.object_to_index[o] for o in objects)
                return self.graph.constant(np.asarray(self.values[name])[index].item())
            case "state-fluent":
                return self.graph.leaf("state", ground_name(name, objects), self._kind(name))
            case "action-fluent":
                return self.graph.leaf("action", ground_name(name, objects), self._kind(name))
            case "next-state-fluent":
                fluent = self.model.prev_state[name]
                return self.graph.leaf("next", ground_name(fluent, objects), self._kind(fluent))
        return self._inline(name, objects)

    def _inline(self, name: str, objects: tuple[str, ...]) -> Node:
        """The expression of an intermediate fluent, or of a state fluent's next value."""
        key = (name, objects)
        if key not in self.inlined:
            if key in self.open:
                raise RDDLRefusedError("cycle", f"{ground_name(*key)!r} is defined by itself")
            self.open.append(key)
            parameters, expression = self.model.cpfs[name]
            bound = dict(zip((p for p, _ in parameters), objects, strict=True))
            node = self.expression(expression, bound)
            kind = self._kind(self.model.prev_state.get(name, name))
            node = self.graph.truth(node) if kind == "bool" else self.graph.number(node)
            if kind == "real" and node.is_constant:
                node = self.graph.constant(node.value, "real")
            self.inlined[key] = node
            self.open.pop()
        return self.inlined[key]

    # --- operations -----------------------------------------------------------------------

    def _all(self, args: Sequence[Any], bound: Bindings) -> list[Node]:
        return [self.expression(arg, bound) for arg in args]

    def _arithmetic(self, expression: Any, op: str, args: Any, bound: Bindings) -> Node:
        nodes = self._all(args, bound)
        match op:
            case "+":
                return self.graph.add(nodes)
            case "*":
                return self.graph.multiply(nodes)
            case "-" if len(nodes) == 1:
                return self.graph.minus(nodes[0])
            case "-":
                return self.graph.add([nodes[0], *map(self.graph.minus, nodes[1:])])
        return self.graph.divide(nodes[0], nodes[1])

    def _boolean(self, expression: Any, op: str, args: Any, bound: Bindings) -> Node:
        graph = self.graph
        if op in ("^", "&"):
            return graph.all(self.expression(arg, bound) for arg in args)
        if op == "|":
            return graph.any(self.expression(arg, bound) for arg in args)
        nodes = [graph.truth(node) for node in self._all(args, bound)]
        if op == "~" and len(nodes) == 1:
            return graph.negate(nodes[0])
        if op == "=>":
            return graph.any((graph.negate(nodes[0]), nodes[1]))
        return graph.compare("==" if op == "<=>" else "!=", nodes[0], nodes[1])

    def _relational(self, expression: Any, op: str, args: Any, bound: Bindings) -> Node:
        left, right = self._all(args, bound)
        return self.graph.compare("!=" if op == "~=" else op, left, right)

    def _aggregation(self, expression: Any, op: str, args: Any, bound: Bindings) -> Node:
        *parameters, inner = args
        graph = self.graph
        nodes = (self.expression(inner, b) for b in self._bindings(parameters, bound))
        at_once = {
            "forall": graph.all,
            "exists": graph.any,
            "sum": graph.add,
            "prod": graph.multiply,
        }
        if op in at_once:
            return at_once[op](nodes)
        values = [graph.number(node) for node in nodes]
        match op:
            case "avg":
                return graph.divide(graph.add(values), graph.constant(len(values)))
            case "minimum" | "maximum":
                return reduce(lambda best, v: graph.function(op[:3], (best, v)), values)
            case "argmin" | "argmax":
                return self._position(op, values)
        raise _unsupported(op, expression)

    def _position(self, op: str, values: list[Node]) -> Node:
        best, position = values[0], self.graph.constant(0)
        for j, value in enumerate(values[1:], start=1):
            better = self.graph.compare("<" if op == "argmin" else ">", value, best)
            position = self.graph.choose(better, self.graph.constant(j), position)
            best = self.graph.choose(better, value, best)
        return position

    def _function(self, expression: Any, op: str, args: Any, bound: Bindings) -> Node:
        if op not in FUNCTIONS or len(args) != FUNCTIONS[op].arity:
            raise _unsupported(f"the function {op} of {len(args)} arguments", expression)
        return self.graph.function(op, self._all(args, bound))

    def _control(self, expression: Any, op: str, args: Any, bound: Bindings) -> Node:
        graph = self.graph
        if op == "if":
            condition = graph.truth(self.expression(args[0], bound))
            if condition.is_constant:
                return self.expression(args[1] if condition.value else args[2], bound)
            return graph.choose(condition, *self._all(args[1:], bound))
        switch, *cases = args
        chosen = self.expression(switch, bound)
        listed = {
            self.model.strip_literal(case[0]): case[1] for kind, case in cases if kind == "case"
        }
        rest = [case for kind, case in cases if kind != "case"]
        nodes = [
            (graph.constant(int(self.model.object_to_index[literal])), self.expression(e, bound))
            for literal, e in listed.items()
        ]
        node = self.expression(rest[0], bound) if rest else nodes.pop()[1]
        for value, result in nodes:
            node = graph.choose(graph.compare("==", chosen, value), result, node)
        return node

    def _random(self, expression: Any, op: str, args: Any, bound: Bindings) -> Node:
        graph = self.graph
        if op in ("KronDelta", "DiracDelta"):
            return self.expression(args[0], bound)
        if op in ("Discrete(p)", "UnnormDiscrete(p)"):
            *parameters, inner = args
            (weight,) = inner
            weights = [self.expression(weight, b) for b in self._bindings(parameters, bound)]
            return graph.random(op[: -len("(p)")], weights, "int")
        if op in ("Discrete", "UnnormDiscrete"):
            return graph.random(op, self._weights(args, bound), "int")
        if op not in DISTRIBUTIONS or len(args) != len(DISTRIBUTIONS[op].ranges):
            raise _unsupported(f"the distribution {op} of {len(args)} arguments", expression)
        nodes = [graph.number(node) for node in self._all(args, bound)]
        if op == "Bernoulli" and nodes[0].is_constant and nodes[0].value in (0, 1):
            return graph.constant(bool(nodes[0].value))
        return graph.random(op, nodes, DISTRIBUTIONS[op].kind)

    def _weights(self, args: Any, bound: Bindings) -> list[Node]:
        """The chances of a ``Discrete``, in the order of its type; what is not listed has none."""
        (_, type_name), *cases = args
        chances = {
            self.model.strip_literal(literal): self.graph.number(self.expression(chance, bound))
            for _, (literal, chance) in cases
        }
        none = self.graph.constant(0.0)
        return [chances.get(name, none) for name in self._objects(type_name)]


def ground_name(fluent: str, objects: Sequence[str]) -> str:
    """The name of a fluent of some objects, as pyRDDLGym writes it: ``obstacle-at___x1__y2``."""
    return f"{fluent}___{'__'.join(objects)}" if objects else fluent


def _unsupported(what: str, expression: Any) -> RDDLRefusedError:
    from pyRDDLGym.core.debug.decompiler import RDDLDecompiler

    text = " ".join(RDDLDecompiler().decompile_expr(expression).split())
    return RDDLRefusedError("unsupported-operation", f"{what} is not supported, in {text[:200]!r}")
