"""What grows over time: memory, descriptors, threads, over rounds of everything.

A round resets, steps, renders, learns, plans, bounds, saves and loads, always the same. After a
warm-up (whatever is compiled, imported or remembered on first use) the same rounds are repeated,
and what the process holds is read off before and after: bytes in memory (of the kernel, with freed
memory handed back first), open descriptors, and threads.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from exo_envs import ExoEnv, ExoVectorEnv
from planners import ReducedMDP, bracket, estimate_objective, evaluate
from planners.value_iteration.tabular_policy import TabularPolicy
from reliability import subjects
from reliability.user_models import Ferry, Market
from reliability.worker import resident_bytes
from wrappers import (
    CalibratedMaskLearner,
    FlatVectorObservation,
    LearnedMask,
    MaskedObservation,
    MaskedVectorObservation,
)
from wrappers.fitting.saved import SavedMask

#: Bytes that the kernel may count for the same objects from one time to the next.
NOISE = 4 * 2**20
#: Rounds before anything is measured.
WARM_UP = 5


class Held(NamedTuple):
    """What a process holds."""

    resident: int  # bytes
    descriptors: int
    threads: int

    @classmethod
    def now(cls) -> Held:
        """Read it off, with freed memory handed back."""
        gc.collect()
        with suppress(OSError, AttributeError, TypeError):  # not glibc
            ctypes.CDLL(None).malloc_trim(0)
        folder = Path("/proc/self/fd")
        descriptors = len(list(folder.iterdir())) if folder.exists() else 0
        return cls(resident_bytes(), descriptors, threading.active_count())


def step_everything(_: Path) -> None:
    """Episodes in both shells of every domain, wrapped and not, with text and flat pictures."""
    for env_id in subjects.IDS:
        env: gym.Env[Any, Any] = gym.make(env_id, render_mode="ansi")
        env = MaskedObservation(env, [0, 1])
        env.reset(seed=0)
        for _ in range(10):
            env.step(0)
        env.render()
        env.close()
        lanes: Any = gym.make_vec(env_id, num_envs=4, autoreset_mode="SameStep")
        lanes = FlatVectorObservation(MaskedVectorObservation(lanes, [0, 1]))
        lanes.reset(seed=0)
        for _ in range(10):
            lanes.step(np.zeros(4, dtype=np.int64))
        lanes.close()


def draw_pictures(_: Path) -> None:
    """Flat pictures of every domain that has them."""
    for env_id in ("ExoGrid-v0", "ExoFactory-v0", "ExoCrowd-v0"):
        flat = {} if env_id == "ExoGrid-v0" else {"render_backend": "flat"}
        env = gym.make(env_id, render_mode="rgb_array", **flat)
        env.reset(seed=0)
        env.render()
        env.close()


def learn_masks(folder: Path) -> None:
    """Fits of every kind, saved and loaded."""
    for cls in subjects.LEARNERS:
        learner = cls(**subjects.TINY).fit(Ferry(), rng=0)
        learner.save(folder / "mask")
        SavedMask.load(folder / "mask").check(Ferry())
    LearnedMask(ExoEnv(Market()), CalibratedMaskLearner(**subjects.TINY), 0).reset(seed=0)


def plan_and_bound(folder: Path) -> None:
    """Reduced models, plans, policies and bounds, saved and loaded."""
    reduced = ReducedMDP.estimate(Market(), ("price",), rng=0, num_rollouts=20)
    reduced.save(folder / "model")  # type: ignore[attr-defined]
    ReducedMDP.load(folder / "model").describe()
    objective = estimate_objective(Market(), ("price",), rng=0, n_rollouts=6, num_rollouts=12)
    policy = objective.plan.policy
    if isinstance(policy, TabularPolicy):
        policy.save(folder / "policy")
        TabularPolicy.load(folder / "policy")
    evaluate(policy, Market(), 6, 0)
    bracket(Market(), policy, 5, 0)


def refuse_nonsense(_: Path) -> None:
    """Errors keep frames alive, and frames keep arrays."""
    lanes = ExoVectorEnv(Market(), 3)
    lanes.reset(seed=0)
    for wrong in (None, 3, [9, 9, 9], np.zeros(7)):
        with suppress(TypeError, ValueError):
            lanes.step(wrong)


PARTS: tuple[Callable[[Path], None], ...] = (
    step_everything,
    draw_pictures,
    learn_masks,
    plan_and_bound,
    refuse_nonsense,
)


class Soaked(NamedTuple):
    """What the process held after the warm-up, and after so many more rounds."""

    rounds: int
    before: Held
    after: Held

    @property
    def growth(self) -> Held:
        """By how much it grew."""
        return Held(*(late - early for early, late in zip(self.before, self.after, strict=True)))

    def problem(self, bound: int = NOISE) -> str | None:
        """What grew by more than it may: any descriptor, any thread, more bytes than noise."""
        grown = self.growth
        if grown.descriptors > 0 or grown.threads > 0:
            return f"{grown.descriptors} more descriptors, {grown.threads} more threads"
        if grown.resident > bound:
            return f"{grown.resident / 2**20:.1f} MB more in memory after {self.rounds} rounds"
        return None


def soak(
    *,
    rounds: int | None = None,
    minutes: float | None = None,
    say: Callable[[str], object] = lambda _: None,
) -> Soaked:
    """Warm up, then repeat rounds; as many as asked for, or for some minutes."""
    folder = subjects.folder()

    def play() -> None:
        for part in PARTS:
            part(folder)

    for _ in range(WARM_UP):
        play()
    before, start, done = Held.now(), time.monotonic(), 0
    while done < (rounds or 0) or time.monotonic() - start < 60 * (minutes or 0):
        play()
        done += 1
        if done % 50 == 0:
            grown = Soaked(done, before, Held.now()).growth
            say(f"round {done}: {grown.resident / 2**20:+.1f} MB, {grown.threads:+d} threads")
    return Soaked(done, before, Held.now())
