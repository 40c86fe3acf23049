"""`python scripts/benchmark.py planted`: the rules on problems whose right mask is known."""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Iterable
from typing import Any

from exo_envs.domains.synthetic import (
    PlantedMDP,
    RealSyntheticMDP,
    RealSyntheticParameters,
    SyntheticMDP,
    SyntheticParameters,
)
from wrappers import CalibratedMaskLearner, CorrelationalMaskLearner, Study, UndecidedWarning
from wrappers.fitting.relevance import find_relevance

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

#: The same with reward terms of two variables each.
PAIRS: dict[str, dict[str, Any]] = {
    "pairs": {"num_pairs": 3, "num_moving": 3},
    "pairs, parents only": {"num_pairs": 3, "generations": 1},
    "pairs, two parents": {"num_pairs": 2, "parents_per_paying": 2},
}

#: Planted problems with real variables; what is not said is as in RealSyntheticParameters.
REAL: dict[str, dict[str, Any]] = {
    "real": {},
    "real, unbounded": {"whole_share": 0.0, "unbounded_share": 1.0},
    "real, no ancestry": {"generations": 0},
    "real, three generations": {"generations": 3},
    "real, two parents, two signs": {
        "num_paying": 4,
        "num_sign_pairs": 2,
        "num_moving": 2,
        "parents_per_paying": 2,
    },
    "real, three parents": {"parents_per_paying": 3},
    "real, many copies": {"num_copies": 40, "num_correlated": 20},
    "real, much noise": {"num_noise": 78},
    "real, pairs": {"num_pairs": 3, "num_moving": 3},
    "whole, 10^4 values": {"whole_share": 1.0, "smallest_size": 10**4, "largest_size": 10**4},
    "whole, 10^4 values, pairs": {
        "whole_share": 1.0,
        "smallest_size": 10**4,
        "largest_size": 10**4,
        "num_pairs": 3,
    },
}

#: The problems of ``--only``, with the models that they are of.
FAMILIES: dict[str, tuple[Any, Any, dict[str, dict[str, Any]]]] = {
    "whole": (SyntheticMDP, SyntheticParameters, PROBLEMS),
    "pairs": (SyntheticMDP, SyntheticParameters, PAIRS),
    "real": (RealSyntheticMDP, RealSyntheticParameters, REAL),
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
    parser.add_argument("--only", choices=FAMILIES, help="whole variables, pairs or real ones")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """One line for each problem and rule."""
    print(
        f"\n{'problem':28}{'variables':>10}{'rule':>12}{'seeds':>7}{'exact':>7}{'recall':>9}"
        f"{'precision':>11}{'s/run':>8}  needless variables by role"
    )
    for family, (_, _, problems) in FAMILIES.items():
        if arguments.only not in {None, family}:
            continue
        for name in problems:
            score_rule(family, name, "calibrated", arguments.seeds)
            if (
                family == "whole"
                and len(planted(family, name, 0).exogenous_names) <= arguments.paper_variables
            ):
                score_rule(family, name, "paper", arguments.paper_seeds)
    if arguments.only in {None, "whole"}:
        wrong = sum(adds_in_error(seed) for seed in range(arguments.null_seeds))
        print(f"\nunder the null, level 0.05: {wrong} of {arguments.null_seeds} runs add anything")


def planted(family: str, name: str, instance: int) -> PlantedMDP:
    """One of the problems."""
    model, parameters, problems = FAMILIES[family]
    mdp: PlantedMDP = model(parameters(instance=instance, **problems[name]))
    return mdp


def adds_in_error(seed: int) -> bool:
    """Whether a variable is found that does not pay where all are independent."""
    mdp = SyntheticMDP(SyntheticParameters(instance=seed, **NULL))
    return set(find_relevance(Study(mdp, seed)).findings) != set(mdp.required_mask)


def learned_mask(family: str, mdp: PlantedMDP, rule: str, seed: int) -> Iterable[str]:
    """The mask that a rule learns, with lambda = 0."""
    if rule == "paper":
        return CorrelationalMaskLearner(n_rollouts=500).fit(mdp, rng=seed).mask_
    if family == "whole":  # the tests decide: rollouts only measure
        return CalibratedMaskLearner(n_rollouts=20).fit(mdp, rng=seed).mask_
    # The same mask, without the plan for it, which would take most of the time.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndecidedWarning)
        return find_relevance(Study(mdp, seed)).findings


def score_rule(family: str, name: str, rule: str, seeds: int) -> None:
    """Learn the masks of some instances and compare them with the right ones."""
    exact = right = missed = needless = 0
    roles: Counter[str] = Counter()
    start = time.perf_counter()
    for seed in range(seeds):
        mdp = planted(family, name, seed)
        found, wanted = set(learned_mask(family, mdp, rule, seed)), set(mdp.required_mask)
        exact += found == wanted
        right += len(found & wanted)
        missed += len(wanted - found)
        needless += len(found - wanted)
        roles.update(mdp.roles[variable] for variable in found - wanted)
    seconds = (time.perf_counter() - start) / seeds
    print(
        f"{name:28}{len(mdp.exogenous_names):>10}{rule:>12}{seeds:>7}{exact:>7}"
        f"{right / (right + missed):>9.3f}{right / max(1, right + needless):>11.3f}"
        f"{seconds:>8.2f}  {dict(roles) or ''}",
        flush=True,
    )
