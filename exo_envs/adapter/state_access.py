"""Ways to read the state of an environment and to put it into one.

Each is a small object that can be copied and pickled, so that it can be sent to other processes.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from exo_envs.adapter.episodes import flat
from exo_envs.adapter.foreign import Env
from exo_envs.adapter.generators import generators
from exo_envs.adapter.readings import Column, columns_of
from exo_envs.mdp import FloatArray

#: Numbers among the attributes of an environment that are compared with its observations.
MAX_LEAVES = 20_000
#: How deep attributes are looked into.
MAX_DEPTH = 3
#: Deep copies of an environment that are kept at most.
MAX_COPIES = 2_000


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


class Item(NamedTuple):
    """A key of a dictionary or list, on the way to a number."""

    key: Any


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
            raise ValueError(f"no state of {env} has the parts {key}")
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


class AttributeState:
    """Any other environment: attributes that equal what is shown, and deep copies for the rest.

    Some episodes are played. A number of the observation that always equals a number among the
    attributes is written there. For other numbers that change, the environment is made a deep copy
    of one that showed them, which can only be done for what was met.
    """

    reads_env = False

    def __init__(self, env: Env, rng: np.random.Generator, num_steps: int = 400) -> None:
        self.columns = columns_of(env.observation_space)
        shown, leaves, copies = _watch(env, rng, num_steps)
        changing = np.ptp(shown, axis=0) > 0
        self._places: dict[int, list[tuple[Any, ...]]] = {}
        for column in np.flatnonzero(changing).tolist():
            same = [path for path, values in leaves.items() if _equal(values, shown[:, column])]
            if same:
                self._places[column] = same
        self._copied = [c for c in np.flatnonzero(changing).tolist() if c not in self._places]
        self._copies: dict[tuple[float, ...], dict[str, Any]] = {}
        for row, attributes in zip(shown, copies, strict=True):
            if self._copied and len(self._copies) < MAX_COPIES:
                self._copies.setdefault(self._key(row), attributes)

    @staticmethod
    def fits(env: Env) -> bool:
        """Whether the environment has such a state."""
        return bool(columns_of(env.observation_space))

    def read(self, env: Env, observation: Any) -> FloatArray:
        """The numbers of the observation."""
        return flat(observation)

    def write(self, env: Any, values: FloatArray) -> None:
        """Take over a copy, if it takes one, and write attributes."""
        if self._copied:
            key = self._key(values)
            if key not in self._copies:
                names = [self.columns[c].name for c in self._copied]
                raise ValueError(
                    f"no episode met {dict(zip(names, key, strict=True))}, and no attribute holds "
                    "these numbers; give AdaptedMDP a set_state function"
                )
            noise = set(map(id, generators(env)))
            kept = {name: value for name, value in vars(env).items() if id(value) in noise}
            vars(env).update({**copy.deepcopy(self._copies[key]), **kept})
        for column, paths in self._places.items():
            for path in paths:
                _write(env, path, values[column])

    def _key(self, row: FloatArray) -> tuple[float, ...]:
        return tuple(row[self._copied].tolist())


def _watch(
    env: Env, rng: np.random.Generator, num_steps: int
) -> tuple[FloatArray, dict[tuple[Any, ...], FloatArray], list[dict[str, Any]]]:
    """What episodes show, the numbers among attributes meanwhile, and copies of all attributes."""
    shown: list[FloatArray] = []
    leaves: dict[tuple[Any, ...], list[float]] = {}
    copies = []
    while len(shown) < num_steps:
        observation, _ = env.reset(seed=int(rng.integers(2**31)))
        for _ in range(25):
            now = dict(_leaves(env.unwrapped))
            if not shown:
                leaves = {path: [] for path in now}
            for path in [path for path in leaves if path not in now]:
                del leaves[path]  # not always there
            for path, values in leaves.items():
                values.append(now[path])
            shown.append(flat(observation))
            copies.append(_attributes(env.unwrapped))
            observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated or len(shown) >= num_steps:
                break
    return np.array(shown), {path: np.array(v) for path, v in leaves.items()}, copies


def _attributes(own: Any) -> dict[str, Any]:
    """Copies of what can be copied."""
    found = {}
    for name, value in vars(own).items():
        if name.startswith("_np_random") or callable(value):
            continue
        try:
            found[name] = copy.deepcopy(value)
        except (TypeError, ValueError, NotImplementedError, RecursionError):
            continue
    return found


def _leaves(own: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], float]]:
    """All numbers among the attributes of an object, with the way that leads there.

    What cannot be written to, such as a tuple, is left out.
    """
    if isinstance(own, (int, float, np.number)):
        yield path, float(own)
    elif isinstance(own, np.ndarray):
        if own.dtype.kind in "iuf" and own.size <= MAX_LEAVES:
            for index in np.ndindex(own.shape):
                yield (*path, index), float(own[index])
    elif len(path) < MAX_DEPTH:
        for part, value in _inside(own):
            yield from _leaves(value, (*path, part))


def _inside(own: Any) -> list[tuple[Any, Any]]:
    """What a list, a dictionary or an object holds."""
    if isinstance(own, list):
        return [(Item(i), value) for i, value in enumerate(own[:MAX_LEAVES])]
    if isinstance(own, dict):
        return [(Item(key), value) for key, value in list(own.items())[:MAX_LEAVES]]
    if callable(own) or not hasattr(own, "__dict__"):
        return []
    left_out = ("_np_random", "action_space", "observation_space", "spec", "metadata")
    return [(name, value) for name, value in vars(own).items() if not name.startswith(left_out)]


def _write(own: Any, path: tuple[Any, ...], value: float) -> None:
    """Write a number where :func:`_leaves` found one, in the type that it has there."""
    *way, last = path
    for part in way:
        own = own[part.key] if isinstance(part, Item) else getattr(own, part)
    if isinstance(last, Item):
        own[last.key] = type(own[last.key])(value)
    elif isinstance(last, tuple):
        own[last] = value
    else:
        setattr(own, last, type(getattr(own, last))(value))


def _equal(one: FloatArray, two: FloatArray) -> bool:
    return bool(np.allclose(one, two, rtol=1e-6, atol=1e-9))


def _parameters(function: Any, count: int) -> list[str]:
    """The names of a function's arguments, if there are as many."""
    names = list(inspect.signature(function).parameters) if callable(function) else []
    return names if len(names) == count else [f"state_{i}" for i in range(count)]
