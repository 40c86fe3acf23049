"""A Gymnasium environment as something to be put into a state, stepped once, and read.

Here a state is one row of numbers, n followed by x: integers, or floats if a variable is real.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from exo_envs.core.arguments import as_array, as_integers
from exo_envs.core.batches import PARTS
from exo_envs.core.clock import tick
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import BoolArray, FloatArray, IntArray
from exo_envs.core.spaces import Variables
from exo_envs.core.variable import Ranges
from exo_envs.sources.simulators.workers import Workers

NUM_PROBES = 16  # states that an environment is put into to see whether it obeys
#: How far a real value may be from where it was put, relative to it.
ROUNDING = 1e-6

Env: TypeAlias = gym.Env[Any, Any]
Row: TypeAlias = NDArray[Any]  # (k + m,)
Rows: TypeAlias = NDArray[Any]  # (B, k + m)
Split: TypeAlias = Callable[[Any], Any]
SetState: TypeAlias = Callable[[Any, IntArray, IntArray], object]


class Steps(NamedTuple):
    """What a batch of single steps gave."""

    following: Rows  # (B, k + m), in range except where the step ended the episode
    reward: FloatArray  # (B,)
    terminated: BoolArray  # (B,)
    reward_terms: FloatArray  # (B, terms), 0 if the environment does not tell them

    @classmethod
    def join(cls, parts: Sequence[Steps]) -> Steps:
        """Several batches as one."""
        return cls(*(np.concatenate(part) for part in zip(*parts, strict=True)))


class ForeignEnv:
    """An environment that was seen to go where it is put.

    Attributes:
        num_actions: the number of its actions.
        tells_terms: whether each step gives ``info["reward_terms"]``, of the right number.
        env: the environment.
        parts: the variables of n and of x.
        ranges: the values of all of them.
        workers: processes that step copies of the environment, if there are any.
    """

    def __init__(
        self,
        env: Env,
        parts: tuple[Variables, Variables],
        *,
        split: Split | None,
        get_state: Split | None,
        set_state: SetState | None,
        num_terms: int | None = None,
        tells_terms: bool | None = None,
    ) -> None:
        """See :class:`exo_envs.AdaptedMDP`.

        Args:
            env: the environment.
            parts: the variables of n and of x.
            split: reads a state from an observation,
            get_state: or from the environment.
            set_state: puts the environment into a state.
            num_terms: how many reward terms it may tell; by default one for each variable of x.
            tells_terms: whether it does. By default that is found out, with whether it obeys.
        """
        if not isinstance(env.action_space, spaces.Discrete) or env.action_space.start != 0:
            raise ArgumentTypeError(
                f"the action space must be Discrete(n) with actions from 0, not {env.action_space}"
            )
        self.num_actions = int(env.action_space.n)
        self.num_terms = len(parts[1]) if num_terms is None else num_terms
        self.tells_terms = bool(tells_terms)
        self.tick: Callable[[], object] | None = tick  # is called before every step
        self.env = env
        self.parts = parts
        self.ranges = Ranges(parts[0] + parts[1])
        self.workers: Workers | None = None
        self._types = [Ranges(variables).dtype for variables in parts]
        self._split = split
        self._get_state = get_state
        self._set_state = set_state
        if tells_terms is None:
            self._probe()

    def initial(self, seed: int) -> Row:
        """The state after a reset, shape (k + m,)."""
        if self.tick is not None:
            self.tick()
        return self.in_range(self.read(self.env.reset(seed=seed)[0]))

    def step(self, rows: Rows, actions: IntArray, seeds: IntArray) -> Steps:
        """One seeded step from each row, an episode of its own."""
        if self.workers is not None and self.workers.are_worth(len(rows)):
            steps = Steps.join(self.workers.ask("step_all", (rows, actions, seeds), self.tick))
        else:
            steps = self.step_all(rows, actions, seeds)
        self.check(steps.following, self.out_of_range(steps.following) & ~steps.terminated[:, None])
        return steps

    def step_all(self, rows: Rows, actions: IntArray, seeds: IntArray) -> Steps:
        """The same in this process, whatever comes out."""
        following, reward = np.empty_like(rows), np.empty(len(rows))
        terminated = np.empty(len(rows), dtype=np.bool_)
        terms = np.zeros((len(rows), self.num_terms))
        queries = zip(rows, actions.tolist(), seeds.tolist(), strict=True)
        for i, (row, action, seed) in enumerate(queries):
            if self.tick is not None:
                self.tick()
            self.start(row, seed)
            observation, reward[i], terminated[i], _, info = self.env.step(action)
            following[i] = self.read(observation)
            if self.tells_terms:
                terms[i] = self._terms(info)
        return Steps(following, reward, terminated, terms)

    def close(self) -> None:
        """Close the environment, and its copies."""
        if self.workers is not None:
            self.workers.close()
        self.env.close()

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
        everything = zip(PARTS, self.parts, self._types, given, strict=True)
        for part, variables, kind, values in everything:
            vector = _numbers(f"the {part} part of the state", values, kind)
            if vector.shape != (len(variables),):
                names = ", ".join(v.name for v in variables)
                raise ArgumentError(
                    f"the {part} part of the state has shape {vector.shape}; it should be "
                    f"({len(variables)},), one value for each of: {names or 'nothing'}"
                )
            vectors.append(vector)
        return np.concatenate(vectors).astype(self.ranges.dtype)

    def in_range(self, row: Row) -> Row:
        """The row, if each of its values is one of its variable's."""
        self.check(row[None], self.out_of_range(row[None]))
        return row

    def out_of_range(self, rows: Rows) -> BoolArray:
        """Which values, shape (B, k + m), no variable has."""
        ranges = self.ranges
        wrong = ~((rows >= ranges.low) & (rows <= ranges.high))  # so that NaN is wrong too
        if ranges.is_real:
            wrong |= ranges.whole & (rows != np.floor(rows))
        return np.asarray(wrong)

    def check(self, rows: Rows, wrong: BoolArray, hint: str = "") -> None:
        """Raise if any value of ``rows`` is ``wrong``."""
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            variable = self.ranges.variables[column]
            raise ArgumentError(
                f"variable {variable.name!r} cannot be {rows[row, column]}; its values are "
                f"{variable.range}{hint}"
            )

    # --- where it is ------------------------------------------------------------------------

    def start(self, row: Row, seed: int) -> Any:
        """Put the environment into a state; what the reset showed."""
        n, x = self.split_row(row)  # copies, which the environment may keep, and write to
        if self._set_state is None:
            state = {part: v for part, v in zip(PARTS, (n, x), strict=True) if len(v)}
            return self.env.reset(seed=seed, options={"state": state})[0]
        observation, _ = self.env.reset(seed=seed)
        self._set_state(self.env.unwrapped, n, x)
        return observation

    def split_row(self, rows: Rows) -> tuple[NDArray[Any], NDArray[Any]]:
        """Copies of n and x, each in its own type; rows may be one or a batch."""
        k, (n, x) = len(self.parts[0]), self._types
        return rows[..., :k].astype(n), rows[..., k:].astype(x)

    def read(self, observation: Any, env: Env | None = None) -> Row:
        """The state of an environment, by default this one, that just showed ``observation``."""
        if self._get_state is not None:
            shown = self._get_state((self.env if env is None else env).unwrapped)
            return self.as_row("get_state should return", shown)
        given = observation if self._split is None else self._split(observation)
        return self.as_row("split should return", given)

    def _terms(self, info: Mapping[str, Any]) -> FloatArray:
        terms = np.asarray(info.get("reward_terms"), dtype=np.float64)
        if terms.shape != (self.num_terms,):
            raise ArgumentError(
                f'info["reward_terms"] is {info.get("reward_terms")!r}; it used to hold '
                f"{self.num_terms} numbers, one for each term of the reward"
            )
        return terms

    # --- whether it obeys -------------------------------------------------------------------

    def _probe(self) -> None:
        """Find out whether the environment goes where it is put, and tells its reward terms."""
        rows, infos = self._walk()
        self.tells_terms = self.num_terms > 0 and all(
            np.asarray(info.get("reward_terms")).shape == (self.num_terms,) for info in infos
        )
        if self._set_state is None or self._get_state is not None:
            for row in rows:
                self._check_arrival(row)
        elif len(rows) > 1 and not self._is_moved(rows):
            # Here nothing shows the state before a step, so this is all that can be found out.
            raise ArgumentError(
                f"set_state has no effect: put into {len(rows)} different states, the "
                "environment always took the same step"
            )

    def _walk(self) -> tuple[Rows, list[dict[str, Any]]]:
        """Different states met on the way from a few initial ones, and what steps said there."""
        met: dict[bytes, Row] = {}
        infos = []
        rng = np.random.default_rng(0)
        for seed in range(NUM_PROBES // 2):
            row = self.initial(seed)
            for action in rng.integers(self.num_actions, size=NUM_PROBES // 2).tolist():
                met.setdefault(row.tobytes(), row)
                observation, _, terminated, truncated, info = self.env.step(action)
                infos.append(info)
                if terminated or truncated:  # in a state that need not be one to start in
                    break
                row = self.in_range(self.read(observation))
        return np.array(list(met.values()))[:NUM_PROBES], infos

    def _check_arrival(self, row: Row) -> None:
        """Put the environment into a state and see whether it is there."""
        found = self.read(self.start(row, 0))
        if np.allclose(found, row, rtol=ROUNDING, atol=0.0):
            return
        k = len(self.parts[0])
        wanted, got = (f"n = {r[:k].tolist()}, x = {r[k:].tolist()}" for r in (row, found))
        if self._set_state is not None:
            raise ArgumentError(f"set_state was given {wanted}, but get_state then says {got}")
        raise ArgumentError(
            f'reset(options={{"state": ...}}) was to start at {wanted}, but the environment is at '
            f"{got}; if it does not know this option, give a set_state function"
        )

    def _is_moved(self, rows: Rows) -> bool:
        """Whether what a step does depends on the state the environment is put into."""
        for action in range(min(self.num_actions, NUM_PROBES)):
            same = np.full(len(rows), action), np.zeros(len(rows), dtype=np.int64)
            outcomes = self.step(rows, *same)
            if any((values != values[:1]).any() for values in outcomes):
                return True
        return False


def _numbers(what: str, values: Any, kind: np.dtype[Any]) -> NDArray[Any]:
    """Whole numbers, or any if a variable is real."""
    if kind.kind == "i":
        return as_integers(what, values)
    array = as_array(what, values)
    if array.dtype.kind not in "iufb":
        raise ArgumentTypeError(f"{what} has dtype {array.dtype}; it should hold numbers")
    return array.astype(np.float64)


def copy_of(
    env: Env, make_env: Callable[[], Env] | None, parts: Any, arguments: dict[str, Any]
) -> ForeignEnv:
    """What a process has: a copy of the environment, which need not be looked at again."""
    return ForeignEnv(env if make_env is None else make_env(), parts, **arguments)
