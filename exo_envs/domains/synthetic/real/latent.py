"""Latent values: the standard normal numbers behind the values of all variables, and their net."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.mdp import FloatArray
from exo_envs.domains.synthetic.real.generator import RealNode, Rule

#: The logistic function of so many times z is close to the distribution function of z.
STEEPNESS = 1.702
#: Latent values beyond this are taken to be this.
FARTHEST = 12.0
#: Whole variables of more values than this need no correction for their cells.
MANY_CELLS = 4096


class Encoding:
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
        return np.clip(found, -FARTHEST, FARTHEST)

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


class Net:
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
        return np.clip(following, -FARTHEST, FARTHEST)

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
