"""Which way to put an environment into a state works.

Tried are, in this order: ``env.s`` (Gymnasium's toy texts), ``env.state`` (classic control),
``set_state(qpos, qvel)`` (MuJoCo), and attributes that equal what is shown, with deep copies for
what does not (:mod:`exo_envs.sources.simulators.attributes`). A way counts if steps from states
that were set are those of an episode, under the same random numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from exo_envs.core.errors import ArgumentError
from exo_envs.sources.simulators.attributes import AttributeState, UnmetStateError
from exo_envs.sources.simulators.episodes import NUM_SEEDS
from exo_envs.sources.simulators.foreign import Env
from exo_envs.sources.simulators.generators import noise_of, set_noise
from exo_envs.sources.simulators.state_access import (
    PhysicsState,
    StateAccess,
    StateVector,
    TabularState,
)

#: Steps of episodes that are repeated from states that were set.
NUM_STEPS = 60
#: The share of them that has to be the same.
ENOUGH = 0.5


class NoWayError(ArgumentError):
    """No way to put an environment into a state works."""


def find_access(env: Env, rng: np.random.Generator) -> tuple[str, StateAccess]:
    """A way that works, and what it is called."""
    ways: dict[str, tuple[Callable[[Env], bool], Callable[[], StateAccess]]] = {
        "env.s": (TabularState.fits, lambda: TabularState(env)),
        "env.state": (StateVector.fits, lambda: StateVector(env)),
        "set_state(qpos, qvel)": (PhysicsState.fits, lambda: PhysicsState(env)),
        "attributes": (AttributeState.fits, lambda: AttributeState(env, rng)),
    }
    tried = []
    best: tuple[float, str, StateAccess] | None = None
    for way, (fits, make) in ways.items():
        if not fits(env):
            tried.append(f"{way}: there is none")
            continue
        access = make()
        share, trouble = _repeated(env, access, rng)
        tried.append(f"{way}: {share:.0%} of the steps are those of an episode{trouble}")
        if best is None or share > best[0]:
            best = (share, way, access)
        if share > 0.95:
            break
    if best is None or best[0] < ENOUGH:
        raise NoWayError(
            f"no way to put {env} into a state was found ({'; '.join(tried)}); give set_state, "
            "with split or get_state, endogenous_variables and exogenous_variables"
        )
    return best[1], best[2]


def sample_action(env: Env, rng: np.random.Generator) -> Any:
    """Any action of the environment."""
    space = env.action_space
    if isinstance(space, spaces.Discrete):
        return int(space.start + rng.integers(space.n))
    return space.sample()


def _repeated(env: Env, access: StateAccess, rng: np.random.Generator) -> tuple[float, str]:
    """The share of steps of episodes that are the same from states that were set."""
    steps: list[tuple[Any, ...]] = []
    while len(steps) < NUM_STEPS:
        observation, _ = env.reset(seed=int(rng.integers(NUM_SEEDS)))
        for _ in range(NUM_STEPS // 4):
            before, noise = access.read(env, observation), noise_of(env)
            action = sample_action(env, rng)
            observation, reward, terminated, truncated, _ = env.step(action)
            steps.append((before, noise, action, access.read(env, observation), float(reward)))
            if terminated or truncated:
                break
    same, unmet, trouble = 0, 0, ""
    for i, (before, noise, action, after, reward) in enumerate(steps):
        env.reset(seed=i)
        try:
            access.write(env.unwrapped, before)
        except UnmetStateError as error:
            unmet, trouble = unmet + 1, f" ({error})"
            continue
        except (ValueError, TypeError, AttributeError) as error:
            return 0.0, f" ({error})"
        set_noise(env, noise)
        observation, again, *_ = env.step(action)
        there = np.allclose(access.read(env, observation), after, rtol=1e-4, atol=1e-6)
        same += there and bool(np.isclose(float(again), reward, rtol=1e-4, atol=1e-6))
    return same / len(steps), trouble if unmet else ""
