"""Ways to read the state of an environment and to put it into one.

Each is a small object that can be copied and pickled, so that it can be sent to other processes.
"""

from __future__ import annotations

import inspect
from typing import Any, Protocol

import numpy as np

from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import FloatArray
from exo_envs.sources.simulators.episodes import flat
from exo_envs.sources.simulators.foreign import Env
from exo_envs.sources.simulators.readings import Column, columns_of


class StateAccess(Protocol):
    """A way to read and to write the state of an environment.

    Attributes:
        columns: the numbers of a state, as they are read.
        reads_env: whether the environment is read, and not what it showed.
    """

    columns: list[Column]
    reads_env: bool

    def read(self, env: Env, observation: Any) -> FloatArray:
        """The numbers of a state, shape (columns,)."""

    def write(self, env: Any, values: FloatArray) -> None:
        """Put ``env.unwrapped``, which was just reset, into a state."""


class TabularState:
    """Gymnasium's toy texts: ``env.s`` is the observation, which ``decode`` may take apart."""

    reads_env = False

    def __init__(self, env: Env) -> None:
        own: Any = env.unwrapped
        (whole,) = columns_of(env.observation_space, "state")
        count = int(whole.high) + 1
        self._parts = np.arange(count)[:, None]
        self.columns = [whole]
        if callable(getattr(own, "decode", None)):
            self._parts = np.array([list(own.decode(s)) for s in range(count)])
            names = _parameters(getattr(own, "encode", None), self._parts.shape[1])
            low, high = self._parts.min(axis=0), self._parts.max(axis=0)
            bounds = zip(names, low.tolist(), high.tolist(), strict=True)
            self.columns = [Column(name, float(a), float(b), True) for name, a, b in bounds]
        self._numbers = {tuple(row): s for s, row in enumerate(self._parts.tolist())}

    @staticmethod
    def fits(env: Env) -> bool:
        """Whether the environment has such a state."""
        observation, _ = env.reset(seed=0)
        own = getattr(env.unwrapped, "s", None)
        return np.ndim(observation) == 0 and own is not None and bool(own == observation)

    def read(self, env: Env, observation: Any) -> FloatArray:
        """The parts of the observation."""
        return self._parts[int(observation)].astype(np.float64)

    def write(self, env: Any, values: FloatArray) -> None:
        """Set ``env.s``."""
        key = tuple(int(value) for value in values)
        if key not in self._numbers:
            raise ArgumentError(f"no state of {env} has the parts {key}")
        env.s = self._numbers[key]


class StateVector:
    """``env.state``, as in Gymnasium's classic control."""

    reads_env = True

    def __init__(self, env: Env) -> None:
        observation, _ = env.reset(seed=0)
        state = flat(env.unwrapped.state)  # type: ignore[attr-defined]
        shown = columns_of(env.observation_space)
        alike = len(shown) == len(state) and np.allclose(flat(observation), state, rtol=1e-5)
        self.columns = (
            shown
            if alike
            else [Column(f"state_{i}", -np.inf, np.inf, False) for i in range(len(state))]
        )

    @staticmethod
    def fits(env: Env) -> bool:
        """Whether the environment has such a state."""
        env.reset(seed=0)
        state = getattr(env.unwrapped, "state", None)
        return isinstance(state, (tuple, list, np.ndarray)) and len(flat(np.asarray(state))) > 0

    def read(self, env: Env, observation: Any) -> FloatArray:
        """The numbers of ``env.state``."""
        return flat(np.asarray(env.unwrapped.state))  # type: ignore[attr-defined]

    def write(self, env: Any, values: FloatArray) -> None:
        """Set ``env.state``, in the type that it has."""
        own = env.state
        if isinstance(own, np.ndarray):
            env.state = values.reshape(own.shape).astype(own.dtype)
        else:
            env.state = type(own)(values.tolist())


class PhysicsState:
    """MuJoCo-like environments: ``set_state(qpos, qvel)``, and ``data`` that has both."""

    reads_env = True

    def __init__(self, env: Env) -> None:
        own: Any = env.unwrapped
        self._split = len(own.data.qpos)
        names = [f"qpos_{i}" for i in range(self._split)]
        names += [f"qvel_{i}" for i in range(len(own.data.qvel))]
        self.columns = [Column(name, -np.inf, np.inf, False) for name in names]

    @staticmethod
    def fits(env: Env) -> bool:
        """Whether the environment has such a state."""
        env.reset(seed=0)
        own: Any = env.unwrapped
        data = getattr(own, "data", None)
        return callable(getattr(own, "set_state", None)) and hasattr(data, "qpos")

    def read(self, env: Env, observation: Any) -> FloatArray:
        """Positions and velocities."""
        data = env.unwrapped.data  # type: ignore[attr-defined]
        return np.concatenate([data.qpos, data.qvel]).astype(np.float64)

    def write(self, env: Any, values: FloatArray) -> None:
        """Set both."""
        env.set_state(values[: self._split].copy(), values[self._split :].copy())


def _parameters(function: Any, count: int) -> list[str]:
    """The names of a function's arguments, if there are as many."""
    names = list(inspect.signature(function).parameters) if callable(function) else []
    return names if len(names) == count else [f"state_{i}" for i in range(count)]
