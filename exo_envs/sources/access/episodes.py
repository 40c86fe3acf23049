"""Episodes of an environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from exo_envs.core.clock import tick
from exo_envs.core.mdp import BoolArray, FloatArray, IntArray
from exo_envs.sources.access.attributes import noise_of, reseed, set_noise
from exo_envs.sources.access.columns import flat
from exo_envs.sources.access.state_access import Env, Row, StateAccess

NUM_SEEDS = 2**31  # what every environment takes, legacy NumPy and C generators included
#: The probability of repeating an action, one of these for an episode: a random walk hardly leaves
#: where it started.
REPEATS = (0.0, 0.0, 0.7)


class Visit(NamedTuple):
    """A step of an episode, from which the environment just returned."""

    before: Any  # what was seen before the step
    action: Any
    elapsed: int  # steps of the episode before this one
    after: Any  # the observation after the step
    reward: float
    terminated: bool
    info: dict[str, Any]


def visits(
    env: Env,
    rng: np.random.Generator,
    num_steps: int,
    look: Callable[[Any], Any],
    *,
    max_episode: int,
    act: Callable[[Any, np.random.Generator], Any] | None = None,
) -> Iterator[Visit]:
    """So many steps, in several episodes: the environment is reset and stepped, and no more.

    Args:
        env: the environment.
        rng: draws the seeds of the episodes, and the actions.
        num_steps: how many.
        look: what to keep of the environment before each step, given its observation.
        max_episode: steps of one episode, at most: the states near the start of one are all alike.
        act: takes what ``look`` saw to an action. By default actions are random, and some episodes
            repeat each of them for a while.
    """
    count, limit = 0, min(max_episode, max(1, num_steps // 4))
    space = env.action_space
    while count < num_steps:
        observation, _ = env.reset(seed=int(rng.integers(NUM_SEEDS)))
        repeat, action = float(rng.choice(REPEATS)), sample_action(space, rng)
        for elapsed in range(limit):
            tick()
            before = look(observation)
            if act is not None:
                action = act(before, rng)
            elif rng.random() >= repeat:
                action = sample_action(space, rng)
            observation, reward, terminated, truncated, info = env.step(action)
            count += 1
            paid, ended = float(np.sum(np.asarray(reward, dtype=np.float64))), bool(terminated)
            yield Visit(before, action, elapsed, observation, paid, ended, info)
            if terminated or truncated or count >= num_steps:
                break


def sample_action(space: gym.Space[Any], rng: np.random.Generator) -> Any:
    """Any action; of real numbers, often the least or the largest."""
    if isinstance(space, gym.spaces.Discrete):
        return int(space.start + rng.integers(space.n))
    action = space.sample()
    if not isinstance(space, gym.spaces.Box) or rng.random() < 0.5:
        return action
    ends = [np.where(np.isfinite(end), end, action) for end in (space.low, space.high)]
    high = np.asarray(rng.random(space.shape) < 0.5 if rng.random() < 0.5 else False)
    return np.where(high, ends[1], ends[0]).astype(action.dtype)


@dataclass(frozen=True)
class Episodes:
    """Steps of several episodes, one after another."""

    rows: Row  # (N, columns) states
    actions: list[Any]
    rewards: FloatArray  # (N,)
    following: Row  # (N, columns) next states, which mean nothing where the episode ended
    terminated: BoolArray  # (N,)
    elapsed: IntArray  # (N,) how many steps of the episode came before
    shown: list[FloatArray]  # (N) the numbers of the observation in the states
    noise: list[Any]  # (N) the states of the environment's generators before each step

    @classmethod
    def record(
        cls,
        env: Env,
        access: StateAccess,
        rng: np.random.Generator,
        num_steps: int,
        *,
        max_episode: int,
        choose: Callable[[Row, np.random.Generator], Any] | None = None,
    ) -> Episodes:
        """So many steps; ``choose`` takes a state to an action, by default they are random."""

        def look(observation: Any) -> tuple[Row, FloatArray, list[Any]]:
            return access.read(env, observation), flat(observation), noise_of(env)

        act = None if choose is None else lambda seen, rng: choose(seen[0], rng)
        steps = visits(env, rng, num_steps, look, max_episode=max_episode, act=act)
        met = [(*visit, access.read(env, visit.after)) for visit in steps]
        before, actions, elapsed, _, rewards, terminated, _, following = zip(*met, strict=True)
        rows, shown, noise = zip(*before, strict=True)
        return cls(
            rows=np.array(rows),
            actions=list(actions),
            rewards=np.array(rewards),
            following=np.array(following),
            terminated=np.array(terminated),
            elapsed=np.array(elapsed),
            shown=list(shown),
            noise=list(noise),
        )

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def outcomes(self) -> FloatArray:
        """What each step led to: the next state, the reward and the end, shape (N, columns + 2)."""
        following = np.where(self.terminated[:, None], np.nan, self.following)
        return np.column_stack([following, self.rewards, self.terminated])

    def again(
        self, env: Env, access: StateAccess, rng: np.random.Generator, *, same_noise: bool
    ) -> tuple[FloatArray, str]:
        """Outcomes of the same steps from states that are set, and why some could not be.

        There is NaN where a state was refused. With ``same_noise`` the steps meet the random
        numbers that they met before, and else others.
        """
        found, trouble = np.full((len(self), self.rows.shape[1] + 2), np.nan), ""
        for i, (row, action) in enumerate(zip(self.rows, self.actions, strict=True)):
            tick()
            seed, noise = rng.integers(NUM_SEEDS, size=2).tolist()
            refusal = access.refusal(env, row, seed)
            if refusal is not None:
                trouble = f" ({refusal})"
                continue
            if same_noise:
                set_noise(env, self.noise[i])
            else:
                reseed(env, noise)
            observation, reward, terminated, _, _ = env.step(action)
            if not terminated:
                found[i, :-2] = access.read(env, observation)
            found[i, -2:] = np.sum(np.asarray(reward, dtype=np.float64)), terminated
        return found, trouble
