"""The wrappers around an environment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorWrapper


def layers(env: Any) -> Iterator[Any]:
    """The wrappers, from the outermost, and then what they wrap; single or vector environments."""
    yield env
    while isinstance(env, (gym.Wrapper, VectorWrapper)):
        env = env.env
        yield env
