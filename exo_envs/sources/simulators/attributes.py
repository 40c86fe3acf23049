"""Environments whose state is somewhere among their attributes.

Some episodes are played, and the attributes are looked at meanwhile. A number of the observation
that always equals a number among the attributes is written there. What else belongs to the state,
such as a position that is a tuple or weather that is a word, is an attribute whose value follows
from some numbers of the observation: it is made a deep copy of one that was met with these numbers.
Each attribute is looked up by the few numbers that it follows from, so not every state has to be
met: it is enough that every place and every kind of weather are.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import FloatArray
from exo_envs.sources.simulators.episodes import flat
from exo_envs.sources.simulators.foreign import Env
from exo_envs.sources.simulators.generators import generators
from exo_envs.sources.simulators.readings import Column, columns_of

#: Numbers among the attributes of an environment that are compared with its observations.
MAX_LEAVES = 20_000
#: How deep attributes are looked into for numbers, and for what they are.
MAX_DEPTH, MAX_INSIDE = 3, 8
#: Steps in which attributes are compared with observations, and in which copies are made.
NUM_WATCHED, NUM_COPIED = 400, 2_000
#: Steps of one episode.
EPISODE = 25
#: States that have to be met again before an attribute is said to follow from some numbers, as a
#: share of all.
MET_AGAIN = 0.1


class UnmetStateError(ArgumentError):
    """No episode met a state, and nothing else says how to put the environment into it."""


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
        key = self._key(row)
        if key not in self._met:
            self._met[key] = {name: attributes[name] for name in self.names if name in attributes}

    def at(self, row: FloatArray) -> dict[str, Any] | None:
        """Copies of what was met with the same numbers; None if they were not met."""
        found = self._met.get(self._key(row))
        return None if found is None else copy.deepcopy(found)

    def _key(self, row: FloatArray) -> tuple[float, ...]:
        return tuple(row[list(self.columns)].tolist())


class AttributeState:
    """Attributes that equal what is shown, and copies of those that follow from it."""

    reads_env = False

    def __init__(self, env: Env, rng: np.random.Generator) -> None:
        self.columns: list[Column] = columns_of(env.observation_space)
        shown, leaves, kinds = _watch(env, rng)
        changing = np.flatnonzero(np.ptp(shown, axis=0) > 0).tolist()
        self._places: dict[int, list[tuple[Any, ...]]] = {}
        for column in changing:
            same = [path for path, values in leaves.items() if _equal(values, shown[:, column])]
            if same:
                self._places[column] = same
        self.groups: list[Group] = []
        rest = [column for column in changing if column not in self._places]
        if rest:
            self.groups = _groups(shown, changing, kinds, written=self._written())
            for row, attributes in _copies(env, rng):
                for group in self.groups:
                    group.learn(row, attributes)

    def _written(self) -> set[str]:
        """Attributes that are numbers themselves, and are written."""
        paths = [path for paths in self._places.values() for path in paths]
        return {path[0] for path in paths if len(path) == 1}

    @staticmethod
    def fits(env: Env) -> bool:
        """Whether the environment has such a state."""
        return bool(columns_of(env.observation_space))

    def read(self, env: Env, observation: Any) -> FloatArray:
        """The numbers of the observation."""
        return flat(observation)

    def write(self, env: Any, values: FloatArray) -> None:
        """Take over copies, if it takes some, and write attributes."""
        for group in self.groups:
            found = group.at(values)
            if found is None:
                names = {self.columns[c].name: float(values[c]) for c in group.columns}
                raise UnmetStateError(
                    f"no episode met {names}, which {', '.join(map(repr, group.names))} follows "
                    "from; give AdaptedMDP a set_state function"
                )
            vars(env).update(found)
        for column, paths in self._places.items():
            for path in paths:
                _write(env, path, values[column])


# --- which attributes follow from which numbers ------------------------------------------------


def _groups(
    shown: FloatArray, changing: list[int], kinds: dict[str, list[Hashable]], written: set[str]
) -> list[Group]:
    """Attributes that change, by the fewest numbers of the observation that they follow from."""
    found: dict[tuple[int, ...], list[str]] = {}
    for name, values in kinds.items():
        if name in written or len(values) < len(shown) or len(set(values)) < 2:
            continue
        number = {value: i for i, value in enumerate(dict.fromkeys(values))}
        codes = np.array([number[value] for value in values])
        columns = _fewest(shown, changing, codes)
        if columns is not None:
            found.setdefault(columns, []).append(name)
    return [Group(columns, tuple(names)) for columns, names in found.items()]


def _fewest(shown: FloatArray, columns: list[int], codes: Any) -> tuple[int, ...] | None:
    """The columns that a value follows from; None if it does not even follow from all of them."""
    if not _follows(shown[:, columns], codes)[0]:
        return None
    kept = list(columns)
    for column in columns:
        fewer = [other for other in kept if other != column]
        follows, again = _follows(shown[:, fewer], codes)
        if follows and again >= MET_AGAIN * len(shown):
            kept = fewer
    return tuple(kept)


def _follows(rows: FloatArray, codes: Any) -> tuple[bool, int]:
    """Whether equal rows have equal codes, and how many rows are equal to another one before."""
    first: dict[bytes, int] = {}
    for row, code in zip(np.ascontiguousarray(rows), codes.tolist(), strict=True):
        if first.setdefault(row.tobytes(), code) != code:
            return False, 0
    return True, len(rows) - len(first)


# --- what is watched ---------------------------------------------------------------------------


def _walk(env: Env, rng: np.random.Generator, num_steps: int) -> Iterator[FloatArray]:
    """So many states of episodes, as they are shown; some repeat each action for a while."""
    count = 0
    while count < num_steps:
        observation, _ = env.reset(seed=int(rng.integers(2**31)))
        repeat, action = float(rng.choice([0.0, 0.7])), env.action_space.sample()
        for _ in range(EPISODE):
            yield flat(observation)
            count += 1
            if rng.random() >= repeat:
                action = env.action_space.sample()
            observation, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated or count >= num_steps:
                break


def _watch(
    env: Env, rng: np.random.Generator
) -> tuple[FloatArray, dict[tuple[Any, ...], FloatArray], dict[str, list[Hashable]]]:
    """What episodes show, and the numbers among attributes and what attributes are meanwhile."""
    shown: list[FloatArray] = []
    leaves: dict[tuple[Any, ...], list[float]] = {}
    kinds: dict[str, list[Hashable]] = {}
    env.action_space.seed(int(rng.integers(2**31)))
    for row in _walk(env, rng, NUM_WATCHED):
        now = dict(_leaves(env.unwrapped))
        if not shown:
            leaves = {path: [] for path in now}
        for path in [path for path in leaves if path not in now]:
            del leaves[path]  # not always there
        for path, values in leaves.items():
            values.append(now[path])
        for name in _names(env.unwrapped):
            kinds.setdefault(name, []).append(_kind(vars(env.unwrapped)[name]))
        shown.append(row)
    return np.array(shown), {path: np.array(v) for path, v in leaves.items()}, kinds


def _copies(env: Env, rng: np.random.Generator) -> Iterator[tuple[FloatArray, dict[str, Any]]]:
    """States that are shown, with copies of all attributes."""
    for row in _walk(env, rng, NUM_COPIED):
        yield row, _copied(env.unwrapped)


def _names(own: Any) -> list[str]:
    """Attributes that may be part of the state: no generators and no functions."""
    noise = set(map(id, generators(own)))
    return [
        name
        for name, value in vars(own).items()
        if not name.startswith("_np_random") and id(value) not in noise and not callable(value)
    ]


def _copied(own: Any) -> dict[str, Any]:
    """Copies of attributes: together, so that what they share is shared; or what can be copied."""
    attributes = {name: vars(own)[name] for name in _names(own)}
    try:
        return copy.deepcopy(attributes)
    except (TypeError, ValueError, NotImplementedError, RecursionError):
        pass
    found = {}
    for name, value in attributes.items():
        with suppress(TypeError, ValueError, NotImplementedError, RecursionError):
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


# --- numbers among attributes ------------------------------------------------------------------


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
