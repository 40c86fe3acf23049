"""The state of an environment, found: what :meth:`AdaptedMDP.from_env` finds out.

**How it is put into a state**: several ways are tried (:mod:`exo_envs.sources.access.found`).

**What actions move** (:mod:`exo_envs.audit`) is endogenous. So is what moves by itself
but is seen at once by something that actions move: n' may look at x, and not at x'.

**Variables.** Numbers that are whole stay whole, others are real, and numbers that never changed
are left out. The horizon is what the environment says.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from exo_envs.audit.audit import audit
from exo_envs.audit.results import Audit, Finding
from exo_envs.core.arguments import check_horizon
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, unknown_name
from exo_envs.core.mdp import ExoMDP, FloatArray, IntArray, Variable
from exo_envs.core.spaces import Variables, Wanted, num_shown
from exo_envs.sources.access.columns import Column, bounded, refine
from exo_envs.sources.access.episodes import visits
from exo_envs.sources.access.found import find_access
from exo_envs.sources.access.state_access import Env, StateAccess

#: Actions that are made of several choices, at most.
MAX_ACTIONS = 256
#: Steps, and steps of one episode, in which the values of the variables are looked at.
NUM_SHOWN, MAX_EPISODE = 600, 50


@dataclass(frozen=True)
class Discovery:
    """Everything that was found.

    Attributes:
        env: the environment, with actions from 0.
        way: how it is put into a state, for people.
        audit: which variables actions move; None if the state was given, and so is all below.
        access: reads and writes the whole state.
        columns: its numbers, by what was met.
        shown: states that were met, shape (N, columns).
        may_be_split_anew: whether nobody said what actions move.
    """

    env: Env
    way: str = "as it was given"
    audit: Audit | None = None
    access: StateAccess | None = field(default=None, repr=False)
    columns: tuple[Column, ...] = field(default=(), repr=False)
    shown: FloatArray | None = field(default=None, repr=False)
    may_be_split_anew: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        """Of :class:`AdaptedMDP`; none if the state was given."""
        if self.audit is None or self.access is None or self.shown is None:
            return {}
        index = {column.name: i for i, column in enumerate(self.columns)}
        n = [index[name] for name in self.audit.endogenous]
        x = [index[name] for name in self.audit.exogenous]
        columns = list(self.columns)
        for i in n:  # planners need to know how far n can go
            if not columns[i].is_whole:
                columns[i] = bounded(columns[i], self.shown[:, i])
        start = np.array([column.start for column in columns])
        parts = StateParts(self.access, n, x, start, self.shown[0])
        split = partial(parts.get, None)  # of an observation
        return {
            **({"get_state": parts.get} if self.access.reads_env else {"split": split}),
            "set_state": parts.put,
            "endogenous_variables": [columns[i].as_variable() for i in n],
            "exogenous_variables": [columns[i].as_variable() for i in x],
        }

    def with_moved(self, name: str) -> Discovery:
        """The same, with one more endogenous variable."""
        was = self.audit or Audit((), (), ())
        reason = "something that actions move looks at its next value, or is seen by it"
        findings = [own for own in was.findings if own.variable != name]
        n = tuple(own.name for own in self.columns if own.name in (*was.endogenous, name))
        x = tuple(other for other in was.exogenous if other != name)
        return replace(self, audit=Audit(n, x, (*findings, Finding(name, True, reason))))


class StateParts(NamedTuple):
    """A state in two parts."""

    access: StateAccess  # of the whole state
    n: list[int]  # where in a state the numbers of n are
    x: list[int]  # the same for x
    start: FloatArray  # (columns,) what is shown for 0
    rest: FloatArray  # (columns,) a state that was met: the numbers that are in neither part

    def get(self, env: Any, observation: Any = None) -> tuple[FloatArray, FloatArray]:
        values = self.access.read(env, observation) - self.start
        return values[self.n], values[self.x]

    def put(self, env: Any, n: IntArray, x: IntArray) -> None:
        values = self.rest.copy()
        values[self.n] = n + self.start[self.n]
        values[self.x] = x + self.start[self.x]
        self.access.write(env, values)


def discover(
    env: Env,
    actions: Sequence[Any] | None,
    names: Sequence[str] | None,
    endogenous: Collection[str] | None,
    rng: np.random.Generator,
    given: Collection[str],
) -> Discovery:
    """Find the state of an environment, and how to set it, unless that is given; see the module."""
    env = with_actions(env, actions)
    known = {"split", "get_state", "set_state", "endogenous_variables", "exogenous_variables"}
    if known.intersection(given) or num_shown(env):
        return Discovery(env)  # whoever gives one of these gives all that it takes
    way, access = find_access(env, rng)
    if names is not None:
        access = access.renamed(names)

    met = visits(env, rng, NUM_SHOWN, partial(access.read, env), max_episode=MAX_EPISODE)
    shown = np.array([visit.before for visit in met])
    changing = {name for i, name in enumerate(access.names) if np.ptp(shown[:, i]) > 0}
    for name in endogenous or ():
        if name not in access.names:
            raise unknown_name("variable", name, access.names)
    if endogenous is None:
        found = audit(env, rng=rng, read=access.read, names=access.names)
        moved, findings = set(found.endogenous), found.findings
        exogenous = {*found.exogenous, *changing.intersection(found.constant)}  # or seen too late
    else:
        moved, exogenous, findings = set(endogenous), changing.difference(endogenous), ()
    n, x = (tuple(name for name in access.names if name in own) for own in (moved, exogenous))
    columns = tuple(refine(access.columns, shown))
    split = Audit(n, x, findings)
    return Discovery(env, way, split, access, columns, shown, endogenous is None)


# --- what an environment says of itself -----------------------------------------------------------


def with_actions(env: Env, actions: Sequence[Any] | None) -> Env:
    """The environment with actions 0, 1 ...: those that are given, or all of its own."""
    if not isinstance(env, gym.Env):
        raise ArgumentTypeError(f"an AdaptedMDP is made of a gymnasium.Env, not of {env!r}")
    space = env.action_space
    if actions is not None:
        if len(actions) == 0:
            raise ArgumentError("actions has one action at least")
        for action in actions:
            if not space.contains(action):
                raise ArgumentError(f"{action!r} is no action of {space}")
        return _numbered(env, actions)
    if isinstance(space, spaces.Discrete):
        first = int(space.start)
        own = range(first, first + int(space.n))
        return env if first == 0 else _numbered(env, [np.int64(a) for a in own])
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.prod() <= MAX_ACTIONS:
        choices = np.ndindex(*space.nvec.reshape(-1).tolist())
        made = [space.start + np.array(c, space.dtype).reshape(space.shape) for c in choices]
        return _numbered(env, made)
    raise ArgumentTypeError(
        f"the actions are {space}; give actions=[...], those of them to choose from "
        f"(for MultiDiscrete with at most {MAX_ACTIONS} they are found)"
    )


def _numbered(env: Env, actions: Sequence[Any]) -> Env:
    """The environment with some of its actions, by number."""
    space = spaces.Discrete(len(actions))
    return gym.wrappers.TransformAction(env, list(actions).__getitem__, space)


def check_all_shown(env: gym.Env[Any, Any]) -> None:
    """Refuse observations without some variables of the state that ``reset`` is to be given.

    An observation wrapper changes what is shown and nothing else, so the state is what the
    environment underneath shows.
    """
    for layer in layers_of(env):
        if not isinstance(layer, gym.ObservationWrapper):
            continue
        shown, all_of_them = num_shown(layer), num_shown(layer.env)
        if shown < all_of_them:
            raise ArgumentError(
                f"{layer} shows {shown} of {all_of_them} variables, so the state cannot be read; "
                f"give the environment underneath, {layer.env}"
            )


def declared_variables(part: str, wanted: Wanted) -> Variables:
    """The variables in one part of what split or get_state return, as the user says."""
    given = wanted if isinstance(wanted, (list, tuple)) else ()
    variables = tuple(entry for entry in given if isinstance(entry, Variable))
    if given is not wanted or len(variables) < len(given):
        raise ArgumentTypeError(
            f"with split or get_state, {part}_variables is a sequence of Variable(name, size) "
            f"that says what they return, not {wanted!r}"
        )
    return variables


def check_distinct(variables: Variables) -> None:
    names = [variable.name for variable in variables]
    for name in names:
        if names.count(name) > 1:
            hint = " (one of them is the adapter's own)" if name == "done" else ""
            raise ArgumentError(f"there are two variables named {name!r}{hint}")


def scope_positions(mdp: ExoMDP, given: Any) -> list[frozenset[int]]:
    """Scopes of the reward as positions in x."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Collection):
        raise ArgumentTypeError(
            f"reward_scopes is a collection of collections of names, not {given!r}"
        )
    scopes = [frozenset(mdp.exogenous_indices(scope).tolist()) for scope in given]
    if not all(scopes):
        raise ArgumentError("a scope of the reward has one name at least")
    return scopes


def horizon_of(env: gym.Env[Any, Any], horizon: int | None) -> int:
    """The length of an episode: what is given, or else what the environment says.

    That is the smallest of its time limits: those of its registration and of wrappers, or else
    what it calls ``max_episode_steps`` or ``max_steps`` itself.

    >>> from gymnasium.envs.toy_text.taxi import TaxiEnv
    >>> horizon_of(gym.wrappers.TimeLimit(TaxiEnv(), 50), None)
    50
    """
    if horizon is None:
        layers = layers_of(env)
        limits = [
            int(vars(own)["_max_episode_steps"])  # Gymnasium has no public name for it
            for own in layers
            if isinstance(own, gym.wrappers.TimeLimit)
        ]
        if env.spec is not None and env.spec.max_episode_steps is not None:
            limits.append(env.spec.max_episode_steps)
        if not limits:
            own = (getattr(layers[-1], name, None) for name in ("max_episode_steps", "max_steps"))
            limits = [int(n) for n in own if isinstance(n, (int, np.integer)) and n > 0]
        horizon = min(limits, default=None)
    if horizon is None:
        raise ArgumentError(f"{env} does not say how long an episode is; give horizon")
    return check_horizon("horizon", horizon)


def layers_of(env: Any) -> list[Any]:
    """An environment, and what is under each of its wrappers."""
    layers = [env]
    while isinstance(layers[-1], gym.Wrapper):
        layers.append(layers[-1].env)
    return layers
