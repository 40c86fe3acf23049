"""The reward as a sum of terms, each with the exogenous variables that it looks at."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from exo_envs.sources.rddl.description import Description
from exo_envs.sources.rddl.expressions import Graph, GraphNode, draws, leaves, outcomes, show
from exo_envs.sources.rddl.loading import RDDLRefusedError
from exo_envs.sources.rddl.operations import DISTRIBUTIONS

#: Outcomes of draws over which a mean is written out, at most.
MOST_OUTCOMES = 64


def split_reward(rddl: Description) -> None:
    """Find the terms of the reward by their scopes; that of the empty scope looks at no x.

    Draws are averaged: what a step pays is its mean given the state and the action.
    """
    graph, exogenous = rddl.graph, frozenset(rddl.exogenous)
    (reward,) = rddl.settled([rddl.reward])
    parts: dict[tuple[str, ...], list[GraphNode]] = {}
    for term in _terms(graph, expectation(graph, reward), exogenous):
        seen = _scope(term, exogenous)
        scope = tuple(name for name in rddl.exogenous if name in seen)
        parts.setdefault(scope, []).append(term)
    for scope, nodes in parts.items():
        total = graph.add(nodes)
        if not total.is_constant or total.value:
            rddl.terms[scope] = total
    if draws(reward):
        rddl.notes.append("the reward looks at what is drawn in the step; its mean is paid")


def _scope(term: GraphNode, exogenous: frozenset[str]) -> set[str]:
    return {leaf.value for leaf in leaves([term], "state")} & exogenous


def _terms(graph: Graph, node: GraphNode, exogenous: frozenset[str]) -> Iterator[GraphNode]:
    """The summands; a factor or a condition without x is multiplied out where that splits."""
    if node.op == "add":
        for arg in node.args:
            yield from _terms(graph, arg, exogenous)
        return
    if node.op == "mul":
        seeing = [arg for arg in node.args if _scope(arg, exogenous)]
        if len(seeing) == 1:
            factors = [arg for arg in node.args if arg is not seeing[0]]
            inner = list(_terms(graph, seeing[0], exogenous))
            if len(inner) > 1:
                yield from (graph.multiply((*factors, term)) for term in inner)
                return
    if node.op == "int" and node.args[0].op == "if":
        node = graph.choose(node.args[0].args[0], *map(graph.number, node.args[0].args[1:]))
    if node.op == "if" and not _scope(node.args[0], exogenous):
        condition, then, otherwise = node.args
        zero = graph.constant(0)
        inner = [
            *(graph.choose(condition, t, zero) for t in _terms(graph, then, exogenous)),
            *(graph.choose(condition, zero, t) for t in _terms(graph, otherwise, exogenous)),
        ]
        if len({frozenset(_scope(term, exogenous)) for term in inner} - {frozenset()}) > 1:
            yield from inner
            return
    yield node


def expectation(graph: Graph, node: GraphNode) -> GraphNode:  # noqa: C901, PLR0911
    """The mean of an expression over its draws, as an expression without them.

    A draw with many outcomes inside something that is not linear is refused.
    """
    if not draws(node):
        return node
    if node.op == "add":
        return graph.add(expectation(graph, arg) for arg in node.args)
    if node.op == "mul" and _are_apart(node.args):
        return graph.multiply(expectation(graph, arg) for arg in node.args)
    if node.op == "if" and not draws(node.args[0]):
        return graph.choose(node.args[0], *(expectation(graph, arg) for arg in node.args[1:]))
    if node.op == "quotient" and not draws(node.args[1]):
        return graph.divide(expectation(graph, node.args[0]), node.args[1])
    if node.op == "int":
        (inner,) = node.args
        if inner.op == "not":
            mean = expectation(graph, graph.number(inner.args[0]))
            return graph.add((graph.constant(1.0), graph.minus(mean)))
        if inner.op == "and" and _are_apart(inner.args):
            return graph.multiply(expectation(graph, graph.number(arg)) for arg in inner.args)
        if inner.op == "random":
            node = inner
    if node.op == "random" and not any(draws(arg) for arg in node.args):
        mean_of = DISTRIBUTIONS[node.value[0]].mean
        if mean_of is not None:
            return mean_of(graph, *node.args)
    return _over_outcomes(graph, node)


def _are_apart(nodes: tuple[GraphNode, ...]) -> bool:
    """Whether no two of them look at one draw."""
    seen = [frozenset(draws(node)) for node in nodes]
    return sum(map(len, seen)) == len(frozenset().union(*seen))


def _over_outcomes(graph: Graph, node: GraphNode) -> GraphNode:
    """The sum over all outcomes of its draws, each with its chance."""
    random = draws(node)
    counts = [outcomes(draw) for draw in random]
    if None in counts or math.prod(count or 1 for count in counts) > MOST_OUTCOMES:
        name = next(
            (d.value[0] for d, c in zip(random, counts, strict=True) if c is None), "random"
        )
        raise RDDLRefusedError(
            "reward",
            f"the reward looks at a {name} draw of the same step in a way whose mean is not "
            f"simple: {show(node)}",
        )
    parts = []
    for values in itertools.product(*(range(count or 1) for count in counts)):
        chosen = list(zip(random, values, strict=True))
        fixed = {d: graph.constant(bool(v) if d.kind == "bool" else v) for d, v in chosen}
        chances = [_chance(graph, draw, value) for draw, value in chosen]
        parts.append(graph.multiply(graph.substitute([*chances, graph.number(node)], fixed)))
    return graph.add(parts)


def _chance(graph: Graph, draw: GraphNode, value: int) -> GraphNode:
    if draw.value[0] == "Bernoulli":
        if value:
            return draw.args[0]
        return graph.add((graph.constant(1.0), graph.minus(draw.args[0])))
    return graph.divide(draw.args[value], graph.add(draw.args))
