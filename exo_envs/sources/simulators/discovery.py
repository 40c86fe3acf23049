"""The state of an environment, found: what :meth:`AdaptedMDP.from_env` finds out.

**How it is put into a state**: several ways are tried (:mod:`exo_envs.sources.access.found`).

**What actions move** (:mod:`exo_envs.audit`) is endogenous. So is what moves by itself
but is seen at once by something that actions move: n' may look at x, and not at x'.

**Variables.** Numbers that are whole stay whole, others are real, and numbers that never changed
are left out.
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
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, unknown_name
from exo_envs.core.mdp import FloatArray, IntArray
from exo_envs.core.spaces import num_shown
from exo_envs.sources.access.columns import Column, bounded, refine
from exo_envs.sources.access.episodes import walk
from exo_envs.sources.access.found import find_access
from exo_envs.sources.access.state_access import ColumnState, Env

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
        parts = self.parts.split_by(changed)
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

    visits = walk(env, rng, NUM_SHOWN, look, max_episode=MAX_EPISODE)
    shown = np.array([visit.before for visit in visits])
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
    parts = StateParts(access, columns, shown).split_by(found)
    return Discovery(env, parts.arguments(), way, found, parts, endogenous is None)


class StateParts:
    """A state in two parts: where in a state the numbers of n and of x are."""

    def __init__(self, access: ColumnState, columns: Sequence[Column], shown: FloatArray) -> None:
        self.access, self.columns, self.shown = access, list(columns), shown
        self.places: tuple[list[int], list[int]] = ([], [])
        self._rest = shown[0].copy()

    def split_by(self, found: Audit) -> StateParts:
        """The same numbers, split as an audit says."""
        parts = StateParts(self.access, self.columns, self.shown)
        index = {column.name: i for i, column in enumerate(self.columns)}
        parts.places = ([index[n] for n in found.endogenous], [index[x] for x in found.exogenous])
        for i in parts.places[0]:
            if not parts.columns[i].is_whole:  # planners need to know how far n can go
                parts.columns[i] = bounded(parts.columns[i], self.shown[:, i])
        return parts

    def arguments(self) -> dict[str, Any]:
        """Of :class:`AdaptedMDP`."""
        reading = {"get_state": self.get} if self.access.reads_env else {"split": self.split}
        variables = [[self.columns[i].as_variable() for i in places] for places in self.places]
        return {
            **reading,
            "set_state": self.put,
            "endogenous_variables": variables[0],
            "exogenous_variables": variables[1],
        }

    def split(self, observation: Any) -> tuple[FloatArray, FloatArray]:
        """The n and x of an observation."""
        return self._split(self.access.read(None, observation))  # type: ignore[arg-type]

    def get(self, env: Any) -> tuple[FloatArray, FloatArray]:
        """The n and x of an environment."""
        return self._split(self.access.read(env, None))

    def put(self, env: Any, n: IntArray, x: IntArray) -> None:
        """Put an environment into a state."""
        values = self._rest.copy()
        for places, part in zip(self.places, (n, x), strict=True):
            for place, value in zip(places, part.tolist(), strict=True):
                values[place] = value + self.columns[place].start
        self.access.write(env, values)

    def _split(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        n, x = (
            np.array([values[i] - self.columns[i].start for i in places], dtype=np.float64)
            for places in self.places
        )
        return n, x


# --- actions ------------------------------------------------------------------------------------


class ChosenActions(gym.ActionWrapper[Any, Any, Any]):
    """An environment of which some actions are taken, by number."""

    def __init__(self, env: Env, actions: Sequence[Any]) -> None:
        super().__init__(env)
        self.chosen = list(actions)
        self.action_space = spaces.Discrete(len(self.chosen))

    def action(self, action: Any) -> Any:
        """The action of the environment."""
        return self.chosen[int(action)]


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
        return ChosenActions(env, actions)
    if isinstance(space, spaces.Discrete):
        first = int(space.start)
        own = range(first, first + int(space.n))
        return env if first == 0 else ChosenActions(env, [np.int64(a) for a in own])
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.prod() <= MAX_ACTIONS:
        choices = [
            range(int(a), int(a) + int(n))
            for a, n in zip(space.start.reshape(-1), space.nvec.reshape(-1), strict=True)
        ]
        made = [np.array(c, dtype=space.dtype).reshape(space.shape) for c in product(*choices)]
        return ChosenActions(env, made)
    raise ArgumentTypeError(
        f"the actions are {space}; give actions=[...], those of them to choose from "
        f"(for MultiDiscrete with at most {MAX_ACTIONS} they are found)"
    )
