"""A model made ready for sweeps: its tables in the form in which the kernels read them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from exo_envs.core.errors import ArgumentError
from planners.core.arrays import Floats, join, starts_of
from planners.tables.factored_mdp import FactoredMDP
from planners.value_iteration.elimination import Elimination, eliminate
from planners.value_iteration.expectation import Expectation
from planners.value_iteration.successors import successor_rows
from planners.value_iteration.sweeps import KeptActions, RewardTables, SweepModel

#: Rewards that are looked at in one go, so that they stay in the cache.
BLOCK_REWARDS = 1 << 16


class Prepared(NamedTuple):
    """What the sweeps over one model share."""

    model: SweepModel
    elimination: Elimination
    expectation: Expectation

    def keep_nothing(self) -> KeptActions:
        """For sweeps that only look for the best actions."""
        rows, dtype = self.model.successors, self.model.rewards.tables.dtype
        nothing = (0, len(self.model.terminal))
        return KeptActions(
            self.model.discount,
            self.model.terminal,
            np.empty(nothing, dtype),
            np.empty(nothing, np.uint32),
            np.empty(nothing, np.float32),
            *(rows.entry_starts, rows.targets, rows.probabilities),
        )


def prepare(mdp: FactoredMDP, dtype: np.dtype[Any], tick: Callable[[], None]) -> Prepared:
    """Bring the tables of a model into the form in which the sweeps read them.

    ``tick`` is called every few milliseconds and may raise.
    """
    tick()
    rows = successor_rows(mdp.decision_lists, dtype)
    tick()
    model = SweepModel(
        discount=dtype.type(mdp.discount),
        num_actions=mdp.num_actions,
        terminal=mdp.terminal,
        sizes=mdp.exogenous_sizes,
        rewards=_reward_tables(mdp, dtype, tick),
        successors=rows,
    )
    tick()
    given = mdp.factors, mdp.num_endogenous_states
    elimination = eliminate(mdp.exogenous_sizes, *given)
    return Prepared(model, elimination, Expectation(elimination, *given, dtype))


def _reward_tables(
    mdp: FactoredMDP, dtype: np.dtype[Any], tick: Callable[[], None]
) -> RewardTables:
    scopes = list(mdp.scoped_terms)
    tables = list(mdp.scoped_terms.values()) or [np.zeros((1, *mdp.base_reward.shape))]
    starts = np.cumsum([0, *(table.size for table in tables)])
    records = starts_of(scopes), join(scopes, np.int64), starts
    if len(tables) == 1 and tables[0].dtype == dtype and not mdp.base_reward.any():
        return RewardTables(*records, np.ascontiguousarray(tables[0]).reshape(-1))
    flat = np.empty(starts[-1], dtype=dtype)
    for k, table in enumerate(tables):
        tick()
        base = mdp.base_reward if k == 0 else np.zeros(1)
        out = flat[starts[k] : starts[k + 1]].reshape(table.shape)
        np.add(table, base, out=out, casting="same_kind")
    return RewardTables(*records, flat)


def _extremes(table: Floats) -> tuple[Floats, Floats]:
    """The least and the largest rewards of each pair, found while a block is in the cache."""
    step = max(1, BLOCK_REWARDS // max(1, table[0].size))
    blocks = [table[first : first + step] for first in range(0, len(table), step)]
    found = [(block.min(axis=0), block.max(axis=0)) for block in blocks]
    lows, highs = zip(*found, strict=True)
    return np.min(lows, axis=0), np.max(highs, axis=0)


def reward_sizes(mdp: FactoredMDP) -> tuple[tuple[float, float], float]:
    """The least and the largest reward of any state, and the most that terms can add up to."""
    tables = [mdp.base_reward[None], *mdp.scoped_terms.values()]
    lows, highs = map(np.stack, zip(*map(_extremes, tables), strict=True))  # (tables, N, A)
    size = float(np.maximum(-lows, highs).max(axis=(1, 2), initial=0.0).sum())
    if not math.isfinite(size):
        raise ArgumentError("the rewards are not all finite")
    alive = ~mdp.terminal
    ended = 0.0 if mdp.terminal.any() else math.inf  # a terminal state pays nothing
    low = lows.sum(axis=0)[alive].min(initial=ended)
    high = highs.sum(axis=0)[alive].max(initial=-ended)
    return (float(low), float(high)), size
