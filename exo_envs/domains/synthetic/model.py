"""The models of the planted problems: what all have in common, and those of few values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import as_list, check_choice
from exo_envs.core.batches import Lanes, as_lanes, as_pairs, as_size, as_values, exogenous_lanes
from exo_envs.core.kernels import CompiledExogenous, CompiledStep, LazyModule
from exo_envs.core.mdp import ExoMDP, FloatArray, IntArray, State, Successors, Variable
from exo_envs.domains.synthetic.generator import BitGenerator, Node, PlantedNode, Site
from exo_envs.domains.synthetic.parameters import (
    BET,
    NO_BET,
    NO_SWITCH,
    TURNED,
    Bets,
    Net,
    PlantedParameters,
    SyntheticParameters,
)

kernels = LazyModule("exo_envs.domains.synthetic.kernels")


class PlantedMDP(ExoMDP):
    """Bets at a ring of sites, on variables of a net that is known.

    Attributes:
        nodes: the exogenous variables with their dynamics, in the order of the model.
        sites: where bets are placed, in the order they are visited.
        parents: name -> the names of the variables that its next value depends on.
        roles: name -> what the variable is there for.
        required_mask: the right mask: the smallest that has every variable that pays or moves and
            is closed under parents, in the order of the model. With it Theorem 1 holds.
        depth: the number of generations above the youngest variable.
        reward_columns: the column of ``reward_terms`` in which each site pays, shape (sites,).
    """

    num_actions = 3
    nodes: Sequence[PlantedNode]

    def __init__(
        self, sites: tuple[Site, ...], variables: tuple[Variable, ...], p: PlantedParameters
    ) -> None:
        """``nodes`` are set before."""
        self.sites = sites
        self.parents: dict[str, tuple[str, ...]] = {node.name: node.parents for node in self.nodes}
        self.roles: dict[str, str] = {node.name: node.role for node in self.nodes}
        self.exogenous_variables = variables
        self.endogenous_variables = (
            Variable("site", len(self.sites)),
            Variable("steps_left", 1 + max(site.delay for site in self.sites)),
            Variable("bet", self.num_actions),
        )
        self.discount = p.discount
        self.horizon = p.horizon
        self.required_mask: tuple[str, ...] = self.closure(
            name for site in self.sites for name in site.variables
        )
        self.depth, elders = 0, set(self.parents)
        while elders := {p for name in elders for p in self.parents[name] if p != name}:
            self.depth += 1
        # One term for each variable, and one more for each pair that pays together.
        pairs = [site.scope for site in self.sites if site.partner is not None]
        self.reward_scopes = (*((name,) for name in self.exogenous_names), *pairs)
        columns = {scope: i for i, scope in enumerate(self.reward_scopes)}
        self.reward_columns: IntArray = np.array([columns[site.scope] for site in self.sites])
        position = self._exogenous_positions
        self._bets = Bets(
            slip=p.slip,
            fee=p.fee,
            delays=np.array([site.delay for site in self.sites]),
            stakes=np.array([site.stake for site in self.sites]),
            switches=np.array(
                [NO_SWITCH if s.switch is None else position[s.switch] for s in self.sites]
            ),
            paying=np.array([[position[s.pays], position[s.scope[-1]]] for s in self.sites]),
            outcomes=np.array([site.outcomes for site in self.sites]),
            columns=self.reward_columns,
        )

    # --- the ExoMDP -----------------------------------------------------------------------

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """P(n'|n,a,x): a bet is placed, carried, given up, turned round or settled."""
        straight, turned, turn = self.endogenous_outcomes(state, action)
        is_turned = rng.random((turn.size, 1)).reshape(*turn.shape, 1) < turn[..., None]
        return np.where(is_turned, turned, straight)

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors:
        straight, turned, turn = self.endogenous_outcomes(state, action)
        return Successors(
            np.stack([straight, turned], axis=-2), np.stack([1.0 - turn, turn], axis=-1)
        )

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        shape, n, actions = as_pairs(self, endogenous, action)
        fees: FloatArray = kernels.endogenous_reward(n, actions, tuple(self._bets))
        return fees.reshape(shape)

    @abstractmethod
    def _switched(self, exogenous: NDArray[Any]) -> IntArray:
        """Lanes of which the columns ``switches`` are 1 where a switch turns bets round."""

    def _lanes(self, state: State, action: IntArray) -> tuple[tuple[int, ...], Lanes]:
        return as_lanes(self, state, action, check_exogenous=False)

    # --- the truth ------------------------------------------------------------------------

    @cached_property
    def initial_endogenous(self) -> IntArray:
        """The n that an episode starts with, one per site and all as likely, shape (sites, 3)."""
        sites = np.arange(len(self.sites))
        return np.stack([sites, self._bets.delays, np.full_like(sites, NO_BET)], axis=-1)

    def endogenous_outcomes(
        self, state: State, action: IntArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """P(n'|n,a,x): the two n' that are possible, and the probability of the second.

        Returns:
            n' if a bet in hand goes straight, (..., 3); n' if it is turned round, (..., 3); and the
            probability of the second, (...).
        """
        shape, (n, x, actions) = self._lanes(state, action)
        bets = tuple(self._bets)
        straight, turn = kernels.endogenous_outcomes(n, self._switched(x), actions, bets)
        straight, turn = straight.reshape(*shape, straight.shape[-1]), turn.reshape(shape)
        turned = straight.copy()
        turned[..., BET] = np.where(turned[..., BET] == NO_BET, NO_BET, TURNED - turned[..., BET])
        return straight, turned, turn

    def closure(self, names: Iterable[str]) -> tuple[str, ...]:
        """The named variables with all their ancestors, in the order of the model."""
        found: set[str] = set()
        waiting = as_list("names of variables", names)
        while waiting:
            name = waiting.pop()
            check_choice("exogenous variable", name, self._exogenous_positions)
            if name not in found:
                found.add(name)
                waiting += self.parents[name]
        return tuple(sorted(found, key=self._exogenous_positions.__getitem__))


class SyntheticMDP(PlantedMDP):
    """A problem whose right mask is known.

    See :class:`exo_envs.domains.synthetic.SyntheticEnv` for the problem and
    :func:`exo_envs.domains.synthetic.exact_return` for the exact value of any mask.

    Its ``roles`` are "pays", "parent", "grandparent", "xor", "moves", "copy", "noise" and
    "correlated".
    """

    def __init__(self, parameters: SyntheticParameters | None = None) -> None:
        self.parameters = p = parameters or SyntheticParameters()
        self.nodes: tuple[Node, ...]
        self.nodes, sites = BitGenerator.generate(p)
        variables = tuple(Variable(node.name, node.size) for node in self.nodes)
        super().__init__(sites, variables, p)
        self._net = _flat_net(self.nodes)

    # --- the ExoMDP -----------------------------------------------------------------------

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """A site as likely as any other, no bet, and x from its stationary distribution."""
        size = as_size(self, size)
        endogenous = self.initial_endogenous[rng.integers(len(self.sites), size=size)]
        # Drawn from its own distribution, a root is stationary at once and a variable of depth d
        # after d steps.
        blank = np.zeros((size, len(self.nodes)), dtype=np.int64)
        exogenous: IntArray = np.empty_like(blank)
        anew = self._net._replace(noise=np.ones(len(self.nodes)))
        _exogenous_step(anew).write(blank, rng, exogenous)
        for _ in range(self.depth):
            exogenous = self.sample_exogenous(exogenous, rng)
        return State(endogenous, exogenous)

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        shape, x = exogenous_lanes(self, exogenous, check=False)  # the kernel does that
        following = np.empty_like(x)
        if not self.compiled_exogenous().write(x, rng, following):
            as_values("exogenous", x, self.exogenous_variables)
        return following.reshape(shape)

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """What pays at the site settles the bet: one variable, or two together."""
        shape, (n, x, _) = self._lanes(state, action)
        terms = np.zeros((len(x), len(self.reward_scopes)))
        kernels.reward_terms(n, x, tuple(self._bets), terms)
        return terms.reshape(*shape, len(self.reward_scopes))

    def compiled_exogenous(self) -> CompiledExogenous:
        return _exogenous_step(self._net)

    def compiled_step(self) -> CompiledStep:
        problem = tuple(self._bets), tuple(self._net)
        return CompiledStep(kernels.step, (problem,), (1, len(self.nodes)))

    def _switched(self, exogenous: NDArray[Any]) -> IntArray:
        return exogenous

    # --- the truth ------------------------------------------------------------------------

    def table(self, name: str) -> FloatArray:
        """P(x'|parents) of a variable, shape (*sizes of its parents, size); see ``parents``."""
        return self.node(name).table

    def exogenous_table(self, name: str) -> tuple[tuple[str, ...], FloatArray]:
        return self.node(name).parents, self.table(name)

    def node(self, name: str) -> Node:
        check_choice("exogenous variable", name, self._exogenous_positions)
        return self.nodes[self._exogenous_positions[name]]


def _exogenous_step(net: Net) -> CompiledExogenous:
    return CompiledExogenous(kernels.exogenous_step, (tuple(net),), len(net.noise))


def _flat_net(nodes: tuple[Node, ...]) -> Net:
    position = {node.name: i for i, node in enumerate(nodes)}
    special = [i for i, node in enumerate(nodes) if not _is_plain(node)]
    tables = [nodes[i] for i in special]
    sizes = np.array([node.size for node in nodes], dtype=np.int64)
    return Net(
        noise=np.array([node.noise for node in nodes]),
        sizes=sizes.astype(np.float64),
        tops=(sizes - 1).astype(np.int32),
        special=np.array(special, dtype=np.int64),
        parents=_padded([[position[name] for name in node.parents] for node in tables], np.int64),
        strides=_padded(
            [np.cumprod([1, *node.function.shape[:0:-1]])[::-1] for node in tables], np.int64
        ),
        functions=_padded([node.function.ravel() for node in tables], np.int64),
        cdfs=_padded([node.base.cumsum() for node in tables], np.float64),
    )


def _is_plain(node: Node) -> bool:
    """Whether a variable keeps its value or is drawn from a uniform distribution."""
    keeps = node.noise >= 1 or (
        node.parents == (node.name,) and np.array_equal(node.function, np.arange(node.size))
    )
    return keeps and bool((node.base == node.base[0]).all())


def _padded(rows: list[Any], dtype: Any) -> NDArray[Any]:
    """Rows of different lengths as one array, with zeros at their ends."""
    array = np.zeros((len(rows), max(map(len, rows), default=0)), dtype=dtype)
    for row, values in zip(array, rows, strict=True):
        row[: len(values)] = values
    return array
