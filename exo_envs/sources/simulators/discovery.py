"""What :meth:`AdaptedMDP.from_env` finds out about an environment.

**How it is put into a state**: several ways are tried (:mod:`exo_envs.sources.simulators.ways`).

**What actions move** (:mod:`exo_envs.audit`) is endogenous. So is what moves by itself
but is seen at once by something that actions move: n' may look at x, and not at x'.

**Variables.** Numbers that are whole stay whole, others are real, and numbers that never changed
are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from exo_envs.audit.audit import audit
from exo_envs.audit.results import CONSTANT, Audit, Finding
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, unknown_name
from exo_envs.core.mdp import FloatArray, IntArray
from exo_envs.core.spaces import num_shown
from exo_envs.sources.simulators.chance import affordable_samples, find_chance
from exo_envs.sources.simulators.episodes import NUM_SEEDS
from exo_envs.sources.simulators.foreign import Env
from exo_envs.sources.simulators.played import find_moved
from exo_envs.sources.simulators.readings import Column, bounded, refine
from exo_envs.sources.simulators.state_access import StateAccess
from exo_envs.sources.simulators.ways import find_access, sample_action

if TYPE_CHECKING:
    from exo_envs.sources.simulators.mdp import AdaptedMDP

#: Arguments that say where n and x are: whoever gives one of them gives all that it takes.
OF_THE_STATE = (
    *("split", "get_state", "set_state"),
    *("endogenous_variables", "exogenous_variables"),
)
#: Actions that are made of several choices, at most.
MAX_ACTIONS = 256


@dataclass(frozen=True)
class Discovery:
    """What was found.

    Attributes:
        env: the environment, with actions from 0.
        arguments: of :class:`AdaptedMDP`.
        way: how it is put into a state, for people.
        audit: what actions move; None if it was given.
    """

    env: Env
    arguments: dict[str, Any]
    way: str = "as it was given"
    audit: Audit | None = None
    parts: StateParts | None = field(default=None, repr=False)

    def with_moved(self, name: str) -> Discovery:
        """The same, with one more endogenous variable."""
        if self.parts is None or self.audit is None:
            return self
        names = {*self.audit.endogenous, name}
        reason = "something that actions move looks at its next value, or is seen by it"
        findings = [f for f in self.audit.findings if f.variable != name]
        changed = Audit(
            tuple(c.name for c in self.parts.columns if c.name in names),
            tuple(other for other in self.audit.exogenous if other != name),
            (*findings, Finding(name, True, reason)),
        )
        parts = self.parts.split_by(changed)
        return Discovery(
            self.env, {**self.arguments, **parts.arguments()}, self.way, changed, parts
        )


def adapt(
    make: Callable[..., AdaptedMDP],
    env: Env,
    *,
    actions: Sequence[Any] | None,
    names: Sequence[str] | None,
    endogenous: Collection[str] | None,
    rng: np.random.Generator,
    given: dict[str, Any],
) -> AdaptedMDP:
    """See :meth:`AdaptedMDP.from_env`; ``make`` is the class."""
    env = with_actions(env, actions)
    if any(name in given for name in OF_THE_STATE) or num_shown(env):
        found = Discovery(env, {})
    else:
        found = _discover(env, names, endogenous, rng)
    mdp = make(found.env, **{**found.arguments, **given})
    chance = find_chance(mdp) if "reward_samples" not in given else None
    if chance is not None and chance.samples > 1:
        found.arguments["reward_samples"] = min(chance.samples, affordable_samples(mdp))
        mdp = make(found.env, **{**found.arguments, **given})
    while found.parts is not None and endogenous is None and mdp.exogenous_variables:
        moved = find_moved(mdp)
        if moved is None:
            break
        found = found.with_moved(moved)
        mdp = make(found.env, **{**found.arguments, **given})
    mdp.found = found
    return mdp


def _discover(
    env: Env,
    names: Sequence[str] | None,
    endogenous: Collection[str] | None,
    rng: np.random.Generator,
) -> Discovery:
    way, access = find_access(env, rng)
    own = [column.name for column in access.columns]
    names = own if names is None else list(names)
    if len(names) != len(own) or len(set(names)) < len(names):
        raise ArgumentError(
            f"names has {len(names)} names ({names}); needed: {len(own)}, all different, for {own}"
        )
    pairs = zip(access.columns, names, strict=True)
    access.columns = [replace(column, name=name) for column, name in pairs]
    shown = _shown(env, access, rng)
    if endogenous is None:
        found = audit(env, rng=rng, read=access.read, names=names)
        shown_constant = {f.variable for f in found.findings if f.reason == CONSTANT}
        # The audit's episodes are short.
        late = [
            name
            for i, name in enumerate(names)
            if name in shown_constant and np.ptp(shown[:, i]) > 0
        ]
        exogenous = {*found.exogenous, *late}
        order = tuple(name for name in names if name in exogenous)
        found = Audit(found.endogenous, order, found.findings)
    else:
        for name in endogenous:
            if name not in names:
                raise unknown_name("variable", name, names)
        moves = [name for i, name in enumerate(names) if np.ptp(shown[:, i]) > 0]
        found = Audit(
            tuple(name for name in names if name in endogenous),
            tuple(name for name in moves if name not in endogenous),
            (),
        )
    parts = StateParts(access, refine(access.columns, shown), shown).split_by(found)
    return Discovery(env, dict(parts.arguments()), way, found, parts)


class StateParts:
    """A state in two parts: where in a state the numbers of n and of x are."""

    def __init__(self, access: StateAccess, columns: Sequence[Column], shown: FloatArray) -> None:
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


# --- what it shows -----------------------------------------------------------------------------


def _shown(env: Env, access: StateAccess, rng: np.random.Generator) -> FloatArray:
    """States of some episodes, shape (N, columns)."""
    found = []
    for _ in range(12):
        observation, _ = env.reset(seed=int(rng.integers(NUM_SEEDS)))
        for _ in range(50):
            found.append(access.read(env, observation))
            observation, _, terminated, truncated, _ = env.step(sample_action(env, rng))
            if terminated or truncated:
                break
    return np.array(found)


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
