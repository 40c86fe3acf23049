"""The environment that is audited: it is played, read, and put into states."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import gymnasium as gym
import numpy as np

from exo_envs.contract.checked_mdp import unchecked
from exo_envs.core.arguments import as_list
from exo_envs.core.batches import PARTS
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import ExoMDP, FloatArray
from exo_envs.core.spaces import num_shown, observed_variables
from exo_envs.shells.env import ExoEnv
from exo_envs.sources.access.attributes import noise_of, reseed
from exo_envs.sources.access.columns import Column, columns_of
from exo_envs.sources.access.episodes import NUM_SEEDS, visits
from exo_envs.sources.access.found import NoWayError, find_access
from exo_envs.sources.access.state_access import (
    REFUSALS,
    Env,
    Read,
    SetState,
    SplitState,
    StateAccess,
)

#: The end of a remark about an environment that cannot be put into a state.
NOT_LOOKED = "so hidden state was not looked for; give read, names and set_state"
#: States that an environment is put into to see whether it obeys.
NUM_PROBES = 8


class PlayedStep(NamedTuple):
    row: FloatArray  # (columns,)
    terminated: bool
    is_last: bool  # whether the episode is over, for whatever reason
    reward: float
    noise: str  # the next random numbers, to be compared; empty if they were not set before


class FreshCopies(gym.Wrapper[Any, Any, Any, Any]):
    """Every episode is played by a new copy, which knows of no other episode."""

    def __init__(self, env: Env) -> None:
        super().__init__(copy.deepcopy(env))
        self._pristine = env

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        self.env = copy.deepcopy(self._pristine)
        return self.env.reset(**arguments)


class Subject:
    """An environment with a way to read it.

    Attributes:
        env: the environment.
        access: how its state is read and written.
        mdp: the model that it is made of, if it is made of one.
        exogenous: the names of the numbers that are said to move by themselves, or None.
        remarks: what could not be done, for people.
        space: its actions.
    """

    def __init__(
        self, env: Env, access: StateAccess, mdp: ExoMDP | None, remarks: list[str]
    ) -> None:
        self.env, self.access, self.mdp, self.remarks = env, access, mdp, remarks
        self.names, self.puts = access.names, access.puts
        self.exogenous: set[str] | None = None
        if isinstance(access, SplitState):
            self.exogenous = set(access.names[len(access.parts[0]) :])
        self.space = env.action_space  # kept: those of copies all draw the same

    def reset(self, seed: int) -> FloatArray:
        """Begin an episode; the state it begins in."""
        observation, _ = self.env.reset(seed=seed)
        return self._read(observation)

    def try_put(self, row: FloatArray, seed: int) -> bool:
        """Begin an episode in a state; whether it could be done."""
        return self.access.refusal(self.env, row, seed) is None

    def step(self, action: Any, noise: int | None = None) -> PlayedStep:
        """Take a step; with ``noise``, its random numbers follow from that."""
        if noise is not None:
            reseed(self.env, noise)
        observation, reward, terminated, truncated, _ = self.env.step(action)
        is_last, paid = bool(terminated or truncated), float(np.sum(np.asarray(reward, float)))
        after = "" if noise is None else repr(noise_of(self.env))
        return PlayedStep(self._read(observation), bool(terminated), is_last, paid, after)

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
    if not isinstance(given, (ExoMDP, gym.Env)):
        raise ArgumentTypeError(f"needed: a gymnasium.Env or an ExoMDP, not {given!r}")
    model: Any = unchecked(given) if isinstance(given, ExoMDP) else None
    claimed, env = getattr(model, "access", None), cast(Env, given)
    if isinstance(claimed, SplitState):  # an AdaptedMDP: audited where its claims come from
        env = model.env
    elif model is not None:
        env = ExoEnv(model)
    env.action_space.seed(int(rng.integers(NUM_SEEDS)))
    own, mdp, remarks = env.unwrapped, None, list[str]()
    access: StateAccess
    if read is not None:
        columns = [Column(name) for name in as_list("names of variables", names)]
        access = StateAccess(columns, read, set_state)
    elif isinstance(claimed, SplitState):
        access = claimed
    elif isinstance(own, ExoEnv):  # whatever its wrappers show
        mdp = own.mdp
        parts = (mdp.endogenous_variables, mdp.exogenous_variables)
        access = SplitState(parts, get_state=lambda env: env.state)
    elif set_state is not None:
        access = StateAccess(columns_of(env.observation_space), None, set_state)
    else:
        access, remarks = _best_way(env, rng)
    subject = Subject(env, access if names is None else access.renamed(names), mdp, remarks)
    if not isinstance(access, SplitState) and (read or set_state):  # their errors show at once
        row = subject.reset(int(rng.integers(NUM_SEEDS)))
        if subject.puts:
            access.put(env, row, int(rng.integers(NUM_SEEDS)))
    return subject


def _best_way(env: Env, rng: np.random.Generator) -> tuple[StateAccess, list[str]]:
    """The best way to read and to set somebody's environment, and what is missing."""
    if not num_shown(env):
        try:
            return find_access(env, rng)[1], []
        except NoWayError as error:
            tried = str(error).rpartition("; give")[0]
            return StateAccess(columns_of(env.observation_space)), [f"{tried}, {NOT_LOOKED}"]
    n, x = (observed_variables(env.observation_space, part, None) for part in PARTS)
    split = SplitState((n, x))
    met = list(visits(env, rng, NUM_PROBES, partial(split.read, env), max_episode=NUM_PROBES))
    try:
        split.puts = split.astray(env, [visit.before for visit in met]) is None
    except REFUSALS:
        split.puts = False
    option = 'reset(options={"state": ...})'
    return split, [] if split.puts else [f"{env} does not go where {option} says, {NOT_LOOKED}"]
