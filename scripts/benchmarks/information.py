"""Benchmark of the pairwise information: `python scripts/benchmark.py information`.

All ordered pairs of the 124 variables of ExoCrowd-v0 on 100,000 transitions, against a loop over
scikit-learn's `mutual_info_score`. That loop takes minutes, so by default a sample of the pairs is
timed, some of every combination of sizes, and extrapolated; `--full` runs all of them.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import mutual_info_score

from benchmarks.timing import timed
from exo_envs.domains.crowd import CrowdMDP
from planners import pairwise_information
from planners.samples.rollouts import ExogenousData


def add_command(commands: Any) -> None:
    """The sub-command ``information`` of scripts/benchmark.py."""
    parser = commands.add_parser("information", help="all pairs of variables, and scikit-learn")
    parser.add_argument("--transitions", type=int, default=100_000)
    parser.add_argument("--pairs", type=int, default=12, help="timed for each combination of sizes")
    parser.add_argument("--full", action="store_true", help="time scikit-learn on all pairs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Take turns, the best of each counts; all pairs of scikit-learn's run once only."""
    pairs = Pairs(arguments.transitions, None if arguments.full else arguments.pairs)
    pairs.compile()
    ours, conditional, theirs = np.inf, np.inf, np.inf
    for turn in range(arguments.rounds):
        ours = min(ours, pairs.ours())
        conditional = min(conditional, pairs.conditional())
        if turn == 0 or not arguments.full:
            theirs = min(theirs, pairs.theirs())
    number = len(pairs.data.names) ** 2
    timed_pairs = sum(len(some) for _, some in pairs.strata)
    samples = pairs.found.samples
    print(f"\n{number:,} ordered pairs of ExoCrowd-v0's variables, {samples:,} transitions")
    print(f"  {'ours, I(x_j ; x_i later)':44}{ours:>9.3f} s{ours / number * 1e6:>10.1f} us a pair")
    print(
        f"  {'ours, given x_i now':44}{conditional:>9.3f} s{conditional / number * 1e6:>10.1f} "
        "us a pair"
    )
    how = "all, once" if arguments.full else f"from {timed_pairs} pairs"
    print(
        f"  {f'scikit-learn mutual_info_score, {how}':44}{theirs:>9.1f} s"
        f"{theirs / number * 1e6:>10.1f} us a pair"
    )
    print(f"  ratio {theirs / ours:.0f}x, largest difference {pairs.difference:.1e} nats")


class Pairs:
    """All ordered pairs of ExoCrowd-v0's variables, for us and for scikit-learn to go through.

    Args:
        transitions: how many there are at least.
        limit: pairs of each combination of sizes that scikit-learn is timed on; None is all.
    """

    def __init__(self, transitions: int, limit: int | None) -> None:
        mdp, rng = CrowdMDP(), np.random.default_rng(0)
        self.data = ExogenousData.collect(mdp, -(-transitions // mdp.horizon), rng)
        self.strata = stratified_pairs(self.data, limit, rng)
        self.difference = 0.0

    def compile(self) -> None:
        """Run ours once in both ways."""
        self.ours()
        self.conditional()

    def ours(self) -> float:
        """Seconds of all pairs."""
        seconds, self.found = timed(lambda: pairwise_information(self.data, given_self=False))
        return seconds

    def conditional(self) -> float:
        """Seconds of all pairs, given the present value of the one that is foretold."""
        return timed(lambda: pairwise_information(self.data, given_self=True))[0]

    def theirs(self) -> float:
        """Seconds of all pairs with scikit-learn, after :meth:`ours`, with which it compares."""
        total = 0.0
        for count, pairs in self.strata:
            seconds, off = time_scikit_learn(self.data, pairs, self.found.plug_in)
            total += seconds * count / len(pairs)
            self.difference = max(self.difference, off)
        return total


def stratified_pairs(
    data: ExogenousData, limit: int | None, rng: np.random.Generator
) -> list[tuple[int, list[tuple[int, int]]]]:
    """For each combination of sizes: how many pairs have it, and some of them (or all)."""
    strata: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for i, size in enumerate(data.sizes.tolist()):
        for j, other in enumerate(data.sizes.tolist()):
            strata[size, other].append((i, j))
    chosen = []
    for pairs in strata.values():
        order = rng.permutation(len(pairs))[:limit]
        chosen.append((len(pairs), [pairs[k] for k in order]))
    return chosen


def time_scikit_learn(
    data: ExogenousData, pairs: list[tuple[int, int]], found: np.ndarray
) -> tuple[float, float]:
    """Seconds of some pairs, columns at hand, and the largest difference from what we found."""
    everything = np.arange(data.num_rollouts)
    seconds, difference = 0.0, 0.0
    for i, j in pairs:
        before, after = data.before(j, everything), data.after(i, everything)
        taken, expected = timed(partial(mutual_info_score, before, after))
        seconds += taken
        difference = max(difference, abs(expected - found[i, j]))
    return seconds, difference
