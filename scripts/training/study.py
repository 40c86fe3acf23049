"""The command line of a training script, and what it shows in the end."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import exo_envs
from planners import Estimate, paired_difference
from shared.arguments import parse_option
from shared.console import INTERRUPTED, print_table
from shared.intervals import Interval
from training.curves import Curve, average, by_label, geometric_mean, ratio
from training.plots import plot_curves
from training.runs import Run, Trainer, cores, execute_all
from training.task import OBSERVATIONS, WORLDS, Reference, Task, check_oracle, masks_of

#: Hyper-parameters that are words.
CHOICES = {"encoding": ("one-hot", "scaled"), "network": ("gated", "plain")}
SHARES = (0.5, 0.8)  # of the way from idling to the planner, to which steps are counted


def make_parser(doc: str | None, *, steps: int) -> argparse.ArgumentParser:
    """The arguments that all training scripts have."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("env_id")
    add("--option", action="append", default=[], metavar="NAME=VALUE", help="of the environment")
    add(
        "--observation",
        nargs="+",
        choices=OBSERVATIONS,
        default=["full", "learned"],
        help="what agents see: all variables, the learned mask's, those of --mask, none",
    )
    add("--mask", help="of --observation oracle: names or patterns, separated by commas")
    add("--cost-weight", type=float, default=1.0, help="of the mask learner: 1")
    add(
        "--train-in",
        nargs="+",
        choices=WORLDS,
        default=["full"],
        help="the environment, or the reduced model of what the agent sees: full",
    )
    add("--steps", type=_number, default=steps, help=f"of training: {steps:,}")
    add("--seeds", type=_number, nargs="+", default=[0], help="one run each: 0")
    add("--evaluations", type=int, default=20, help="of each agent while it is trained: 20")
    add("--rollouts", type=int, default=500, help="of an evaluation: 500")
    add("--jobs", type=int, default=cores(), help="runs at a time: one for each core")
    add("--output", type=Path, default=Path("outputs/training"), help="folder: outputs/training")
    add(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a hyper-parameter of the algorithm",
    )
    return parser


def run_study(
    arguments: argparse.Namespace, algorithm: str, trainer: Trainer, defaults: dict[str, Any]
) -> int:
    """Train an agent for each observation and seed, compare them, and plot their curves."""
    if min(arguments.steps, arguments.evaluations, arguments.rollouts, arguments.jobs) < 1:
        raise SystemExit("error: steps, evaluations, rollouts and jobs are at least 1")
    if min(arguments.seeds) < 0:
        raise SystemExit(f"error: a seed is at least 0, not {min(arguments.seeds)}")
    hyperparameters = {**defaults, **given_settings(arguments.set, defaults)}
    task = Task(arguments.env_id, tuple(arguments.option), arguments.rollouts)
    check_oracle(task, arguments.observation, arguments.mask)
    output = arguments.output / task.name
    print(f"exo-envs {exo_envs.__version__}: {algorithm} on {task.name}, {task.mdp}", flush=True)
    try:
        reference = Reference.of(task, arguments.cost_weight, output / "reference.json")
        runs = plan_runs(arguments, task, reference, algorithm, hyperparameters)
        curves = execute_all(trainer, runs, min(arguments.jobs, len(runs)))
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on with what is finished, or has checkpoints")
        return INTERRUPTED
    show(task, reference, runs, curves)
    title = f"{task.name}, {algorithm}"
    levels = {"planner": np.mean(reference.planner), "idle": np.mean(reference.idle)}
    targets = {f"{100 * share:.0f} %": level for share, level in targets_of(reference).items()}
    for suffix in (".svg", ".png"):
        file = output / f"{algorithm}{suffix}"
        plot_curves(curves, levels, targets, title, file)
        print(f"plot  {file}")
    return 0


def given_settings(given: Sequence[str], defaults: dict[str, Any]) -> dict[str, Any]:
    """Hyper-parameters of the command line, if they exist and can have these values."""
    settings = dict(parse_option(setting) for setting in given)
    for name, value in settings.items():
        if name not in defaults:
            raise SystemExit(f"error: {name!r} cannot be set; there are: {', '.join(defaults)}")
        if name in CHOICES and value not in CHOICES[name]:
            raise SystemExit(f"error: {name} is one of {', '.join(CHOICES[name])}, not {value!r}")
        kind = type(defaults[name])
        kinds = (int, float) if kind is float else (kind,)
        wrong = not isinstance(value, kinds) or (kind is not bool and isinstance(value, bool))
        if wrong or (kind is int and value < 1) or (kind is float and value < 0):
            raise SystemExit(
                f"error: {name} is {defaults[name]!r} by default, and cannot be {value!r}"
            )
    return settings


def plan_runs(
    arguments: argparse.Namespace,
    task: Task,
    reference: Reference,
    algorithm: str,
    hyperparameters: dict[str, Any],
) -> list[Run]:
    """Seed by seed, so that a study that is stopped has whole seeds."""
    masks = masks_of(task, reference, arguments.observation, arguments.mask)
    seeds, worlds = dict.fromkeys(arguments.seeds), dict.fromkeys(arguments.train_in)
    jobs = min(arguments.jobs, len(masks) * len(seeds) * len(worlds))
    return [
        Run(
            task=task,
            algorithm=algorithm,
            observation=observation,
            mask=mask,
            world=world,
            seed=seed,
            steps=arguments.steps,
            evaluations=arguments.evaluations,
            output=arguments.output / task.name,
            hyperparameters=hyperparameters,
            threads=max(1, cores() // jobs),
        )
        for seed in seeds
        for world in worlds
        for observation, mask in masks.items()
    ]


def show(task: Task, reference: Reference, runs: Sequence[Run], curves: Sequence[Curve]) -> None:
    """A table: what agents earn in the full environment, and after how many steps."""
    planner = Estimate.of(np.array(reference.planner))
    idle = Estimate.of(np.array(reference.idle))
    total = len(task.mdp.exogenous_names)
    sizes = {run.label: total if run.mask is None else len(run.mask) for run in runs}
    targets = targets_of(reference)
    rows = [
        ("planner, learned mask", str(len(reference.learned)), "", str(planner), "", "", ""),
        ("idle", "0", "", str(idle), "", "", ""),
    ]
    groups = by_label(curves)
    for label, group in groups.items():
        final = str(Estimate.of(np.array(group[0].returns)))
        if len(group) > 1:
            final = f"{average(group)[-1][1]:.1f}"
        reached = [described_steps(group, level) for level in targets.values()]
        lacks = gap(group, reference)
        rows.append((label, str(sizes[label]), str(len(group)), final, lacks, *reached))
    print(f"\nReturns in the full environment on {task.rollouts} shared exogenous trajectories")
    print("(95 % intervals: for one run over trajectories, for several over seeds, on these ones)")
    steps = [f"steps to {100 * share:.0f} %" for share in SHARES]
    header = ("agent", "variables", "runs", "return", "less than the planner", *steps)
    print_table(header, rows, "<>>>>>>")
    spacing = curves[0].points[1].steps - curves[0].points[0].steps
    print(f"  Evaluated about every {spacing:,} steps, on a line between. From idle to planner:")
    for share, level in targets.items():
        print("; ".join([f"  {100 * share:.0f} % is {level:.1f}", *ratios(groups, level)]))


def targets_of(reference: Reference) -> dict[float, float]:
    """Returns on the way from idling to the planner, by their share of it."""
    idle, planner = float(np.mean(reference.idle)), float(np.mean(reference.planner))
    return {share: idle + share * (planner - idle) for share in SHARES}


def described_steps(group: Sequence[Curve], level: float) -> str:
    """When runs reached a level (geometric mean), and how many did."""
    reached = [steps for curve in group if (steps := curve.steps_to(level)) is not None]
    if not reached:
        return "never"
    some = "" if len(reached) == len(group) else f" ({len(reached)} of {len(group)})"
    return f"{geometric_mean(reached) / 1e6:.2f} M{some}"


def gap(group: Sequence[Curve], reference: Reference) -> str:
    """How much the planner's policy earns more, on the same trajectories."""
    planner = np.array(reference.planner)
    gaps = [paired_difference(planner, np.array(curve.returns)) for curve in group]
    if len(gaps) == 1:
        return str(gaps[0])
    return f"{Interval.of(estimate.mean for estimate in gaps):.1f}"


def ratios(groups: dict[str, list[Curve]], level: float) -> list[str]:
    """How many times as many steps the agents need that see everything."""
    steps = {label: [curve.steps_to(level) for curve in group] for label, group in groups.items()}
    full = steps.pop("full", None)
    lines = []
    for label, others in steps.items() if full else ():
        needed = [*full, *others]
        if None in needed:
            lines.append(f"full against {label}: no ratio, not all runs came that far")
            continue
        if min(needed) <= 0:
            lines.append(f"full against {label}: no ratio, some were there before training")
            continue
        times, low, high = ratio(full, others)
        interval = f"(95 %: {low:.2f} to {high:.2f})"
        lines.append(f"full needs {times:.2f} times the steps of {label} {interval}")
    return lines


def _number(text: str) -> int:
    """``2e6`` is a number of steps too."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value.is_integer():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(value)
