"""A trader who is too small to move the market: a plain Gymnasium environment to be adapted.

It is small, and of a kind that the literature on exogenous variables uses: prices move by
themselves, and only the position is the trader's own (Dietterich, Trimponias and Chen 2018;
Sinclair and others 2023). Nothing in it knows this suite: `docs/adapting.md` adapts it.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

#: Price levels, and what it costs to change the position by one.
LEVELS, FEE = 9, 0.3
#: The probabilities that the price falls, stays and rises, in a falling, calm and rising market.
MOVES = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
#: The probability that the market changes its mood.
CHANGE = 0.1


class Trading(gym.Env[NDArray[np.int64], int]):
    """Hold nothing, or go short or long, in a market with moods.

    Observations are the position (short, none, long), the price, the mood of the market, and two
    numbers that tell nothing: the volume, and the weather in the town of the exchange. Actions are
    positions. A step pays the position that is taken times the change of the price, less a fee.
    """

    observation_space = spaces.MultiDiscrete([3, LEVELS, 3, 5, 4])
    action_space = spaces.Discrete(3)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Begin without a position, in the middle of the price levels."""
        super().reset(seed=seed)
        self.position, self.price = 1, LEVELS // 2
        self.mood = int(self.np_random.integers(3))
        self.volume = int(self.np_random.integers(5))
        self.weather = int(self.np_random.integers(4))
        return self._observe(), {}

    def step(self, action: int) -> tuple[NDArray[np.int64], float, bool, bool, dict[str, Any]]:
        """Take a position, and wait for the next price."""
        move = int(self.np_random.choice(3, p=MOVES[self.mood])) - 1
        price = min(max(self.price + move, 0), LEVELS - 1)
        reward = (int(action) - 1) * (price - self.price) - FEE * abs(int(action) - self.position)
        self.position, self.price = int(action), price
        if self.np_random.random() < CHANGE:
            self.mood = int(self.np_random.integers(3))
        self.volume = int(self.np_random.integers(5))
        if self.np_random.random() < CHANGE:
            self.weather = int(self.np_random.integers(4))
        return self._observe(), float(reward), False, False, {}

    def _observe(self) -> NDArray[np.int64]:
        return np.array([self.position, self.price, self.mood, self.volume, self.weather])
