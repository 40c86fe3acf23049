"""What one does with a model from a table: learn a mask, and judge it on later time."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from exo_envs import State, TraceMDP
from planners import Backtest, Mask, Policy, backtest, estimate_objective
from shared.plotting import COLOURS, bytes_of, new_figure
from wrappers import CalibratedMaskLearner

#: Steps of the held-out part that are drawn.
DRAWN = 168


class Example(Protocol):
    """A module of this folder."""

    TITLE: str
    COST_WEIGHT: float  # λ
    SHOWN: str  # the column that is drawn

    def table(self, *, is_generated: bool, share: float) -> pd.DataFrame: ...

    def model(self, table: pd.DataFrame) -> TraceMDP: ...


class Row(NamedTuple):
    """What a policy that looks at some columns earned in operation, later."""

    name: str
    mask: Mask
    policy: Policy
    earned: Backtest


def tell(example: Example, table: pd.DataFrame, output: Path, seed: int) -> list[Row]:
    """Learn, backtest, print and draw; the first row is that of the learned mask."""
    mdp = example.model(table)
    columns = len(mdp.exogenous_names)
    print(f"{example.TITLE}\n  {len(mdp.record):,} rows of {columns} columns to learn from")
    print(f"  {len(mdp.held_out.record):,} later rows to be judged on\n")
    rows = learn(mdp, example.COST_WEIGHT, seed)
    print(f"  mask: {', '.join(rows[0].mask) or 'nothing'}\n")
    print_rows(rows)
    for name, other in worth_of_forecasts(example, table).items():
        (found,) = learn(other, example.COST_WEIGHT, seed, others=False)
        print_gain(f"  worth of {name}", rows[0].earned.difference(found.earned))
    output.mkdir(parents=True, exist_ok=True)
    name = example.TITLE.partition(":")[0]
    for kind, drawn in (
        ("returns", draw_returns(example, rows)),
        ("days", draw_days(example, mdp, rows)),
    ):
        path = output / f"{name}_{kind}.png"
        path.write_bytes(drawn)
        print(f"  {kind}: {path}")
    return rows


def learn(mdp: TraceMDP, cost_weight: float, seed: int, *, others: bool = True) -> list[Row]:
    """The learned mask; and, planned by the same planner with the same data, all and nothing."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner = CalibratedMaskLearner(cost_weight=cost_weight).fit(mdp, rng=seed)
        found = [("learned", learner.mask_, learner.policy_)]
        for name, mask in (("all columns", mdp.exogenous_names), ("nothing", ())):
            if others:
                plan = estimate_objective(mdp, mask, rng=seed, n_rollouts=100).plan
                found.append((name, mask, plan.policy))
    for warning in caught if others else ():
        print(f"  note: {warning.message}\n")
    # As in operation: the agent goes on from window to window, and a euro is a euro.
    return [
        Row(name, mask, policy, backtest(policy, mdp, continued=True, discount=1.0))
        for name, mask, policy in found
    ]


def worth_of_forecasts(example: Example, table: pd.DataFrame) -> Mapping[str, TraceMDP]:
    """The same model with less known about the future, if the example has one."""
    make: Any = getattr(example, "without_forecasts", None)
    return {} if make is None else make(table)


def print_rows(rows: list[Row]) -> None:
    """A table of what was earned."""
    print(f"  {'looks at':14}{'columns':>8}{'a window':>10}{'95 %':>18}")
    for row in rows:
        low, high = row.earned.interval()
        span = f"{low:.1f} to {high:.1f}"
        print(f"  {row.name:14}{len(row.mask):>8}{row.earned.mean:>10.1f}{span:>18}")
    print()
    for row in rows[1:]:
        print_gain(f"  learned less {row.name}", rows[0].earned.difference(row.earned))


def print_gain(words: str, gain: Backtest) -> None:
    """A difference with its interval."""
    low, high = gain.interval()
    print(f"{words}: {gain.mean:.2f} ({low:.2f} to {high:.2f})")


def draw_returns(example: Example, rows: list[Row]) -> bytes:
    """What each policy has earned so far, over the time that was held out."""
    with new_figure() as figure:
        axes = figure.add_subplot()
        for row, colour in zip(rows, COLOURS.values(), strict=False):
            label = f"{row.name} ({len(row.mask)} columns)"
            axes.plot(row.earned.times, np.cumsum(row.earned.returns), label=label, color=colour)
        axes.set(title=example.TITLE, ylabel="earned so far, later time")
        axes.tick_params(axis="x", rotation=30)
        axes.legend()
        return bytes_of(figure, "png")


def draw_days(example: Example, mdp: TraceMDP, rows: list[Row]) -> bytes:
    """A column and the agent's own variable, over the first steps that were held out."""
    later, policy = mdp.held_out, rows[0].policy
    steps = min(DRAWN, later.record.segments()[0][1])
    rng = np.random.default_rng(0)
    n, path = later.initial_endogenous(1, rng), []
    for x in later.record.rows[:steps]:
        state = State(n, x[None])
        path.append(float(n[0, 0]))
        n = later.sample_endogenous(state, policy(state), rng)
    shown = later.decoded(later.record.rows[:steps])[example.SHOWN]
    with new_figure() as figure:
        above, below = figure.subplots(2, 1, sharex=True)
        above.plot(later.record.labels[:steps], shown, color=COLOURS["blue"])
        above.set(ylabel=example.SHOWN, title=example.TITLE)
        below.step(later.record.labels[:steps], path, where="post", color=COLOURS["vermilion"])
        below.set(ylabel=later.endogenous_variables[0].name)
        below.tick_params(axis="x", rotation=30)
        return bytes_of(figure, "png")
