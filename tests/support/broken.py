"""Models and environments that break the split into n and x, as somebody would write them.

A robot walks round a ring of five cells, past a crowd and under some weather. Each class breaks
one rule; the good ones beside them do something that only looks like it.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from exo_envs import ExoMDP, State, Variable

CELLS = 5


class RingMDP(ExoMDP):
    """Keeps all rules: the crowd and the weather move by themselves, the robot as it is told."""

    endogenous_variables = (Variable("robot", CELLS), Variable("battery", 4))
    exogenous_variables = (Variable("crowd", CELLS), Variable("weather", 2))
    num_actions = 3  # stay, left, right
    discount = 0.9
    horizon = 30

    def sample_initial(self, size, rng):
        n = np.stack([rng.integers(CELLS, size=size), np.full(size, 3)], axis=-1)
        return State(n, np.stack([rng.integers(CELLS, size=size), rng.integers(2, size=size)], -1))

    def sample_exogenous(self, exogenous, rng):
        uniforms = rng.random(exogenous.shape)
        crowd = (exogenous[..., 0] + (uniforms[..., 0] < self.stroll(exogenous))) % CELLS
        weather = exogenous[..., 1] ^ (uniforms[..., 1] < 0.2)
        return np.stack([crowd, weather], axis=-1)

    def stroll(self, exogenous):
        """The probability that the crowd moves on."""
        return np.where(exogenous[..., 1] == 1, 0.2, 0.6)

    def sample_endogenous(self, state, action, rng):
        robot, battery = state.endogenous[..., 0], state.endogenous[..., 1]
        robot = (robot + self.way(np.asarray(action))) % CELLS
        used = rng.random(robot.shape) < 0.3
        return np.stack([robot, np.where(battery == 0, 3, battery - used)], axis=-1)

    def way(self, action):
        """By how many cells an action moves the robot."""
        return np.select([action == 1, action == 2], [-1, 1], 0)

    def reward_terms(self, state, action):
        terms = np.zeros(state.exogenous.shape)
        terms[..., 0] = -1.0 * (state.exogenous[..., 0] == state.endogenous[..., 0])
        return terms


class RemembersTheAction(RingMDP):
    """An action that is repeated has twice the effect."""

    last = None

    def way(self, action):
        same = self.last is not None and np.shape(self.last) == np.shape(action)
        again = np.equal(action, self.last) if same else np.zeros(np.shape(action), dtype=bool)
        self.last = np.array(action)
        return super().way(action) * np.where(again, 2, 1)


class HasAMood(RingMDP):
    """The crowd is in a hurry or not, which nobody sees."""

    mood = 0

    def sample_exogenous(self, exogenous, rng):
        if rng.random() < 0.3:
            self.mood = 1 - self.mood
        return super().sample_exogenous(exogenous, rng)

    def stroll(self, exogenous):
        return np.full(exogenous.shape[:-1], 0.9 if self.mood else 0.1)


class LeaksThroughN(RingMDP):
    """The crowd waits where it saw the robot."""

    robot = None

    def sample_endogenous(self, state, action, rng):
        self.robot = np.array(state.endogenous[..., 0])
        return super().sample_endogenous(state, action, rng)

    def stroll(self, exogenous):
        if self.robot is None or self.robot.shape != exogenous.shape[:-1]:
            return super().stroll(exogenous)
        return np.where(self.robot == exogenous[..., 0], 0.0, super().stroll(exogenous))


class ReactsLate(RingMDP):
    """The robot does what it was told one step ago."""

    queue = None

    def way(self, action):
        known = self.queue is not None and self.queue.shape == np.shape(action)
        due = self.queue if known else np.zeros(np.shape(action), dtype=int)
        self.queue = np.array(action)
        return super().way(due)


class CrowdReactsLate(RingMDP):
    """The crowd scatters one step after the robot went right."""

    told = 0

    def way(self, action):
        self.told = np.array(action)
        return super().way(action)

    def stroll(self, exogenous):
        usual = super().stroll(exogenous)
        fits = np.shape(self.told) in ((), usual.shape)
        return np.where(self.told == 2, 1.0, usual) if fits else usual


class CountsSteps(RingMDP):
    """It rains more in the second half of an episode."""

    step = 0

    def sample_initial(self, size, rng):
        self.step = 0
        return super().sample_initial(size, rng)

    def sample_exogenous(self, exogenous, rng):
        self.step += 1
        following = super().sample_exogenous(exogenous, rng)
        if self.step > 10:
            following[..., 1] |= rng.random(exogenous.shape[:-1]) < 0.7
        return following


class CountsCalls(RingMDP):
    """The seasons follow each other, whoever asks."""

    calls = 0

    def stroll(self, exogenous):
        self.calls += 1
        return np.full(exogenous.shape[:-1], 0.9 if self.calls // 7 % 2 else 0.1)


# --- the same as environments of somebody else --------------------------------------------------


class RingEnv(gym.Env):
    """Keeps all rules, with the observations and the reset of this suite."""

    observation_space = gym.spaces.Dict(
        endogenous=gym.spaces.MultiDiscrete([CELLS, 4]),
        exogenous=gym.spaces.MultiDiscrete([CELLS, 2]),
    )
    action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.robot, self.battery = int(self.np_random.integers(CELLS)), 3
        self.crowd, self.weather = (int(self.np_random.integers(k)) for k in (CELLS, 2))
        given = (options or {}).get("state")
        if given:
            self.robot, self.battery = map(int, given["endogenous"])
            self.crowd, self.weather = map(int, given["exogenous"])
        self.begin()
        return self.observe(), {}

    def begin(self):
        """Forget what happened in the episode before."""

    def observe(self):
        return {
            "endogenous": np.array([self.robot, self.battery]),
            "exogenous": np.array([self.crowd, self.weather]),
        }

    def stroll(self, action):
        return 0.2 if self.weather else 0.6

    def way(self, action):
        return (0, -1, 1)[int(action)]

    def step(self, action):
        reward = -1.0 * (self.robot == self.crowd)
        moves, changes, uses = self.np_random.random(3)
        crowd = (self.crowd + (moves < self.stroll(action))) % CELLS
        self.weather ^= int(changes < 0.2)
        self.robot = (self.robot + self.way(action)) % CELLS
        self.crowd = int(crowd)
        self.battery = 3 if self.battery == 0 else self.battery - int(uses < 0.3)
        return self.observe(), reward, False, False, {}


class RemembersTheActionEnv(RingEnv):
    """An action that is repeated has twice the effect."""

    def begin(self):
        self.last = None

    def way(self, action):
        again, self.last = self.last == int(action), int(action)
        return super().way(action) * (1 + again)


class HasAMoodEnv(RingEnv):
    """The crowd is in a hurry or not, which nobody sees; it is so from the start."""

    def begin(self):
        self.mood = int(self.np_random.integers(2))

    def stroll(self, action):
        return 0.9 if self.mood else 0.1


class HasAChangingMoodEnv(HasAMoodEnv):
    """The mood changes now and then."""

    def begin(self):
        self.mood = 0

    def stroll(self, action):
        self.mood ^= int(self.np_random.random() < 0.3)
        return super().stroll(action)


class LeaksThroughNEnv(RingEnv):
    """The crowd waits where the robot is."""

    def stroll(self, action):
        return 0.0 if self.robot == self.crowd else super().stroll(action)


class MovesTheCrowdEnv(RingEnv):
    """The crowd makes room for a robot that comes from the left."""

    def stroll(self, action):
        return 1.0 if int(action) == 2 else super().stroll(action)


class ReactsLateEnv(RingEnv):
    """The robot does what it was told one step ago."""

    def begin(self):
        self.due = 0

    def way(self, action):
        due, self.due = self.due, int(action)
        return super().way(due)


class CrowdReactsLateEnv(RingEnv):
    """The crowd scatters one step after the robot went right."""

    def begin(self):
        self.told = 0

    def stroll(self, action):
        told, self.told = self.told, int(action)
        return 1.0 if told == 2 else super().stroll(action)


class CountsStepsEnv(RingEnv):
    """Nobody is about in the second half of an episode."""

    def begin(self):
        self.elapsed = 0

    def stroll(self, action):
        self.elapsed += 1
        return 0.0 if self.elapsed > 8 else super().stroll(action)


class CountsCallsEnv(RingEnv):
    """The seasons follow each other, also from one episode to the next."""

    calls = 0

    def stroll(self, action):
        self.calls += 1
        return 0.9 if self.calls // 50 % 2 else 0.1
