"""A description on its way to a model: what every step of the import reads and replaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from exo_envs.sources.rddl.errors import RDDLRefusedError
from exo_envs.sources.rddl.intervals import Interval
from exo_envs.sources.rddl.nodes import Graph, Node, leaves, sorted_nodes
from exo_envs.sources.rddl.operations import Kind


@dataclass
class Process:
    """State variables, how they move, and what is paid, as expressions.

    Attributes:
        graph: where all nodes are made.
        kinds: the state variables and their types.
        bounds: the smallest and the largest value of each.
        initial: the initial value of each.
        following: the expression of each one's next value.
        reward: what a step pays.
        terminal: when an episode is over.
        fluents: each grounded state fluent of the description, as an expression of the variables.
        notes: what a user should know about the import.
    """

    graph: Graph
    kinds: dict[str, Kind]
    bounds: dict[str, tuple[float, float]]
    initial: dict[str, Any]
    following: dict[str, Node]
    reward: Node
    terminal: Node
    fluents: dict[str, Node]
    notes: list[str] = field(default_factory=list)

    def leaf(self, name: str) -> Node:
        """The value of a variable now."""
        return self.graph.leaf("state", name, self.kinds[name])

    def next_leaf(self, name: str) -> Node:
        """The value of a variable after the step."""
        return self.graph.leaf("next", name, self.kinds[name])

    def box(self) -> dict[Node, Interval]:
        """The interval of every variable."""
        return {self.leaf(name): Interval(*self.bounds[name]) for name in self.kinds}

    def replace(self, values: Mapping[Node, Node]) -> None:
        """Replace leaves in all expressions."""
        following = list(self.following)
        fluents = list(self.fluents)
        new = self.graph.substitute(
            [
                *(self.following[name] for name in following),
                *(self.fluents[name] for name in fluents),
                self.reward,
                self.terminal,
            ],
            values,
        )
        self.following = dict(zip(following, new, strict=False))
        self.fluents = dict(zip(fluents, new[len(following) :], strict=False))
        self.reward, self.terminal = new[-2:]

    def forget(self, names: Iterable[str]) -> None:
        """Drop variables that no expression looks at any more."""
        for name in names:
            for table in (self.kinds, self.bounds, self.initial, self.following):
                table.pop(name, None)

    def settled(self, roots: list[Node], names: Iterable[str] | None = None) -> list[Node]:
        """The same expressions with next values written out.

        Args:
            roots: expressions.
            names: the variables whose next values are; by default all.

        Raises:
            RDDLRefusedError: a next value is defined by itself.
        """
        open_ones = set(self.kinds if names is None else names)
        written: dict[Node, Node] = {}
        for name in self._in_order(roots, open_ones):
            (written[self.next_leaf(name)],) = self.graph.substitute(
                [self.following[name]], written
            )
        return self.graph.substitute(roots, written)

    def _in_order(self, roots: list[Node], names: set[str]) -> list[str]:
        """The variables whose next values some expressions look at, the innermost first."""
        order: list[str] = []
        active: list[str] = []

        def visit(nodes: list[Node]) -> None:
            for leaf in leaves(nodes, "next"):
                name = leaf.value
                if name not in names or name in order:
                    continue
                if name in active:
                    raise RDDLRefusedError("cycle", f"{name + chr(39)!r} is defined by itself")
                active.append(name)
                visit([self.following[name]])
                active.pop()
                order.append(name)

        visit(roots)
        return order

    def looks_at(self, root: Node) -> set[str]:
        """The variables that an expression looks at, now."""
        return {node.value for node in leaves([root], "state")}

    def draws(self, roots: Iterable[Node]) -> dict[Any, Node]:
        """The draws of some expressions, by their tags."""
        return {node.value: node for node in sorted_nodes(roots) if node.op == "random"}
