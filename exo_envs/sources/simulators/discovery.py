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
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from exo_envs.audit.audit import audit
from exo_envs.audit.results import CONSTANT, Audit, Finding
from exo_envs.core.arguments import check_horizon
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, unknown_name
from exo_envs.core.mdp import ExoMDP, FloatArray, IntArray, Variable
from exo_envs.core.spaces import Variables, Wanted, num_shown
from exo_envs.sources.access.columns import Column, bounded, refine
from exo_envs.sources.access.episodes import visits
from exo_envs.sources.access.found import find_access
from exo_envs.sources.access.state_access import Env, StateAccess

#: Arguments that say where n and x are: whoever gives one of them gives all that it takes.
OF_THE_STATE = (
    *("split", "get_state", "set_state"),
    *("endogenous_variables", "exogenous_variables"),
)
#: Actions that are made of several choices, at most.
MAX_ACTIONS = 256
#: Steps, and steps of one episode, in which the values of the variables are looked at.
NUM_SHOWN, MAX_EPISODE = 600, 50


@dataclass(frozen=True)
class Discovery:
    """Everything that was found.

    Attributes:
        env: the environment, with actions from 0.
        arguments: of :class:`AdaptedMDP`.
        way: how it is put into a state, for people.
        audit: which variables actions move; None if that was given.
        parts: the state; None if it was given.
    """

    env: Env
    arguments: dict[str, Any]
    way: str = "as it was given"
    audit: Audit | None = None
    parts: StateParts | None = field(default=None, repr=False)
    may_be_split_anew: bool = False

    def with_moved(self, name: str) -> Discovery:
        """The same, with one more endogenous variable."""
        if self.parts is None or self.audit is None:
            return self
        names = {*self.audit.endogenous, name}
        reason = "something that actions move looks at its next value, or is seen by it"
        changed = Audit(
            tuple(column.name for column in self.parts.columns if column.name in names),
            tuple(other for other in self.audit.exogenous if other != name),
            (
                *(finding for finding in self.audit.findings if finding.variable != name),
                Finding(name, True, reason),
            ),
        )
        own = self.parts
        parts = StateParts(own.access, own.columns, own.shown, changed)
        return replace(self, arguments=parts.arguments(), audit=changed, parts=parts)


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
    if any(name in given for name in OF_THE_STATE) or num_shown(env):
        return Discovery(env, {})
    way, access = find_access(env, rng)
    own = access.names
    names = own if names is None else list(names)
    if len(names) != len(own) or len(set(names)) < len(names):
        raise ArgumentError(
            f"names has {len(names)} names ({names}); needed: {len(own)}, all different, for {own}"
        )

    def look(observation: Any) -> FloatArray:
        return access.read(env, observation)

    met = visits(env, rng, NUM_SHOWN, look, max_episode=MAX_EPISODE)
    shown = np.array([visit.before for visit in met])
    changes = [name for i, name in enumerate(names) if np.ptp(shown[:, i]) > 0]
    if endogenous is None:
        found = audit(env, rng=rng, read=access.read, names=names)
        constant = {f.variable for f in found.findings if f.reason == CONSTANT}
        late = constant.intersection(changes)  # the audit's episodes are short
        exogenous = tuple(name for name in names if name in late.union(found.exogenous))
        found = Audit(found.endogenous, exogenous, found.findings)
    else:
        for name in endogenous:
            if name not in names:
                raise unknown_name("variable", name, names)
        found = Audit(
            tuple(name for name in names if name in endogenous),
            tuple(name for name in changes if name not in endogenous),
            (),
        )
    pairs = zip(access.columns, names, strict=True)
    columns = refine([replace(column, name=name) for column, name in pairs], shown)
    parts = StateParts(access, columns, shown, found)
    return Discovery(env, parts.arguments(), way, found, parts, endogenous is None)


class StateParts:
    """A state in two parts: where in a state the numbers of n and of x are.

    Args:
        access: reads and writes the whole state.
        columns: its numbers.
        shown: states that were met, shape (N, columns).
        found: says which numbers are n and which are x.
    """

    def __init__(
        self, access: StateAccess, columns: Sequence[Column], shown: FloatArray, found: Audit
    ) -> None:
        self.access, self.columns, self.shown = access, list(columns), shown
        index = {column.name: i for i, column in enumerate(columns)}
        self._n = [index[name] for name in found.endogenous]
        self._x = [index[name] for name in found.exogenous]
        for i in self._n:
            if not columns[i].is_whole:  # planners need to know how far n can go
                self.columns[i] = bounded(columns[i], shown[:, i])
        self._start = np.array([column.start for column in self.columns])

    def arguments(self) -> dict[str, Any]:
        """Of :class:`AdaptedMDP`."""
        n, x = ([self.columns[i].as_variable() for i in own] for own in (self._n, self._x))
        return {
            **({"get_state": self.get} if self.access.reads_env else {"split": self.split}),
            "set_state": self.put,
            "endogenous_variables": n,
            "exogenous_variables": x,
        }

    def split(self, observation: Any) -> tuple[FloatArray, FloatArray]:
        """The n and x of an observation."""
        return self._parts(self.access.read(None, observation))  # type: ignore[arg-type]

    def get(self, env: Any) -> tuple[FloatArray, FloatArray]:
        """The n and x of an environment."""
        return self._parts(self.access.read(env, None))

    def put(self, env: Any, n: IntArray, x: IntArray) -> None:
        """Put an environment into a state."""
        values = self.shown[0].copy()
        values[self._n] = n + self._start[self._n]
        values[self._x] = x + self._start[self._x]
        self.access.write(env, values)

    def _parts(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = values - self._start
        return values[self._n], values[self._x]


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
        choices = [
            range(int(a), int(a) + int(n))
            for a, n in zip(space.start.reshape(-1), space.nvec.reshape(-1), strict=True)
        ]
        made = [np.array(c, dtype=space.dtype).reshape(space.shape) for c in product(*choices)]
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
    layer = env
    while isinstance(layer, gym.Wrapper):
        shown, all_of_them = num_shown(layer), num_shown(layer.env)
        if isinstance(layer, gym.ObservationWrapper) and shown < all_of_them:
            raise ArgumentError(
                f"{layer} shows {shown} of {all_of_them} variables, so the state cannot be read; "
                f"give the environment underneath, {layer.env}"
            )
        layer = layer.env


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
    """Refuse two variables of one name."""
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
        horizon = min(_time_limits(env), default=None)
    if horizon is None:
        raise ArgumentError(f"{env} does not say how long an episode is; give horizon")
    return check_horizon("horizon", horizon)


def _time_limits(env: gym.Env[Any, Any]) -> list[int]:
    """All limits to the length of an episode, of the environment and its wrappers."""
    layers = [env]
    while isinstance(layers[-1], gym.Wrapper):
        layers.append(layers[-1].env)
    found = [
        vars(layer)["_max_episode_steps"]  # Gymnasium has no public name for it
        for layer in layers
        if isinstance(layer, gym.wrappers.TimeLimit)
    ]
    if env.spec is not None:
        found.append(env.spec.max_episode_steps)
    limits = [limit for limit in found if limit is not None]
    if not limits:
        own = (getattr(layers[-1], name, None) for name in ("max_episode_steps", "max_steps"))
        limits = [limit for limit in own if isinstance(limit, (int, np.integer)) and limit > 0]
    return [int(limit) for limit in limits]
