"""Backward induction over (steps ahead, n) with forecasts in place of x.

The reward is a sum over variables and n is small. So the expected reward and the expected move
of each (h, n, a) follow from the forecasts of single variables, and a decision costs
O(horizon * N * A), however many joint values the mask has.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import get_num_threads, njit
from numpy.typing import NDArray

from planners.arrays import Ints, subset_index
from planners.forecasting.additive import AdditiveForecasts, write_additive
from planners.forecasting.compiled_model import CompiledModel
from planners.forecasting.forecasts import Forecasts

#: Lanes that the kernel takes at once: as many as make its loops fill the processor's vectors.
LANES_PER_BLOCK = 32
#: Lanes that there must be for each thread, so that starting it pays.
LANES_PER_THREAD = 64


def look_ahead(
    model: CompiledModel,
    forecasts: Forecasts,
    discount: float,
    n: Ints,
    exogenous: Ints,
    additive: AdditiveForecasts | None = None,
) -> NDArray[np.float64]:
    """What each first action is worth in each lane, shape (B, A).

    Additive forecasts, if there are any, take the place of the tables' forecasts.
    Large batches are shared by as many threads as Numba may use (``NUMBA_NUM_THREADS``).
    """
    additive = AdditiveForecasts.none(forecasts.sizes) if additive is None else additive

    def part(first: int) -> Any:
        lanes = slice(first, first + width)
        return _action_values(model, forecasts, discount, n[lanes], exogenous[lanes], additive)

    workers = min(get_num_threads(), len(n) // LANES_PER_THREAD)
    width = -(-len(n) // (max(1, workers) * LANES_PER_BLOCK)) * LANES_PER_BLOCK
    if workers <= 1:
        return np.asarray(part(0))
    with ThreadPoolExecutor(workers) as threads:
        return np.concatenate(list(threads.map(part, range(0, len(n), width))))


@njit(cache=True, nogil=True)
def _action_values(
    model: Any, forecasts: Any, discount: float, n: Any, x: Any, additive: Any
) -> Any:
    horizon = forecasts.horizon
    num_states, num_lists = len(model.terminal), len(model.base)
    num_actions = num_lists // num_states - 1
    width = min(LANES_PER_BLOCK, len(n))
    # The last axis of each array below is the lane.
    chances = np.empty((horizon + 1, len(model.values), width), np.float32)  # of each atom
    weights = np.empty((len(model.probabilities), width))  # of each condition
    values = np.empty((num_lists, width))  # of each pair, and of what they share
    moved = np.empty((num_lists, width))  # the value of where their rules lead
    left = np.empty((num_states, width))  # what shared rules pass on
    best = np.empty((num_states + 1, width))  # of each state, and of nowhere
    out = np.empty((len(n), num_actions))
    for lane in range(0, len(n), width):
        last = min(lane + width, len(n))
        _forecast(model, forecasts, x[lane:last], chances)
        write_additive(additive, x[lane:last], chances)
        best[:] = 0.0
        for h in range(horizon, -1, -1):
            _weigh_conditions(model, chances[h], weights)
            _add_rewards(model, chances[h], values)
            _follow_rules(model, weights, best, moved)
            _pass_on(model, weights, left)
            _choose(model, discount, moved, left, values, best)
        for k in range(last - lane):
            first = n[lane + k] * num_actions
            out[lane + k] = values[first : first + num_actions, k]
    return out


# Kernels look up what is the same for all lanes before each loop over them, and call nothing:
# the loops are then turned into vector instructions.


@njit(cache=True)
def _row_starts(forecasts: Any, x: Any) -> Any:
    """Where the forecasts of a batch (B, m) begin in the tables, shape (B, f)."""
    variables, sizes, starts = forecasts.variables, forecasts.sizes, forecasts.parent_starts
    out = np.empty((x.shape[0], len(variables)), np.int64)
    for lane in range(x.shape[0]):
        for f in range(len(variables)):
            value = subset_index(x[lane], forecasts.parents, starts[f], starts[f + 1], sizes)
            row = forecasts.lookup[forecasts.lookup_starts[f] + value]
            length = forecasts.horizon * sizes[variables[f]]
            out[lane, f] = forecasts.table_starts[f] + row * length
    return out


@njit(cache=True)
def _forecast(model: Any, forecasts: Any, x: Any, chances: Any) -> None:
    """The chance of every atom h steps ahead: from x itself, or from the forecasts."""
    which, variables, values = model.forecasts, model.variables, model.values
    tables, starts = forecasts.tables, _row_starts(forecasts, x)
    steps, atoms, width = chances.shape
    at = np.empty(width, np.int64)
    for atom in range(atoms):
        stride = model.strides[atom]
        for k in range(width):
            lane = min(k, len(x) - 1)
            chances[0, atom, k] = x[lane, variables[atom]] == values[atom]
            at[k] = starts[lane, which[atom]] + values[atom]
        for h in range(1, steps):
            for k in range(width):
                chances[h, atom, k] = tables[at[k]]
                at[k] += stride


@njit(cache=True, fastmath=True)
def _weigh_conditions(model: Any, chances: Any, weights: Any) -> None:
    """The chance of every condition."""
    probabilities, atom_starts, atoms = model.probabilities, model.atom_starts, model.atoms
    width = weights.shape[1]
    for w in range(len(weights)):
        probability = probabilities[w]
        for k in range(width):
            weights[w, k] = probability
        for e in range(atom_starts[w], atom_starts[w + 1]):
            atom = atoms[e]
            for k in range(width):
                weights[w, k] *= chances[atom, k]


@njit(cache=True, fastmath=True)
def _add_rewards(model: Any, chances: Any, values: Any) -> None:
    """The expected reward of every pair, and of what the pairs of a state share."""
    base, rewards = model.base, model.rewards
    reward_starts, reward_atoms = model.reward_starts, model.reward_atoms
    width = values.shape[1]
    for pair in range(len(values)):
        reward = base[pair]
        for k in range(width):
            values[pair, k] = reward
        for e in range(reward_starts[pair], reward_starts[pair + 1]):
            reward, atom = rewards[e], reward_atoms[e]
            for k in range(width):
                values[pair, k] += reward * chances[atom, k]


@njit(cache=True, fastmath=True)
def _follow_rules(model: Any, weights: Any, best: Any, moved: Any) -> None:
    """The value of where the rules of every pair lead, the last rule first."""
    otherwise, rule_starts, rule_ends = model.otherwise, model.rule_starts, model.rule_ends
    outcome_starts, conditions, targets = model.outcome_starts, model.conditions, model.targets
    width = moved.shape[1]
    passed = np.empty(width, moved.dtype)  # the value of where the rules behind lead
    for pair in range(len(moved)):
        target = otherwise[pair]
        for k in range(width):
            moved[pair, k] = best[target, k]
        for rule in range(rule_ends[pair] - 1, rule_starts[pair] - 1, -1):
            first, last = outcome_starts[rule], outcome_starts[rule + 1]
            if last == first + 1:
                w, target = conditions[first], targets[first]
                for k in range(width):
                    moved[pair, k] += weights[w, k] * (best[target, k] - moved[pair, k])
                continue
            for k in range(width):
                passed[k] = moved[pair, k]
            for o in range(first, last):
                w, target = conditions[o], targets[o]
                for k in range(width):
                    moved[pair, k] += weights[w, k] * (best[target, k] - passed[k])


@njit(cache=True, fastmath=True)
def _pass_on(model: Any, weights: Any, left: Any) -> None:
    """The chance that the rules which the pairs of a state share do not decide."""
    rule_starts, conditions = model.rule_starts, model.conditions
    outcome_starts = model.outcome_starts
    states, width = left.shape
    passed = np.empty(width, left.dtype)
    for state in range(states):
        shared = len(rule_starts) - 1 - states + state
        for k in range(width):
            left[state, k] = 1.0
        for rule in range(rule_starts[shared], rule_starts[shared + 1]):
            for k in range(width):
                passed[k] = left[state, k]
            for o in range(outcome_starts[rule], outcome_starts[rule + 1]):
                w = conditions[o]
                for k in range(width):
                    left[state, k] -= weights[w, k] * passed[k]


@njit(cache=True, fastmath=True)
def _choose(model: Any, discount: float, moved: Any, left: Any, values: Any, best: Any) -> None:
    """The value of every pair, and of the best action in every state."""
    terminal = model.terminal
    states, width = left.shape
    actions = len(values) // states - 1
    for state in range(states):
        shared = states * actions + state
        for k in range(width):
            values[shared, k] += discount * moved[shared, k]
            best[state, k] = -np.inf
        for pair in range(state * actions, (state + 1) * actions):
            for k in range(width):
                values[pair, k] += values[shared, k] + discount * left[state, k] * moved[pair, k]
                best[state, k] = max(best[state, k], values[pair, k])
        if terminal[state]:
            best[state] = 0.0
