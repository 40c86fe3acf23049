"""Benchmarks of the planners: `python scripts/benchmark.py plan`.

ValueIteration against QuantEcon's modified policy iteration, its strongest peer, on random and on
grid-shaped MDPs with exogenous variables; then alone on products of variables, whose joint matrix
nothing could hold; and the online planner on ExoCrowd. Timings on a shared machine are noisy, so
contenders take turns and the best round of each counts; compare figures of one run, as ratios.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from exo_envs import State, Variable
from exo_envs.crowd import CrowdMDP
from planners import (
    DecisionLists,
    EndogenousSurvey,
    Estimate,
    ExogenousData,
    Factor,
    FactoredMDP,
    ForecastPlanner,
    ReducedMDP,
    Rule,
    Scenarios,
    ValueIteration,
    evaluate,
    to_discrete_dp,
)

SIDE = 10
STEPS = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)])  # stay, up, down, left, right


def random_problem(num_exogenous: int, discount: float, rng: np.random.Generator) -> FactoredMDP:
    """One exogenous variable with 10 successors a value, 100 n with 3 successors a pair."""
    states, num_actions = SIDE * SIDE, 5
    steps = rng.integers(1, num_exogenous // 10 + 1, size=(num_exogenous, 10))
    values = (rng.integers(num_exogenous, size=(num_exogenous, 1)) + steps.cumsum(axis=1)) % (
        num_exogenous
    )
    values = np.sort(values, axis=1)  # ten different ones: the steps do not go round
    factor = Factor(
        (0,),
        np.arange(num_exogenous + 1) * 10,
        values.reshape(-1),
        rng.dirichlet(np.ones(10), size=num_exogenous).reshape(-1),
    )
    rules = {}
    for n in range(states):
        for a in range(num_actions):
            table = np.zeros((1, states))
            table[0, rng.choice(states, size=3, replace=False)] = rng.dirichlet(np.ones(3))
            rules[n, a] = [Rule.from_table((), table)]
    return _assemble(
        (num_exogenous,),
        [factor],
        rules,
        {0: rng.random((num_exogenous, states, num_actions))},
        discount,
    )


def grid_problem(num_exogenous: int, discount: float, rng: np.random.Generator) -> FactoredMDP:
    """A robot on a 10x10 grid that slips, an obstacle in its way, a goal that changes place.

    500: an obstacle that walks about (100 cells) and the place of the goal (5). 5000: also a tariff
    for moving (10 levels), which goes up and down.
    """
    cells = SIDE * SIDE
    neighbours = np.stack([_move(np.arange(cells), a) for a in range(5)], axis=1)  # (cells, 5)
    walk = np.zeros((cells, cells))
    np.add.at(walk, (np.arange(cells)[:, None], neighbours), 0.2)
    change = 0.98 * np.eye(5) + 0.02 * np.roll(np.eye(5), 1, axis=1)
    factors = [Factor.from_table((0,), walk), Factor.from_table((1,), change)]
    goals = rng.choice(cells, size=5, replace=False)
    goal = np.zeros((5, cells, 5))
    goal[np.arange(5), goals] = 1.0
    bump = np.zeros((cells, cells, 5))
    bump[np.arange(cells), np.arange(cells)] = -1.0
    sizes, terms = [cells, 5], {0: bump, 1: goal}
    if num_exogenous == 5000:
        level = np.arange(10)
        drift = np.zeros((10, 10))
        np.add.at(drift, (level, level), 0.8)
        np.add.at(drift, (level, np.maximum(level - 1, 0)), 0.1)
        np.add.at(drift, (level, np.minimum(level + 1, 9)), 0.1)
        factors.append(Factor.from_table((2,), drift))
        tariff = np.zeros((10, cells, 5))
        tariff[:, :, 1:] = -0.01 * level[:, None, None]
        sizes, terms = [*sizes, 10], {**terms, 2: tariff}
    rules = {}
    for n in range(cells):
        for a in range(5):
            blocked = np.zeros((cells, cells))  # by an obstacle ahead, for each of its places
            blocked[neighbours[n, a], n] = 1.0
            rules[n, a] = [Rule.from_table((0,), blocked), Rule.from_table((), _slip(n, a)[None])]
    return _assemble(tuple(sizes), factors, rules, terms, discount)


def _slip(n: int, action: int) -> np.ndarray:
    """Where a step leads: ahead, or to one of the sides."""
    out = np.zeros(SIDE * SIDE)
    if action == 0:
        out[n] = 1.0
        return out
    out[_move(n, action)] += 0.8
    for side in (3, 4) if action in (1, 2) else (1, 2):
        out[_move(n, side)] += 0.1
    return out


def _move(cell: Any, action: int) -> Any:
    row, column = np.divmod(cell, SIDE)
    row, column = np.clip((row + STEPS[action][0], column + STEPS[action][1]), 0, SIDE - 1)
    return row * SIDE + column


def _assemble(
    sizes: tuple[int, ...],
    factors: list[Factor],
    rules: dict[tuple[int, int], list[Rule]],
    terms: dict[int, np.ndarray],
    discount: float,
) -> FactoredMDP:
    states = SIDE * SIDE
    return FactoredMDP(
        endogenous_variables=(Variable("n", states),),
        exogenous_variables=tuple(Variable(f"x{i}", size) for i, size in enumerate(sizes)),
        num_actions=5,
        discount=discount,
        horizon=100,
        factors=factors,
        decision_lists=DecisionLists.from_rules(states, 5, sizes, rules),
        base_reward=np.zeros((states, 5)),
        terms=terms,
        terminal=np.zeros(states, dtype=bool),
        initial=State(np.zeros((1, 1), dtype=int), np.zeros((1, len(sizes)), dtype=int)),
    )


def product_problem(num_variables: int, discount: float, rng: np.random.Generator) -> FactoredMDP:
    """Independent variables of ten values each, every one of which pays somewhere."""
    sizes = (10,) * num_variables
    factors = [
        Factor.from_table((i,), rng.dirichlet(np.full(10, 0.5), size=10))
        for i in range(num_variables)
    ]
    moves = grid_problem(10, discount, rng).decision_lists
    nowhere = np.zeros((1, len(moves.sizes)), dtype=np.int64)
    rules = {
        (n, a): [Rule.from_table((), moves.distribution(np.array([n]), np.array([a]), nowhere))]
        for n in range(SIDE * SIDE)
        for a in range(5)
    }
    terms = {i: rng.normal(size=(10, SIDE * SIDE, 5)) for i in range(num_variables)}
    return _assemble(sizes, factors, rules, terms, discount)


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


def compare(name: str, mdp: FactoredMDP, rounds: int, tolerance: float = 1e-4) -> None:
    """One line: ours and QuantEcon's modified policy iteration, in turns."""
    planner = ValueIteration(tolerance=tolerance)
    build, problem = timed(lambda: to_discrete_dp(mdp, memory_limit=2e10))
    ours, theirs = np.inf, np.inf
    for _ in range(rounds):
        seconds, plan = timed(lambda: planner.plan(mdp))
        ours = min(ours, seconds)
        seconds, solution = timed(lambda: problem.solve(method="mpi", epsilon=tolerance))
        theirs = min(theirs, seconds)
    memory = peak(lambda: planner.plan(mdp))
    their_memory = peak(
        lambda: to_discrete_dp(mdp, memory_limit=2e10).solve(method="mpi", epsilon=tolerance)
    )
    difference = np.abs(plan.values.reshape(-1) - solution.v).max()
    print(
        f"{name:10}{mdp.exogenous_sizes.prod():>6} {mdp.discount:>6} {ours:>9.4f} {theirs:>14.3f} "
        f"{build:>10.2f} {theirs / ours:>6.1f}x {(theirs + build) / ours:>10.1f}x "
        f"{memory / 1e6:>5.0f}/{their_memory / 1e6:<6.0f} MB {their_memory / memory:>5.1f}x "
        f"{difference:>11.1e}",
        flush=True,
    )


def show_product(variables: int, time_limit: float) -> None:
    """One line: how far value iteration gets."""
    mdp = product_problem(variables, 0.95, np.random.default_rng(0))
    needed = ValueIteration().bytes_needed(mdp)
    seconds, plan = timed(lambda: ValueIteration().plan(mdp, time_limit=time_limit))
    verdict = "converged" if plan.converged else f"stopped, loss at most {plan.loss_bound:.2g}"
    print(
        f"{mdp.num_states:>14,} states {needed / 1e6:>7,.0f} MB {seconds:>7.1f} s "
        f"{plan.iterations:>5} sweeps  {verdict}",
        flush=True,
    )


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


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result."""
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def peak(action: Callable[[], Any]) -> int:
    """Bytes of arrays at the peak."""
    tracemalloc.start()
    action()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


if __name__ == "__main__":
    alone = argparse.ArgumentParser(description=__doc__)
    add_command(alone.add_subparsers(dest="command", required=True))
    given = alone.parse_args()
    given.run(given)
