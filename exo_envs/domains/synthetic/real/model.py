"""The model of the planted problems with real variables."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.batches import Lanes, as_batch, as_size, as_values
from exo_envs.core.mdp import FloatArray, IntArray, State
from exo_envs.domains.synthetic.codes import BET, LEFT, NO_BET, NO_SWITCH, SITE
from exo_envs.domains.synthetic.planted import PlantedMDP
from exo_envs.domains.synthetic.real.generator import RealNode, RealSite, generate
from exo_envs.domains.synthetic.real.latent import Encoding, Net, height
from exo_envs.domains.synthetic.real.parameters import RealSyntheticParameters

#: Steps before an episode, for the variables of few values, which do not begin as they go on.
WARM_UP = 16
#: Two variables are both above this as often as not.
HIGH = NormalDist().inv_cdf(1 - 0.5**0.5)


class RealSyntheticMDP(PlantedMDP):
    """A problem with real variables whose right mask is known.

    See :class:`exo_envs.domains.synthetic.RealSyntheticEnv` for the problem.

    Attributes:
        nodes: the exogenous variables with their dynamics, in the order of the model.
        sites: where bets are placed, in the order they are visited.
        parents: name -> the names of the variables that its next value depends on.
        roles: name -> "pays", "parent", "grandparent", "sign", "moves", "copy", "noise" or
            "correlated".
        required_mask: the right mask: the smallest that has every variable that pays or moves and
            is closed under parents, in the order of the model. With it Theorem 1 holds.
        depth: the number of generations above the youngest variable.
        reward_columns: the column of ``reward_terms`` in which each site pays, shape (sites,).
    """

    sites: tuple[RealSite, ...]

    def __init__(self, parameters: RealSyntheticParameters | None = None) -> None:
        """Draw the instance that the parameters name."""
        self.parameters = p = parameters or RealSyntheticParameters()
        problem = generate(p)
        self.nodes: tuple[RealNode, ...] = problem.nodes
        super().__init__(problem.sites, tuple(node.variable for node in self.nodes), p)
        self._encoding = Encoding(self.nodes)
        self._net = Net(self.nodes)
        self._places = np.maximum(self._switches, 0)  # of the switches in x
        self._thresholds = np.array([site.threshold for site in self.sites])
        self._payoff_kinds = np.array([site.payoff for site in self.sites])
        # Switches are handed to the bets by site.
        has_switch = self._switches != NO_SWITCH
        self._switches = np.where(has_switch, np.arange(len(self.sites)), NO_SWITCH)

    # --- the ExoMDP -----------------------------------------------------------------------

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """A site as likely as any other, no bet, and x after it has moved for some steps."""
        size = as_size(self, size)
        endogenous = self.initial_endogenous[rng.integers(len(self.sites), size=size)]
        latent = rng.standard_normal((size, len(self.nodes)))
        exogenous = self._encoding.values(latent)
        for _ in range(WARM_UP + self.depth):
            exogenous = self._follow(exogenous, rng)
        return State(endogenous, exogenous)

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """P(x'|x): each variable follows its parents, with noise."""
        return self._follow(as_values("exogenous", exogenous, self.exogenous_variables), rng)

    def _follow(self, exogenous: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        latent = self._net.follow(self._encoding.latent(exogenous), rng)
        return self._encoding.values(latent)

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """What pays at the site settles the bet: one variable, or two together."""
        shape, batch = self._lanes(state, action)
        site, left, bet = (batch.endogenous[:, i] for i in (SITE, LEFT, BET))
        terms = np.zeros((len(site), len(self.reward_scopes)))
        lanes = np.flatnonzero((left == 0) & (bet != NO_BET))
        if len(lanes):
            site = site[lanes]
            won = self._payoff(batch.exogenous[lanes], site)
            direction = np.where(bet[lanes] == NO_BET + 1, -1.0, 1.0)
            terms[lanes, self.reward_columns[site]] = direction * self._stakes[site] * won
        return terms.reshape(*shape, len(self.reward_scopes))

    def _payoff(self, exogenous: NDArray[Any], site: IntArray) -> FloatArray:
        """What a bet on a high outcome wins at some sites, in stakes, shape (lanes,)."""
        latent = self._encoding.latent(exogenous)
        first, second = (latent[np.arange(len(site)), self._paying[site, k]] for k in range(2))
        tilt, other = (2.0 * height(z) - 1.0 for z in (first, second))
        ways = {
            "high": np.where(first > 0.0, 1.0, -1.0),
            "height": 1.5 * tilt,
            "both high": np.where((first > HIGH) & (second > HIGH), 1.0, -1.0),
            "same side": np.where(first * second > 0.0, 1.0, -1.0),
            "product": 2.25 * tilt * other,
        }
        kinds = self._payoff_kinds[site]
        return np.select([kinds == kind for kind in ways], list(ways.values()))

    def _switched(self, exogenous: NDArray[Any]) -> IntArray:
        latent = self._encoding.latent(exogenous)[:, self._places]
        return (latent > self._thresholds).astype(np.int64)

    def _lanes(self, state: State, action: IntArray) -> tuple[tuple[int, ...], Lanes]:
        # Those of other models are made for whole numbers, and refuse others only after a while.
        shape, *lanes = as_batch(self, state, action, check_exogenous=False)
        return shape, Lanes(*lanes)

    # --- the truth ------------------------------------------------------------------------

    def latent(self, exogenous: NDArray[Any]) -> FloatArray:
        """The standard normal numbers behind the values of x, shape (..., m)."""
        x = as_values("exogenous", exogenous, self.exogenous_variables)
        return self._encoding.latent(x)
