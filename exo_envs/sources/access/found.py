"""Ways to put an environment into a state that are found by trying.

Tried are, in this order: ``env.s`` (Gymnasium's toy texts), ``env.state`` (classic control),
``set_state(qpos, qvel)`` (MuJoCo), and attributes that equal what is shown, with deep copies for
what does not. A way counts if steps from states that were set are those of an episode, under the
same random numbers.

Attributes are looked at during some episodes. A number of the observation that always equals a
number among the attributes is written there. What else belongs to the state, such as a position
that is a tuple or weather that is a word, is an attribute whose value follows from some numbers of
the observation: it is made a deep copy of one that was met with these numbers. So not every state
has to be met: it is enough that every place and every kind of weather are.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import FloatArray
from exo_envs.sources.access.columns import Column, columns_of, flat
from exo_envs.sources.access.episodes import Episodes, generators, walk
from exo_envs.sources.access.state_access import ColumnState, Env, Row

#: Steps of episodes that are repeated from states that were set, and the share of them that has to
#: be the same.
NUM_REPEATED, ENOUGH = 60, 0.5
#: A share of them that needs no better way.
PLENTY = 0.95
#: Numbers among the attributes of an environment that are compared with its observations.
MAX_LEAVES = 20_000
#: How deep attributes are looked into for numbers, and to tell whether they are alike.
MAX_DEPTH, MAX_INSIDE = 3, 8
#: Steps in which attributes are compared with observations, and in which copies are made.
NUM_WATCHED, NUM_COPIED = 400, 2_000
#: Steps of one episode.
EPISODE = 25
#: States that have to be met again before an attribute is said to follow from some numbers, as a
#: share of all.
MET_AGAIN = 0.1

Path = tuple[Any, ...]


class NoWayError(ArgumentError):
    """No way to put an environment into a state works."""


class UnmetStateError(ArgumentError):
    """No episode met a state, and nothing else says how to put the environment into it."""


def find_access(env: Env, rng: np.random.Generator) -> tuple[str, ColumnState]:
    """A way that works, and what it is called."""
    ways: dict[str, Callable[[], ColumnState | None]] = {
        "env.s": lambda: TabularState.of(env),
        "env.state": lambda: StateVector.of(env),
        "set_state(qpos, qvel)": lambda: PhysicsState.of(env),
        "attributes": lambda: AttributeState.of(env, rng),
    }
    tried = []
    best: tuple[float, str, ColumnState] | None = None
    for way, make in ways.items():
        access = make()
        if access is None:
            tried.append(f"{way}: there is none")
            continue
        episodes = Episodes.record(env, access, rng, NUM_REPEATED, max_episode=EPISODE)
        found, trouble = episodes.again(env, access, rng, same_noise=True)
        same = np.isclose(found, episodes.outcomes, rtol=1e-4, atol=1e-6, equal_nan=True)
        share = float((same & ~np.isnan(found[:, -1:])).all(axis=1).mean())
        tried.append(f"{way}: {share:.0%} of the steps are those of an episode{trouble}")
        if best is None or share > best[0]:
            best = (share, way, access)
        if share > PLENTY:
            break
    if best is None or best[0] < ENOUGH:
        raise NoWayError(
            f"no way to put {env} into a state was found ({'; '.join(tried)}); give set_state, "
            "with split or get_state, endogenous_variables and exogenous_variables"
        )
    return best[1], best[2]


class TabularState(ColumnState):
    """Gymnasium's toy texts: ``env.s`` is the observation, which ``decode`` may take apart."""

    def __init__(self, columns: list[Column], parts: NDArray[np.int64]) -> None:
        super().__init__(columns)
        self._parts = parts  # (states, columns)
        self._numbers = {tuple(row): s for s, row in enumerate(parts.tolist())}

    @classmethod
    def of(cls, env: Env) -> TabularState | None:
        """The state of an environment, if it has such a one."""
        observation, _ = env.reset(seed=0)
        own: Any = env.unwrapped
        if np.ndim(observation) or getattr(own, "s", None) is None or own.s != observation:
            return None
        (whole,) = columns_of(env.observation_space, "state")
        count = int(whole.high) + 1
        if not callable(getattr(own, "decode", None)):
            return cls([whole], np.arange(count)[:, None])
        parts = np.array([list(own.decode(s)) for s in range(count)])
        encode = getattr(own, "encode", None)
        names = list(inspect.signature(encode).parameters) if callable(encode) else []
        if len(names) != parts.shape[1]:
            names = [f"state_{i}" for i in range(parts.shape[1])]
        bounds = zip(names, parts.min(axis=0).tolist(), parts.max(axis=0).tolist(), strict=True)
        return cls([Column(name, float(a), float(b), True) for name, a, b in bounds], parts)

    def read(self, env: Env, observation: Any) -> FloatArray:
        """The parts of the observation."""
        return self._parts[int(observation)].astype(np.float64)

    def write(self, env: Any, row: Row) -> None:
        """Set ``env.s``."""
        key = tuple(int(value) for value in row)
        if key not in self._numbers:
            raise ArgumentError(f"no state of {env} has the parts {key}")
        env.s = self._numbers[key]


class StateVector(ColumnState):
    """``env.state``, as in Gymnasium's classic control."""

    reads_env = True

    @classmethod
    def of(cls, env: Env) -> StateVector | None:
        """The state of an environment, if it has such a one."""
        observation, _ = env.reset(seed=0)
        own = getattr(env.unwrapped, "state", None)
        state = flat(np.asarray(own)) if isinstance(own, (tuple, list, np.ndarray)) else np.zeros(0)
        if not len(state):
            return None
        shown = columns_of(env.observation_space)
        if len(shown) == len(state) and np.allclose(flat(observation), state, rtol=1e-5):
            return cls(shown)
        return cls([Column(f"state_{i}", -np.inf, np.inf, False) for i in range(len(state))])

    def read(self, env: Env, observation: Any) -> FloatArray:
        """The numbers of ``env.state``."""
        return flat(np.asarray(env.unwrapped.state))  # type: ignore[attr-defined]

    def write(self, env: Any, row: Row) -> None:
        """Set ``env.state``, in the type that it has."""
        own = env.state
        if isinstance(own, np.ndarray):
            env.state = row.reshape(own.shape).astype(own.dtype)
        else:
            env.state = type(own)(row.tolist())


class PhysicsState(ColumnState):
    """MuJoCo-like environments: ``set_state(qpos, qvel)``, and ``data`` that has both."""

    reads_env = True

    def __init__(self, num_positions: int, num_velocities: int) -> None:
        names = [f"qpos_{i}" for i in range(num_positions)]
        names += [f"qvel_{i}" for i in range(num_velocities)]
        super().__init__([Column(name, -np.inf, np.inf, False) for name in names])
        self._split = num_positions

    @classmethod
    def of(cls, env: Env) -> PhysicsState | None:
        """The state of an environment, if it has such a one."""
        env.reset(seed=0)
        own: Any = env.unwrapped
        data: Any = getattr(own, "data", None)
        if callable(getattr(own, "set_state", None)) and hasattr(data, "qpos"):
            return cls(len(data.qpos), len(data.qvel))
        return None

    def read(self, env: Env, observation: Any) -> FloatArray:
        """Positions and velocities."""
        data = env.unwrapped.data  # type: ignore[attr-defined]
        return np.concatenate([data.qpos, data.qvel]).astype(np.float64)

    def write(self, env: Any, row: Row) -> None:
        """Set both."""
        env.set_state(row[: self._split], row[self._split :])


# --- attributes ----------------------------------------------------------------------------------


class Item(NamedTuple):
    """A key of a dictionary or list, on the way to a number."""

    key: Any


class Group:
    """Attributes that follow from some numbers of the observation.

    Attributes:
        columns: these numbers, as positions.
        names: of the attributes.
    """

    def __init__(self, columns: tuple[int, ...], names: tuple[str, ...]) -> None:
        self.columns, self.names = columns, names
        self._met: dict[tuple[float, ...], dict[str, Any]] = {}

    def learn(self, row: FloatArray, attributes: dict[str, Any]) -> None:
        """Remember what was met, if it is new."""
        own = {name: attributes[name] for name in self.names if name in attributes}
        self._met.setdefault(self._key(row), own)

    def at(self, row: FloatArray) -> dict[str, Any] | None:
        """Copies of what was met with the same numbers; None if they were not met."""
        found = self._met.get(self._key(row))
        return None if found is None else copy.deepcopy(found)

    def _key(self, row: FloatArray) -> tuple[float, ...]:
        return tuple(row[list(self.columns)].tolist())


class AttributeState(ColumnState):
    """Attributes that equal what is shown, and copies of those that follow from it.

    Attributes:
        groups: the attributes that are copied.
    """

    def __init__(
        self, columns: list[Column], places: dict[int, list[Path]], groups: list[Group]
    ) -> None:
        super().__init__(columns)
        self._places, self.groups = places, groups

    @classmethod
    def of(cls, env: Env, rng: np.random.Generator) -> AttributeState | None:
        """The state of an environment, by what some episodes show; None if they show no numbers."""
        columns = columns_of(env.observation_space)
        if not columns:
            return None
        shown, leaves, kinds = _watch(env, rng)
        changing = np.flatnonzero(np.ptp(shown, axis=0) > 0).tolist()
        equal = {
            column: [
                path
                for path, values in leaves.items()
                if np.allclose(values, shown[:, column], rtol=1e-6, atol=1e-9)
            ]
            for column in changing
        }
        places = {column: paths for column, paths in equal.items() if paths}
        groups: list[Group] = []
        if len(places) < len(changing):
            written = {path[0] for paths in places.values() for path in paths if len(path) == 1}
            rest = {name: values for name, values in kinds.items() if name not in written}
            groups = _groups(shown, changing, rest)

            def look(observation: Any) -> tuple[FloatArray, dict[str, Any]]:
                return flat(observation), _copied(env.unwrapped)

            for visit in walk(env, rng, NUM_COPIED, look, max_episode=EPISODE):
                for group in groups:
                    group.learn(*visit.before)
        return cls(columns, places, groups)

    def read(self, env: Env, observation: Any) -> FloatArray:
        """The numbers of the observation."""
        return flat(observation)

    def write(self, env: Any, row: Row) -> None:
        """Take over copies, if it takes some, and write attributes."""
        for group in self.groups:
            found = group.at(row)
            if found is None:
                names = {self.columns[c].name: float(row[c]) for c in group.columns}
                raise UnmetStateError(
                    f"no episode met {names}, which {', '.join(map(repr, group.names))} follows "
                    "from; give AdaptedMDP a set_state function"
                )
            vars(env).update(found)
        for column, paths in self._places.items():
            for path in paths:
                _write(env, path, row[column])


def _groups(
    shown: FloatArray, changing: list[int], kinds: dict[str, list[Hashable]]
) -> list[Group]:
    """Attributes that change, by the fewest numbers of the observation that they follow from."""
    found: dict[tuple[int, ...], list[str]] = {}
    for name, values in kinds.items():
        if len(values) < len(shown) or len(set(values)) < 2:
            continue
        kept = list(changing)
        if not _follows(shown[:, kept], values)[0]:
            continue
        for column in changing:
            fewer = [other for other in kept if other != column]
            follows, again = _follows(shown[:, fewer], values)
            if follows and again >= MET_AGAIN * len(shown):
                kept = fewer
        found.setdefault(tuple(kept), []).append(name)
    return [Group(columns, tuple(names)) for columns, names in found.items()]


def _follows(rows: FloatArray, values: list[Hashable]) -> tuple[bool, int]:
    """Whether equal rows have equal values, and how many rows are equal to another one before."""
    first: dict[tuple[float, ...], Hashable] = {}
    for row, value in zip(map(tuple, rows.tolist()), values, strict=True):
        if first.setdefault(row, value) != value:
            return False, 0
    return True, len(rows) - len(first)


def _watch(
    env: Env, rng: np.random.Generator
) -> tuple[FloatArray, dict[Path, FloatArray], dict[str, list[Hashable]]]:
    """What episodes show, and the numbers among attributes and what attributes are meanwhile."""
    env.action_space.seed(int(rng.integers(2**31)))

    def look(observation: Any) -> tuple[FloatArray, dict[Path, float], dict[str, Hashable]]:
        own = env.unwrapped
        return flat(observation), dict(_leaves(own)), {n: _kind(v) for n, v in _attributes(own)}

    visits = walk(env, rng, NUM_WATCHED, look, max_episode=EPISODE)
    shown, leaves, kinds = zip(*(visit.before for visit in visits), strict=True)
    always = [path for path in leaves[0] if all(path in found for found in leaves)]
    names = [name for name in kinds[0] if all(name in found for found in kinds)]
    return (
        np.array(shown),
        {path: np.array([found[path] for found in leaves]) for path in always},
        {name: [found[name] for found in kinds] for name in names},
    )


def _attributes(own: Any) -> list[tuple[str, Any]]:
    """Attributes that may be part of the state: no generators and no functions."""
    noise = set(map(id, generators(own)))
    return [
        (name, value)
        for name, value in vars(own).items()
        if not name.startswith("_np_random") and id(value) not in noise and not callable(value)
    ]


def _copied(own: Any) -> dict[str, Any]:
    """Copies of attributes: together, so that what they share is shared; or what can be copied."""
    attributes = dict(_attributes(own))
    failures = (TypeError, ValueError, NotImplementedError, RecursionError)
    with suppress(*failures):
        return copy.deepcopy(attributes)
    found = {}
    for name, value in attributes.items():
        with suppress(*failures):
            found[name] = copy.deepcopy(value)
    return found


def _kind(value: Any, depth: int = 0) -> Hashable:
    """Something that is equal for values that are alike, and else is not."""
    if isinstance(value, (bool, int, float, str, bytes, type(None))):
        return value
    kind = type(value).__name__
    if isinstance(value, (np.ndarray, np.generic)):
        return (value.shape, value.dtype.str, value.tobytes())
    if depth >= MAX_INSIDE or isinstance(value, np.random.RandomState) or callable(value):
        return kind
    parts: list[Any] = []
    if isinstance(value, (list, tuple)):
        parts = list(value)
    elif isinstance(value, (set, frozenset)):
        return (kind, frozenset(_kind(part, depth + 1) for part in value))
    elif isinstance(value, dict):
        parts = list(value.items())
    elif hasattr(value, "__dict__"):
        parts = list(vars(value).items())
    return (kind, *(_kind(part, depth + 1) for part in parts))


def _leaves(own: Any, path: Path = ()) -> Iterator[tuple[Path, float]]:
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


def _write(own: Any, path: Path, value: float) -> None:
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
