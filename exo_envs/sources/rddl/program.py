"""Expressions compiled for batches: one NumPy call for each node, over all lanes at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from exo_envs.sources.rddl.nodes import COMPARISONS, LEAVES, Node, sorted_nodes
from exo_envs.sources.rddl.operations import DISTRIBUTIONS, FUNCTIONS, Array

DTYPES: dict[str, Any] = {"bool": np.bool_, "int": np.int64, "real": np.float64}


class _Instruction(NamedTuple):
    compute: Callable[..., Any]
    arguments: tuple[int, ...]
    result: int
    finished: tuple[int, ...]  # places that nothing later looks at


class Program:
    """Computes the values of some expressions.

    Attributes:
        inputs: the leaves whose values must be given.
        is_random: whether something is drawn.
    """

    def __init__(self, roots: Sequence[Node]) -> None:
        nodes = sorted_nodes(roots)
        place = {node: i for i, node in enumerate(nodes)}
        self._roots = [place[root] for root in roots]
        self._dtypes = [DTYPES[root.kind] for root in roots]
        self.inputs = [node for node in nodes if node.op in LEAVES]
        self._input_places = [place[node] for node in self.inputs]
        self._constants: list[Any] = [
            DTYPES[node.kind](node.value) if node.is_constant else None for node in nodes
        ]
        self.is_random = any(node.op == "random" for node in nodes)
        self._instructions = self._compile(nodes, place)

    def _compile(self, nodes: list[Node], place: dict[Node, int]) -> list[_Instruction]:
        work = [node for node in nodes if node.op not in (*LEAVES, "constant")]
        last = {arg: node for node in work for arg in node.args}
        kept = set(self._roots)
        instructions = []
        for node in work:
            finished = tuple(
                place[arg]
                for arg in dict.fromkeys(node.args)
                if last[arg] is node and place[arg] not in kept and not arg.is_constant
            )
            arguments = tuple(place[arg] for arg in node.args)
            instructions.append(_Instruction(_operation(node), arguments, place[node], finished))
        return instructions

    def __call__(
        self, values: Mapping[Node, Any], size: int, rng: np.random.Generator | None = None
    ) -> list[Array]:
        """The value of each expression, shape (size,).

        Args:
            values: of the leaves, numbers or arrays (size,).
            size: the number of lanes.
            rng: what draws; not needed if nothing is random.
        """
        found: list[Any] = self._constants.copy()
        for node, place in zip(self.inputs, self._input_places, strict=True):
            found[place] = values[node]
        with np.errstate(all="ignore"):  # in branches that a lane does not take
            for compute, arguments, result, finished in self._instructions:
                found[result] = compute(rng, size, *[found[a] for a in arguments])
                for place in finished:
                    found[place] = None
        return [
            np.broadcast_to(np.asarray(found[place], dtype=dtype), (size,))
            for place, dtype in zip(self._roots, self._dtypes, strict=True)
        ]


def _operation(node: Node) -> Callable[..., Any]:  # noqa: PLR0911
    """What computes a node: a function of the generator, the number of lanes and the arguments."""
    match node.op:
        case "random":
            return DISTRIBUTIONS[node.value[0]].draw
        case "and":
            return partial(_fold, np.logical_and)
        case "or":
            return partial(_fold, np.logical_or)
        case "add" | "mul":
            combine: Any = np.add if node.op == "add" else np.multiply
            return partial(_fold if len({a.kind for a in node.args}) == 1 else _fold_mixed, combine)
        case "not":
            return lambda rng, size, a: np.logical_not(a)
        case "int":
            return lambda rng, size, a: np.asarray(a).astype(np.int64)
        case "quotient":
            return lambda rng, size, a, b: np.divide(a, b)
        case "if":
            return lambda rng, size, condition, a, b: np.where(condition, a, b)
        case "which":
            return _which
    function = COMPARISONS[node.op] if node.op in COMPARISONS else FUNCTIONS[node.op].compute
    return lambda rng, size, *args: function(*args)


def _fold(function: Any, rng: Any, size: int, first: Any, second: Any, *rest: Any) -> Any:
    result = function(first, second)
    if rest and np.ndim(result) == 0:
        return _fold_mixed(function, rng, size, result, *rest)
    for value in rest:
        function(result, value, out=result)
    return result


def _fold_mixed(function: Any, _rng: Any, _size: int, *values: Any) -> Any:
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return result


def _which(_rng: Any, size: int, *flags: Any) -> Array:
    result = np.zeros(size, dtype=np.int64)
    for j, flag in enumerate(flags):
        if j:
            np.copyto(result, j, where=flag)
    return result
