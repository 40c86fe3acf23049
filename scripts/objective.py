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
import sys
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import exo_envs
from planners import Memory, Objective, Plan, Scenarios, estimate_objective
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from shared.arguments import (
    BLIND,
    EVERYTHING,
    add_ignored_rewards,
    describe_ignored_rewards,
    make_env,
    parse_mask,
)
from wrappers.cli.arguments import Parser, add_model, add_seed, real_type, whole_type
from wrappers.cli.console import columns, run, say, wrap, write
from wrappers.cli.progress import ProgressBar, plain_warnings

HEADER = ("variables", "return", "J", "gain", "seconds", "mask")
WIDTHS = (9, 14, 8, 13, 7)  # in characters; the mask has the rest
LEAST_FOR_MASK = 15


class Row(NamedTuple):
    """A mask to plan with."""

    title: str
    names: tuple[str, ...]
    ignored_rewards: str


def main(argv: Sequence[str] | None = None) -> int:
    return run(lambda: compare(parse(argv)))


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(__doc__)
    add = parser.add_argument
    add_model(parser)
    add("--mask", action="append", default=[], help="may be given several times")
    add(
        "--rollouts",
        type=whole_type(1),
        default=500,
        metavar="N",
        help="played with each policy: 500",
    )
    add(
        "--data",
        type=whole_type(1),
        metavar="N",
        help="rollouts that the models are estimated from",
    )
    add(
        "--time-limit",
        type=real_type(0.0, positive=True),
        default=60.0,
        metavar="SECONDS",
        help="for each plan: 60",
    )
    add(
        "--cost-weight",
        type=real_type(0.0),
        default=0.0,
        metavar="λ",
        help="of each variable, in J: 0",
    )
    add_ignored_rewards(parser, default="average")
    add("--bracket", action="store_true", help="what no policy can exceed, whatever it sees")
    add_seed(parser)
    return parser.parse_args(argv)


def compare(arguments: argparse.Namespace) -> int:
    """A line for each mask; all of them are looked up before the first is planned with."""
    mdp = exo_envs.as_mdp(make_env(arguments.env_id, arguments.option))
    rows = masks_of(mdp, arguments)
    asked = " ".join([arguments.env_id, *arguments.option])
    say(f"exo-envs {exo_envs.__version__}: {asked} {mdp}")
    say(describe_ignored_rewards(arguments.ignored_rewards))
    write("")

    rng = np.random.default_rng(arguments.seed)
    with ProgressBar() as bar, plain_warnings(bar.warn):
        bar.stage("rollouts and a survey, which all masks share")
        data = ExogenousData.collect(mdp, arguments.data, rng)
        survey = EndogenousSurvey.collect(mdp, data, rng)
        scenarios = Scenarios.sample(mdp, arguments.rollouts, rng)
    memory = Memory()
    write(*lines_of(HEADER))
    objectives: list[Objective] = []
    for row in rows:
        with ProgressBar() as bar, plain_warnings(bar.warn):
            bar.stage(f"planning with {len(row.names)} of {len(mdp.exogenous_names)} variables")
            objective = estimate_objective(
                mdp,
                row.names,
                rng=rng,
                data=data,
                survey=survey,
                memory=memory,
                scenarios=scenarios,
                cost_weight=arguments.cost_weight,
                planning_time_limit=arguments.time_limit,
                ignored_rewards=row.ignored_rewards,
            )
        before = objectives[-1] if objectives else None
        write(*lines_of(cells_of(row, objective, before, bar.seconds)))
        write(*wrap(how_planned(objective.plan), indent=WIDTHS[0] + 4))
        objectives.append(objective)
    if arguments.bracket:
        show_bracket(rows, objectives)
    return 0


def masks_of(mdp: exo_envs.ExoMDP, arguments: argparse.Namespace) -> list[Row]:
    """What was asked for, between nothing and everything."""
    rule = arguments.ignored_rewards
    asked = [
        Row(", ".join(mask.split(",")) or "nothing", parse_mask(mdp, mask), rule)
        for mask in arguments.mask
    ]
    return [Row(BLIND, (), "average"), *asked, Row(EVERYTHING, mdp.exogenous_names, rule)]


def cells_of(
    row: Row, objective: Objective, before: Objective | None, seconds: float
) -> tuple[str, ...]:
    """A line of the table."""
    return (
        str(len(objective.mask)),
        str(objective.estimate),
        f"{objective.value:.1f}",
        "" if before is None else str(objective.gain_over(before)),
        f"{seconds:.1f}",
        row.title,
    )


def lines_of(cells: Sequence[str]) -> list[str]:
    """A line of the table, which goes on below the mask if that is long."""
    *numbers, mask = cells
    told = "".join(f"  {cell:>{width}}" for cell, width in zip(numbers, WIDTHS, strict=True)) + "  "
    width = max(LEAST_FOR_MASK, columns() - len(told))
    first, *rest = textwrap.wrap(mask, width, break_on_hyphens=False)
    return [told + first, *(" " * len(told) + line for line in rest)]


def how_planned(plan: Plan) -> str:
    """How the policy of a line was found."""
    return f"by {plan.method}" + (", cut short by the time limit" if plan.out_of_time else "")


def show_bracket(rows: list[Row], objectives: list[Objective]) -> None:
    """What the best of the policies earns, and what no policy can exceed."""
    best = max(range(len(rows)), key=lambda k: objectives[k].mean_return)
    with ProgressBar() as bar, plain_warnings(bar.warn):
        bar.stage("asking what any policy could earn")
        found = objectives[best].bracket
    write("")
    if found is None:
        say("what any policy could earn is not known: too much would have to be asked")
    else:
        say(f"{rows[best].title}: {found}")


if __name__ == "__main__":
    sys.exit(main())
