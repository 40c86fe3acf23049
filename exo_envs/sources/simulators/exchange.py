"""Whether what was played could be exchanged for what a model draws, with a stated error.

In each of N states something was played once and drawn K times. If the model is right, the played
value is any of the K + 1 with the same probability, whatever these are. So each state is a bet at
known odds, and a product of bets is large with a small probability: it exceeds 1 / p with a
probability of at most p (Ville's inequality), also if later states depend on what was played in
earlier ones, and whenever one stops to look.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.mdp import FloatArray

#: How high to bet: small stakes find many small differences, large ones few large ones.
STAKES = np.array([-8.0, -4.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 4.0, 8.0])
#: Orders that a sample could have come in as well.
NUM_SHUFFLES = 400
#: Values closer than this, relative to the largest, count as equal.
DECIMALS = 8


class Ranks:
    """The places of played values among drawn ones.

    Args:
        played: shape (N,).
        drawn: shape (N, K).

    Attributes:
        places: of each of the K + 1 values among the others, the played one first: shape
            (N, K + 1), from -1 (the smallest) to 1 (the largest).
        alone: whether a value is the only one that differs from the others, shape (N, K + 1).
        certain: whether all drawn values are equal, shape (N,).
    """

    def __init__(self, played: NDArray[np.generic], drawn: NDArray[np.generic]) -> None:
        values: FloatArray = np.column_stack([played, drawn]).astype(np.float64)
        scale = np.abs(values).max(initial=0.0) or 1.0
        values = np.asarray(np.round(values / scale, DECIMALS), dtype=np.float64)
        others = values.shape[1] - 1
        below = (values[:, None, :] < values[:, :, None]).sum(axis=2)
        equal = (values[:, None, :] == values[:, :, None]).sum(axis=2) - 1
        places = np.asarray(2 * below + equal, dtype=np.float64)
        self.places: FloatArray = places / others - 1
        self.alone = (equal == 0) & ((equal == others - 1).sum(axis=1) == others)[:, None]
        self.certain = (values[:, 1:] == values[:, 1:2]).all(axis=1)

    def evidence(self, weights: FloatArray | None = None) -> float:
        """The logarithm of what was won by betting that played values are elsewhere.

        Bets are on larger or smaller values, on extreme ones, and on ones that stand alone.

        Args:
            weights: in which states to bet how much, and in which direction, shape (N,). They may
                depend on the states and on what was played before, by default they are 1.
        """
        bets = (self.places, np.abs(self.places), self.alone.astype(np.float64))
        return _average([_won(bet, weights) for bet in bets])

    def joint_evidence(self, other: Ranks) -> float:
        """The same for two quantities that the model draws independently of each other."""
        product = self.places[:, :, None] * other.places[:, None, :]
        return _won(product.reshape(len(product), product.shape[1] * product.shape[2]), None)


def shift_evidence(
    one: FloatArray, two: FloatArray, direction: FloatArray, rng: np.random.Generator
) -> float:
    """The logarithm of what was won by betting that one sample is larger than another.

    Both are shuffled together some times: if they are of one distribution, the order in which they
    came is as good as any other.

    Args:
        one: shape (N, K), K samples in each of N states.
        two: the same.
        direction: 1 or -1, the sample that is said to be larger, or 0, shape (N,).
        rng: shuffles.
    """
    both = np.concatenate([one, two], axis=1)
    count = one.shape[1]
    below = (both[:, None, :] < both[:, :, None]).sum(axis=2)
    equal = (both[:, None, :] == both[:, :, None]).sum(axis=2) - 1
    places = (2 * below + equal) / (2 * count - 1) - 1
    orders = np.tile(np.arange(2 * count), (1 + NUM_SHUFFLES, 1))
    orders[1:] = rng.permuted(orders[1:], axis=1)
    means = places[:, orders[:, :count]].mean(axis=2)  # (N, 1 + NUM_SHUFFLES)
    return _won(means, direction)


def _won(bets: FloatArray, weights: FloatArray | None) -> float:
    """The logarithm of the mean over stakes of what bets (N, outcomes) won; the first happened."""
    # Where all outcomes are alike nothing is won or lost.
    bets = bets[np.ptp(bets, axis=1) > 0] if weights is None else bets * weights[:, None]
    if not len(bets):
        return 0.0
    won = []
    for stake in STAKES:
        staked = stake * bets
        top = staked.max(axis=1)
        expected = top + np.log(np.exp(staked - top[:, None]).mean(axis=1))
        won.append(float((staked[:, 0] - expected).sum()))
    return _average(won)


def _average(logarithms: list[float]) -> float:
    """The logarithm of the mean of what has these logarithms."""
    top = max(logarithms)
    return top + math.log(sum(math.exp(value - top) for value in logarithms) / len(logarithms))
