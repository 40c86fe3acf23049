"""A Gymnasium environment as something to be put into a state, stepped once, and read.

Here a state is one row of integers, n followed by x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from exo_envs.inputs import PARTS, as_integers
from exo_envs.mdp import BoolArray, FloatArray, IntArray
from exo_envs.spaces import Variables

NUM_PROBES = 16  # states that an environment is put into to see whether it obeys

Env: TypeAlias = gym.Env[Any, Any]
Rows: TypeAlias = NDArray[np.int64]  # (B, k + m)
Split: TypeAlias = Callable[[Any], Any]
SetState: TypeAlias = Callable[[Any, IntArray, IntArray], object]


class Steps(NamedTuple):
    """What a batch of single steps gave."""

    following: Rows  # (B, k + m), in range except where the step ended the episode
    reward: FloatArray  # (B,)
    terminated: BoolArray  # (B,)
    reward_terms: FloatArray  # (B, m), 0 if the environment does not tell them


class ForeignEnv:
    """An environment that was seen to go where it is put.

    Attributes:
        num_actions: the number of its actions.
        tells_terms: whether each step gives ``info["reward_terms"]``, one for each variable of x.
    """

    def __init__(
        self,
        env: Env,
        parts: tuple[Variables, Variables],
        *,
        split: Split | None,
        get_state: Split | None,
        set_state: SetState | None,
    ) -> None:
        """See :class:`exo_envs.AdaptedMDP`; ``parts`` are the variables of n and of x."""
        if not isinstance(env.action_space, spaces.Discrete) or env.action_space.start != 0:
            raise TypeError(
                f"the action space must be Discrete(n) with actions from 0, not {env.action_space}"
            )
        self.num_actions = int(env.action_space.n)
        self.tells_terms = False  # until it does
        self._env = env
        self._parts = parts
        self._variables = parts[0] + parts[1]
        self._sizes = np.array([v.size for v in self._variables], dtype=np.int64)
        self._split = split
        self._get_state = get_state
        self._set_state = set_state
        self._probe()

    def initial(self, seed: int) -> NDArray[np.int64]:
        """The state after a reset, shape (k + m,)."""
        return self.in_range(self._read(self._env.reset(seed=seed)[0]))

    def step(self, rows: Rows, actions: IntArray, seeds: IntArray) -> Steps:
        """One seeded step from each row, an episode of its own."""
        following, reward = np.empty_like(rows), np.empty(len(rows))
        terminated = np.empty(len(rows), dtype=np.bool_)
        terms = np.zeros((len(rows), len(self._parts[1])))
        queries = zip(rows, actions.tolist(), seeds.tolist(), strict=True)
        for i, (row, action, seed) in enumerate(queries):
            self._start(row, seed)
            observation, reward[i], terminated[i], _, info = self._env.step(action)
            following[i] = self._read(observation)
            if self.tells_terms:
                terms[i] = self._terms(info)
        self.check(following, self.out_of_range(following) & ~terminated[:, None])
        return Steps(following, reward, terminated, terms)

    def as_row(self, source: str, given: Any) -> NDArray[np.int64]:
        """A pair (n, x), or a mapping with these parts, as a row of the right length."""
        if isinstance(given, Mapping):  # an empty part may be missing
            given = tuple(given.get(part, ()) for part in PARTS)
        if not isinstance(given, (tuple, list)) or len(given) != len(PARTS):
            raise TypeError(
                f"{source} a pair (endogenous, exogenous) or a mapping with these keys, "
                f"not {given!r}"
            )
        vectors = []
        for part, variables, values in zip(PARTS, self._parts, given, strict=True):
            vector = as_integers(f"the {part} part of the state", values)
            if vector.shape != (len(variables),):
                names = ", ".join(v.name for v in variables)
                raise ValueError(
                    f"the {part} part of the state has shape {vector.shape}; it should be "
                    f"({len(variables)},), one value for each of: {names or 'nothing'}"
                )
            vectors.append(vector)
        return np.concatenate(vectors).astype(np.int64)

    def in_range(self, row: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row, if each of its values is one of its variable's."""
        self.check(row[None], self.out_of_range(row[None]))
        return row

    def out_of_range(self, rows: Rows) -> BoolArray:
        """Which values, shape (B, k + m), no variable has."""
        return np.asarray((rows < 0) | (rows >= self._sizes))

    def check(self, rows: Rows, wrong: BoolArray, hint: str = "") -> None:
        """Raise if any value of ``rows`` is ``wrong``."""
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            variable = self._variables[column]
            raise ValueError(
                f"variable {variable.name!r} cannot be {rows[row, column]}; its values are "
                f"0 ... {variable.size - 1}{hint}"
            )

    # --- where it is ------------------------------------------------------------------------

    def _start(self, row: NDArray[np.int64], seed: int) -> Any:
        """Put the environment into a state; what the reset showed."""
        k = len(self._parts[0])
        n, x = row[:k].copy(), row[k:].copy()  # which the environment may keep, and write to
        if self._set_state is None:
            state = {part: v for part, v in zip(PARTS, (n, x), strict=True) if len(v)}
            return self._env.reset(seed=seed, options={"state": state})[0]
        observation, _ = self._env.reset(seed=seed)
        self._set_state(self._env.unwrapped, n, x)
        return observation

    def _read(self, observation: Any) -> NDArray[np.int64]:
        """The state of the environment that has just shown ``observation``."""
        if self._get_state is not None:
            return self.as_row("get_state should return", self._get_state(self._env.unwrapped))
        given = observation if self._split is None else self._split(observation)
        return self.as_row("split should return", given)

    def _terms(self, info: Mapping[str, Any]) -> FloatArray:
        terms = np.asarray(info.get("reward_terms"), dtype=np.float64)
        if terms.shape != (len(self._parts[1]),):
            raise ValueError(
                f'info["reward_terms"] is {info.get("reward_terms")!r}; it used to hold '
                f"{len(self._parts[1])} numbers, one for each exogenous variable"
            )
        return terms

    # --- whether it obeys -------------------------------------------------------------------

    def _probe(self) -> None:
        """Find out whether the environment goes where it is put, and tells its reward terms."""
        rows, infos = self._walk()
        m = len(self._parts[1])
        self.tells_terms = m > 0 and all(
            np.asarray(info.get("reward_terms")).shape == (m,) for info in infos
        )
        if self._set_state is None or self._get_state is not None:
            for row in rows:
                self._check_arrival(row)
        elif len(rows) > 1 and not self._is_moved(rows):
            # Here nothing shows the state before a step, so this is all that can be found out.
            raise ValueError(
                f"set_state has no effect: put into {len(rows)} different states, the "
                "environment always took the same step"
            )

    def _walk(self) -> tuple[Rows, list[dict[str, Any]]]:
        """Different states met on the way from a few initial ones, and what steps said there."""
        met: dict[bytes, NDArray[np.int64]] = {}
        infos = []
        rng = np.random.default_rng(0)
        for seed in range(NUM_PROBES // 2):
            row = self.initial(seed)
            for action in rng.integers(self.num_actions, size=NUM_PROBES // 2).tolist():
                met.setdefault(row.tobytes(), row)
                observation, _, terminated, truncated, info = self._env.step(action)
                infos.append(info)
                if terminated or truncated:  # in a state that need not be one to start in
                    break
                row = self.in_range(self._read(observation))
        return np.array(list(met.values()))[:NUM_PROBES], infos

    def _check_arrival(self, row: NDArray[np.int64]) -> None:
        """Put the environment into a state and see whether it is there."""
        found = self._read(self._start(row, 0))
        if np.array_equal(found, row):
            return
        k = len(self._parts[0])
        wanted, got = (f"n = {r[:k].tolist()}, x = {r[k:].tolist()}" for r in (row, found))
        if self._set_state is not None:
            raise ValueError(f"set_state was given {wanted}, but get_state then says {got}")
        raise ValueError(
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
