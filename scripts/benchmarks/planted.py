"""`python scripts/benchmark.py planted`: the rules on problems whose right mask is known."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import Any

from exo_envs.synthetic import SyntheticMDP, SyntheticParameters
from wrappers import CalibratedMaskLearner, CorrelationalMaskLearner, Study, find_relevance

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


def add_command(commands: Any) -> None:
    """The sub-command ``planted`` of scripts/benchmark.py."""
    parser = commands.add_parser("planted", help="recall and precision of the mask learners")
    parser.add_argument("--seeds", type=int, default=50, help="instances of each problem")
    parser.add_argument("--paper-seeds", type=int, default=5, help="the same for the paper's rule")
    parser.add_argument("--null-seeds", type=int, default=200, help="runs under the null")
    parser.add_argument("--paper-variables", type=int, default=100, help="at most, for that rule")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
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
        # With lambda = 0 the tests of the calibrated rule decide: rollouts only measure.
        learner = (
            CorrelationalMaskLearner(n_rollouts=500)
            if rule == "paper"
            else CalibratedMaskLearner(n_rollouts=20)
        )
        learner.fit(mdp, rng=seed)
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
