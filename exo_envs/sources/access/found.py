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
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.errors import UNCOPIABLE, ArgumentError
from exo_envs.core.mdp import FloatArray
from exo_envs.sources.access.attributes import (
    GENERATORS,
    Path,
    attributes_of,
    likeness,
    numbers_in,
    write_number,
)
from exo_envs.sources.access.columns import Column, columns_of, flat
from exo_envs.sources.access.episodes import Episodes, visits
from exo_envs.sources.access.state_access import Env, Row, StateAccess

#: Steps of episodes that are repeated from states that were set, the share of them that has to be
#: the same, and one that needs no better way.
NUM_REPEATED, ENOUGH, PLENTY = 60, 0.5, 0.95
#: Steps in which attributes are compared with observations, and in which copies are made.
NUM_WATCHED, NUM_COPIED = 400, 2_000
#: Steps of one episode.
EPISODE = 25
#: States that have to be met again before an attribute is said to follow from some numbers, as a
#: share of all.
MET_AGAIN = 0.1


class NoWayError(ArgumentError):
    """No way to put an environment into a state works."""


def find_access(env: Env, rng: np.random.Generator) -> tuple[str, StateAccess]:
    """A way that works, and what it is called."""

    def attributes() -> StateAccess | None:
        found = find_attributes(env, rng)
        return None if found is None else StateAccess(found.columns, write=found.write)

    ways: dict[str, Callable[[], StateAccess | None]] = {
        "env.s": lambda: _tabular(env),
        "env.state": lambda: _vector(env),
        "set_state(qpos, qvel)": lambda: _physics(env),
        "attributes": attributes,
    }
    tried = []
    best: tuple[float, str, StateAccess] | None = None
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


# --- attributes of known names --------------------------------------------------------------------


def _tabular(env: Env) -> StateAccess | None:
    """Gymnasium's toy texts: ``env.s`` is the observation, which ``decode`` may take apart."""
    observation, _ = env.reset(seed=0)
    own: Any = env.unwrapped
    if np.ndim(observation) or getattr(own, "s", None) is None or own.s != observation:
        return None
    columns = columns_of(env.observation_space, "state")
    count = int(columns[0].high) + 1
    parts = np.arange(count)[:, None]
    if callable(getattr(own, "decode", None)):
        parts = np.array([list(own.decode(s)) for s in range(count)])
        encode = getattr(own, "encode", None)
        names = list(inspect.signature(encode).parameters) if callable(encode) else []
        if len(names) != parts.shape[1]:
            names = [f"state_{i}" for i in range(parts.shape[1])]
        bounds = zip(names, parts.min(axis=0).tolist(), parts.max(axis=0).tolist(), strict=True)
        columns = [Column(name, float(a), float(b), True) for name, a, b in bounds]
    numbers = {tuple(row): s for s, row in enumerate(parts.tolist())}
    return StateAccess(columns, partial(_read_parts, parts), partial(_write_parts, numbers))


def _read_parts(parts: NDArray[np.int64], _: Env, observation: Any) -> FloatArray:
    return parts[int(observation)].astype(np.float64)


def _write_parts(numbers: dict[tuple[int, ...], int], env: Any, row: Row) -> None:
    key = tuple(int(value) for value in row)
    if key not in numbers:
        raise ArgumentError(f"no state of {env} has the parts {key}")
    env.s = numbers[key]


def _vector(env: Env) -> StateAccess | None:
    """``env.state``, as in Gymnasium's classic control."""
    observation, _ = env.reset(seed=0)
    own = getattr(env.unwrapped, "state", None)
    state = flat(np.asarray(own)) if isinstance(own, (tuple, list, np.ndarray)) else np.zeros(0)
    if not len(state):
        return None
    columns = columns_of(env.observation_space)
    if len(columns) != len(state) or not np.allclose(flat(observation), state, rtol=1e-5):
        columns = [Column(f"state_{i}") for i in range(len(state))]
    return StateAccess(columns, _read_vector, _write_vector, reads_env=True)


def _read_vector(env: Any, _: Any) -> FloatArray:
    return flat(np.asarray(env.unwrapped.state))


def _write_vector(env: Any, row: Row) -> None:
    """In the type that it has."""
    own = env.state
    is_array = isinstance(own, np.ndarray)
    env.state = row.reshape(own.shape).astype(own.dtype) if is_array else type(own)(row.tolist())


def _physics(env: Env) -> StateAccess | None:
    """MuJoCo-like environments: ``set_state(qpos, qvel)``, and ``data`` that has both."""
    env.reset(seed=0)
    own: Any = env.unwrapped
    data: Any = getattr(own, "data", None)
    if not callable(getattr(own, "set_state", None)) or not hasattr(data, "qpos"):
        return None
    columns = [Column(f"{k}_{i}") for k in ("qpos", "qvel") for i in range(len(getattr(data, k)))]
    return StateAccess(columns, _read_physics, _write_physics, reads_env=True)


def _read_physics(env: Any, _: Any) -> FloatArray:
    data = env.unwrapped.data
    return np.concatenate([data.qpos, data.qvel]).astype(np.float64)


def _write_physics(env: Any, row: Row) -> None:
    env.set_state(*np.split(row, [len(env.data.qpos)]))


# --- attributes of any name -----------------------------------------------------------------------


@dataclass(frozen=True)
class Copies:
    """Copies of attributes that follow from some numbers of the observation."""

    columns: tuple[int, ...]  # these numbers, as positions
    names: tuple[str, ...]  # of the attributes
    _met: dict[tuple[float, ...], dict[str, Any]] = field(default_factory=dict)

    def learn(self, row: FloatArray, own: Any) -> None:
        """Copy the attributes of an object, together, if the numbers are new."""
        key = tuple(row[list(self.columns)].tolist())
        if key not in self._met:
            attributes = vars(own)
            met = {name: attributes[name] for name in self.names if name in attributes}
            try:
                self._met[key] = copy.deepcopy(met)
            except UNCOPIABLE:
                self._met[key] = {}  # without them, if they matter, this is no way

    def at(self, row: FloatArray) -> dict[str, Any] | None:
        """What was met with the same numbers, copied; None if they were not met."""
        return copy.deepcopy(self._met.get(tuple(row[list(self.columns)].tolist())))


@dataclass(frozen=True)
class Attributes:
    """What an observation shows, among the attributes: numbers that equal it, and copies."""

    columns: list[Column]  # the numbers of the observation
    places: dict[int, list[Path]]  # of each number, the ways to what equals it
    copies: list[Copies]  # attributes that follow from some numbers

    def write(self, env: Any, row: Row) -> None:
        """Take over copies, if there are some, and write numbers."""
        for own in self.copies:
            found = own.at(row)
            if found is None:
                names = {self.columns[c].name: float(row[c]) for c in own.columns}
                raise ArgumentError(
                    f"no episode met {names}, which {', '.join(map(repr, own.names))} follows "
                    "from; give AdaptedMDP a set_state function"
                )
            vars(env).update(found)
        for column, paths in self.places.items():
            for path in paths:
                write_number(env, path, row[column])


def find_attributes(env: Env, rng: np.random.Generator) -> Attributes | None:
    """What attributes have of an observation in some episodes; None if that has no numbers."""
    columns = columns_of(env.observation_space)
    if not columns:
        return None
    env.action_space.seed(int(rng.integers(2**31)))

    def look(observation: Any) -> tuple[FloatArray, dict[Path, float], dict[str, Hashable]]:
        own = env.unwrapped
        kinds = {
            name: likeness(value)
            for name, value in attributes_of(own)
            if not (isinstance(value, GENERATORS) or callable(value))
        }
        return flat(observation), dict(numbers_in(own)), kinds

    watched = [v.before for v in visits(env, rng, NUM_WATCHED, look, max_episode=EPISODE)]
    shown = np.array([row for row, _, _ in watched])
    changing = np.flatnonzero(np.ptp(shown, axis=0) > 0).tolist()
    places: dict[int, list[Path]] = {}
    for path, values in _always_there([numbers for _, numbers, _ in watched]).items():
        for column in changing:
            if np.allclose(values, shown[:, column], rtol=1e-6, atol=1e-9):
                places.setdefault(column, []).append(path)
    copies: list[Copies] = []
    if len(places) < len(changing):
        written = {path[0] for paths in places.values() for path in paths if len(path) == 1}
        kinds = _always_there([kinds for _, _, kinds in watched])
        rest = {name: values for name, values in kinds.items() if name not in written}
        copies = _copies(shown, changing, rest)

        def learn(observation: Any) -> None:
            for own in copies:
                own.learn(flat(observation), env.unwrapped)

        for _ in visits(env, rng, NUM_COPIED, learn, max_episode=EPISODE):
            pass
    return Attributes(columns, places, copies)


def _copies(
    shown: FloatArray, changing: list[int], kinds: dict[str, list[Hashable]]
) -> list[Copies]:
    """Attributes that change, by the fewest numbers of the observation that they follow from."""
    found: dict[tuple[int, ...], list[str]] = {}
    for name, values in kinds.items():
        kept = list(changing)
        if len(set(values)) < 2 or not _follows(shown[:, kept], values)[0]:
            continue
        for column in changing:
            fewer = [other for other in kept if other != column]
            follows, again = _follows(shown[:, fewer], values)
            if follows and again >= MET_AGAIN * len(shown):
                kept = fewer
        found.setdefault(tuple(kept), []).append(name)
    return [Copies(columns, tuple(names)) for columns, names in found.items()]


def _follows(rows: FloatArray, values: list[Hashable]) -> tuple[bool, int]:
    """Whether equal rows have equal values, and how many rows are equal to another one before."""
    first: dict[tuple[float, ...], Hashable] = {}
    for row, value in zip(map(tuple, rows.tolist()), values, strict=True):
        if first.setdefault(row, value) != value:
            return False, 0
    return True, len(rows) - len(first)


def _always_there(found: list[dict[Any, Any]]) -> dict[Any, list[Any]]:
    """Of each key that all of some dictionaries have, its values."""
    keys = [key for key in found[0] if all(key in other for other in found)]
    return {key: [own[key] for own in found] for key in keys}
