"""Ways to read the state of what is audited, and to put it into one.

A state is a row of numbers, shape (columns,). Each way is an object that can be copied together
with the environment that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from exo_envs.core.batches import PARTS
from exo_envs.core.mdp import ExoMDP, FloatArray, State
from exo_envs.core.spaces import observed_variables
from exo_envs.sources.simulators.episodes import NUM_SEEDS, flat
from exo_envs.sources.simulators.foreign import Env, ForeignEnv
from exo_envs.sources.simulators.readings import columns_of
from exo_envs.sources.simulators.state_access import StateAccess

#: The numbers that describe where an environment is, given what it just showed.
Read: TypeAlias = Callable[[Env, Any], FloatArray]
#: Puts ``env.unwrapped``, which was just reset, into the state that such numbers describe.
SetState: TypeAlias = Callable[[Any, FloatArray], object]
#: States that an environment is put into to see whether it obeys.
NUM_PROBES = 8


class Way(Protocol):
    """How the state of an environment is read, and how the environment is put into one.

    Attributes:
        names: of the numbers of a state.
        exogenous: the names of those that are said to move by themselves, or None.
        puts: whether the environment can be put into a state.
    """

    names: list[str]
    exogenous: frozenset[str] | None
    puts: bool

    def read(self, env: Env, observation: Any) -> FloatArray:
        """The numbers of a state."""

    def put(self, env: Env, row: FloatArray, seed: int) -> None:
        """Begin an episode in a state."""


class ShownState:
    """What an environment shows; it cannot be put anywhere."""

    exogenous: frozenset[str] | None = None
    puts = False

    def __init__(self, env: Env) -> None:
        self.names = [column.name for column in columns_of(env.observation_space)]

    def read(self, env: Env, observation: Any) -> FloatArray:
        """The numbers of the observation."""
        return flat(observation)

    def put(self, env: Env, row: FloatArray, seed: int) -> None:
        """Refused."""
        raise NotImplementedError


class GivenState:
    """What functions say that somebody gave."""

    exogenous: frozenset[str] | None = None

    def __init__(self, read: Read, names: list[str], set_state: SetState | None) -> None:
        self._read, self.names, self._set_state = read, names, set_state
        self.puts = set_state is not None

    def read(self, env: Env, observation: Any) -> FloatArray:
        """What the function reads."""
        return self._read(env, observation)

    def put(self, env: Env, row: FloatArray, seed: int) -> None:
        """Reset, and let the function write."""
        if self._set_state is None:
            raise NotImplementedError
        env.reset(seed=seed)
        self._set_state(env.unwrapped, row.copy())


class ModelState:
    """The state of an environment over a model, whatever its wrappers show."""

    puts = True

    def __init__(self, mdp: ExoMDP) -> None:
        self.mdp = mdp
        self.names = [v.name for v in mdp.endogenous_variables + mdp.exogenous_variables]
        self.exogenous: frozenset[str] | None = frozenset(mdp.exogenous_names)

    def read(self, env: Env, observation: Any) -> FloatArray:
        """The numbers of n and x."""
        return np.concatenate(env.unwrapped.state).astype(np.float64)  # type: ignore[attr-defined]

    def put(self, env: Env, row: FloatArray, seed: int) -> None:
        """By an option of the reset."""
        parts = np.split(row, [len(self.mdp.endogenous_variables)])
        kinds = map(self.mdp.dtype_of, State._fields)
        state = State(*(part.astype(kind) for part, kind in zip(parts, kinds, strict=True)))
        env.reset(seed=seed, options={"state": state})


class PartsState:
    """Observations ``Dict(endogenous=..., exogenous=...)``, which are also an option of reset."""

    def __init__(self, env: Env) -> None:
        own = [observed_variables(env.observation_space, part, None) for part in PARTS]
        self.names = [v.name for variables in own for v in variables]
        self.exogenous: frozenset[str] | None = frozenset(v.name for v in own[1])
        self.puts = True
        self._lengths = [len(variables) for variables in own]
        space: Any = env.observation_space
        self._kinds = {part: space[part].dtype for part in PARTS if part in space.spaces}

    def read(self, env: Env, observation: Any) -> FloatArray:
        """The numbers of both parts."""
        shown = [np.asarray(observation[part], dtype=np.float64) for part in self._kinds]
        return np.concatenate(shown)

    def put(self, env: Env, row: FloatArray, seed: int) -> None:
        """By an option of the reset."""
        parts = dict(zip(PARTS, np.split(row, self._lengths[:1]), strict=True))
        state = {part: parts[part].astype(kind) for part, kind in self._kinds.items()}
        env.reset(seed=seed, options={"state": state})

    def obeys(self, env: Env, rng: np.random.Generator) -> bool:
        """Whether the environment goes where an option of the reset says."""
        for _ in range(NUM_PROBES):
            observation, _ = env.reset(seed=int(rng.integers(NUM_SEEDS)))
            for _ in range(int(rng.integers(1, NUM_PROBES))):
                observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
                if terminated or truncated:
                    observation, _ = env.reset()
                    break
            row, seed = self.read(env, observation), int(rng.integers(NUM_SEEDS))
            parts = dict(zip(PARTS, np.split(row, self._lengths[:1]), strict=True))
            state = {part: parts[part].astype(kind) for part, kind in self._kinds.items()}
            try:
                observation, _ = env.reset(seed=seed, options={"state": state})
            except (ValueError, TypeError, KeyError, AttributeError):
                return False
            if not np.allclose(self.read(env, observation), row, rtol=1e-6):
                return False
        return True


class ForeignState:
    """The state of an adapted environment, by its own claims; ``done`` is not among them."""

    puts = True

    def __init__(self, foreign: ForeignEnv) -> None:
        self.foreign = foreign
        self.names = [v.name for v in foreign.parts[0] + foreign.parts[1]]
        self.exogenous: frozenset[str] | None = frozenset(v.name for v in foreign.parts[1])

    def read(self, env: Env, observation: Any) -> FloatArray:
        """The numbers of n and x."""
        return self.foreign.read(observation).astype(np.float64)

    def put(self, env: Env, row: FloatArray, seed: int) -> None:
        """As the adapted model does."""
        self.foreign.start(row.astype(self.foreign.ranges.dtype), seed)


class AccessState:
    """A state that was found (:mod:`exo_envs.sources.simulators.ways`)."""

    exogenous: frozenset[str] | None = None
    puts = True

    def __init__(self, access: StateAccess) -> None:
        self.access = access
        self.names = [column.name for column in access.columns]

    def read(self, env: Env, observation: Any) -> FloatArray:
        """The numbers that were found."""
        return self.access.read(env, observation)

    def put(self, env: Env, row: FloatArray, seed: int) -> None:
        """Reset, and write."""
        env.reset(seed=seed)
        self.access.write(env.unwrapped, row.copy())
