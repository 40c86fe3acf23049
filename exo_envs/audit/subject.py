"""The environment that is audited: it is played, read, and put into states."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np

from exo_envs.contract.checked_mdp import unchecked
from exo_envs.core.arguments import as_list, check_function
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import ExoMDP, FloatArray
from exo_envs.core.spaces import num_shown
from exo_envs.shells.env import ExoEnv
from exo_envs.sources.access.columns import columns_of
from exo_envs.sources.access.episodes import NUM_SEEDS, noise_of, reseed, walk
from exo_envs.sources.access.found import NoWayError, find_access
from exo_envs.sources.access.state_access import (
    REFUSALS,
    Env,
    Read,
    SetState,
    ShownState,
    SplitState,
    StateAccess,
)

#: The end of a remark about an environment that cannot be put into a state.
NOT_LOOKED = "so hidden state was not looked for; give read, names and set_state"
#: States that an environment is put into to see whether it obeys.
NUM_PROBES = 8


@runtime_checkable
class IsAdapted(Protocol):
    """A model of an environment that somebody else wrote.

    Attributes:
        env: the environment.
        access: its state, by the claims of the model.
    """

    env: Env
    access: SplitState


class Step(NamedTuple):
    """What one step gave."""

    row: FloatArray  # (columns,)
    terminated: bool
    truncated: bool
    reward: float
    noise: str  # the next random numbers, to be compared; empty if they were not set before

    @property
    def is_last(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated


def fresh_copies(env: Env) -> FreshCopies | None:
    """Copies of an environment; None if it cannot be copied."""
    try:
        return FreshCopies(env)
    except (*REFUSALS, NotImplementedError, RecursionError):
        return None


class FreshCopies(gym.Wrapper[Any, Any, Any, Any]):
    """Every episode is played by a new copy, which knows of no other episode."""

    def __init__(self, env: Env) -> None:
        super().__init__(copy.deepcopy(env))
        self._pristine = env

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        """Of a new copy."""
        self.env = copy.deepcopy(self._pristine)
        return self.env.reset(**arguments)


class Subject:
    """An environment with a way to read it.

    Attributes:
        env: the environment.
        access: how its state is read and written.
        names: of the numbers of a state.
        puts: whether the environment can be put into a state.
        exogenous: the names of those that are said to move by themselves, or None.
        mdp: the model that it is made of, if it is made of one.
        remarks: what could not be done, for people.
        space: its actions.
    """

    def __init__(self, env: Env, access: StateAccess, remarks: Sequence[str] = ()) -> None:
        self.env, self.access, self.remarks = env, access, list(remarks)
        self.names, self.puts = access.names, access.puts
        self.exogenous: set[str] | None = None
        if isinstance(access, SplitState):
            self.exogenous = {variable.name for variable in access.parts[1]}
        self.mdp: ExoMDP | None = None
        self.space = env.action_space  # kept: those of copies all draw the same

    def reset(self, seed: int) -> FloatArray:
        """Begin an episode; the state it begins in."""
        observation, _ = self.env.reset(seed=seed)
        return self._read(observation)

    def try_put(self, row: FloatArray, seed: int) -> bool:
        """Begin an episode in a state; whether it could be done."""
        return self.access.refusal(self.env, row, seed) is None

    def step(self, action: Any, noise: int | None = None) -> Step:
        """Take a step; with ``noise``, its random numbers follow from that."""
        if noise is not None:
            reseed(self.env, noise)
        observation, reward, terminated, truncated, _ = self.env.step(action)
        paid = float(np.sum(np.asarray(reward, dtype=np.float64)))
        after = "" if noise is None else repr(noise_of(self.env))
        return Step(self._read(observation), bool(terminated), bool(truncated), paid, after)

    def _read(self, observation: Any) -> FloatArray:
        row = np.asarray(self.access.read(self.env, observation), dtype=np.float64)
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
    wanted = None if names is None else _as_names(names)
    access: StateAccess | None = None
    if isinstance(given, gym.Env):
        env = given
    else:
        own = unchecked(given)
        if isinstance(own, IsAdapted):  # audited where its claims come from
            env, access = own.env, own.access
        else:
            env = ExoEnv(own)
    env.action_space.seed(int(rng.integers(NUM_SEEDS)))
    if read is not None and wanted is not None:
        return _with_functions(env, ShownState(wanted, read, set_state), rng)
    subject = _with_best_way(env, rng, set_state) if access is None else Subject(env, access)
    if wanted is not None:
        if len(wanted) != len(subject.names):
            raise ArgumentError(
                f"names has {len(wanted)} names; needed: {len(subject.names)}, for {subject.names}"
            )
        renamed = dict(zip(subject.names, wanted, strict=True))
        if subject.exogenous is not None:
            subject.exogenous = {renamed[name] for name in subject.exogenous}
        subject.names = wanted
    return subject


def _as_names(names: Any) -> list[str]:
    own, seen = as_list("names of variables", names), set()
    for name in own:
        if not isinstance(name, str) or name in seen:
            raise ArgumentError(f"names are strings that are all different, unlike {name!r}")
        seen.add(name)
    return own


def _with_functions(env: Env, access: ShownState, rng: np.random.Generator) -> Subject:
    """An environment with functions of a user; their own errors show at once."""
    subject = Subject(env, access)
    row = subject.reset(int(rng.integers(NUM_SEEDS)))
    if access.puts:
        access.put(env, row, int(rng.integers(NUM_SEEDS)))
    return subject


def _with_best_way(env: Env, rng: np.random.Generator, set_state: SetState | None) -> Subject:
    """An environment, with the best way to read it that there is."""
    own = env.unwrapped
    if isinstance(own, ExoEnv):  # whatever its wrappers show
        mdp = own.mdp
        parts = (mdp.endogenous_variables, mdp.exogenous_variables)
        subject = Subject(env, SplitState(parts, get_state=lambda env: env.state))
        subject.mdp = mdp
        return subject
    shown = [column.name for column in columns_of(env.observation_space)]
    if set_state is not None:
        return _with_functions(env, ShownState(shown, None, set_state), rng)
    if num_shown(env):
        split = SplitState.shown_by(env)
        subject = Subject(env, split)
        if not _obeys(env, split, rng):
            subject.puts = False
            subject.remarks.append(
                f'{env} does not go where reset(options={{"state": ...}}) says, {NOT_LOOKED}'
            )
        return subject
    try:
        _, access = find_access(env, rng)
    except NoWayError as error:
        tried = str(error).rpartition("; give")[0]
        return Subject(env, ShownState(shown), [f"{tried}, {NOT_LOOKED}"])
    return Subject(env, access)


def _obeys(env: Env, access: SplitState, rng: np.random.Generator) -> bool:
    """Whether the environment goes where an option of the reset says."""

    def look(observation: Any) -> FloatArray:
        return access.read(env, observation)

    visits = list(walk(env, rng, NUM_PROBES, look, max_episode=NUM_PROBES))
    try:
        return all(
            np.allclose(look(access.put(env, visit.before, i)), visit.before, rtol=1e-6)
            for i, visit in enumerate(visits)
        )
    except REFUSALS:
        return False
