"""Hindsight optimisation: plan for sampled futures as if each were known, and average.

For each first action the mean over the futures of the best return that starts with it. A policy
that knows the future never has to hedge or to wait and see, so the means are too high, most of all
for actions that are right only if one knows what comes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from planners import Policy
from planners.tables.decision_lists import follow_rules
from planners.tables.factored_mdp import FactoredMDP


class HindsightPolicy(Policy):
    """Draws futures of x in a model given as tables, from every observation.

    Args:
        model: the model, mostly a reduced one.
        num_futures: how many are drawn for a decision.
        horizon: how far they go; by default as far as an episode does.
        seed: of the draws.
    """

    def __init__(
        self, model: FactoredMDP, num_futures: int = 16, horizon: int | None = None, seed: int = 0
    ) -> None:
        super().__init__(*Policy.names_of(model))
        self.model = model
        self.num_futures = num_futures
        self.horizon = horizon or model.horizon
        self.rng = np.random.default_rng(seed)
        self._payments = _payments(model)

    def act(self, endogenous: Any, exogenous: Any) -> Any:
        """The action with the best mean over the futures."""
        model, lanes = self.model, len(endogenous)
        x = np.repeat(exogenous, self.num_futures, axis=0)
        futures = np.empty((self.horizon, *x.shape), np.int64)
        for step in range(self.horizon):
            futures[step] = x
            x = model.sample_exogenous(x, self.rng)
        # The first step is the same in all futures of a lane, so its values are means.
        lists, n = model.decision_lists, model.endogenous_index(endogenous)
        values = _first_actions(
            lists, model.terminal, *self._payments, model.discount, futures, n, self.num_futures
        )
        return values.reshape(lanes, self.num_futures, -1).mean(axis=1).argmax(axis=1)


def _payments(model: FactoredMDP) -> tuple[Any, ...]:
    """R(n, a), and for each value of each variable which pairs it pays how much."""
    if model.joint_terms:
        raise ValueError("in this comparison each variable pays by itself")
    sizes = model.exogenous_sizes
    first = np.concatenate([[0], np.cumsum(sizes)])  # number of each variable's first value
    starts, pairs, amounts = [0], [], []
    for i, size in enumerate(sizes):
        for value in range(size):
            if i in model.terms:
                table = model.terms[i][value].reshape(-1)
                paid = np.flatnonzero(table)
                pairs.append(paid)
                amounts.append(table[paid])
                starts.append(starts[-1] + len(paid))
            else:
                starts.append(starts[-1])
    empty = np.zeros(0)
    return (
        model.base_reward.reshape(-1).astype(np.float64),
        first.astype(np.int64),
        np.array(starts),
        np.concatenate([empty.astype(np.int64), *pairs]),
        np.concatenate([empty, *amounts]),
    )


@njit(cache=True)
def _first_actions(
    lists: Any,
    terminal: Any,
    base: Any,
    first: Any,
    starts: Any,
    pairs: Any,
    amounts: Any,
    discount: float,
    futures: Any,  # (H, B, m)
    n: Any,  # (B / futures of a lane,)
    per_lane: int,
) -> Any:
    """What each first action earns if the future is known, shape (B, A)."""
    horizon, count, width = futures.shape
    num_actions = lists.num_actions
    num_states = len(terminal)
    out = np.zeros((count, num_actions))
    values, later = np.zeros(num_states), np.zeros(num_states)
    rewards = np.zeros(num_states * num_actions)
    mass, reached = np.zeros(num_states), np.zeros(num_states, np.int64)
    for b in range(count):
        later[:] = 0.0
        for h in range(horizon - 1, -1, -1):
            x = futures[h, b]
            rewards[:] = base
            for i in range(width):
                value = first[i] + x[i]
                for entry in range(starts[value], starts[value + 1]):
                    rewards[pairs[entry]] += amounts[entry]
            begin = n[b // per_lane] if h == 0 else 0
            end = begin + 1 if h == 0 else num_states
            for s in range(begin, end):
                values[s] = 0.0
                if terminal[s]:
                    continue
                values[s] = -np.inf
                for a in range(num_actions):
                    pair = s * num_actions + a
                    rules = lists.rule_starts[pair], lists.rule_starts[pair + 1]
                    found = follow_rules(lists, rules[0], rules[1], x, mass, reached)
                    total = 0.0
                    for k in range(found[0]):
                        total += mass[reached[k]] * later[reached[k]]
                        mass[reached[k]] = 0.0
                    total = rewards[pair] + discount * total / found[1]
                    values[s] = max(values[s], total)
                    if h == 0:
                        out[b, a] = total
            later[:] = values
    return out
