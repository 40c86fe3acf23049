"""Backward induction over (steps ahead, n) with forecasts in place of x.

The reward is a sum over variables, or few of them together, and n is small. So the expected reward
and the expected move of each (h, n, a) follow from the forecasts of single variables, and a
decision costs O(horizon * N * A), however many joint values the mask has. Given what is seen now,
variables that pay together are taken to be independent later on, as those of a rule are. A later
decision is made once the few variables that its actions look at are seen
(:mod:`planners.forecasting.recourse`).

The kernels compute in single precision, in which the forecasts are kept: a vector instruction then
takes twice as many lanes, and action values are right to some 1e-6 of the largest one.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import INNER, njit
from exo_envs.compiled.threads import in_parts
from planners.core.arrays import Floats, Ints
from planners.forecasting.additive import AdditiveForecasts, write_additive
from planners.forecasting.compiled_model import Models
from planners.forecasting.forecasts import Forecasts

#: Lanes that the kernels take at once, at most: with fewer, starting their loops takes most time.
LANES_PER_BLOCK = 128
#: Blocks are widened to a multiple of this number of lanes: those of a vector instruction.
LANES_PER_VECTOR = 8


def look_ahead(
    models: Models,
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
    exogenous = np.ascontiguousarray(exogenous)  # or the kernels are compiled for each layout
    atoms = models.atoms
    starts = np.searchsorted(atoms.forecasts, np.arange(len(forecasts.variables) + 1)).tolist()
    tables = [
        (first, last, *table)
        for (first, last), *table in zip(
            pairwise(starts), forecasts.parents, forecasts.lookups, forecasts.tables, strict=True
        )
        if first < last
    ]
    # How the lanes are divided depends on their number alone, and not on that of the threads.
    blocks = max(1, -(-len(n) // LANES_PER_BLOCK))
    width = max(1, -(-len(n) // (blocks * LANES_PER_VECTOR))) * LANES_PER_VECTOR

    def part(first: int, last: int) -> Floats:
        chances = np.empty((forecasts.horizon + 1, len(atoms.values), width), np.float32)
        found = []
        for block in range(first, last):
            lanes = slice(block * width, (block + 1) * width)
            x = exogenous[lanes]
            for table in tables:
                _write_table(*table, forecasts.sizes, atoms.values, x, chances)
            if additive is not None and len(additive.constants):
                write_additive(additive, x, chances)
            given = models.now, models.later, chances, np.float32(discount)
            found.append(_action_values(*given, n[lanes]))
        return np.concatenate(found)

    return np.concatenate(in_parts(part, blocks))


@njit(cache=True, nogil=True)
def _write_table(
    first: int,
    last: int,
    parents: Any,
    lookup: Any,
    table: Any,
    sizes: Any,
    values: Any,
    x: Any,
    chances: Any,
) -> None:
    """The chances of the atoms of one variable: now from x itself, later from its forecast."""
    steps, _, width = chances.shape
    own = np.empty(width, np.int64)
    rows = np.empty(width, np.int64)
    for k in range(width):  # lanes that are too many repeat the last one
        lane = min(k, len(x) - 1)
        value = 0
        for p in parents:
            value = value * sizes[p] + x[lane, p]
        rows[k] = lookup[value]
        own[k] = x[lane, parents[0]]
    for atom in range(first, last):
        wanted = values[atom]
        for k in range(width):
            chances[0, atom, k] = own[k] == wanted
        for h in range(1, steps):
            for k in range(width):
                chances[h, atom, k] = table[rows[k], h - 1, wanted]


@njit(cache=True, nogil=True)
def _action_values(now: Any, later: Any, chances: Any, discount: Any, n: Any) -> Any:
    """What each first action is worth in each lane of a block: backward induction."""
    steps, _, width = chances.shape
    branch_starts = now.lists.branch_starts
    states, num_actions = len(branch_starts) - 1, branch_starts[1]
    # Lanes are the last axis of each array: the chance of each condition and observation; that of
    # each node of a tree, and the best value seen there.
    conditions = max(len(now.conditions.probabilities), len(later.conditions.probabilities))
    weights = np.empty((conditions, width), np.float32)
    seen = np.empty((max(len(later.conditions.signs), 1), width), np.float32)
    nodes = 1
    for state in range(states):
        nodes = max(nodes, later.trees.node_starts[state + 1] - later.trees.node_starts[state])
    reached = np.empty((nodes, width), np.float32)
    found = np.empty((nodes, width), np.float32)
    # The value of each list; the last row is zero, the value of what no list adds to.
    lists = max(len(now.lists.base), len(later.lists.base))
    values = np.zeros((lists + 1, width), np.float32)
    # The best value of each n and of nowhere; before, after.
    best = np.zeros((2, states + 1, width), np.float32)
    spare = np.empty((4, width), np.float32)
    for h in range(steps - 1, -1, -1):
        before, after = best[(steps - 1 - h) % 2], best[(steps - h) % 2]
        if h:
            _weigh(later.conditions, chances[h], weights, seen)
            _back_up(later.lists, discount, weights, before, values, spare)
            _choose(later.trees, seen, reached, found, values, after)
        else:
            _weigh(now.conditions, chances[h], weights, seen)
            _back_up(now.lists, discount, weights, before, values, spare)
    out = np.empty((len(n), num_actions), np.float64)
    for k in range(len(n)):
        for action in range(num_actions):
            out[k, action] = values[n[k] * num_actions + action, k]
    return out


# Kernels look up what is the same for all lanes before each loop over them, and call nothing:
# the loops are then turned into vector instructions. Constants are of single precision like all
# else; others would turn the whole loop into double precision. A loop over lanes takes about as
# long to start as to run, so what occurs most, a rule of one outcome and a leaf of one branch, is
# one loop.


@njit(**INNER, fastmath=True)
def _weigh(model: Any, chances: Any, weights: Any, seen: Any) -> None:
    """The chance of every condition and of every observation."""
    probabilities, (atoms, starts), constants, signs, (observed, seen_starts) = model
    width = weights.shape[1]
    for w in range(len(probabilities)):
        probability = probabilities[w]
        for k in range(width):
            weights[w, k] = probability
        for e in range(starts[w], starts[w + 1]):
            atom = atoms[e]
            for k in range(width):
                weights[w, k] *= chances[atom, k]
    for o in range(len(constants)):
        constant, sign = constants[o], signs[o]
        for k in range(width):
            seen[o, k] = constant
        for e in range(seen_starts[o], seen_starts[o + 1]):
            atom = observed[e]
            for k in range(width):
                seen[o, k] += sign * chances[atom, k]


@njit(**INNER, fastmath=True)
def _back_up(  # noqa: C901, PLR0912 - calls of functions with arrays would count references
    model: Any, discount: Any, weights: Any, best: Any, values: Any, spare: Any
) -> None:
    """The value of every list: rewards, and the value of where its rules lead.

    That of a branch includes what its n's branches share, which is worked out before them. Most
    lists have no rule, or one of two outcomes.
    """
    branch_starts, bases, otherwise = model.branch_starts, model.base, model.otherwise
    (paid, paid_starts), rewards = model.paid, model.rewards
    rule_starts, rule_ends, targets = model.rule_starts, model.rule_ends, model.targets
    conditions, outcome_starts = model.outcomes
    states, width = len(branch_starts) - 1, values.shape[1]
    moved, passed = spare[2], spare[3]
    # What the value of the next n is multiplied by: the discount, and that times the chance that
    # the rules which the branches of this n share do not decide.
    scales = spare[:2]
    for k in range(width):
        scales[0, k] = discount
    for state in range(states):
        first = branch_starts[state]
        shared = branch_starts[states] + state
        above, scale = len(values) - 1, 0  # nothing comes before the shared list
        for step in range(first - 1, branch_starts[state + 1]):
            own = step if step >= first else shared
            base, other = bases[own], otherwise[own]
            rule, end = rule_starts[own], rule_ends[own]
            o = outcome_starts[rule]
            if rule == end:
                for k in range(width):
                    values[own, k] = base + values[above, k] + scales[scale, k] * best[other, k]
            elif rule + 1 == end and outcome_starts[end] == o + 2:
                w, target = conditions[o], targets[o]
                w2, target2 = conditions[o + 1], targets[o + 1]
                for k in range(width):
                    stays = best[other, k]
                    moves = stays + weights[w, k] * (best[target, k] - stays)
                    moves += weights[w2, k] * (best[target2, k] - stays)
                    values[own, k] = base + values[above, k] + scales[scale, k] * moves
            else:
                # The value of where the rules lead, the last rule first.
                for k in range(width):
                    moved[k] = best[other, k]
                for one in range(end - 1, rule - 1, -1):
                    for k in range(width):
                        passed[k] = moved[k]
                    for o in range(outcome_starts[one], outcome_starts[one + 1]):
                        w, target = conditions[o], targets[o]
                        for k in range(width):
                            moved[k] += weights[w, k] * (best[target, k] - passed[k])
                for k in range(width):
                    values[own, k] = base + values[above, k] + scales[scale, k] * moved[k]
            for e in range(paid_starts[own], paid_starts[own + 1]):
                reward, w = rewards[e], paid[e]
                for k in range(width):
                    values[own, k] += reward * weights[w, k]
            if own == shared:
                above = shared
                last = rule_starts[own + 1]
                if rule < last:
                    # The chance that these rules do not decide, discounted by a step.
                    scale = 1
                    for k in range(width):
                        scales[1, k] = np.float32(1.0)
                    for one in range(rule, last):
                        for k in range(width):
                            passed[k] = scales[1, k]
                        for o in range(outcome_starts[one], outcome_starts[one + 1]):
                            w = conditions[o]
                            for k in range(width):
                                scales[1, k] -= weights[w, k] * passed[k]
                    for k in range(width):
                        scales[1, k] *= discount


@njit(**INNER, fastmath={"nnan", "nsz", "contract", "reassoc"})  # there are infinities here
def _choose(  # noqa: C901 - as above
    model: Any, seen: Any, reached: Any, found: Any, values: Any, best: Any
) -> None:
    """The value of every n: the best branch, on average over what is seen before."""
    terminal, node_starts, first_leaves, parents, observations, (branches, starts) = model
    width = best.shape[1]
    for state in range(len(terminal)):
        for k in range(width):
            best[state, k] = np.float32(0.0)
            reached[0, k] = np.float32(1.0)
            found[0, k] = np.float32(-np.inf)
        root, leaf = node_starts[state], first_leaves[state]
        end = root if terminal[state] else node_starts[state + 1]
        for node in range(root, end):
            at, above, o = node - root, parents[node], observations[node]
            first, last = starts[node], starts[node + 1]
            if node >= leaf and o >= 0 and last == first + 1:
                branch = branches[first]
                for k in range(width):
                    highest = max(found[above, k], values[branch, k])
                    best[state, k] += reached[above, k] * seen[o, k] * highest
                continue
            if o >= 0:
                for k in range(width):
                    reached[at, k] = reached[above, k] * seen[o, k]
                    found[at, k] = found[above, k]
            # Branches are compared two at a time.
            for b in range(first, last, 2):
                branch, branch2 = branches[b], branches[min(b + 1, last - 1)]
                for k in range(width):
                    found[at, k] = max(found[at, k], values[branch, k], values[branch2, k])
            for k in range(width if node >= leaf else 0):
                best[state, k] += reached[at, k] * found[at, k]
