"""The model of the planted problems."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.lazy import LazyModule
from exo_envs.core.arguments import check_choice
from exo_envs.core.batches import as_size, as_values, exogenous_lanes
from exo_envs.core.kernels import CompiledExogenous, CompiledStep
from exo_envs.core.mdp import FloatArray, IntArray, State, Variable
from exo_envs.domains.synthetic.codes import SHORT
from exo_envs.domains.synthetic.generator import Node, generate
from exo_envs.domains.synthetic.parameters import SyntheticParameters
from exo_envs.domains.synthetic.planted import PlantedMDP

kernels = LazyModule("exo_envs.domains.synthetic.kernels")


class SyntheticMDP(PlantedMDP):
    """A problem whose right mask is known.

    See :class:`exo_envs.domains.synthetic.SyntheticEnv` for the problem and
    :func:`exo_envs.domains.synthetic.exact_return` for the exact value of any mask.

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
        exogenous: IntArray = np.empty_like(blank)
        self._exogenous_step(np.ones(len(self.nodes))).write(blank, rng, exogenous)
        for _ in range(self.depth):
            exogenous = self.sample_exogenous(exogenous, rng)
        return State(endogenous, exogenous)

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """P(x'|x): each variable follows its parents, or is drawn anew."""
        shape, x = exogenous_lanes(self, exogenous, check=False)  # the kernel does that
        following = np.empty_like(x)
        if not self.compiled_exogenous().write(x, rng, following):
            as_values("exogenous", x, self.exogenous_variables)
        return following.reshape(shape)

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """What pays at the site settles the bet: one variable, or two together."""
        shape, (n, x, _) = self._lanes(state, action)
        terms = np.zeros((len(x), len(self.reward_scopes)))
        kernels.reward_terms(n, x, self.reward_columns, *self._bets, terms)
        return terms.reshape(*shape, len(self.reward_scopes))

    def compiled_exogenous(self) -> CompiledExogenous:
        """All x' of a batch in one call."""
        return self._exogenous_step(self._noise)

    def compiled_step(self) -> CompiledStep:
        """All of a step in one call."""
        arguments = (*self._turning, *self._bets, self._rules.fee, self._noise, *self._net)
        return CompiledStep(kernels.step, arguments, (1, len(self.nodes)))

    def _exogenous_step(self, noise: FloatArray) -> CompiledExogenous:
        return CompiledExogenous(kernels.exogenous_step, (noise, *self._net), len(self.nodes))

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
    special = [i for i, node in enumerate(nodes) if not _is_plain(node)]
    tables = [nodes[i] for i in special]
    parents = [position[name] for node in tables for name in node.parents]
    strides = [stride for node in tables for stride in _strides(node.function.shape)]
    none: NDArray[Any] = np.empty(0)
    functions = [none if _is_identity(node) else node.function.ravel() for node in tables]
    cdfs = [none if _is_uniform(node) else node.base.cumsum() for node in tables]
    sizes = np.array([node.size for node in nodes], dtype=np.int64)
    return (
        sizes.astype(np.float64),
        (sizes - 1).astype(np.int32),
        np.array(special, dtype=np.int64),
        np.cumsum([0] + [len(node.parents) for node in tables], dtype=np.int64),
        np.array(parents, dtype=np.int64),
        np.array(strides, dtype=np.int64),
        _starts(functions),
        np.concatenate([*functions, none]).astype(np.int64),
        _starts(cdfs),
        np.concatenate([*cdfs, none]),
    )


def _is_plain(node: Node) -> bool:
    """Whether a variable keeps its value or is drawn from a uniform distribution."""
    keeps = node.noise >= 1 or (node.parents == (node.name,) and _is_identity(node))
    return keeps and _is_uniform(node)


def _is_identity(node: Node) -> bool:
    return np.array_equal(node.function, np.arange(node.size))


def _is_uniform(node: Node) -> bool:
    return bool((node.base == node.base[0]).all())


def _strides(shape: tuple[int, ...]) -> list[int]:
    """What an index along each dimension adds to that of the flattened array."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _starts(tables: list[NDArray[Any]]) -> NDArray[np.int64]:
    """Where each of the tables starts when they are one; there is no start for an empty one."""
    lengths = np.array([len(table) for table in tables], dtype=np.int64)
    return np.where(lengths > 0, lengths.cumsum() - lengths, SHORT)
