"""Benchmarks of the mask learners: `python scripts/benchmark.py planted` and `learn`.

`planted` scores the rules on problems whose right mask is known; `learn` shows how time and
memory grow with the number of exogenous variables, each size in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections import Counter
from typing import Any

import gymnasium as gym

import exo_envs  # noqa: F401
from exo_envs.synthetic import SyntheticMDP, SyntheticParameters
from wrappers import CorrelationalMaskLearner, Study
from wrappers.learners.calibrated.relevance import find_relevance

#: Planted problems of all structures; what is not said is as in SyntheticParameters.
PROBLEMS: dict[str, dict[str, Any]] = {
    "as registered": {},
    "no ancestry": {"generations": 0},
    "parents only": {"generations": 1},
    "three generations": {"generations": 3},
    "two parents, two XOR pairs": {
        "num_paying": 4,
        "num_xor_pairs": 2,
        "num_moving": 2,
        "parents_per_paying": 2,
    },
    "three parents": {"parents_per_paying": 3},
    "many copies": {"num_copies": 40, "num_correlated": 20},
    "much noise": {"num_noise": 78},
    "very much noise": {"num_noise": 478},
}

#: Nothing but independent variables: whatever is added to those that pay is added in error.
NULL = {
    "generations": 0,
    "num_xor_pairs": 0,
    "num_moving": 0,
    "num_copies": 0,
    "num_correlated": 0,
    "num_noise": 27,
}

#: What grows: planted problems, and crowds of about 124, 1,000 and 10,000 variables.
SIZES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ExoSynthetic-v0", {"num_noise": 102}),
    ("ExoSynthetic-v0", {"num_noise": 978}),
    ("ExoSynthetic-v0", {"num_noise": 9_978}),
    ("ExoCrowd-v0", {}),
    ("ExoCrowd-v0", {"grid_size": 20, "num_agents": 180, "num_objects": 60}),
)


def add_commands(commands: Any) -> None:
    """The sub-commands ``planted`` and ``learn`` of scripts/benchmark.py."""
    planted = commands.add_parser("planted", help="recall and precision of the mask learners")
    planted.add_argument("--seeds", type=int, default=50, help="instances of each problem")
    planted.add_argument("--paper-seeds", type=int, default=5, help="the same for the paper's rule")
    planted.add_argument("--null-seeds", type=int, default=200, help="runs under the null")
    planted.add_argument("--paper-variables", type=int, default=100, help="at most, for that rule")
    planted.set_defaults(run=run_planted)
    learn = commands.add_parser("learn", help="learning as the number of variables grows")
    learn.add_argument("--one", help=argparse.SUPPRESS)
    learn.set_defaults(run=run_learn)


def run_planted(arguments: argparse.Namespace) -> None:
    """One line for each problem and rule."""
    print(
        f"\n{'problem':28}{'variables':>10}{'rule':>12}{'seeds':>7}{'recall':>9}{'precision':>11}"
        f"{'s/run':>8}  needless variables by role"
    )
    for name, parameters in PROBLEMS.items():
        score_rule(name, parameters, "calibrated", arguments.seeds)
        size = len(SyntheticMDP(SyntheticParameters(**parameters)).exogenous_names)
        if size <= arguments.paper_variables:
            score_rule(name, parameters, "paper", arguments.paper_seeds)
    wrong = sum(adds_in_error(seed) for seed in range(arguments.null_seeds))
    print(f"\nunder the null, level 0.05: {wrong} of {arguments.null_seeds} runs add anything")


def adds_in_error(seed: int) -> bool:
    """Whether a variable is found that does not pay where all are independent."""
    mdp = SyntheticMDP(SyntheticParameters(instance=seed, **NULL))
    return set(find_relevance(Study(mdp, seed)).findings) != set(mdp.required_mask)


def score_rule(name: str, parameters: dict[str, Any], rule: Any, seeds: int) -> None:
    """Learn the masks of some instances and compare them with the right ones."""
    right = missed = needless = 0
    roles: Counter[str] = Counter()
    start = time.perf_counter()
    for seed in range(seeds):
        mdp = SyntheticMDP(SyntheticParameters(instance=seed, **parameters))
        # Only the paper's rule needs rollouts to choose: with lambda = 0 the tests decide.
        rollouts = 500 if rule == "paper" else 20
        learner = CorrelationalMaskLearner(rule=rule, n_rollouts=rollouts).fit(mdp, rng=seed)
        found, wanted = set(learner.mask_), set(mdp.required_mask)
        right += len(found & wanted)
        missed += len(wanted - found)
        needless += len(found - wanted)
        roles.update(mdp.roles[variable] for variable in found - wanted)
    seconds = (time.perf_counter() - start) / seeds
    print(
        f"{name:28}{len(mdp.exogenous_names):>10}{rule:>12}{seeds:>7}"
        f"{right / (right + missed):>9.3f}{right / max(1, right + needless):>11.3f}"
        f"{seconds:>8.2f}  {dict(roles) or ''}",
        flush=True,
    )


def run_learn(arguments: argparse.Namespace) -> None:
    """One line for each size, measured in a process that does nothing else."""
    if arguments.one:
        learn_one(*json.loads(arguments.one))
        return
    print(
        f"\n{'environment':18}{'variables':>10}{'transitions':>13}{'seconds':>9}{'memory':>10}"
        f"{'of that data':>14}{'mask':>6}  against the right mask"
    )
    for size in SIZES:
        command = [sys.executable, __file__, "--one", json.dumps(size)]
        subprocess.run(command, check=True)


def learn_one(env_id: str, options: dict[str, Any]) -> None:
    """Learn once to compile, on a small problem, and once to measure."""
    CorrelationalMaskLearner(n_rollouts=20).fit(gym.make(env_id), rng=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mdp = gym.make(env_id, **options).unwrapped.mdp
    learner = CorrelationalMaskLearner().fit(mdp, rng=0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    data = learner.study_.data
    required = getattr(mdp, "required_mask", None)
    verdict = ""
    if required is not None:
        missed, needless = set(required) - set(learner.mask_), set(learner.mask_) - set(required)
        verdict = f"{len(missed)} missed, {len(needless)} needless"
    print(
        f"{env_id:18}{len(mdp.exogenous_names):>10}{data.num_rollouts * data.num_steps:>13,}"
        f"{learner.seconds_:>9.1f}{(peak - before) / 1024:>7.0f} MB"
        f"{data.values.nbytes / 2**20:>11.0f} MB{len(learner.mask_):>6}  {verdict}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", required=True)
    learn_one(*json.loads(parser.parse_args().one))
