"""The planted problems with real variables: their latent values, and the model."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.batches import as_size, as_values
from exo_envs.core.mdp import FloatArray, IntArray, State
from exo_envs.domains.synthetic.generator import RealGenerator, RealNode, Rule
from exo_envs.domains.synthetic.model import PlantedMDP
from exo_envs.domains.synthetic.parameters import (
    BET,
    LEFT,
    NO_BET,
    NO_SWITCH,
    SITE,
    RealSyntheticParameters,
)

#: Steps before an episode, for the variables of few values, which do not begin as they go on.
WARM_UP = 16
#: Two variables are both above this as often as not.
HIGH_LATENT = NormalDist().inv_cdf(1 - 0.5**0.5)
#: The logistic function of so many times z is close to the distribution function of z.
STEEPNESS = 1.702
#: Latent values beyond this are taken to be this.
LARGEST_LATENT = 12.0
#: Whole variables of more values than this need no correction for their cells.
MANY_CELLS = 4096


class RealSyntheticMDP(PlantedMDP):
    """A problem with real variables whose right mask is known.

    See :class:`exo_envs.domains.synthetic.RealSyntheticEnv` for the problem.

    Its ``roles`` are "pays", "parent", "grandparent", "sign", "moves", "copy", "noise" and
    "correlated".
    """

    def __init__(self, parameters: RealSyntheticParameters | None = None) -> None:
        self.parameters = p = parameters or RealSyntheticParameters()
        self.nodes: tuple[RealNode, ...]
        self.nodes, sites = RealGenerator.generate(p)
        super().__init__(sites, tuple(node.variable for node in self.nodes), p)
        self._encoding = LatentEncoding(self.nodes)
        self._net = LatentNet(self.nodes)
        self._thresholds = np.array([site.threshold for site in self.sites])
        self._payoff_kinds = np.array([site.payoff for site in self.sites])
        switches = self._bets.switches
        self._places = np.maximum(switches, 0)  # of the switches in x
        # Switches are handed to the bets by site.
        own = np.where(switches != NO_SWITCH, np.arange(len(self.sites)), NO_SWITCH)
        self._bets = self._bets._replace(switches=own)

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
        return self._follow(as_values("exogenous", exogenous, self.exogenous_ranges), rng)

    def _follow(self, exogenous: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        latent = self._net.follow(self._encoding.latent(exogenous), rng)
        return self._encoding.values(latent)

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        shape, batch = self._lanes(state, action)
        site, left, bet = (batch.endogenous[:, i] for i in (SITE, LEFT, BET))
        terms = np.zeros((len(site), len(self.reward_scopes)))
        lanes = np.flatnonzero((left == 0) & (bet != NO_BET))
        if len(lanes):
            site = site[lanes]
            won = self._payoff(batch.exogenous[lanes], site)
            direction = np.where(bet[lanes] == NO_BET + 1, -1.0, 1.0)
            terms[lanes, self.reward_columns[site]] = direction * self._bets.stakes[site] * won
        return terms.reshape(*shape, len(self.reward_scopes))

    def _payoff(self, exogenous: NDArray[Any], site: IntArray) -> FloatArray:
        """What a bet on a high outcome wins at some sites, in stakes, shape (lanes,)."""
        latent = self._encoding.latent(exogenous)
        first, second = (latent[np.arange(len(site)), self._bets.paying[site, k]] for k in range(2))
        tilt, other = (2.0 * height(z) - 1.0 for z in (first, second))
        ways = {
            "high": np.where(first > 0.0, 1.0, -1.0),
            "height": 1.5 * tilt,
            "both high": np.where((first > HIGH_LATENT) & (second > HIGH_LATENT), 1.0, -1.0),
            "same side": np.where(first * second > 0.0, 1.0, -1.0),
            "product": 2.25 * tilt * other,
        }
        kinds = self._payoff_kinds[site]
        return np.select([kinds == kind for kind in ways], list(ways.values()))

    def _switched(self, exogenous: NDArray[Any]) -> IntArray:
        latent = self._encoding.latent(exogenous)[:, self._places]
        return (latent > self._thresholds).astype(np.int64)

    # --- the truth ------------------------------------------------------------------------

    def latent(self, exogenous: NDArray[Any]) -> FloatArray:
        """The standard normal numbers behind the values of x, shape (..., m)."""
        x = as_values("exogenous", exogenous, self.exogenous_ranges)
        return self._encoding.latent(x)


class LatentEncoding:
    """Values in place of latent ones, and the reverse.

    A bounded variable has the value at the share Phi(z) of its range, nearly, a whole one the cell
    in which that lies, and an unbounded one a linear function of z.
    """

    def __init__(self, nodes: Sequence[RealNode]) -> None:
        variables = [node.variable for node in nodes]
        self.whole = np.array([not v.is_real for v in variables])
        self.unbounded = np.array([v.is_real and v.high == np.inf for v in variables])
        self.dtype: np.dtype[Any] = np.dtype(np.int64 if self.whole.all() else np.float64)
        bounds = np.array([v.bounds for v in variables], dtype=np.float64)
        bounds[self.unbounded] = (0.0, 1.0)
        self.low = bounds[:, 0]
        self.high = bounds[:, 1]
        self.width = self.high - self.low + self.whole  # of n whole values, n
        self.location = np.array([node.location for node in nodes])
        self.scale = np.array([node.scale for node in nodes])
        # The cells of a few whole values are so wide that z would vary less than by 1.
        self.stretch = np.array([1.0 if v.is_real else _stretch(v.size) for v in variables])

    def latent(self, values: NDArray[Any]) -> FloatArray:
        """The latent values, shape (..., m), of values in range."""
        share = (values - self.low + 0.5 * self.whole) / self.width
        share = np.clip(np.where(self.unbounded, 0.5, share), 1e-9, 1.0 - 1e-9)
        bounded = self.stretch * np.log(share / (1.0 - share)) / STEEPNESS
        unbounded = (values - self.location) / self.scale
        found: FloatArray = np.where(self.unbounded, unbounded, bounded)
        return np.clip(found, -LARGEST_LATENT, LARGEST_LATENT)

    def values(self, latent: FloatArray) -> NDArray[Any]:
        """The values, shape (..., m), of latent ones."""
        inside = self.low + self.width * height(latent)
        inside = np.minimum(np.where(self.whole, np.floor(inside), inside), self.high)
        shown = np.where(self.unbounded, self.location + self.scale * latent, inside)
        return shown.astype(self.dtype, copy=False)


def height(latent: FloatArray) -> FloatArray:
    """How high a latent value is, from 0 to 1: about the share of values below it."""
    return 1.0 / (1.0 + np.exp(-STEEPNESS * latent))


def _stretch(size: int) -> float:
    if size > MANY_CELLS:
        return 1.0
    share = (np.arange(size) + 0.5) / size
    return float(STEEPNESS / np.log(share / (1.0 - share)).std())


class LatentNet:
    """How latent values follow from each other."""

    def __init__(self, nodes: Sequence[RealNode]) -> None:
        position = {node.name: i for i, node in enumerate(nodes)}
        most = max(len(node.parents) for node in nodes)
        self.parents = np.zeros((most, len(nodes)), dtype=np.intp)
        self.weights = np.zeros((most, len(nodes)))  # 0 where there are fewer parents
        for i, node in enumerate(nodes):
            for k, (parent, weight) in enumerate(zip(node.parents, node.weights, strict=True)):
                self.parents[k, i] = position[parent]
                self.weights[k, i] = weight
        self.strength = np.array([node.strength for node in nodes])
        self.spread = np.sqrt(1.0 - self.strength**2)

        def places(*rules: Rule) -> NDArray[np.intp]:
            return np.flatnonzero([node.rule in rules for node in nodes])

        self.all_high, self.signs = places("all high"), places("signs")
        self.size_and_sign = places("size and sign")
        self.by_sign = np.concatenate([self.all_high, self.signs])
        # All parents are above it as often as not.
        numbers = [len(nodes[i].parents) for i in self.all_high]
        self.thresholds = np.array([NormalDist().inv_cdf(1 - 0.5 ** (1 / k)) for k in numbers])

    def follow(self, latent: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw the next latent values, shape (..., m): as much noise whatever they are."""
        noise = rng.standard_normal(latent.shape)
        ignored = rng.random((*latent.shape[:-1], len(self.by_sign)))
        called = np.zeros(latent.shape)
        for parents, weights in zip(self.parents, self.weights, strict=True):
            called += weights * latent[..., parents]
        places = self.size_and_sign
        if len(places):
            first, second = (self._parents(latent, k, places) for k in range(2))
            called[..., places] = np.abs(first) * np.sign(second)
        following = self.strength * called + self.spread * noise
        if len(self.by_sign):
            drawn = noise[..., self.by_sign]
            called_for = np.where(self._are_high(latent), 1.0, -1.0) * np.abs(drawn)
            obeys = ignored < self.strength[self.by_sign]
            following[..., self.by_sign] = np.where(obeys, called_for, drawn)
        return np.clip(following, -LARGEST_LATENT, LARGEST_LATENT)

    def _parents(self, latent: FloatArray, k: int, places: NDArray[np.intp]) -> FloatArray:
        """The ``k``-th parent of some variables, times its weight."""
        return self.weights[k, places] * latent[..., self.parents[k, places]]

    def _are_high(self, latent: FloatArray) -> NDArray[np.bool_]:
        """Whether the parents of each variable in ``by_sign`` call for a high value."""
        high = np.ones((*latent.shape[:-1], len(self.all_high)), dtype=np.bool_)
        for k in range(len(self.parents)):
            is_parent = self.weights[k, self.all_high] != 0.0
            high &= ~is_parent | (self._parents(latent, k, self.all_high) > self.thresholds)
        if not len(self.signs):
            return high
        product = self._parents(latent, 0, self.signs) * self._parents(latent, 1, self.signs)
        return np.concatenate([high, product > 0.0], axis=-1)
