"""What are these masks worth? Plan with each of them and play, on the same exogenous trajectories.

    python scripts/objective.py ExoCrowd-v0 --mask 'occupancy_*,object_*' \\
        --mask 'occupancy_*,object_*,porter_*'

A mask is a list of names or patterns; each line of the table shows the mean return of the policy
planned in that mask's reduced model, with its 95 % interval, and the paired gain over the line
before.
"""

from __future__ import annotations

import argparse
import ast
import time
from fnmatch import fnmatchcase

import gymnasium as gym
import numpy as np

import exo_envs
from planners import EndogenousSurvey, ExogenousData, Scenarios, estimate_objective


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("env_id")
    parser.add_argument("--mask", action="append", default=[], help="may be given several times")
    parser.add_argument(
        "--option", action="append", default=[], help="of the environment: name=value"
    )
    parser.add_argument("--rollouts", type=int, default=500, help="played with each policy")
    parser.add_argument("--data", type=int, help="rollouts that the models are estimated from")
    parser.add_argument("--time-limit", type=float, default=60.0, help="for planning, in seconds")
    parser.add_argument("--cost-weight", type=float, default=0.0, help="the paper's lambda")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    options = dict(parse_option(option) for option in arguments.option)
    mdp = gym.make(arguments.env_id, **options).unwrapped.mdp
    print(f"exo-envs {exo_envs.__version__}: {arguments.env_id} {options or ''} {mdp}")

    rng = np.random.default_rng(arguments.seed)
    start = time.perf_counter()
    data = ExogenousData.collect(mdp, arguments.data, rng)
    survey = EndogenousSurvey.collect(mdp, data, rng)
    scenarios = Scenarios.sample(mdp, arguments.rollouts, rng)
    print(f"rollouts and survey shared by all masks: {time.perf_counter() - start:.1f} s\n")

    print(f"{'variables':>9} {'return':>16} {'J':>8} {'gain':>16} {'plan':>8} {'all':>8}  mask")
    before = None
    for pattern in arguments.mask or ["", "*"]:
        start = time.perf_counter()
        objective = estimate_objective(
            mdp,
            matching(mdp.exogenous_names, pattern),
            rng=rng,
            data=data,
            survey=survey,
            scenarios=scenarios,
            cost_weight=arguments.cost_weight,
            time_limit=arguments.time_limit,
        )
        low, high = objective.interval()
        earned = f"{objective.mean_return:.1f} ± {(high - low) / 2:.1f}"
        gain = "" if before is None else str(objective.gain_over(before))
        seconds = time.perf_counter() - start
        print(
            f"{len(objective.mask):>9} {earned:>16} {objective.value:>8.1f} {gain:>16} "
            f"{objective.plan.seconds:>6.1f} s {seconds:>6.1f} s  {pattern or 'none'}"
            + ("" if objective.plan.converged else "  (stopped at the time limit)"),
            flush=True,
        )
        before = objective


def parse_option(option: str) -> tuple[str, object]:
    """``goal=fixed`` or ``num_agents=64``."""
    name, _, value = option.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def matching(names: tuple[str, ...], patterns: str) -> list[str]:
    """The names that match one of the comma-separated patterns."""
    wanted = [pattern for pattern in patterns.split(",") if pattern]
    for pattern in wanted:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise SystemExit(f"no exogenous variable matches {pattern!r}; there are: {names}")
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in wanted)]


if __name__ == "__main__":
    main()
