"""A description on its way to a model: what every step of the import reads and replaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from exo_envs.sources.rddl.expressions import Graph, GraphNode, leaves
from exo_envs.sources.rddl.loading import RDDLRefusedError
from exo_envs.sources.rddl.operations import Array, Kind


@dataclass(frozen=True)
class ActionTable:
    """All actions.

    Attributes:
        names: of the actions, for people.
        columns: the value of each action fluent, shape (actions,) each.
        leaves: the node of each action fluent.
    """

    names: tuple[str, ...]
    columns: dict[str, Array]
    leaves: dict[str, GraphNode]

    def values(self, actions: Array) -> dict[GraphNode, Array]:
        return {leaf: self.columns[name][actions] for name, leaf in self.leaves.items()}


@dataclass
class Description:
    """State variables, how they move, and what is paid, as expressions.

    Grounding makes it; the steps of the import fill in the rest and replace variables.
    """

    name: str  # of the domain and the instance
    horizon: int
    discount: float
    graph: Graph = field(default_factory=Graph)  # where all nodes are made
    # State variables: types, first values, expressions of next values, smallest and largest values.
    kinds: dict[str, Kind] = field(default_factory=dict)
    initial: dict[str, Any] = field(default_factory=dict)
    following: dict[str, GraphNode] = field(default_factory=dict)
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)
    # Action fluents: types, and values of those that are not chosen.
    action_kinds: dict[str, Kind] = field(default_factory=dict)
    default: dict[str, Any] = field(default_factory=dict)
    # Both: the name and the objects of a grounded fluent, and names of values, where there are any.
    lifted: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reward: GraphNode = field(init=False)
    terminal: GraphNode = field(init=False)  # when an episode is over
    invariants: list[GraphNode] = field(default_factory=list)  # of states, the author says
    preconditions: list[GraphNode] = field(default_factory=list)  # of actions that are taken
    fluents: dict[str, GraphNode] = field(default_factory=dict)  # by the variables: state fluents
    # The results of the import.
    actions: ActionTable = field(init=False)
    exogenous: tuple[str, ...] = ()
    terms: dict[tuple[str, ...], GraphNode] = field(default_factory=dict)  # of the reward, by scope
    constants: tuple[str, ...] = ()  # fluents that never change
    notes: list[str] = field(default_factory=list)  # for the user

    @property
    def endogenous(self) -> tuple[str, ...]:
        return tuple(name for name in self.kinds if name not in self.exogenous)

    def leaf(self, name: str) -> GraphNode:
        """The value of a variable now."""
        return self.graph.leaf("state", name, self.kinds[name])

    def next_leaf(self, name: str) -> GraphNode:
        """The value of a variable after the step."""
        return self.graph.leaf("next", name, self.kinds[name])

    def replace(self, values: Mapping[GraphNode, GraphNode]) -> None:
        """Replace leaves in all expressions."""
        following, fluents = list(self.following), list(self.fluents)
        old = [*self.following.values(), *self.fluents.values(), self.reward, self.terminal]
        new = self.graph.substitute(old, values)
        self.following = dict(zip(following, new, strict=False))
        self.fluents = dict(zip(fluents, new[len(following) :], strict=False))
        self.reward, self.terminal = new[-2:]

    def forget(self, names: Iterable[str]) -> None:
        for name in names:
            for table in (self.kinds, self.bounds, self.initial, self.following):
                table.pop(name, None)

    def settled(
        self, roots: list[GraphNode], names: Iterable[str] | None = None
    ) -> list[GraphNode]:
        """The same expressions with the next values of some variables (of all) written out."""
        open_ones = set(self.kinds if names is None else names)
        written: dict[GraphNode, GraphNode] = {}

        def write_out(nodes: list[GraphNode], active: tuple[GraphNode, ...]) -> None:
            for leaf in leaves(nodes, "next"):
                if leaf.value not in open_ones or leaf in written:
                    continue
                if leaf in active:
                    raise RDDLRefusedError(
                        "cycle", f"{leaf.value + chr(39)!r} is defined by itself"
                    )
                following = [self.following[leaf.value]]
                write_out(following, (*active, leaf))
                (written[leaf],) = self.graph.substitute(following, written)

        write_out(roots, ())
        return self.graph.substitute(roots, written)

    def settled_following(self, names: Iterable[str]) -> list[GraphNode]:
        return self.settled([self.following[name] for name in names])

    def looks_at(self, root: GraphNode) -> set[str]:
        """The variables that an expression looks at, now."""
        return {node.value for node in leaves([root], "state")}

    def draws(self, roots: Iterable[GraphNode]) -> dict[Any, GraphNode]:
        """The draws of some expressions, by their tags."""
        return {node.value: node for node in leaves(roots, "random")}

    def parents(self) -> dict[str, tuple[str, ...]]:
        roots = self.settled_following(self.exogenous)
        return {
            name: tuple(other for other in self.exogenous if other in self.looks_at(root))
            for name, root in zip(self.exogenous, roots, strict=True)
        }


def find_exogenous(rddl: Description) -> tuple[str, ...]:
    """The variables that no action reaches, directly or through others, in their order."""
    looks_at = {
        name: {node.value for node in leaves([root], "state", "next")}
        for name, root in rddl.following.items()
    }
    endogenous = {name for name, root in rddl.following.items() if leaves([root], "action")}
    while True:
        more = {name for name, seen in looks_at.items() if seen & endogenous} - endogenous
        if not more:
            return tuple(name for name in rddl.kinds if name not in endogenous)
        endogenous |= more


def check_shared_draws(rddl: Description) -> None:
    """Refuse a draw that both n' and x' look at: given the state, they would not be independent.

    Draws that several exogenous variables share are noted; x' is drawn as a whole.
    """
    inside = {name: set(rddl.draws([rddl.following[name]])) for name in rddl.kinds}
    for name in rddl.endogenous:
        for other in rddl.exogenous:
            shared = inside[name] & inside[other]
            if shared:
                distribution = next(iter(shared))[0]
                raise RDDLRefusedError(
                    "shared-draw",
                    f"one {distribution} draw moves both the endogenous {name!r} and the exogenous "
                    f"{other!r}; P(s'|s,a) would not be P(n'|n,a,x) P(x'|x)",
                )
    together = sorted(
        name
        for name in rddl.exogenous
        if any(inside[name] & inside[other] for other in rddl.exogenous if other != name)
        or leaves([rddl.following[name]], "next")
    )
    if together:
        rddl.notes.append(
            "given x, these are not drawn independently of each other: " + ", ".join(together)
        )
