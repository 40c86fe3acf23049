"""Small environments for the adapter: a walk beside something that moves by itself."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Walk(gym.Env):
    """Five places and a level of four values; a place pays its number times the level."""

    size = 5
    observation_space = spaces.MultiDiscrete([5, 4])
    action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.level, self.hidden = 2, int(self.np_random.integers(4)), 0
        return self.observe(), {}

    def observe(self):
        return np.array([self.place, self.level])

    def step(self, action):
        level = int(np.clip(self.level + self.np_random.integers(-1, 2), 0, 3))
        place = int(np.clip(self.place + action - 1, 0, self.size - 1))
        reward, ended = self.pay(action, place, level)
        self.place, self.level = place, level
        return self.observe(), float(reward), ended, False, {}

    def pay(self, action, place, level):
        return self.place * self.level, False


class FirstVisit(Walk):
    """Hidden: the last place pays once."""

    def pay(self, action, place, level):
        reward = 10.0 * (place == self.size - 1 and not self.hidden)
        self.hidden |= int(place == self.size - 1)
        return reward, False


class Jackpot(Walk):
    """A long way, at whose end one step in ten pays 100."""

    size = 40
    observation_space = spaces.MultiDiscrete([40, 4])

    def pay(self, action, place, level):
        return 100.0 * (self.place == self.size - 1 and self.np_random.random() < 0.1), False


class Exhausted(Walk):
    """Hidden, and far away: the end of a long way pays twice, and then costs."""

    size = 40
    observation_space = spaces.MultiDiscrete([40, 4])

    def pay(self, action, place, level):
        if self.place < self.size - 1:
            return 0.0, False
        self.hidden += 1
        return (10.0 if self.hidden <= 2 else -1.0), False


class Pushed(Walk):
    """The action moves the level."""

    def step(self, action):
        observation, *rest = super().step(action)
        self.level = observation[1] = (self.level + action) % 4
        return observation, *rest


class LooksAhead(Walk):
    """The next place looks at the next level."""

    def step(self, action):
        observation, *rest = super().step(action)
        self.place = observation[0] = min(self.place + (self.level == 3), self.size - 1)
        return observation, *rest


class TwoLevels(Walk):
    """Two levels that pay only together."""

    observation_space = spaces.MultiDiscrete([5, 4, 4])

    def reset(self, *, seed=None, options=None):
        _, info = super().reset(seed=seed)
        self.other = int(self.np_random.integers(4))
        return self.observe(), info

    def observe(self):
        return np.array([self.place, self.level, getattr(self, "other", 0)])

    def pay(self, action, place, level):
        reward = self.place * self.level * self.other
        self.other = int(self.np_random.integers(4))
        return reward, False


class Words(gym.Env):
    """The place is a tuple and the weather a word: only copies of attributes can be set.

    It has 500 states.
    """

    observation_space = spaces.MultiDiscrete([10, 10, 5])
    action_space = spaces.Discrete(4)
    weathers = ("calm", "breeze", "wind", "gale", "storm")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = tuple(self.np_random.integers(10, size=2).tolist())
        self.weather = self.weathers[self.np_random.integers(5)]
        return self.observe(), {}

    def observe(self):
        return np.array([*self.place, self.weathers.index(self.weather)])

    def step(self, action):
        row, column = self.place
        down, right = ((0, 1), (1, 0), (0, -1), (-1, 0))[int(action)]
        number = self.weathers.index(self.weather)
        reward = float(self.place == (9, 9)) - 0.1 * number * (row > 5)
        self.place = (min(max(row + down, 0), 9), min(max(column + right, 0), 9))
        moved = int(np.clip(number + self.np_random.integers(-1, 2), 0, 4))
        self.weather = self.weathers[moved]
        return self.observe(), reward, False, False, {}


class Springs(gym.Env):
    """Like one of MuJoCo's: two positions, two velocities, `set_state(qpos, qvel)`."""

    observation_space = spaces.Box(-10, 10, (4,))
    action_space = spaces.Discrete(3)

    class Data:
        """What MuJoCo calls data."""

    def __init__(self):
        self.data = Springs.Data()
        self.set_state(np.zeros(2), np.zeros(2))

    def set_state(self, qpos, qvel):
        self.data.qpos, self.data.qvel = np.array(qpos), np.array(qvel)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.set_state(self.np_random.uniform(-1, 1, 2), self.np_random.uniform(-1, 1, 2))
        return self.observe(), {}

    def observe(self):
        return np.concatenate([self.data.qpos, self.data.qvel]).astype(np.float32)

    def step(self, action):
        q, v = self.data.qpos, self.data.qvel
        pushed = [v[0] + 0.1 * (action - 1), 0.9 * v[1] + 0.1 * self.np_random.normal()]
        speed = np.clip(pushed, -2, 2)
        reward = -abs(float(q[0] - q[1]))
        self.set_state(np.clip(q + 0.1 * speed, -9, 9), speed)
        return self.observe(), reward, False, False, {}
