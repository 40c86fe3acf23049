"""What an example found, in words and in two pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from exo_envs import State, TraceMDP
from planners import Mask, Policy
from planners.backtesting import Backtest
from shared.plotting import COLOURS, bytes_of, new_figure
from wrappers import MaskLearner

#: Steps of the held-out part that are drawn.
DRAWN = 168


def report(
    path: Path, mdp: TraceMDP, learner: MaskLearner, earned: Mapping[str, Backtest], *, shown: str
) -> None:
    """Print what was found and what it earned in later time, and draw two pictures of it.

    Args:
        path: the beginning of the names of both pictures.
        mdp: the model.
        learner: what was fitted to it.
        earned: by "learned", its policy; and by another one, by its name.
        shown: the column that is drawn beside what the agent moves.
    """
    mine = earned["learned"]
    ((rival, other),) = ((name, own) for name, own in earned.items() if own is not mine)
    _print(mdp, learner.mask_, mine, other, rival)
    path.parent.mkdir(parents=True, exist_ok=True)
    for kind, drawn in (
        ("returns", _draw_returns(mine, other, rival)),
        ("days", _draw_days(mdp, learner.policy_, shown)),
    ):
        picture = path.with_name(f"{path.name}_{kind}.png")
        picture.write_bytes(drawn)
        print(f"{kind}: {picture}")


def _print(mdp: TraceMDP, mask: Mask, mine: Backtest, other: Backtest, rival: str) -> None:
    """What was found, and what it earned; paired, with bootstrap intervals."""
    columns, later = len(mdp.exogenous_names), mdp.held_out.record
    print(f"learned from {len(mdp.record):,} rows of {columns} columns")
    windows = f"{len(mine)} windows of {mine.horizon}"
    print(f"played in {len(later):,} later rows, {windows}; means of a window, 95 % intervals\n")
    print(f"mask, {len(mask)} of {columns}: {', '.join(mask) or 'nothing'}\n")
    difference = mine.difference(other)
    for words, own in (("learned", mine), (rival, other), (f"learned less {rival}", difference)):
        low, high = own.interval()
        print(f"  {words:34}{own.mean:>9.2f}{f'({low:.2f} to {high:.2f})':>22}")
    print()


def _draw_returns(mine: Backtest, other: Backtest, rival: str) -> bytes:
    """What both have earned so far, and below that the difference, over later time."""
    with new_figure() as figure:
        above, below = figure.subplots(2, 1, sharex=True)
        for label, earned, colour in (("learned mask", mine, "blue"), (rival, other, "orange")):
            total = np.cumsum(earned.returns)
            above.plot(earned.times, total, label=label, color=COLOURS[colour])
        above.set(ylabel="earned so far")
        above.legend()
        gained = np.cumsum(mine.difference(other).returns)
        below.plot(mine.times, gained, color=COLOURS["green"])
        below.axhline(0.0, color=COLOURS["black"], linewidth=0.6)
        below.set(ylabel="difference")
        below.tick_params(axis="x", rotation=30)
        return bytes_of(figure, "png")


def _draw_days(mdp: TraceMDP, policy: Policy, column: str) -> bytes:
    """A column and the agent's own variable, over the first steps that were held out."""
    later = mdp.held_out
    steps = min(DRAWN, later.record.segments()[0][1])
    rng = np.random.default_rng(0)
    n, path = later.initial_endogenous(1, rng), []
    for x in later.record.rows[:steps]:
        state = State(n, x[None])
        path.append(float(n[0, 0]))
        n = later.sample_endogenous(state, policy(state), rng)
    shown = later.decoded(later.record.rows[:steps])[column]
    with new_figure() as figure:
        above, below = figure.subplots(2, 1, sharex=True)
        above.plot(later.record.labels[:steps], shown, color=COLOURS["blue"])
        above.set(ylabel=column)
        below.step(later.record.labels[:steps], path, where="post", color=COLOURS["vermilion"])
        below.set(ylabel=later.endogenous_variables[0].name)
        below.tick_params(axis="x", rotation=30)
        return bytes_of(figure, "png")
