"""`python scripts/benchmark.py rl`: the adapter against DummyVecEnv, one file against SB3."""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
import time
from pathlib import Path
from typing import Any

import gymnasium as gym

from benchmarks.timing import Contender, race, random_steps

LANES = (8, 64, 512)
IDS = ("ExoFactory-v0", "ExoCrowd-v0")

#: Settings of SB3 with which it trains in batches as large as those of the one file.
LIKE_THE_ONE_FILE = {"lanes": 1024, "n_steps": 32, "batch_size": 2048, "n_epochs": 3}


def add_command(commands: Any) -> None:
    """The sub-command ``rl`` of scripts/benchmark.py."""
    parser = commands.add_parser("rl", help="steps per second of training")
    parser.add_argument("ids", nargs="*", default=IDS, help=f"default: {' '.join(IDS)}")
    parser.add_argument("--seconds", type=float, default=1.0, help="per contender and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """What SB3 steps, then what it trains with."""
    for env_id in arguments.ids:
        compare_adapters(env_id, arguments.seconds, arguments.rounds)
    for env_id in arguments.ids:
        compare_trainers(env_id, arguments.rounds)


def compare_adapters(env_id: str, seconds: float, rounds: int) -> None:
    """What SB3 steps: our vector environment through the adapter, or a loop over single ones."""
    print(f"\n{env_id}: steps/s of a VecEnv, full Dict observations, random actions")
    print(f"  {'lanes':>5}{'DummyVecEnv':>14}{'SB3VecEnv':>14}")
    for lanes in LANES:
        rates = race(adapter_contenders(env_id, lanes), seconds, rounds)
        times = rates["batched"] / rates["looped"]
        print(f"  {lanes:>5}{rates['looped']:>14,.0f}{rates['batched']:>14,.0f}{times:>8.1f}x")


def adapter_contenders(env_id: str, lanes: int) -> dict[str, Contender]:
    """Random steps of a loop over single environments, and of the adapter."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    from wrappers.sb3 import SB3VecEnv

    batched = SB3VecEnv(gym.make_vec(env_id, num_envs=lanes, autoreset_mode="SameStep"))
    looped = DummyVecEnv([lambda: gym.make(env_id, disable_env_checker=True)] * lanes)
    contenders = {}
    for name, venv in (("looped", looped), ("batched", batched)):
        venv.reset()
        contenders[name] = random_steps(venv, venv.action_space.n)
    return contenders


def compare_trainers(env_id: str, rounds: int) -> None:
    """PPO, updates included, evaluations not: SB3 as it comes, SB3 as we use it, and one file.

    The last two train networks of the same shape with the same batches and epochs.
    """
    contenders = {
        "SB3, 8 lanes in DummyVecEnv, its defaults": lambda: sb3_by_default(env_id, 8),
        "SB3, 64 lanes in the adapter, its defaults": lambda: sb3_by_default(env_id, 64),
        "SB3, adapter, settings of train_sb3.py": lambda: sb3_rate(env_id, {}),
        "SB3, adapter, settings of the one file": lambda: sb3_rate(env_id, LIKE_THE_ONE_FILE),
        "one file": lambda: one_file_rate(env_id),
    }
    rates = dict.fromkeys(contenders, 0.0)
    for _ in range(rounds):
        for name, measure in contenders.items():
            rates[name] = max(rates[name], measure())
    print(f"\n{env_id}: steps/s of PPO on all variables, best of {rounds}, and what one file makes")
    for name, rate in rates.items():
        print(f"  {name:44}{rate:>10,.0f}{rates['one file'] / rate:>8.1f}x")


def sb3_by_default(env_id: str, lanes: int, steps: int = 8192) -> float:
    """PPO("MultiInputPolicy", ...): eight environments in a loop, or more of them in a batch."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    from wrappers.sb3 import SB3VecEnv

    if lanes == 8:
        env = make_vec_env(env_id, n_envs=lanes, env_kwargs={"disable_env_checker": True})
    else:
        env = SB3VecEnv(gym.make_vec(env_id, num_envs=lanes, autoreset_mode="SameStep"))
    model = PPO("MultiInputPolicy", env, n_steps=steps // lanes, device="cpu")
    start = time.perf_counter()
    model.learn(steps)
    return steps / (time.perf_counter() - start)


def sb3_rate(env_id: str, changed: dict[str, Any]) -> float:
    import train_sb3

    settings = {**train_sb3.DEFAULTS["ppo"], **changed}
    return trained_rate("ppo", env_id, train_sb3.train, settings)


def one_file_rate(env_id: str) -> float:
    from dataclasses import asdict

    import train_cleanrl_style

    settings = asdict(train_cleanrl_style.Settings())
    return trained_rate("one-file", env_id, train_cleanrl_style.train, settings)


def trained_rate(name: str, env_id: str, trainer: Any, settings: dict[str, Any]) -> float:
    """Steps per second between the evaluations at the start and in the end."""
    from training.runs import Recorder, Run, cores
    from training.task import Task

    with tempfile.TemporaryDirectory() as folder:
        steps = 4 * settings["lanes"] * 32
        task = Task(env_id, rollouts=10)
        run = Run(
            task=task,
            algorithm=name,
            observation="full",
            mask=None,
            world="full",
            seed=0,
            steps=steps,
            evaluations=1,
            output=Path(folder),
            hyperparameters=settings,
            threads=cores(),
        )
        task.reward_scale  # noqa: B018 (computed before the clock starts)
        recorder = Recorder(run)
        with contextlib.redirect_stdout(io.StringIO()):
            trainer(run, recorder)
        first, last = recorder.curve.points[0], recorder.curve.points[-1]
        return (last.steps - first.steps) / (last.seconds - first.seconds)
