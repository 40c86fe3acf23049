"""A small environment that is nobody's subclass but Gymnasium's, for the tests of the adapter."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from exo_envs import AdaptedMDP, State, Variable


class Harbour(gym.Env):
    """A boat on a quay of four cells, a signal (3 values) and a tide (2 values).

    It is nobody's subclass but Gymnasium's. The boat moves with probability 0.9 (0.5 at low
    tide), reaching cell 3 under signal 0 ends the episode. Both signal and tide pay by cell.
    """

    observation_space = spaces.Dict(
        endogenous=spaces.MultiDiscrete([4]), exogenous=spaces.MultiDiscrete([3, 2])
    )
    action_space = spaces.Discrete(2)
    signal_pay = np.array([[0, 1, 2], [0, 5, 0], [3, 0, 0], [10, -4, 0]])  # (cell, signal)
    tide_pay = np.array([[0, 0], [0, -2], [-1, 0], [0, 0]])  # (cell, tide)

    def __init__(self):
        self.num_steps = 0
        self.closed = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.n, self.x = np.zeros(1, dtype=np.int64), self.np_random.integers([3, 2])
        if options is not None:  # kept, not copied, and written to by `step`: careless but legal
            self.n = options["state"]["endogenous"]
            self.x = options["state"]["exogenous"]
        return self.observe(), {}

    def observe(self):
        return {"endogenous": self.n.copy(), "exogenous": self.x.copy()}

    def pay(self, action):
        (cell,), (signal, tide) = self.n, self.x
        return self.signal_pay[cell, signal] + self.tide_pay[cell, tide] - 0.5 * action

    def move_signal(self, action):
        if self.np_random.random() < 0.3:
            self.x[0] = (self.x[0] + 1 + self.x[1]) % 3

    def step(self, action):
        self.num_steps += 1
        reward = self.pay(action)
        signal = self.x[0]
        if self.np_random.random() < (0.9, 0.5)[self.x[1]]:
            self.n[0] = min(max(self.n[0] + 2 * action - 1, 0), 3)
        self.move_signal(action)
        self.x[1] ^= self.np_random.random() < 0.1
        return self.observe(), reward, bool(self.n[0] == 3 and signal == 0), False, {}

    def close(self):
        self.closed = True


class PushedSignal(Harbour):
    """The agent's action moves what is called exogenous."""

    def move_signal(self, action):
        self.x[0] = (self.x[0] + action) % 3


class Hidden(Harbour):
    """The observation tells nothing, and the state is set from outside."""

    observation_space = spaces.Box(0, 1, (1,))

    def observe(self):
        return np.zeros(1, dtype=np.float32)

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)


HARBOUR_VARIABLES = {
    "endogenous_variables": [Variable("cell", 4)],
    "exogenous_variables": [Variable("signal", 3), Variable("tide", 2)],
}


def get_hidden(env):
    return env.n, env.x


def set_hidden(env, n, x):
    env.n, env.x = n, x


def adapt(env=None, **kwargs):
    return AdaptedMDP(Harbour() if env is None else env, horizon=20, **kwargs)


def harbour_states():
    """All 24 states, not done, with both actions: a batch of shape (2, 24)."""
    grid = np.indices((4, 3, 2)).reshape(3, -1).T
    endogenous = np.stack([grid[:, 0], np.zeros(24, dtype=np.int64)], axis=-1)
    both = State(np.stack([endogenous] * 2), np.stack([grid[:, 1:]] * 2))
    return both, np.repeat([[0], [1]], 24, axis=1)
