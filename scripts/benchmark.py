"""Benchmarks: `python scripts/benchmark.py step`, `plan`, `information`, `planted`, `learn`, `rl`.

Timings on a shared machine are noisy, so contenders take turns and the best round of each counts;
compare figures of one run, as ratios.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import benchmark_information
import benchmark_learning
import benchmark_plan
import benchmark_rl
import gymnasium as gym
import numpy as np
from race import race

import exo_envs
from exo_envs.registration import ENVIRONMENTS

LANES = (1, 512, 4096)
SYNC_LANES = 512

#: Crowds of about 124, 1,000 and 10,000 exogenous variables.
CROWDS = (
    {},
    {"grid_size": 20, "num_agents": 180, "num_objects": 60},
    {"grid_size": 64, "num_agents": 1768, "num_objects": 600},
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    step = commands.add_parser("step", help="environment steps per second")
    step.add_argument("ids", nargs="*", default=sorted(ENVIRONMENTS), help="default: all")
    step.add_argument("--seconds", type=float, default=0.5, help="per contender and round")
    step.add_argument("--rounds", type=int, default=5)
    step.set_defaults(run=run)
    benchmark_plan.add_command(commands)
    benchmark_information.add_command(commands)
    benchmark_learning.add_commands(commands)
    benchmark_rl.add_command(commands)
    arguments = parser.parse_args()
    print(f"exo-envs {exo_envs.__version__}, gymnasium {gym.__version__}, numpy {np.__version__}")
    arguments.run(arguments)


def run(arguments: argparse.Namespace) -> None:
    """The sub-command ``step``."""
    for env_id in arguments.ids:
        compare_shells(env_id, arguments.seconds, arguments.rounds)
    if "ExoCrowd-v0" in arguments.ids:
        show_growth("ExoCrowd-v0", arguments.seconds, arguments.rounds)


def compare_shells(env_id: str, seconds: float, rounds: int) -> None:
    """One environment: the single shell, the vector shell, and Gymnasium's SyncVectorEnv."""
    single = gym.make(env_id, disable_env_checker=True)
    sync = gym.make_vec(
        env_id, num_envs=SYNC_LANES, vectorization_mode="sync", vector_kwargs={"copy": True}
    )
    contenders = {
        "single shell": single_stepper(single),
        f"SyncVectorEnv, {SYNC_LANES} lanes": vector_stepper(sync),
    }
    for lanes in LANES:
        contenders[f"vector shell, {lanes} lanes"] = vector_stepper(
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
        contenders[name] = vector_stepper(env)
    rates = race(contenders, seconds, rounds)
    print(f"\n{env_id}: cost against the number of variables ({lanes} lanes)")
    print(f"  {'variables':>9}{'env-steps/s':>14}{'ns per variable':>17}")
    for name, rate in rates.items():
        print(f"  {sizes[name]:>9,}{rate:>14,.0f}{1e9 / rate / sizes[name]:>17.2f}   {name}")


def single_stepper(env: gym.Env) -> Callable[[float], float]:
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


def vector_stepper(env: gym.vector.VectorEnv) -> Callable[[float], float]:
    """Random actions in all lanes, automatic resets included."""
    rng = np.random.default_rng(0)
    actions = rng.integers(env.single_action_space.n, size=(16, env.num_envs))
    env.reset(seed=0)

    def run(seconds: float) -> float:
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            env.step(actions[steps % len(actions)])
            steps += 1
        return steps * env.num_envs / (time.perf_counter() - start)

    return run


def memory_per_lane(env_id: str, lanes: int = 4096) -> float:
    """Peak memory of making, resetting and stepping, per lane, if the results are not kept."""
    gym.make_vec(env_id, num_envs=1).reset(seed=0)  # compilation is not a lane's
    actions = np.zeros(lanes, dtype=np.int64)
    tracemalloc.start()
    env = gym.make_vec(env_id, num_envs=lanes)
    env.reset(seed=0)
    for _ in range(5):
        env.step(actions)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / lanes


if __name__ == "__main__":
    main()
