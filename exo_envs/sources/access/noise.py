"""The random generators of an environment: Gymnasium's, and those that it keeps in attributes."""

from __future__ import annotations

import random
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

Env: TypeAlias = gym.Env[Any, Any]
NUM_SEEDS = 2**31  # what every environment takes, legacy NumPy and C generators included


def generators(env: Env) -> list[Any]:
    """Gymnasium's generator first, then those in attributes, and in attributes of these."""
    own = env.unwrapped
    found: dict[int, Any] = {id(own.np_random): own.np_random}
    for value in vars(own).values():
        for candidate in (value, *_inside(value)):
            if isinstance(candidate, (np.random.Generator, np.random.RandomState, random.Random)):
                found.setdefault(id(candidate), candidate)
    return list(found.values())


def _inside(value: Any) -> list[Any]:
    """What the attributes of an object hold, those with slots included."""
    slots = getattr(type(value), "__slots__", ())
    names = (slots,) if isinstance(slots, str) else slots
    found = [getattr(value, name) for name in names if hasattr(value, name)]
    return [*found, *vars(value).values()] if hasattr(value, "__dict__") else found


def noise_of(env: Env) -> list[Any]:
    """The states of all of them: what the next random numbers will be."""
    return [_state(generator) for generator in generators(env)]


def set_noise(env: Env, states: list[Any]) -> None:
    """Go on with the same random numbers as when :func:`noise_of` was asked."""
    for generator, state in zip(generators(env), states, strict=False):
        if isinstance(generator, np.random.Generator):
            generator.bit_generator.state = state
        elif isinstance(generator, np.random.RandomState):
            generator.set_state(state)
        else:
            generator.setstate(state)


def reseed(env: Env, seed: int) -> None:
    """Go on with other random numbers, which follow from the seed."""
    for i, generator in enumerate(generators(env)):
        if isinstance(generator, np.random.Generator):
            kind = type(generator.bit_generator)
            generator.bit_generator.state = kind([seed, i]).state
        else:
            generator.seed(seed + i)


def _state(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return generator.getstate()
