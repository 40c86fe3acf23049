"""What wrappers share: layers around an environment, and observations of vector environments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorWrapper
from numpy.typing import NDArray

from exo_envs.core.errors import ArgumentTypeError


def layers(env: Any) -> Iterator[Any]:
    """The wrappers, from the outermost, and then what they wrap; single or vector environments."""
    yield env
    while isinstance(env, (gym.Wrapper, VectorWrapper)):
        env = env.env
        yield env


class VectorObservation(VectorWrapper):
    """Shows something else of the observations, ``infos["final_obs"]`` included.

    Unlike Gymnasium's ``VectorObservationWrapper`` it takes every autoreset mode.
    """

    def observation(self, observation: Any) -> Any:
        """What is shown of an observation, or of a batch of them."""
        raise NotImplementedError

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes; ``options["state"]`` is a full state, or one for each lane."""
        observations, infos = self.env.reset(seed=seed, options=options)
        return self.observation(observations), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step every lane."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        if "final_obs" in infos:
            lanes = np.flatnonzero(infos["_final_obs"])
            infos = {**infos, "final_obs": self.final(infos["final_obs"], lanes)}
        return self.observation(observations), rewards, terminations, truncations, infos

    def final(self, observations: NDArray[Any], lanes: NDArray[np.intp]) -> NDArray[Any]:
        """What is shown of the last observations of some lanes; None for the others."""
        shown = observations.copy()  # an array of objects
        for lane in lanes:
            shown[lane] = self.observation(shown[lane])
        return shown


def observed_space(wrapper: Any, env: Any, wraps: type[Any]) -> Any:
    """What one lane of ``env`` shows, if it is what ``wrapper`` wraps."""
    if not isinstance(env, wraps):
        wanted = f"a gymnasium {wraps.__name__}"
        raise ArgumentTypeError(f"{type(wrapper).__name__} wraps {wanted}, not {env!r}")
    return getattr(env, "single_observation_space", env.observation_space)
