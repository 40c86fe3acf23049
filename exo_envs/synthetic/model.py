"""The model of the planted problems."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.batches import Lanes, as_lanes, lanes
from exo_envs.errors import unknown_name
from exo_envs.mdp import ExoMDP, FloatArray, IntArray, State, Successors, Variable
from exo_envs.synthetic import kernels
from exo_envs.synthetic.generator import Node, Site, generate
from exo_envs.synthetic.kernels import BET, NO_BET, NO_SWITCH, SHORT, TURNED
from exo_envs.synthetic.parameters import SyntheticParameters


class SyntheticMDP(ExoMDP):
    """A problem whose right mask is known.

    See :class:`exo_envs.synthetic.SyntheticEnv` for the problem and
    :func:`exo_envs.synthetic.exact_return` for the exact value of any mask.

    Attributes:
        nodes: the exogenous variables with their dynamics, in the order of the model.
        sites: where bets are placed, in the order they are visited.
        parents: name -> the names of the variables that its next value depends on.
        roles: name -> "pays", "parent", "grandparent", "xor", "moves", "copy", "noise" or
            "correlated".
        required_mask: the right mask: the smallest that has every variable that pays or moves and
            is closed under parents, in the order of the model. With it Theorem 1 holds.
        depth: the number of generations above the youngest variable.
    """

    num_actions = 3

    def __init__(self, parameters: SyntheticParameters | None = None) -> None:
        """Draw the instance that the parameters name."""
        self.parameters = p = parameters or SyntheticParameters()
        problem = generate(p)
        self.nodes: tuple[Node, ...] = problem.nodes
        self.sites: tuple[Site, ...] = problem.sites
        self.parents: dict[str, tuple[str, ...]] = {node.name: node.parents for node in self.nodes}
        self.roles: dict[str, str] = {node.name: node.role for node in self.nodes}
        self.exogenous_variables = tuple(Variable(node.name, node.size) for node in self.nodes)
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

        self._noise = np.array([node.noise for node in self.nodes])
        self._net = _flat_net(self.nodes)
        self._slip, self._fee = float(p.slip), float(p.fee)
        self._delays = np.array([site.delay for site in self.sites])
        self._stakes = np.array([site.stake for site in self.sites])
        self._paying = self.exogenous_indices([site.pays for site in self.sites])
        self._switches = np.array(
            [
                NO_SWITCH if site.switch is None else self._exogenous_positions[site.switch]
                for site in self.sites
            ]
        )
        self.depth = _depth(self.nodes)

    # --- the ExoMDP -----------------------------------------------------------------------

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """A site as likely as any other, no bet, and x from its stationary distribution."""
        endogenous = self.initial_endogenous[rng.integers(len(self.sites), size=size)]
        # Drawn from its own distribution, a root is stationary at once and a variable of depth d
        # after d steps.
        blank = np.zeros((size, len(self.nodes)), dtype=np.int64)
        always = np.ones(len(self.nodes))
        exogenous: IntArray = kernels.exogenous_step(
            blank, rng.random(blank.shape), always, *self._net
        )
        for _ in range(self.depth):
            exogenous = self.sample_exogenous(exogenous, rng)
        return State(endogenous, exogenous)

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """P(x'|x): each variable follows its parents, or is drawn anew."""
        x = lanes(exogenous)
        following: IntArray = kernels.exogenous_step(
            x, rng.random(x.shape), self._noise, *self._net
        )
        return following.reshape(exogenous.shape)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """P(n'|n,a,x): a bet is placed, carried, given up, turned round or settled."""
        shape, batch = as_lanes(state, action)
        following, turn = self._outcomes(batch)
        turned = rng.random(len(turn)) < turn
        if np.count_nonzero(turned):
            following[turned, BET] = TURNED - following[turned, BET]
        return following.reshape(*shape, len(self.endogenous_variables))

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors:
        """Two n': a bet in hand goes straight, or it is turned round."""
        straight, turned, turn = self.endogenous_outcomes(state, action)
        return Successors(
            np.stack([straight, turned], axis=-2), np.stack([1.0 - turn, turn], axis=-1)
        )

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """The variable that pays at the site settles the bet."""
        shape, batch = as_lanes(state, action)
        terms: FloatArray = kernels.reward_terms(
            batch.endogenous, batch.exogenous, self._paying, self._stakes
        )
        return terms.reshape(*shape, len(self.nodes))

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """A bet costs its fee at every step until it pays."""
        shape, batch = as_lanes(State(endogenous, endogenous), action)
        fees: FloatArray = kernels.endogenous_reward(
            batch.endogenous, batch.action, self._fee, self._delays, self._stakes
        )
        return fees.reshape(shape)

    def _outcomes(self, batch: Lanes) -> tuple[NDArray[np.int64], FloatArray]:
        straight, turn = kernels.endogenous_outcomes(
            *batch, self._slip, self._delays, self._switches
        )
        return straight, turn

    # --- the truth ------------------------------------------------------------------------

    @cached_property
    def initial_endogenous(self) -> IntArray:
        """The n that an episode starts with, one per site and all as likely, shape (sites, 3)."""
        sites = np.arange(len(self.sites))
        return np.stack([sites, self._delays, np.full_like(sites, NO_BET)], axis=-1)

    def table(self, name: str) -> FloatArray:
        """P(x'|parents) of a variable, shape (*sizes of its parents, size); see ``parents``."""
        return self.node(name).table

    def endogenous_outcomes(
        self, state: State, action: IntArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """P(n'|n,a,x): the two n' that are possible, and the probability of the second.

        Returns:
            n' if a bet in hand goes straight, (..., 3); n' if it is turned round, (..., 3); and the
            probability of the second, (...).
        """
        shape, batch = as_lanes(state, action)
        straight, turn = self._outcomes(batch)
        straight, turn = straight.reshape(*shape, straight.shape[-1]), turn.reshape(shape)
        turned = straight.copy()
        turned[..., BET] = np.where(turned[..., BET] == NO_BET, NO_BET, TURNED - turned[..., BET])
        return straight, turned, turn

    def closure(self, names: Iterable[str]) -> tuple[str, ...]:
        """The named variables with all their ancestors, in the order of the model."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.node(name).parents
        return tuple(sorted(found, key=self._exogenous_positions.__getitem__))

    def node(self, name: str) -> Node:
        """A variable by its name."""
        if name not in self._exogenous_positions:
            raise unknown_name("exogenous variable", name, self.exogenous_names)
        return self.nodes[self._exogenous_positions[name]]


def _flat_net(nodes: tuple[Node, ...]) -> tuple[NDArray[Any], ...]:
    """The net as the kernel reads it, but for the noise."""
    position = {node.name: i for i, node in enumerate(nodes)}
    parents = [position[name] for node in nodes for name in node.parents]
    strides = [stride for node in nodes for stride in _strides(node.function.shape)]
    none: NDArray[Any] = np.empty(0)
    identities = [np.array_equal(node.function, np.arange(node.size)) for node in nodes]
    functions = [
        none if identity else node.function.ravel()
        for node, identity in zip(nodes, identities, strict=True)
    ]
    cdfs = [none if (node.base == node.base[0]).all() else node.base.cumsum() for node in nodes]
    return (
        np.array([node.size for node in nodes], dtype=np.int64),
        np.cumsum([0] + [len(node.parents) for node in nodes], dtype=np.int64),
        np.array(parents, dtype=np.int64),
        np.array(strides, dtype=np.int64),
        _starts(functions),
        np.concatenate(functions).astype(np.int64),
        _starts(cdfs),
        np.concatenate(cdfs),
    )


def _strides(shape: tuple[int, ...]) -> list[int]:
    """What an index along each dimension adds to that of the flattened array."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _starts(tables: list[NDArray[Any]]) -> NDArray[np.int64]:
    """Where each of the tables starts when they are one; there is no start for an empty one."""
    lengths = np.array([len(table) for table in tables])
    return np.where(lengths > 0, lengths.cumsum() - lengths, SHORT)


def _depth(nodes: tuple[Node, ...]) -> int:
    """The number of generations above the youngest variable."""
    parents = {node.name: [p for p in node.parents if p != node.name] for node in nodes}
    depths: dict[str, int] = {}

    def depth(name: str) -> int:
        if name not in depths:
            depths[name] = max((1 + depth(parent) for parent in parents[name]), default=0)
        return depths[name]

    return max(depth(node.name) for node in nodes)
