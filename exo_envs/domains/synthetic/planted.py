"""What planted problems have in common: the net of their variables, and the bets at the sites."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.lazy import LazyModule
from exo_envs.core.arguments import as_list, check_choice
from exo_envs.core.batches import Lanes, as_lanes, as_pairs
from exo_envs.core.mdp import ExoMDP, FloatArray, IntArray, State, Successors, Variable
from exo_envs.domains.synthetic.codes import BET, NO_BET, NO_SWITCH, TURNED
from exo_envs.domains.synthetic.generator import Site


class AnyNode(Protocol):
    """A variable of the net."""

    @property
    def name(self) -> str:
        """What masks call it."""

    @property
    def role(self) -> str:
        """What it is there for."""

    @property
    def parents(self) -> tuple[str, ...]:
        """The variables that its next value depends on."""


class Rules(Protocol):
    """The arguments of a planted problem that the bets need."""

    @property
    def slip(self) -> float:
        """The probability that a bet is turned round when it should not be, or the reverse."""

    @property
    def fee(self) -> float:
        """The price of a bet for every step until its payoff, as a part of the stake."""

    @property
    def discount(self) -> float:
        """The paper's gamma."""

    @property
    def horizon(self) -> int:
        """The length of an episode."""


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
    nodes: Sequence[AnyNode]

    def __init__(self, sites: tuple[Site, ...], variables: tuple[Variable, ...], p: Rules) -> None:
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
        self.depth = _depth(self.parents)
        # One term for each variable, and one more for each pair that pays together.
        pairs = [site.scope for site in self.sites if site.partner is not None]
        self.reward_scopes = (*((name,) for name in self.exogenous_names), *pairs)
        columns = {scope: i for i, scope in enumerate(self.reward_scopes)}
        self.reward_columns: NDArray[np.int64] = np.array(
            [columns[site.scope] for site in self.sites], dtype=np.int64
        )
        self._rules = p
        self._delays = np.array([site.delay for site in self.sites])
        self._stakes = np.array([site.stake for site in self.sites])
        #: (sites, 2): the variables that pay, the same one twice if it is one.
        self._paying = np.array(
            [self.exogenous_indices([site.pays, site.scope[-1]]) for site in self.sites]
        )
        self._payoffs = np.array([site.outcomes for site in self.sites])
        self._switches = np.array(
            [
                NO_SWITCH if site.switch is None else self._exogenous_positions[site.switch]
                for site in self.sites
            ]
        )

    @property
    def _bets(self) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float64]]:
        """What settles a bet: the variables that pay at each site, the outcomes, the stakes."""
        return self._paying, self._payoffs, self._stakes

    @property
    def _turning(self) -> tuple[float, NDArray[np.int64], NDArray[np.int64]]:
        """What kernels take that move bets."""
        return self._rules.slip, self._delays, self._switches

    @abstractmethod
    def _switched(self, exogenous: NDArray[Any]) -> IntArray:
        """Lanes of which the columns ``_switches`` are 1 where a switch turns bets round."""

    def _lanes(self, state: State, action: IntArray) -> tuple[tuple[int, ...], Lanes]:
        return as_lanes(self, state, action, check_exogenous=False)

    # --- the ExoMDP -----------------------------------------------------------------------

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """P(n'|n,a,x): a bet is placed, carried, given up, turned round or settled."""
        shape, (n, x, actions) = self._lanes(state, action)
        following, uniforms = np.empty_like(n), rng.random((len(n), 1))
        kernels.endogenous_step(
            0, len(n), n, self._switched(x), actions, uniforms, *self._turning, following
        )
        return following.reshape(*shape, len(self.endogenous_variables))

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors:
        """Two n': a bet in hand goes straight, or it is turned round."""
        straight, turned, turn = self.endogenous_outcomes(state, action)
        return Successors(
            np.stack([straight, turned], axis=-2), np.stack([1.0 - turn, turn], axis=-1)
        )

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """A bet costs its fee at every step until it pays."""
        shape, n, actions = as_pairs(self, endogenous, action)
        fees: FloatArray = kernels.endogenous_reward(
            n, actions, self._rules.fee, self._delays, self._stakes
        )
        return fees.reshape(shape)

    def _outcomes(self, batch: Lanes) -> tuple[NDArray[np.int64], FloatArray]:
        n, x, action = batch
        straight, turn = kernels.endogenous_outcomes(n, self._switched(x), action, *self._turning)
        return straight, turn

    # --- the truth ------------------------------------------------------------------------

    @cached_property
    def initial_endogenous(self) -> IntArray:
        """The n that an episode starts with, one per site and all as likely, shape (sites, 3)."""
        sites = np.arange(len(self.sites))
        return np.stack([sites, self._delays, np.full_like(sites, NO_BET)], axis=-1)

    def endogenous_outcomes(
        self, state: State, action: IntArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """P(n'|n,a,x): the two n' that are possible, and the probability of the second.

        Returns:
            n' if a bet in hand goes straight, (..., 3); n' if it is turned round, (..., 3); and the
            probability of the second, (...).
        """
        shape, batch = self._lanes(state, action)
        straight, turn = self._outcomes(batch)
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


def _depth(parents: dict[str, tuple[str, ...]]) -> int:
    """The number of generations above the youngest variable."""
    depths: dict[str, int] = {}

    def depth(name: str) -> int:
        if name not in depths:
            elders = [parent for parent in parents[name] if parent != name]
            depths[name] = max((1 + depth(parent) for parent in elders), default=0)
        return depths[name]

    return max(depth(name) for name in parents)
