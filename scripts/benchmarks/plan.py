"""Benchmarks of the planners: `python scripts/benchmark.py plan`.

ValueIteration against QuantEcon's modified policy iteration, its strongest peer, on random and on
grid-shaped MDPs with exogenous variables; then alone on products of variables, whose joint matrix
nothing could hold; and the online planner on ExoCrowd.
"""

from __future__ import annotations

import argparse
from functools import cached_property, partial
from typing import Any

import numpy as np

from benchmarks.problems import grid_problem, product_problem, random_problem
from benchmarks.timing import peak_memory, timed
from exo_envs.domains.crowd import CrowdMDP
from planners import (
    Estimate,
    ForecastPlanner,
    Plan,
    ReducedMDP,
    Scenarios,
    ValueIteration,
    evaluate,
    to_discrete_dp,
)
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from planners.tables.factored_mdp import FactoredMDP


def add_command(commands: Any) -> None:
    """The sub-command ``plan`` of scripts/benchmark.py."""
    parser = commands.add_parser("plan", help="exact planning against QuantEcon, and alone")
    parser.add_argument("--sizes", type=int, nargs="*", default=[500, 5000], help="of X")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--variables", type=int, nargs="*", default=[5, 6], help="of products")
    parser.add_argument("--time-limit", type=float, default=60.0, help="for products")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the tables."""
    ValueIteration().plan(random_problem(20, 0.9, np.random.default_rng(0)))  # compilation
    print("seconds, best of each; ours builds what it needs from the tables every time\n")
    print(
        f"{'':10}{'X':>6} {'gamma':>6} {'ours':>9} {'QuantEcon MPI':>14} {'its build':>10} "
        f"{'ratio':>7} {'with build':>11} {'memory':>15} {'ratio':>6} {'difference':>11}"
    )
    for name, problem in (("random", random_problem), ("grid", grid_problem)):
        for size in arguments.sizes:
            for discount in (0.95, 0.99):
                compare(name, problem(size, discount, np.random.default_rng(0)), arguments.rounds)
    print(f"\nproducts of variables of ten values, N = 100, limit {arguments.time_limit:g} s\n")
    for variables in arguments.variables:
        show_product(variables, arguments.time_limit)
    print("\nthe online planner on ExoCrowd-v0, 500 rollouts of 50 steps\n")
    show_online()


class Rivals:
    """Ours and QuantEcon's modified policy iteration on the same tables, to the same precision."""

    def __init__(self, mdp: FactoredMDP, tolerance: float = 1e-4) -> None:
        self.mdp, self.tolerance = mdp, tolerance
        self.planner = ValueIteration(tolerance=tolerance)

    @cached_property
    def built(self) -> tuple[float, Any]:
        """Seconds of making QuantEcon's tables, and the tables."""
        return timed(lambda: to_discrete_dp(self.mdp, memory_limit=2e10))

    def ours(self) -> float:
        """Seconds of planning, with all that it makes from the model."""
        seconds, self.plan = timed(lambda: self.planner.plan(self.mdp))
        return seconds

    def theirs(self) -> float:
        """Seconds of solving tables that are there."""
        _, tables = self.built
        seconds, self.solution = timed(lambda: tables.solve(method="mpi", epsilon=self.tolerance))
        return seconds

    def difference(self) -> float:
        """The largest difference of the values that the two found last."""
        return float(np.abs(self.plan.values.reshape(-1) - self.solution.v).max())


def compare(name: str, mdp: FactoredMDP, rounds: int, tolerance: float = 1e-4) -> None:
    """One line: ours and QuantEcon's modified policy iteration, in turns."""
    rivals = Rivals(mdp, tolerance)
    build, _ = rivals.built
    ours, theirs = np.inf, np.inf
    for _ in range(rounds):
        ours = min(ours, rivals.ours())
        theirs = min(theirs, rivals.theirs())
    memory = peak_memory(lambda: rivals.planner.plan(mdp))
    their_memory = peak_memory(
        lambda: to_discrete_dp(mdp, memory_limit=2e10).solve(method="mpi", epsilon=tolerance)
    )
    print(
        f"{name:10}{mdp.exogenous_sizes.prod():>6} {mdp.discount:>6} {ours:>9.4f} {theirs:>14.3f} "
        f"{build:>10.2f} {theirs / ours:>6.1f}x {(theirs + build) / ours:>10.1f}x "
        f"{memory / 1e6:>5.0f}/{their_memory / 1e6:<6.0f} MB {their_memory / memory:>5.1f}x "
        f"{rivals.difference():>11.1e}",
        flush=True,
    )


def show_product(variables: int, time_limit: float) -> None:
    """One line: how far value iteration gets."""
    mdp = product_problem(variables, 0.95, np.random.default_rng(0))
    needed = ValueIteration().bytes_needed(mdp)
    seconds, plan = timed(lambda: ValueIteration().plan(mdp, time_limit=time_limit))
    print(
        f"{mdp.num_states:>14,} states {needed / 1e6:>7,.0f} MB {seconds:>7.1f} s "
        f"{plan.iterations:>5} sweeps  {verdict(plan)}",
        flush=True,
    )


def verdict(plan: Plan) -> str:
    """Whether a plan is done, and if not how far from the best it can be."""
    return "converged" if plan.converged else f"stopped, loss at most {plan.loss_bound:.2g}"


def show_online() -> None:
    """Two lines: what a decision with a large mask costs."""
    mdp, rng = CrowdMDP(), np.random.default_rng(0)
    data = ExogenousData.collect(mdp, rng=rng)
    survey = EndogenousSurvey.collect(mdp, data, rng)
    scenarios = Scenarios.sample(mdp, 500, rng)
    warm_up = Scenarios.sample(mdp, 1, rng)
    for kept in (("occupancy", "object"), ("occupancy", "object", "porter")):
        mask = [name for name in mdp.exogenous_names if name.startswith(kept)]
        reduced = ReducedMDP.estimate(mdp, mask, rng=rng, data=data, survey=survey)
        plan = ForecastPlanner().plan(reduced, rng=rng)
        evaluate(plan.policy, mdp, scenarios=warm_up)  # compilation
        seconds, returns = timed(partial(evaluate, plan.policy, mdp, scenarios=scenarios))
        print(
            f"{len(mask):>6} variables {seconds:>7.1f} s  return {Estimate.of(returns)}", flush=True
        )
