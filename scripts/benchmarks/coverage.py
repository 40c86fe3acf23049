"""`python scripts/benchmark.py coverage`: how often 95 % intervals of `objective_` hold the truth.

Each run learns a mask with another seed, and its policy has a true value: exactly known in the
models of `rough_models.py`, and the mean of very many rollouts in ExoGrid. The interval by normal
theory, which was all there was before, is counted beside ours.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.rough_models import ChainsMDP, ClaimsMDP, DamMDP, QuakeMDP
from exo_envs import ExoMDP, State
from exo_envs.domains.grid import GridMDP
from planners import Estimate, Policy, evaluate
from wrappers import CalibratedMaskLearner, UndecidedWarning

MODELS: dict[str, Callable[[], ExoMDP]] = {
    "ExoGrid": GridMDP,
    "heavy tails": ClaimsMDP,
    "a quake, 1e-4 a step": QuakeMDP,
    "a flood, 3e-4 an episode": DamMDP,
}
#: Rollouts that stand for the truth where it is not known exactly.
ENOUGH = 200_000


class Interval(NamedTuple):
    """Both ends."""

    low: float
    high: float

    def covers(self, value: float) -> bool:
        """Whether a value is between them."""
        return self.low <= value <= self.high


class Run(NamedTuple):
    """What one run gave."""

    truth: float
    normal: Interval
    ours: Interval
    is_cautious: bool


def add_command(commands: Any) -> None:
    """The sub-command ``coverage`` of scripts/benchmark.py."""
    parser = commands.add_parser("coverage", help="how often intervals of J hold the true value")
    parser.add_argument("--runs", type=int, default=200, help="for each model")
    parser.add_argument("--rollouts", type=int, default=500, help="for each estimate of J")
    parser.add_argument("--only", choices=MODELS, help="one of the models")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """One line for each model."""
    print(
        f"\n{'model':26}{'runs':>6}{'normal':>8}{'ours':>6}{'width, normal':>15}{'ours':>9}"
        f"{'below':>7}{'above':>7}{'cautions':>10}"
    )
    for name in MODELS:
        if arguments.only in {None, name}:
            print(line(name, measure(name, range(arguments.runs), arguments.rollouts)), flush=True)


def measure(name: str, seeds: range, rollouts: int = 500) -> list[Run]:
    """Learn with some seeds, and compare intervals with the truth."""
    mdp = MODELS[name]()
    known = truths(mdp)
    found = []
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndecidedWarning)
            learner = CalibratedMaskLearner(n_rollouts=rollouts).fit(mdp, seed)
        objective = learner.objective_
        normal = Estimate(objective.mean_return, objective.standard_error)
        found.append(
            Run(
                known(learner.policy_),
                Interval(*normal.interval()),
                Interval(*objective.interval()),
                objective.caution is not None,
            )
        )
    return found


def truths(mdp: ExoMDP) -> Callable[[Policy], float]:
    """What a policy earns, to be asked about many policies of one model."""
    if isinstance(mdp, ChainsMDP):
        return mdp.true_value
    sizes = (*mdp.endogenous_sizes.tolist(), *mdp.exogenous_sizes.tolist())
    values = np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), axis=-1)
    split = len(mdp.endogenous_sizes)
    everything = State(values[:, :split], values[:, split:])
    asked: dict[bytes, Policy] = {}

    @cache
    def by_rollouts(actions: bytes) -> float:
        """Policies that act alike earn the same, so they are played once."""
        return float(evaluate(asked[actions], mdp, ENOUGH, 1).mean())

    def of_policy(policy: Policy) -> float:
        actions = np.asarray(policy(everything)).astype(np.int8).tobytes()
        asked.setdefault(actions, policy)
        return by_rollouts(actions)

    return of_policy


def line(name: str, found: list[Run]) -> str:
    """One row of the table: how often, how wide, and on which side the truth was missed."""
    normal, ours = (sum(r[k].covers(r.truth) for r in found) for k in (1, 2))
    widths = [float(np.mean([r[k].high - r[k].low for r in found])) for k in (1, 2)]
    below = sum(r.truth < r.ours.low for r in found)
    above = sum(r.truth > r.ours.high for r in found)
    cautions = sum(r.is_cautious for r in found)
    return (
        f"{name:26}{len(found):>6}{normal:>8}{ours:>6}{widths[0]:>15.2f}{widths[1]:>9.2f}"
        f"{below:>7}{above:>7}{cautions:>10}"
    )
