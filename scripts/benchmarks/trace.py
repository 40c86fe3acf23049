"""`python scripts/benchmark.py trace`: masks of recorded data, judged on later time."""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

from examples import battery, building, generated, inventory, recorded
from exo_envs import TraceMDP, Variable
from exo_envs.sources.tables.forecasts import Perfect
from planners import backtest, estimate_objective
from planners.backtesting import Backtest
from wrappers import CalibratedMaskLearner, UndecidedWarning


def add_command(commands: Any) -> None:
    """The sub-command ``trace`` of scripts/benchmark.py."""
    parser = commands.add_parser("trace", help="masks of recorded data, judged on later time")
    parser.add_argument("--seeds", type=int, default=20, help="generated series")
    parser.add_argument("--rows", type=int, default=20_000, help="of each of them")
    parser.add_argument("--columns", type=int, default=60, help="of each of them")
    parser.add_argument("--real-seeds", type=int, default=3, help="of learning from real data")
    parser.add_argument("--only", choices=REAL, help="one of the models of real data")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Recall and precision where drivers are known, then what masks of real data earn."""
    warnings.simplefilter("ignore", UndecidedWarning)
    if arguments.seeds:
        known_drivers(arguments.seeds, arguments.rows, arguments.columns)
    if not arguments.real_seeds:
        return
    if not recorded.is_installed():
        print(f"\nreal data: not installed ({recorded.INSTALL})")
        return
    print(
        f"\n{'held-out time':22}{'seed':>5}{'mask':>9}{'all':>8}{'learned':>9}{'all columns':>13}"
        f"{'learned less all':>30}  (95 %, blocks)"
    )
    for name, (make, cost_weight) in REAL.items():
        if arguments.only not in {None, name}:
            continue
        mdp = make()
        for seed in range(arguments.real_seeds):
            judge(name, mdp, cost_weight, seed)


def known_drivers(seeds: int, rows: int, columns: int) -> None:
    """Masks of generated series, beside the columns that drive them."""
    right = missed = needless = exact = 0
    start = time.perf_counter()
    for seed in range(seeds):
        mdp = trader(generated.driven(rows, columns, seed))
        found = set(CalibratedMaskLearner(n_rollouts=50).fit(mdp, rng=seed).mask_)
        wanted = set(generated.DRIVERS)
        right += len(found & wanted)
        missed += len(wanted - found)
        needless += len(found - wanted)
        exact += found == wanted
    seconds = (time.perf_counter() - start) / seeds
    print(
        f"\ngenerated, {len(generated.DRIVERS)} drivers among {columns} columns, {rows:,} rows: "
        f"recall {right / (right + missed):.3f}, precision {right / max(1, right + needless):.3f}, "
        f"exact {exact} of {seeds}, {seconds:.1f} s each"
    )


def trader(table: Any) -> TraceMDP:
    """Somebody who buys and sells at the price of the first column."""

    def step(n: Any, a: Any, _: Any) -> Any:
        return np.clip(n.charge + a, 0, 5)

    def reward(n: Any, a: Any, x: Any) -> Any:
        return -x.price * (np.clip(n.charge + a, 0, 5) - n.charge) - 0.2 * (a > 0)

    return TraceMDP.from_frame(
        table,
        endogenous=[Variable("charge", 6)],
        actions=[-1, 0, 1],
        step=step,
        reward=reward,
        horizon=24,
        discount=0.97,
        test=0.3,
    )


def prices_and_a_city() -> TraceMDP:
    """Four years of Dutch prices beside the weather and loads of a city elsewhere.

    So most columns are real and cannot matter, which a learner does not know.
    """
    columns = recorded.city().drop(columns=["hour", "month", "day_type"])
    price = recorded.prices()["2016":"2019"][: len(columns)]
    columns.index = price.index
    columns.insert(0, "price", price)
    return battery.model(columns)


#: Models, and λ.
REAL: dict[str, tuple[Any, float]] = {
    "battery, prices 2019": (lambda: battery.model(recorded.dutch_year()), 0.1),
    "battery, four years": (prices_and_a_city, 0.1),
    "building": (lambda: building.model(recorded.city()), 0.02),
    "inventory (generated)": (lambda: inventory.model(generated.shop(), Perfect(1)), 0.1),
}


def judge(name: str, mdp: TraceMDP, cost_weight: float, seed: int) -> Backtest:
    """One line: what the mask earns in operation, and the same planner with all columns."""
    learner = CalibratedMaskLearner(cost_weight=cost_weight).fit(mdp, rng=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = estimate_objective(mdp, mdp.exogenous_names, rng=seed, n_rollouts=50).plan
    mine, everything = (
        backtest(policy, mdp, continued=True, discount=1.0)
        for policy in (learner.policy_, plan.policy)
    )
    gain = mine.difference(everything)
    low, high = gain.interval()
    said = f"{gain.mean:.2f} ({low:.2f} to {high:.2f})"
    print(
        f"{name:22}{seed:>5}{len(learner.mask_):>9}{len(mdp.exogenous_names):>8}{mine.mean:>9.2f}"
        f"{everything.mean:>13.2f}{said:>30}  {', '.join(learner.mask_)}",
        flush=True,
    )
    return gain
