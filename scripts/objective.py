"""What are these masks worth? Plan with each of them and play, on the same exogenous trajectories.

    python scripts/objective.py ExoCrowd-v0 --mask 'occupancy_*,object_*' \\
        --mask 'occupancy_*,object_*,porter_*'

A mask is a list of names or patterns; each line of the table shows the mean return of the policy
planned in that mask's reduced model, with its 95 % interval, the paired gain over the line before,
and how the policy was found. The first line knows nothing and plans with the averages of what it
ignores, the last one knows everything. --bracket adds what no policy can exceed.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import exo_envs
from planners import (
    EndogenousSurvey,
    ExogenousData,
    Memory,
    Objective,
    Scenarios,
    estimate_objective,
)
from shared.arguments import (
    BLIND,
    EVERYTHING,
    add_ignored_rewards,
    describe_ignored_rewards,
    make_env,
    matching,
)


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
    add_ignored_rewards(parser, default="average")
    parser.add_argument(
        "--bracket", action="store_true", help="what no policy can exceed, whatever it sees"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    mdp = exo_envs.as_mdp(make_env(arguments.env_id, arguments.option))
    asked = " ".join([arguments.env_id, *arguments.option])
    print(f"exo-envs {exo_envs.__version__}: {asked} {mdp}")

    rng = np.random.default_rng(arguments.seed)
    start = time.perf_counter()
    data = ExogenousData.collect(mdp, arguments.data, rng)
    survey = EndogenousSurvey.collect(mdp, data, rng)
    memory = Memory()
    scenarios = Scenarios.sample(mdp, arguments.rollouts, rng)
    print(f"rollouts and survey shared by all masks: {time.perf_counter() - start:.1f} s")
    print(f"{describe_ignored_rewards(arguments.ignored_rewards)}\n")

    print(
        f"{'variables':>9} {'return':>16} {'J':>8} {'gain':>16} {'plan':>8} {'all':>8}  "
        f"{'planned by':<16}  mask"
    )
    objectives: dict[str, Objective] = {}
    before = None
    asked_for = [(mask or "nothing", mask, arguments.ignored_rewards) for mask in arguments.mask]
    rows = [(BLIND, "", "average"), *asked_for, (EVERYTHING, "*", arguments.ignored_rewards)]
    for name, pattern, rule in rows:
        start = time.perf_counter()
        objective = estimate_objective(
            mdp,
            matching(mdp.exogenous_names, pattern),
            rng=rng,
            data=data,
            survey=survey,
            memory=memory,
            scenarios=scenarios,
            cost_weight=arguments.cost_weight,
            time_limit=arguments.time_limit,
            ignored_rewards=rule,
        )
        low, high = objective.interval()
        earned = f"{objective.mean_return:.1f} ± {(high - low) / 2:.1f}"
        gain = "" if before is None else str(objective.gain_over(before))
        seconds = time.perf_counter() - start
        print(
            f"{len(objective.mask):>9} {earned:>16} {objective.value:>8.1f} {gain:>16} "
            f"{objective.plan.seconds:>6.1f} s {seconds:>6.1f} s  "
            f"{objective.plan.method:<16}  {name}"
            + ("" if objective.plan.converged else "  (stopped at the time limit)"),
            flush=True,
        )
        objectives[name] = before = objective
    if arguments.bracket:
        show_bracket(objectives)


def show_bracket(objectives: dict[str, Objective]) -> None:
    """What the best of the policies earns, and what no policy can exceed."""
    name = max(objectives, key=lambda name: objectives[name].mean_return)
    found = objectives[name].bracket
    if found is None:
        print("\nwhat any policy could earn is not known: too much would have to be asked")
    else:
        print(f"\n{name}: {found}")


if __name__ == "__main__":
    main()
