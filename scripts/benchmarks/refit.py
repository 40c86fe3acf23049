"""`python scripts/benchmark.py refit`: another task, learned with what is known about x or anew."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym

from exo_envs import as_mdp
from wrappers import CalibratedMaskLearner
from wrappers.fitting.history import Progress

Callback = Callable[[Progress], object]

MOVABLE, FIXED = {"goal": "movable"}, {"goal": "fixed"}


class Change(NamedTuple):
    """From one task to another one."""

    name: str
    env_id: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    cost_weight: float = 0.0


CHANGES = (
    Change("movable to fixed goal", "ExoCrowd-v0", MOVABLE, FIXED),
    Change("fixed to movable goal", "ExoCrowd-v0", FIXED, MOVABLE),
    Change("other rewards", "ExoFactory-v0", {}, {"order_reward": 30.0, "down_cost": 100.0}),
    Change("other rewards", "ExoGrid-v0", {}, {"goal_reward": 30.0, "crash_cost": 100.0}),
    Change("other stakes", "ExoSynthetic-v0", {}, {"stake": 30.0, "fee": 0.05}),
    Change("movable to fixed goal", "ExoCrowd-v0", MOVABLE, FIXED, 3.0),
    Change("fixed to movable goal", "ExoCrowd-v0", FIXED, MOVABLE, 3.0),
    Change("other rewards", "ExoFactory-v0", {}, {"order_reward": 30.0, "down_cost": 100.0}, 1.0),
)


class Seconds(NamedTuple):
    """How long one learner took, in seconds of the processor: other programs do not change them."""

    mask: float  # until the mask is known
    call: float  # the whole call of ``fit`` or ``refit``
    policy: float  # until there is a policy and an estimate of J


Timed = tuple[CalibratedMaskLearner, Seconds]


def add_command(commands: Any) -> None:
    """The sub-command ``refit`` of scripts/benchmark.py."""
    parser = commands.add_parser("refit", help="another task over the same exogenous process")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts")
    parser.add_argument("--unpriced", action="store_true", help="leave out λ > 0")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """One line for each change, `fit` and `refit` in turns."""
    warnings.simplefilter("ignore")  # doubts, which are the same either way
    head = ("environment", "task", "λ", "fit: mask", "call", "refit: mask", "call", "policy")
    print("\n| " + " | ".join((*head, "mask", "call", "policy", "masks")) + " |")
    print("|" + "---|" * (len(head) + 4), flush=True)
    for change in CHANGES:
        if not (arguments.unpriced and change.cost_weight):
            print(_line(change, arguments.rounds), flush=True)


def _line(change: Change, rounds: int) -> str:
    """Seconds of both, as a row of a table; ratios are those of the best rounds."""
    before, after = (
        as_mdp(gym.make(change.env_id, **dict(task))) for task in (change.before, change.after)
    )
    learner = CalibratedMaskLearner(cost_weight=change.cost_weight)
    _compile(learner, before, after)
    known = learner.fit(before, rng=0)
    fits, refits, same = [], [], True
    for _ in range(rounds):
        fitted, taken = _timed(
            lambda watch: learner.clone().set_params(callback=watch).fit(after, rng=0)
        )
        fits.append(taken)
        refitted, taken = _timed(lambda watch: known.set_params(callback=watch).refit(after))
        refits.append(taken)
        same &= fitted.mask_ == refitted.mask_
    fit, refit = (Seconds(*map(min, zip(*taken, strict=True))) for taken in (fits, refits))
    ratios = (a / b for a, b in zip(fit, refit, strict=True))
    cells = (
        f"`{change.env_id}`",
        change.name,
        f"{change.cost_weight:g}",
        *(f"{seconds:.2f}" for seconds in (*fit[:2], *refit)),
        *(f"{ratio:.1f}" for ratio in ratios),
        "the same" if same else "differ",
    )
    return "| " + " | ".join(cells) + " |"


def _timed(learn: Callable[[Callback], CalibratedMaskLearner]) -> Timed:
    """Run one learner; its callback tells when the last step was made."""
    times: list[float] = []

    def watch(progress: Progress) -> None:
        if progress.record is not None:
            times.append(time.process_time())

    start = time.process_time()
    learner = learn(watch)
    call = time.process_time() - start
    _ = learner.policy_  # planned now, if that was left for later
    return learner, Seconds(times[-1] - start, call, time.process_time() - start)


def _compile(learner: CalibratedMaskLearner, before: Any, after: Any) -> None:
    """Everything once, on few samples, which compiles what is not compiled yet."""
    few = learner.clone().set_params(n_rollouts=20, n_data_rollouts=40)
    _ = few.fit(before, rng=0).refit(after, with_policy=True).policy_
