"""The model of the planted problems."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.batches import exogenous_lanes
from exo_envs.errors import check_choice
from exo_envs.inputs import as_size
from exo_envs.lazy import LazyModule
from exo_envs.mdp import FloatArray, IntArray, State, Variable
from exo_envs.synthetic.codes import SHORT
from exo_envs.synthetic.generator import Node, generate
from exo_envs.synthetic.parameters import SyntheticParameters
from exo_envs.synthetic.planted import PlantedMDP

kernels = LazyModule("exo_envs.synthetic.kernels")


class SyntheticMDP(PlantedMDP):
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
        reward_columns: the column of ``reward_terms`` in which each site pays, shape (sites,).
    """

    def __init__(self, parameters: SyntheticParameters | None = None) -> None:
        """Draw the instance that the parameters name."""
        self.parameters = p = parameters or SyntheticParameters()
        problem = generate(p)
        self.nodes: tuple[Node, ...] = problem.nodes
        variables = tuple(Variable(node.name, node.size) for node in self.nodes)
        super().__init__(problem.sites, variables, p)
        self._noise = np.array([node.noise for node in self.nodes])
        self._net = _flat_net(self.nodes)

    # --- the ExoMDP -----------------------------------------------------------------------

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """A site as likely as any other, no bet, and x from its stationary distribution."""
        size = as_size(self, size)
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
        shape, x = exogenous_lanes(self, exogenous)
        following: IntArray = kernels.exogenous_step(
            x, rng.random(x.shape), self._noise, *self._net
        )
        return following.reshape(shape)

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """What pays at the site settles the bet: one variable, or two together."""
        shape, batch = self._lanes(state, action)
        terms: FloatArray = kernels.reward_terms(
            batch.endogenous,
            batch.exogenous,
            len(self.reward_scopes),
            self.reward_columns,
            self._paying,
            self._payoffs,
            self._stakes,
        )
        return terms.reshape(*shape, len(self.reward_scopes))

    def _switched(self, exogenous: NDArray[Any]) -> IntArray:
        return exogenous

    # --- the truth ------------------------------------------------------------------------

    def table(self, name: str) -> FloatArray:
        """P(x'|parents) of a variable, shape (*sizes of its parents, size); see ``parents``."""
        return self.node(name).table

    def exogenous_table(self, name: str) -> tuple[tuple[str, ...], FloatArray]:
        """The parents of a variable and its table: for exact certificates."""
        return self.node(name).parents, self.table(name)

    def node(self, name: str) -> Node:
        """A variable by its name."""
        check_choice("exogenous variable", name, self._exogenous_positions)
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
