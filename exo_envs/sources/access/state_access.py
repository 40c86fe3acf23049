"""How the state of somebody's environment, a row of numbers, is read and set."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import as_array, as_integers, as_list
from exo_envs.core.batches import PARTS
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import IntArray, Ranges
from exo_envs.core.spaces import Variables
from exo_envs.sources.access.columns import Column, flat

Env: TypeAlias = gym.Env[Any, Any]
Row: TypeAlias = NDArray[Any]  # (columns,)
#: The numbers that describe where an environment is, given what it just showed.
Read: TypeAlias = Callable[[Env, Any], Row]
#: Puts ``env.unwrapped``, which was just reset, into the state that such numbers describe.
SetState: TypeAlias = Callable[[Any, Row], object]
#: Errors of an environment that is asked for a state that it does not have.
REFUSALS = (ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError)
#: How far a number may be from where it was put, relative to it.
ROUNDING = 1e-6


class StateAccess:
    """A way to read the state of an environment, and to put the environment into one.

    It can be copied and pickled, and so be sent to other processes.

    Args:
        columns: the numbers.
        read: reads them; by default they are those of the observation.
        write: puts an environment into a state; without it, nothing does.
        reads_env: whether ``read`` looks at the environment, and not at what it showed.

    Attributes:
        names: of the numbers.
        puts: whether the environment can be put into a state.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        read: Read | None = None,
        write: SetState | None = None,
        *,
        reads_env: bool = False,
    ) -> None:
        self.columns, self.reads_env = list(columns), reads_env
        self.names = [column.name for column in columns]
        self._read, self._write, self.puts = read, write, write is not None

    def renamed(self, names: Any) -> StateAccess:
        """The same with other names of the numbers."""
        given, seen = as_list("names of variables", names), set()
        for name in given:
            if not isinstance(name, str) or name in seen:
                raise ArgumentError(f"names are strings that are all different, unlike {name!r}")
            seen.add(name)
        if len(given) != len(self.names):
            raise ArgumentError(
                f"names has {len(given)} names; needed: {len(self.names)}, for {self.names}"
            )
        other = copy.copy(self)
        pairs = zip(self.columns, given, strict=True)
        other.names, other.columns = given, [replace(own, name=name) for own, name in pairs]
        return other

    def read(self, env: Env, observation: Any) -> Row:
        """The numbers of the state of an environment that just showed ``observation``."""
        return flat(observation) if self._read is None else self._read(env, observation)

    def write(self, env: Any, row: Row) -> None:
        """Put ``env.unwrapped``, which was just reset, into a state."""
        if self._write is None:
            raise NotImplementedError
        self._write(env, row)

    def put(self, env: Env, row: Row, seed: int) -> Any:
        """Begin an episode in a state; what the reset showed."""
        observation, _ = env.reset(seed=seed)
        self.write(env.unwrapped, row.copy())
        return observation

    def refusal(self, env: Env, row: Row, seed: int) -> Exception | None:
        """Begin an episode in a state; the error if that fails: not any numbers go together."""
        try:
            self.put(env, row, seed)
        except REFUSALS as error:
            return error
        return None

    def astray(self, env: Env, rows: Iterable[Row]) -> tuple[Row, Row] | None:
        """The first state that the environment is put into without arriving, and where it is."""
        for seed, row in enumerate(rows):
            arrived = self.read(env, self.put(env, row, seed))
            if not np.allclose(arrived, row, rtol=ROUNDING, atol=0.0):
                return row, arrived
        return None


class SplitState(StateAccess):
    """A state in two parts, n and then x, each a vector of variables.

    Args:
        parts: the variables of n and of x.
        split: takes an observation to the pair (n, x); by default the observation is that pair.
        get_state: reads the pair from ``env.unwrapped``, if observations do not tell it.
        set_state: puts ``env.unwrapped`` into n and x; by default they are an option of ``reset``.

    Attributes:
        parts: the variables of n and of x.
        ranges: the values of all of them.
        obeys_option: whether the environment is put into states by an option of reset.
        shows_state: whether the state can be read between a reset and the first step.
    """

    def __init__(
        self,
        parts: tuple[Variables, Variables],
        *,
        split: Callable[[Any], Any] | None = None,
        get_state: Callable[[Any], Any] | None = None,
        set_state: Callable[[Any, IntArray, IntArray], object] | None = None,
    ) -> None:
        super().__init__([Column(variable.name) for variable in parts[0] + parts[1]])
        self.puts = True
        self.parts, self.ranges = parts, Ranges(parts[0] + parts[1])
        self.types = [Ranges(variables).dtype for variables in parts]
        self._split, self._get_state, self._set_state = split, get_state, set_state
        self.obeys_option = set_state is None
        self.shows_state = set_state is None or get_state is not None

    def read(self, env: Env, observation: Any) -> Row:
        if self._get_state is not None:
            return self.as_row("get_state should return", self._get_state(env.unwrapped))
        shown = observation if self._split is None else self._split(observation)
        return self.as_row("split should return", shown)

    def put(self, env: Env, row: Row, seed: int) -> Any:
        n, x = self.split_row(row)  # copies, which the environment may keep, and write to
        if self._set_state is None:
            state = {part: v for part, v in zip(PARTS, (n, x), strict=True) if len(v)}
            return env.reset(seed=seed, options={"state": state})[0]
        observation, _ = env.reset(seed=seed)
        self._set_state(env.unwrapped, n, x)
        return observation

    def split_row(self, rows: Row) -> tuple[Row, Row]:
        """Copies of n and x, each in its own type; rows may be one or a batch."""
        k, (n, x) = len(self.parts[0]), self.types
        return rows[..., :k].astype(n), rows[..., k:].astype(x)

    def as_row(self, source: str, given: Any) -> Row:
        """A pair (n, x), or a mapping with these parts, as a row of the right length."""
        if isinstance(given, Mapping):  # an empty part may be missing
            given = tuple(given.get(part, ()) for part in PARTS)
        if not isinstance(given, (tuple, list)) or len(given) != len(PARTS):
            raise ArgumentTypeError(
                f"{source} a pair (endogenous, exogenous) or a mapping with these keys, "
                f"not {given!r}"
            )
        vectors = []
        for part, variables, kind, values in zip(PARTS, self.parts, self.types, given, strict=True):
            vector = _numbers(f"the {part} part of the state", values, kind)
            if vector.shape != (len(variables),):
                names = ", ".join(v.name for v in variables)
                raise ArgumentError(
                    f"the {part} part of the state has shape {vector.shape}; it should be "
                    f"({len(variables)},), one value for each of: {names or 'nothing'}"
                )
            vectors.append(vector)
        return np.concatenate(vectors).astype(self.ranges.dtype)


def _numbers(what: str, values: Any, kind: np.dtype[Any]) -> Row:
    """Whole numbers, or any if a variable is real."""
    if kind.kind == "i":
        return as_integers(what, values)
    array = as_array(what, values)
    if array.dtype.kind not in "iufb":
        raise ArgumentTypeError(f"{what} has dtype {array.dtype}; it should hold numbers")
    return array.astype(np.float64)
