"""`python scripts/benchmark.py learn`: time and memory as the number of variables grows."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

import exo_envs  # noqa: F401
from wrappers import CalibratedMaskLearner

#: Planted problems of 124, 1,000 and 10,000 exogenous variables; crowds of 124 and about 1,000.
SIZES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ExoSynthetic-v0", {"num_noise": 102}),
    ("ExoSynthetic-v0", {"num_noise": 978}),
    ("ExoSynthetic-v0", {"num_noise": 9_978}),
    ("ExoCrowd-v0", {}),
    ("ExoCrowd-v0", {"grid_size": 20, "num_agents": 180, "num_objects": 60}),
)


def add_command(commands: Any) -> None:
    """The sub-command ``learn`` of scripts/benchmark.py."""
    parser = commands.add_parser("learn", help="learning as the number of variables grows")
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> None:
    """One line for each size, measured in a process that does nothing else."""
    print(
        f"\n{'environment':18}{'variables':>10}{'transitions':>13}{'seconds':>9}{'memory':>10}"
        f"{'of that data':>14}{'mask':>6}  against the right mask",
        flush=True,
    )
    for size in SIZES:
        subprocess.run([sys.executable, __file__, json.dumps(size)], check=True)


@dataclass(frozen=True)
class Learned:
    """What learning a mask cost, and what it gave.

    Attributes:
        variables: the number of exogenous variables.
        transitions: that the tests had.
        seconds: of the whole fit.
        memory: bytes by which the process's peak grew, rollouts included.
        data: bytes of the rollouts.
        mask: the variables that were kept.
        verdict: the mask against the right one, where that is known.
    """

    variables: int
    transitions: int
    seconds: float
    memory: int
    data: int
    mask: tuple[str, ...]
    verdict: str


def compile_learning(env_id: str, cost_weight: float = 0.0) -> None:
    """Learn on few rollouts, so that what is measured next need not compile."""
    CalibratedMaskLearner(cost_weight=cost_weight, n_rollouts=20).fit(gym.make(env_id), rng=0)


def learn(env_id: str, options: dict[str, Any], cost_weight: float = 0.0) -> Learned:
    """Learn a mask of an environment that is made with these options."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mdp = gym.make(env_id, **options).unwrapped.mdp
    learner = CalibratedMaskLearner(cost_weight=cost_weight).fit(mdp, rng=0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    data = learner.study_.data()
    required = getattr(mdp, "required_mask", None)
    verdict = ""
    if required is not None:
        missed, needless = set(required) - set(learner.mask_), set(learner.mask_) - set(required)
        verdict = f"{len(missed)} missed, {len(needless)} needless"
    return Learned(
        variables=len(mdp.exogenous_names),
        transitions=data.num_rollouts * data.num_steps,
        seconds=learner.seconds_,
        memory=(peak - before) * 1024,
        data=data.values.nbytes,
        mask=tuple(learner.mask_),
        verdict=verdict,
    )


def learn_one(env_id: str, options: dict[str, Any]) -> None:
    """Learn once to compile, on a small problem, and once to measure."""
    compile_learning(env_id)
    learned = learn(env_id, options)
    print(
        f"{env_id:18}{learned.variables:>10}{learned.transitions:>13,}"
        f"{learned.seconds:>9.1f}{learned.memory / 2**20:>7.0f} MB"
        f"{learned.data / 2**20:>11.0f} MB{len(learned.mask):>6}  {learned.verdict}",
        flush=True,
    )


if __name__ == "__main__":  # in a process of its own, which imports nothing else of scripts/
    learn_one(*json.loads(sys.argv[1]))
