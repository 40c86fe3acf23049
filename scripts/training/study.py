"""The command line of a training script, and what it shows in the end."""

from __future__ import annotations

import argparse
import math
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import exo_envs
from exo_envs.core.errors import ExoError
from planners import Estimate
from planners.core.evaluation import paired_difference
from shared.arguments import parse_option
from shared.console import print_table
from shared.folders import Claim, FolderError
from shared.intervals import Interval
from training.curves import Curve, average, by_label, geometric_mean, ratio
from training.plots import plot_curves
from training.runs import Run, Trainer, cores, execute_all
from training.task import OBSERVATIONS, WORLDS, Reference, Task, check_oracle, masks_of

#: Hyper-parameters that are words.
CHOICES = {"encoding": ("one-hot", "scaled"), "network": ("gated", "plain")}
#: The largest value of a hyper-parameter that is a whole number: what fits into memory.
LIMITS = {"lanes": 100_000, "width": 10_000, "rollout": 10_000, "n_steps": 10_000}
LIMIT = 10_000_000  # of the others
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
        metavar="WHAT",
        help="what agents see: full (all variables), learned (the learned mask's), oracle (those "
        "of --mask), none; by default full learned",
    )
    add("--mask", help="of --observation oracle: names or patterns, separated by commas")
    add("--cost-weight", type=_weight, default=1.0, help="λ of the mask learner: 1")
    add(
        "--train-in",
        nargs="+",
        choices=WORLDS,
        default=["full"],
        metavar="MODEL",
        help="full: the environment (default), or reduced: the reduced model of what is seen",
    )
    add("--steps", type=_number(1, 10**12), default=steps, help=f"of training: {steps:,}")
    seeds = _number(0, 2**32 - 1)
    add("--seeds", type=seeds, nargs="+", default=[0], metavar="SEED", help="one run each: 0")
    evaluations = _number(1, 10_000)
    add("--evaluations", type=evaluations, default=20, help="of each agent in training: 20")
    add("--rollouts", type=_number(2, 100_000), default=500, help="of an evaluation: 500")
    add("--jobs", type=_number(1, 1024), default=cores(), help="runs at a time: one a core")
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
    if twice := [seed for seed, count in Counter(arguments.seeds).items() if count > 1]:
        raise SystemExit(f"error: --seeds has {twice[0]} more than once")
    try:
        hyperparameters = {**defaults, **given_settings(arguments.set, defaults)}
        task = Task(arguments.env_id, tuple(arguments.option), arguments.rollouts)
        check_oracle(task, arguments.observation, arguments.mask)
    except ExoError as error:
        raise SystemExit(f"error: {' '.join(str(error).split())}") from error
    output = arguments.output / task.name
    print(f"exo-envs {exo_envs.__version__}: {algorithm} on {task.name}\n{task.mdp}", flush=True)
    try:
        claim = Claim(output)
    except FolderError as error:
        raise SystemExit(f"error: {error}") from error
    with claim:
        reference = Reference.of(task, arguments.cost_weight, output / "reference.json")
        runs = plan_runs(arguments, task, reference, algorithm, hyperparameters)
        curves = execute_all(trainer, runs, min(arguments.jobs, len(runs)))
        show(task, reference, runs, curves)
        title = f"{task.name}, {algorithm}"
        if learned_nothing(curves, reference):
            title += ": too few steps to learn anything"
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
        most = LIMITS.get(name, LIMIT)
        if wrong or (kind is int and not 1 <= value <= most):
            limits = f" (1 to {most:,})" if kind is int else ""
            raise SystemExit(
                f"error: {name} is {defaults[name]!r} by default{limits}, and cannot be {value!r}"
            )
        if kind is float and not 0 <= value < math.inf:
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
        ("planner, learned mask", str(len(reference.learned)), "", str(planner), ""),
        ("idle", "0", "", str(idle), ""),
    ]
    groups = by_label(curves)
    for label, group in groups.items():
        final = str(Estimate.of(np.array(group[0].returns)))
        if len(group) > 1:
            final = f"{average(group)[-1][1]:.1f}"
        lacks = gap(group, reference)
        rows.append((label, str(sizes[label]), str(len(group)), final, lacks))
    print(f"\nReturns in the full environment on {task.rollouts} shared exogenous trajectories")
    print("(95 % intervals: for one run over trajectories, for several over seeds).")
    print("sees: how many exogenous variables; gap: how much more the planner earns")
    print_table(("agent", "sees", "runs", "return", "gap"), rows, "<>>>>")
    for label, group in groups.items():
        gained = sum(curve.gained(np.array(reference.idle)) for curve in group)
        if gained == len(group) or not worth_learning(reference):
            continue
        verdict = "" if gained else f": {group[0].points[-1].steps:,} steps are too few"
        say(
            f"{label}: {len(group) - gained} of {len(group)} runs ended no better than idling, "
            f"or than they began{verdict}"
        )
    spacing = curves[0].points[1].steps - curves[0].points[0].steps
    print(f"\nSteps to a share of the way from idle to planner (evaluated about every {spacing:,})")
    steps = [
        (label, *(described_steps(group, level) for level in targets.values()))
        for label, group in groups.items()
    ]
    shares = [f"{100 * share:.0f} % ({level:.1f})" for share, level in targets.items()]
    print_table(("agent", *shares), steps, "<>>")
    for share, level in targets.items():
        for line in ratios(groups, level):
            say(f"{100 * share:.0f} %: {line}")


def say(text: str) -> None:
    """Print a sentence, in lines that a terminal has room for."""
    print(textwrap.fill(text, 80, initial_indent="  ", subsequent_indent="    "))


def worth_learning(reference: Reference) -> bool:
    """Whether there is anything to learn: the planner earns more than idling, beyond noise."""
    gain = paired_difference(np.array(reference.planner), np.array(reference.idle))
    return gain.interval()[0] > 0


def learned_nothing(curves: Sequence[Curve], reference: Reference) -> bool:
    """Whether no agent ended better than it began and than idling, although that is possible."""
    idle = np.array(reference.idle)
    return worth_learning(reference) and not any(curve.gained(idle) for curve in curves)


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
    steps = geometric_mean(reached)
    return (f"{steps / 1e6:.2f} M" if steps >= 1e5 else f"{steps:,.0f}") + some


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
        if math.isnan(low):
            interval = "(one seed: no interval)"
        lines.append(f"full needs {times:.2f} times the steps of {label} {interval}")
    return lines


def _number(low: int, high: int) -> Callable[[str], int]:
    """The type of a whole number; ``2e6`` is one, too."""

    def parse(text: str) -> int:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (value.is_integer() and low <= value <= high):
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {low} to {high:,}"
            )
        return int(value)

    return parse


def _weight(text: str) -> float:
    """The type of λ."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return value
