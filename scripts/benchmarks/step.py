"""`python scripts/benchmark.py step`: environment steps per second, of all shells."""

from __future__ import annotations

import argparse
import time
from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.timing import Contender, peak_memory, race, random_steps
from exo_envs.domains import ENVIRONMENTS

LANES = (1, 512, 4096)
SYNC_LANES = 512

#: Crowds of about 124, 1,000 and 10,000 exogenous variables.
CROWDS = (
    {},
    {"grid_size": 20, "num_agents": 180, "num_objects": 60},
    {"grid_size": 64, "num_agents": 1768, "num_objects": 600},
)


def add_command(commands: Any) -> None:
    """The sub-command ``step`` of scripts/benchmark.py."""
    parser = commands.add_parser("step", help="environment steps per second")
    parser.add_argument("ids", nargs="*", default=sorted(ENVIRONMENTS), help="default: all")
    parser.add_argument("--seconds", type=float, default=0.5, help="per contender and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """A table for each environment, and how the cost of a step grows."""
    for env_id in arguments.ids:
        compare_shells(env_id, arguments.seconds, arguments.rounds)
    if "ExoCrowd-v0" in arguments.ids:
        show_growth("ExoCrowd-v0", arguments.seconds, arguments.rounds)


def compare_shells(env_id: str, seconds: float, rounds: int) -> None:
    """One environment: the single shell, the vector shell, and Gymnasium's SyncVectorEnv."""
    single = gym.make(env_id, disable_env_checker=True)
    contenders = {
        "single shell": single_steps(single),
        f"SyncVectorEnv, {SYNC_LANES} lanes": vector_steps(sync_vector_env(env_id, SYNC_LANES)),
    }
    for lanes in LANES:
        contenders[f"vector shell, {lanes} lanes"] = vector_steps(
            gym.make_vec(env_id, num_envs=lanes)
        )
    rates = race(contenders, seconds, rounds)
    reference = rates[f"SyncVectorEnv, {SYNC_LANES} lanes"]
    mdp = single.unwrapped.mdp
    print(f"\n{env_id}: {mdp}")
    print(f"  {'':26}{'env-steps/s':>14}{'of SyncVectorEnv':>18}")
    for name, rate in rates.items():
        print(f"  {name:26}{rate:>14,.0f}{rate / reference:>17.1f}x")
    print(f"  memory per lane: {memory_per_lane(env_id):,.0f} bytes at the peak of a step")


def show_growth(env_id: str, seconds: float, rounds: int, lanes: int = 512) -> None:
    """The cost of a step against the number of exogenous variables."""
    sizes = {}
    contenders = {}
    for arguments in CROWDS:
        env = gym.make_vec(env_id, num_envs=lanes, **arguments)
        name = ", ".join(f"{key}={value}" for key, value in arguments.items()) or "the default"
        sizes[name] = len(env.unwrapped.mdp.exogenous_variables)
        contenders[name] = vector_steps(env)
    rates = race(contenders, seconds, rounds)
    print(f"\n{env_id}: cost against the number of variables ({lanes} lanes)")
    print(f"  {'variables':>9}{'env-steps/s':>14}{'ns per variable':>17}")
    for name, rate in rates.items():
        print(f"  {sizes[name]:>9,}{rate:>14,.0f}{1e9 / rate / sizes[name]:>17.2f}   {name}")


def single_steps(env: gym.Env) -> Contender:
    """Random actions in one environment, resets included."""
    actions = np.random.default_rng(0).integers(env.action_space.n, size=1000).tolist()
    env.reset(seed=0)

    def run(seconds: float) -> float:
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            for action in actions:
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset()
            steps += len(actions)
        return steps / (time.perf_counter() - start)

    return run


def sync_vector_env(env_id: str, lanes: int) -> gym.vector.VectorEnv:
    """Gymnasium's loop over single shells, whose observations are copied as those of ours are."""
    return gym.make_vec(
        env_id, num_envs=lanes, vectorization_mode="sync", vector_kwargs={"copy": True}
    )


def observation_copies(env: gym.vector.VectorEnv) -> Contender:
    """Copies of the observations of all lanes, and nothing else: no step can be faster."""
    observations, _ = env.reset(seed=0)

    def run(seconds: float) -> float:
        copies, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            _ = {name: array.copy() for name, array in observations.items()}
            copies += 1
        return copies * env.num_envs / (time.perf_counter() - start)

    return run


def vector_steps(env: gym.vector.VectorEnv) -> Contender:
    """Random actions in all lanes, automatic resets included."""
    env.reset(seed=0)
    return random_steps(env, env.single_action_space.n)


def memory_per_lane(env_id: str, lanes: int = 4096) -> float:
    """Peak memory of making, resetting and stepping, per lane, if the results are not kept."""
    gym.make_vec(env_id, num_envs=1).reset(seed=0)  # compilation is not a lane's
    actions = np.zeros(lanes, dtype=np.int64)

    def step() -> None:
        env = gym.make_vec(env_id, num_envs=lanes)
        env.reset(seed=0)
        for _ in range(5):
            env.step(actions)

    return peak_memory(step) / lanes
