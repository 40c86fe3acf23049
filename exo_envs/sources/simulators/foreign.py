"""A Gymnasium environment as something to be put into a state, stepped once, and read.

Here a state is one row of numbers, n followed by x: integers, or floats if a variable is real.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.util import Finalize
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import CloudpickleWrapper
from numpy.typing import NDArray

from exo_envs.core.clock import tick
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, ExoError
from exo_envs.core.mdp import BoolArray, FloatArray, IntArray
from exo_envs.sources.access.episodes import visits
from exo_envs.sources.access.state_access import Env, Row, SplitState

#: States that an environment is put into to see whether it obeys.
NUM_PROBES = 16
#: Steps of episodes in which these are met.
NUM_LOOKED_AT = 64
#: Rows that a process is handed at a time.
CHUNK = 16
#: Seconds between two looks at the time limit while processes are busy.
INTERVAL = 0.1

Rows: TypeAlias = NDArray[Any]  # (B, k + m)


class Steps(NamedTuple):
    """What a batch of single steps gave."""

    following: Rows  # (B, k + m), in range except where the step ended the episode
    reward: FloatArray  # (B,)
    terminated: BoolArray  # (B,)
    reward_terms: FloatArray  # (B, terms), 0 if the environment does not tell them


class ForeignEnv:
    """An environment that is put into states.

    Attributes:
        env: the environment.
        access: how its state is read and set.
        num_actions: the number of its actions.
        num_terms: how many reward terms it may tell.
        tells_terms: whether each step gives ``info["reward_terms"]``, of that number.
        workers: processes that step copies of the environment, if there are any.
    """

    def __init__(
        self, env: Env, access: SplitState, num_terms: int, *, tells_terms: bool = False
    ) -> None:
        if not isinstance(env.action_space, spaces.Discrete) or env.action_space.start != 0:
            raise ArgumentTypeError(
                f"the action space must be Discrete(n) with actions from 0, not {env.action_space}"
            )
        self.env, self.access = env, access
        self.num_actions = int(env.action_space.n)
        self.num_terms, self.tells_terms = num_terms, tells_terms
        self.workers: Workers | None = None

    def initial(self, seed: int) -> Row:
        """The state after a reset, shape (k + m,)."""
        tick()
        return self.read(self.env.reset(seed=seed)[0])

    def read(self, observation: Any, env: Env | None = None) -> Row:
        """The state of an environment, by default this one, that just showed ``observation``."""
        return self.in_range(self.access.read(self.env if env is None else env, observation))

    def step(self, rows: Rows, actions: IntArray, seeds: IntArray) -> Steps:
        """One seeded step from each row, an episode of its own."""
        if self.workers is not None and len(rows) >= 2 * self.workers.count:
            parts = self.workers.ask((rows, actions, seeds))
            steps = Steps(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        else:
            steps = self.step_all(rows, actions, seeds)
        self.in_range(steps.following[~steps.terminated])
        return steps

    def step_all(self, rows: Rows, actions: IntArray, seeds: IntArray) -> Steps:
        """The same in this process, whatever comes out."""
        following, reward = np.empty_like(rows), np.empty(len(rows))
        terminated = np.empty(len(rows), dtype=np.bool_)
        terms = np.zeros((len(rows), self.num_terms))
        queries = zip(rows, actions.tolist(), seeds.tolist(), strict=True)
        for i, (row, action, seed) in enumerate(queries):
            tick()
            self.access.put(self.env, row, seed)
            observation, reward[i], terminated[i], _, info = self.env.step(action)
            following[i] = self.access.read(self.env, observation)
            if self.tells_terms:
                terms[i] = self._terms(info)
        return Steps(following, reward, terminated, terms)

    def close(self) -> None:
        """Close the environment, and its copies."""
        if self.workers is not None:
            self.workers.close()
        self.env.close()

    def in_range(self, rows: Rows, hint: str = "") -> Rows:
        """The rows (..., k + m), if each of their values is one of its variable's."""
        misfit = self.access.ranges.misfit(rows)
        if misfit is not None:
            raise ArgumentError(
                f"variable {misfit.variable.name!r} cannot be {misfit.value}; its values are "
                f"{misfit.variable.range}{hint}"
            )
        return rows

    def _terms(self, info: Mapping[str, Any]) -> FloatArray:
        terms = np.asarray(info.get("reward_terms"), dtype=np.float64)
        if terms.shape != (self.num_terms,):
            raise ArgumentError(
                f'info["reward_terms"] is {info.get("reward_terms")!r}; it used to hold '
                f"{self.num_terms} numbers, one for each term of the reward"
            )
        return terms


def probe(foreign: ForeignEnv) -> None:
    """Find out whether an environment goes where it is put, and tells its reward terms."""
    rng, access, env = np.random.default_rng(0), foreign.access, foreign.env
    met = list(visits(env, rng, NUM_LOOKED_AT, foreign.read, max_episode=NUM_PROBES // 2))
    foreign.tells_terms = foreign.num_terms > 0 and all(
        np.asarray(visit.info.get("reward_terms")).shape == (foreign.num_terms,) for visit in met
    )
    rows = np.array(list({visit.before.tobytes(): visit.before for visit in met}.values()))
    rows = rows[:NUM_PROBES]
    if access.shows_state:
        astray = access.astray(env, rows)
        if astray is not None:
            k = len(access.parts[0])
            wanted, got = (f"n = {r[:k].tolist()}, x = {r[k:].tolist()}" for r in astray)
            if not access.obeys_option:
                raise ArgumentError(f"set_state was given {wanted}, but get_state then says {got}")
            raise ArgumentError(
                f'reset(options={{"state": ...}}) was to start at {wanted}, but the environment is '
                f"at {got}; if it does not know this option, give a set_state function"
            )
    elif len(rows) > 1 and not _is_moved(foreign, rows):
        # Here nothing shows the state before a step, so this is all that can be found out.
        raise ArgumentError(
            f"set_state has no effect: put into {len(rows)} different states, the environment "
            "always took the same step"
        )


def _is_moved(foreign: ForeignEnv, rows: Rows) -> bool:
    """Whether a step depends on the state that the environment is put into."""
    for action in range(min(foreign.num_actions, NUM_PROBES)):
        same = np.full(len(rows), action), np.zeros(len(rows), dtype=np.int64)
        if any((values != values[:1]).any() for values in foreign.step(rows, *same)):
            return True
    return False


# --- copies in other processes --------------------------------------------------------------------


class WorkerError(ExoError, RuntimeError):
    """A process that stepped a copy of the environment came to an end."""


class Workers:
    """Processes that each hold something with ``step_all`` of rows, made by one function.

    They are started when they are first asked, and again after :meth:`close`. Copies, and what is
    unpickled, start their own.

    Args:
        count: the number of processes.
        make: makes what a process holds; any function, it is sent by ``cloudpickle``.
    """

    def __init__(self, count: int, make: Callable[[], Any]) -> None:
        self.count = count
        self._make = make
        self._pool: ProcessPoolExecutor | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the processes, which belong to this object."""
        return {"count": self.count, "make": CloudpickleWrapper(self._make)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Processes are started when they are asked."""
        self.__init__(state["count"], state["make"].fn)  # type: ignore[misc]

    def ask(self, arrays: tuple[NDArray[Any], ...]) -> list[Any]:
        """What ``step_all`` gives for arrays of equal length, in chunks of their rows, in order.

        Raises:
            WorkerError: a process ended before it answered.
        """
        rows = len(arrays[0])
        size = min(CHUNK, -(-rows // self.count))
        chunks = [tuple(array[i : i + size] for array in arrays) for i in range(0, rows, size)]
        try:
            asked = [self._started().submit(_step_all, *chunk) for chunk in chunks]
            pending: set[Future[Any]] = set(asked)
            while pending:
                _, pending = wait(pending, timeout=INTERVAL)
                tick()
            return [future.result() for future in asked]
        except BrokenProcessPool as error:
            self.close()
            raise WorkerError(
                "a process with a copy of the environment ended before it answered: was it killed, "
                "is memory short, or is the script that starts it without "
                '`if __name__ == "__main__":`?'
            ) from error
        except BaseException:
            self.close()  # what was asked already is not waited for
            raise

    def close(self) -> None:
        """End the processes, once they have taken the steps that they were handed."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = None

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.count,
                multiprocessing.get_context("spawn"),
                initializer=_begin,
                initargs=(CloudpickleWrapper(self._make),),
            )
        return self._pool


# --- in a process with a copy ---------------------------------------------------------------------

_copy: dict[str, Any] = {}


def _begin(make: CloudpickleWrapper) -> None:
    _copy["make"] = make.fn


def _step_all(*arrays: NDArray[Any]) -> Any:
    """Steps of the copy, which is made when it is first asked: so its errors are raised there."""
    if "env" not in _copy:
        _copy["env"] = _copy["make"]()
        Finalize(None, _copy["env"].close, exitpriority=0)
    return _copy["env"].step_all(*(np.array(array) for array in arrays))
