"""Episodes of the environment itself: it is reset and stepped, and nothing else is done to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from exo_envs.core.batches import as_action
from exo_envs.core.mdp import BoolArray, FloatArray, IntArray, State
from exo_envs.core.original import WatchStep
from exo_envs.sources.simulators.foreign import ForeignEnv, Row, Rows
from exo_envs.sources.simulators.generators import noise_of

if TYPE_CHECKING:
    from exo_envs.sources.simulators.playing import PlayableMDP

NUM_SEEDS = 2**31  # what every environment takes, legacy NumPy and C generators included
#: An action for a state, which may depend on chance.
Choose: TypeAlias = Callable[[Row, np.random.Generator], int]
#: Steps that one recorded episode has at most: the states near the start of one are all alike.
MAX_EPISODE = 100


@dataclass(frozen=True)
class Episodes:
    """Steps of several episodes, one after another."""

    rows: Rows  # (N, k + m) states
    actions: IntArray  # (N,)
    rewards: FloatArray  # (N,)
    following: Rows  # (N, k + m) next states; where the episode ended they may be out of range
    terminated: BoolArray  # (N,)
    steps: IntArray  # (N,) how many steps of the episode came before
    observations: list[FloatArray]  # (N) what was shown in the states, flat
    noise: list[Any]  # (N) the states of the environment's generators before each step

    def __len__(self) -> int:
        """The number of steps."""
        return len(self.actions)

    @classmethod
    def record(
        cls,
        foreign: ForeignEnv,
        num_steps: int,
        seed: int,
        horizon: int = MAX_EPISODE,
        choose: Choose | None = None,
    ) -> Episodes:
        """So many steps, in several episodes.

        Args:
            foreign: the environment.
            num_steps: how many.
            seed: of the episodes.
            horizon: the length of an episode.
            choose: takes a state, as a row, to an action. By default actions are random, and some
                episodes repeat each of them for a while: a random walk hardly leaves its start.
        """
        rng = np.random.default_rng(seed)
        env = foreign.env
        columns: list[tuple[Any, ...]] = []
        limit = min(horizon, MAX_EPISODE, max(1, num_steps // 4))
        while len(columns) < num_steps:
            observation, _ = env.reset(seed=int(rng.integers(NUM_SEEDS)))
            row, action = foreign.in_range(foreign.read(observation)), 0
            repeat = float(rng.choice([0.0, 0.0, 0.7]))
            for step in range(limit):
                if foreign.tick is not None:
                    foreign.tick()
                if choose is not None:
                    action = choose(row, rng)
                elif step == 0 or rng.random() >= repeat:
                    action = int(rng.integers(foreign.num_actions))
                shown, noise = flat(observation), noise_of(env)
                observation, reward, terminated, truncated, _ = env.step(action)
                after = foreign.read(observation)
                if not terminated:
                    after = foreign.in_range(after)
                done = bool(terminated)
                columns.append((row, action, float(reward), after, done, step, shown, noise))
                if terminated or truncated or len(columns) >= num_steps:
                    break
                row = after
        rows, actions, rewards, following, ended, steps, shown_, noises = zip(*columns, strict=True)
        return cls(
            np.array(rows, dtype=foreign.ranges.dtype),
            np.array(actions, dtype=np.int64),
            np.array(rewards, dtype=np.float64),
            np.array(following, dtype=foreign.ranges.dtype),
            np.array(ended, dtype=np.bool_),
            np.array(steps, dtype=np.int64),
            list(shown_),
            list(noises),
        )


def play(
    mdp: PlayableMDP,
    policy: Callable[[State], Any],
    episodes: int,
    seed: int,
    horizon: int,
    watch: WatchStep | None = None,
) -> Iterator[float]:
    """The discounted return of each episode, see :meth:`AdaptedMDP.play_episodes`."""
    env = mdp.env
    for own_seed in np.random.default_rng(seed).integers(NUM_SEEDS, size=episodes).tolist():
        total = 0.0
        observation, _ = env.reset(seed=own_seed)
        for step in range(horizon):
            if mdp.tick is not None:
                mdp.tick()
            state = mdp.state_of(observation)
            action = as_action(mdp, np.asarray(policy(state)).item())
            if watch is not None:
                watch(step, state, action)
            observation, reward, terminated, truncated, _ = env.step(action)
            total += mdp.discount**step * float(reward)
            if terminated or truncated:
                break
        yield total


def flat(observation: Any) -> FloatArray:
    """All numbers of an observation in one row, by the keys' alphabet; what is none is left out."""
    if isinstance(observation, Mapping):
        observation = tuple(observation[key] for key in sorted(observation))
    if isinstance(observation, tuple):
        return np.concatenate([np.zeros(0), *map(flat, observation)])
    array = np.asarray(observation)
    if array.dtype.kind not in "biuf":
        return np.zeros(0)
    return array.astype(np.float64).reshape(-1)
