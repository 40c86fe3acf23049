"""An airline's seats: a plain Gymnasium environment that somebody wrote for their own purposes.

It is stateful and real-valued, and its noisy reward multiplies two variables.
"""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from exo_envs import AdaptedMDP, Variable

SEATS = 20
MARKUPS = (0.7, 1.0, 1.5)


class Airline(gym.Env):
    """Sell the seats of a flight; fares, demand and the weather move by themselves.

    A day sells Poisson(demand / markup^2) seats, each at the fare times the markup.
    """

    observation_space = spaces.Box(
        np.array([0, 50, 0, -30]), np.array([SEATS, 250, 4, 40]), dtype=np.float64
    )
    action_space = spaces.Discrete(len(MARKUPS))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seats = SEATS
        self.fare = self.np_random.uniform(80, 200)
        self.demand = self.np_random.uniform(0.2, 2.5)
        self.weather = self.np_random.uniform(-10, 30)
        return self._observe(), {}

    def _observe(self):
        return np.array([self.seats, self.fare, self.demand, self.weather])

    def step(self, action):
        wanted = self.np_random.poisson(self.demand / MARKUPS[action] ** 2)
        sold = min(self.seats, wanted)
        reward = float(sold * self.fare * MARKUPS[action])
        self.seats -= sold
        noise = self.np_random.normal(size=3)
        self.fare = float(np.clip(0.9 * self.fare + 14 + 15 * noise[0], 50, 250))
        self.demand = float(np.clip(0.8 * self.demand + 0.25 + 0.4 * noise[1], 0, 4))
        self.weather = float(np.clip(0.7 * self.weather + 3 + 5 * noise[2], -30, 40))
        return self._observe(), reward, False, False, {}


def get_airline(env):
    return [env.seats], [env.fare, env.demand, env.weather]


def set_airline(env, n, x):
    env.seats = int(n[0])
    env.fare, env.demand, env.weather = map(float, x)


BINS = np.array([np.linspace(a, b, 6) for a, b in ((50, 250), (0, 4), (-30, 40))])


def split_in_bins(observation):
    seats, *values = observation
    bins = [np.searchsorted(b, v, side="right") - 1 for b, v in zip(BINS, values, strict=True)]
    return [int(seats)], np.clip(bins, 0, 4)


def set_from_bins(env, n, x):
    centres = (BINS[:, :-1] + BINS[:, 1:]) / 2
    set_airline(env, n, [centre[i] for centre, i in zip(centres, x, strict=True)])


def adapt_by_hand(**kwargs):
    """As one had to do: five bins a column."""
    arguments = {
        "split": split_in_bins,
        "set_state": set_from_bins,
        "endogenous_variables": [Variable("seats", SEATS + 1)],
        "exogenous_variables": [Variable(name, 5) for name in ("fare", "demand", "weather")],
        "horizon": 20,
        "reward_samples": 20,
    }
    return AdaptedMDP(Airline(), **{**arguments, **kwargs})


def adapt_as_it_is(**kwargs):
    """With real variables."""
    arguments = {
        "get_state": get_airline,
        "set_state": set_airline,
        "endogenous_variables": [Variable("seats", SEATS + 1)],
        "exogenous_variables": [
            Variable("fare", low=50, high=250),
            Variable("demand", low=0, high=4),
            Variable("weather", low=-30, high=40),
        ],
        "horizon": 20,
        "reward_samples": 100,
    }
    return AdaptedMDP(Airline(), **{**arguments, **kwargs})
