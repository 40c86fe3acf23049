"""`python scripts/benchmark.py certify`: are certificates right, and is their power as stated?"""

from __future__ import annotations

import argparse
import time
from itertools import islice
from typing import Any

import numpy as np

from benchmarks.planted import PROBLEMS
from exo_envs import ExoMDP, State, Variable
from exo_envs.core.mdp import FloatArray, IntArray
from exo_envs.domains.synthetic import SyntheticMDP, SyntheticParameters
from wrappers import Certificate, certify


class Nudge(ExoMDP):
    """A coin that pays is nudged by another one, which a mask of the first alone ignores.

    The nudge moves the probability of the coin's next value by ``effect``.
    """

    endogenous_variables = (Variable("bet", 2),)
    exogenous_variables = (Variable("coin", 2), Variable("nudge", 2), Variable("noise", 5))
    num_actions, discount, horizon = 2, 0.95, 20

    def __init__(self, effect: float) -> None:
        self.effect = effect

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        return State(np.zeros((size, 1), int), rng.integers([2, 2, 5], size=(size, 3)))

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        following = rng.integers([2, 2, 5], size=exogenous.shape)
        chance = 0.5 + self.effect * (exogenous[..., 1] - 0.5)
        following[..., 0] = rng.random(chance.shape) < chance
        return following

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        return np.array(action)[..., None]

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        terms = np.zeros(state.exogenous.shape)
        terms[..., 0] = state.exogenous[..., 0] == state.endogenous[..., 0]
        return terms


def problems(number: int) -> list[SyntheticMDP]:
    """Planted problems of all structures but the largest, each with several seeds."""
    structures = [own for name, own in PROBLEMS.items() if name != "very much noise"]
    kinds = ((own, seed) for seed in range(number) for own in structures)
    return [
        SyntheticMDP(SyntheticParameters(**own, instance=1_000 + seed))
        for own, seed in islice(kinds, number)
    ]


def right_masks(number: int, samples: int, exact: bool) -> tuple[int, int]:
    """How many right masks have no violation, and how many masks lack a variable that is named."""
    clear = named = 0
    for seed, mdp in enumerate(problems(number)):
        clear += certify(mdp, mdp.required_mask, rng=seed, n_samples=samples, exact=exact).holds
        gone = mdp.required_mask[seed % len(mdp.required_mask)]
        fewer = [name for name in mdp.required_mask if name != gone]
        found = certify(mdp, fewer, rng=seed, n_samples=samples, exact=exact)
        named += {check.variable for check in found.violations} == {gone}
    return clear, named


def found_at_threshold(number: int, samples: int, *, share: float = 1.0) -> tuple[float, int]:
    """The stated threshold, and how often an effect of this share of it is found."""

    def look(effect: float, seed: int) -> Certificate:
        return certify(Nudge(effect), ["coin"], rng=seed, n_samples=samples)

    at = [check for check in look(0.0, 0).checks if (check.variable, check.target) == PAIR]
    threshold = at[0].detectable or 0.0
    seeds = range(1, number + 1)
    found = sum(
        any((c.variable, c.target) == PAIR for c in look(share * threshold, seed).violations)
        for seed in seeds
    )
    return threshold, found


PAIR = ("nudge", "coin")


def run(arguments: argparse.Namespace) -> None:
    """Print what was found."""
    number, samples = arguments.number, arguments.samples
    print(f"\n{number} planted problems, {samples:,} samples for each ignored variable, level 0.05")
    for exact in (False, True):
        begin = time.perf_counter()
        clear, named = right_masks(number, samples, exact)
        seconds = (time.perf_counter() - begin) / (2 * number)
        print(
            f"{'by tables where there are' if exact else 'by draws alone'}: right masks without "
            f"violation {clear} of {number}; masks that lack one variable, and it alone is named, "
            f"{named} of {number}; {seconds:.2f} s each"
        )
    threshold, found = found_at_threshold(number, samples)
    print(
        f"an effect of the stated threshold ({threshold:.4f}, power 0.9) is found in "
        f"{found} of {number} runs ({found / number:.1%})"
    )


def add_command(commands: Any) -> None:
    """The command line of this benchmark."""
    command = commands.add_parser("certify", help="certificates of planted problems")
    command.add_argument("--number", type=int, default=200, help="problems, and runs")
    command.add_argument("--samples", type=int, default=10_000)
    command.set_defaults(run=run)
