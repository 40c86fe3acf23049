"""What is audited, as something that is played, read, and put into states."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from exo_envs.audit.reading import (
    AccessState,
    ForeignState,
    GivenState,
    ModelState,
    PartsState,
    Read,
    SetState,
    ShownState,
    Way,
)
from exo_envs.contract.checked_mdp import unchecked
from exo_envs.core.arguments import as_list, check_function
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import ExoMDP, FloatArray
from exo_envs.core.spaces import num_shown
from exo_envs.shells.env import ExoEnv
from exo_envs.sources.simulators.episodes import NUM_SEEDS
from exo_envs.sources.simulators.foreign import Env, ForeignEnv
from exo_envs.sources.simulators.generators import noise_of, reseed
from exo_envs.sources.simulators.ways import NoWayError, find_access

#: The end of a remark about an environment that cannot be put into a state.
NOT_LOOKED = (
    "so hidden state was looked for only where two different actions lead to what looks like the "
    "same state; give read, names and set_state"
)


class Step(NamedTuple):
    """What one step gave."""

    row: FloatArray  # (columns,)
    reward: float
    terminated: bool
    truncated: bool

    @property
    def is_last(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated


class Subject:
    """An environment with a way to read it.

    Attributes:
        env: the environment.
        way: how its state is read and written.
        remarks: what could not be done, for people.
        space: its actions.
    """

    def __init__(self, env: Env, way: Way, remarks: Sequence[str] = ()) -> None:
        self.env, self.way, self.remarks = env, way, list(remarks)
        self.space = env.action_space  # kept: those of copies all draw the same
        self._pristine: Subject | None = None  # once every episode is played by a copy of it

    @property
    def names(self) -> list[str]:
        """Of the numbers of a state."""
        return self.way.names

    def reset(self, seed: int, *, renew: bool = True) -> FloatArray:
        """Begin an episode; the state it begins in.

        Args:
            seed: of the reset.
            renew: whether to play it with a new copy, if every episode is.
        """
        if renew:
            self._renew()
        observation, _ = self.env.reset(seed=seed)
        return self._read(observation)

    def put(self, row: FloatArray, seed: int) -> None:
        """Begin an episode in a state."""
        self._renew()
        self.way.put(self.env, row, seed)

    def try_put(self, row: FloatArray, seed: int) -> bool:
        """The same; whether it could be done: nobody says that any numbers go together."""
        try:
            self.put(row, seed)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError):
            return False
        return True

    def step(self, action: Any, noise: int | None = None) -> Step:
        """Take a step; with ``noise``, its random numbers follow from that."""
        if noise is not None:
            reseed(self.env, noise)
        observation, reward, terminated, truncated, _ = self.env.step(action)
        paid = float(np.sum(np.asarray(reward, dtype=np.float64)))
        return Step(self._read(observation), paid, bool(terminated), bool(truncated))

    def noise(self) -> str:
        """What the next random numbers will be, to be compared."""
        return repr(noise_of(self.env))

    def play_copies(self) -> bool:
        """From now on, play every episode with a new copy, which knows of no other episode.

        Returns:
            Whether the environment can be copied.
        """
        if self._pristine is None:
            try:
                self._pristine = copy.deepcopy(self)
            except (TypeError, ValueError, AttributeError, NotImplementedError, RecursionError):
                return False
        return True

    def play_one(self) -> None:
        """From now on, play all episodes with one environment again."""
        self._pristine = None

    def _renew(self) -> None:
        if self._pristine is not None:
            new = copy.deepcopy(self._pristine)
            self.env, self.way = new.env, new.way

    def _read(self, observation: Any) -> FloatArray:
        row = np.asarray(self.way.read(self.env, observation), dtype=np.float64)
        if row.shape != (len(self.names),):
            raise ArgumentError(
                f"a state has {row.size} numbers (shape {row.shape}) but {len(self.names)} names"
            )
        return row


def as_subject(
    given: Any,
    rng: np.random.Generator,
    *,
    read: Read | None = None,
    names: Sequence[str] | None = None,
    set_state: SetState | None = None,
) -> Subject:
    """What a user has, as something that is played, read and put into states."""
    check_function("read", read, optional=True)
    check_function("set_state", set_state, optional=True)
    if not isinstance(given, (ExoMDP, gym.Env)):
        raise ArgumentTypeError(f"needed: a gymnasium.Env or an ExoMDP, not {given!r}")
    if read is not None and names is None:
        raise ArgumentTypeError("with read, names says what the numbers that it returns are called")
    own = _of_model(given) if isinstance(given, ExoMDP) else Subject(given, ShownState(given))
    own.space.seed(int(rng.integers(NUM_SEEDS)))
    if read is not None:
        return _with_functions(own.env, GivenState(read, _as_names(names), set_state), rng)
    subject = own if isinstance(given, ExoMDP) else _of_env(own.env, rng, set_state)
    if names is not None:
        shown, wanted = subject.names, _as_names(names)
        if len(wanted) != len(shown):
            raise ArgumentError(f"names has {len(wanted)} names; needed: {len(shown)}, for {shown}")
        renamed = dict(zip(shown, wanted, strict=True))
        said = subject.way.exogenous
        subject.way.exogenous = None if said is None else frozenset(renamed[name] for name in said)
        subject.way.names = wanted
    return subject


def _as_names(names: Any) -> list[str]:
    own, seen = as_list("names of variables", names), set()
    for name in own:
        if not isinstance(name, str) or name in seen:
            raise ArgumentError(f"names are strings that are all different, unlike {name!r}")
        seen.add(name)
    return own


def _with_functions(env: Env, way: GivenState, rng: np.random.Generator) -> Subject:
    """An environment with functions that somebody gave; their own errors show at once."""
    subject = Subject(env, way)
    row = subject.reset(int(rng.integers(NUM_SEEDS)))
    if way.puts:
        subject.put(row, int(rng.integers(NUM_SEEDS)))
    return subject


def _of_model(mdp: ExoMDP) -> Subject:
    mdp = unchecked(mdp)
    foreign = getattr(mdp, "foreign", None)
    if isinstance(foreign, ForeignEnv):  # an adapted model is audited where its claims come from
        return Subject(foreign.env, ForeignState(foreign))
    return Subject(ExoEnv(mdp), ModelState(mdp))


def _of_env(env: Env, rng: np.random.Generator, set_state: SetState | None) -> Subject:
    """An environment, with the best way to read it that there is."""
    own = env.unwrapped
    if isinstance(own, ExoEnv):
        return Subject(env, ModelState(own.mdp))
    if set_state is not None:
        shown = ShownState(env)
        return _with_functions(env, GivenState(shown.read, shown.names, set_state), rng)
    if num_shown(env):
        parts = PartsState(env)
        if parts.obeys(env, rng):
            return Subject(env, parts)
        parts.puts = False
        refused = f'{env} does not go where reset(options={{"state": ...}}) says, {NOT_LOOKED}'
        return Subject(env, parts, [refused])
    try:
        _, access = find_access(env, rng)
    except NoWayError as error:
        tried = str(error).rpartition("; give")[0]
        return Subject(env, ShownState(env), [f"{tried}, {NOT_LOOKED}"])
    return Subject(env, AccessState(access))
