"""Episodes of an environment that is reset and stepped, and to which nothing else is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from exo_envs.core.clock import tick
from exo_envs.sources.access.noise import NUM_SEEDS, Env

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


def walk(
    env: Env,
    rng: np.random.Generator,
    num_steps: int,
    look: Callable[[Any], Any],
    *,
    max_episode: int,
    act: Callable[[Any, np.random.Generator], Any] | None = None,
) -> Iterator[Visit]:
    """So many steps, in several episodes.

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
    while count < num_steps:
        observation, _ = env.reset(seed=int(rng.integers(NUM_SEEDS)))
        repeat, action = float(rng.choice(REPEATS)), sample_action(env.action_space, rng)
        for elapsed in range(limit):
            tick()
            before = look(observation)
            if act is not None:
                action = act(before, rng)
            elif rng.random() >= repeat:
                action = sample_action(env.action_space, rng)
            observation, reward, terminated, truncated, info = env.step(action)
            count += 1
            yield Visit(before, action, elapsed, observation, float(reward), bool(terminated), info)
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
