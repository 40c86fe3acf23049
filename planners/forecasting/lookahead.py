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

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

from exo_envs.compiled import njit
from planners.arrays import Ints, subset_index
from planners.checks import check_kind
from planners.forecasting.additive import AdditiveForecasts, write_additive
from planners.forecasting.compiled_model import CompiledModel
from planners.forecasting.forecasts import Forecasts
from planners.forecasting.shared_tables import SharedForecasts, probability_at, row_at

#: Lanes that the kernel takes at once, at most: with fewer, starting its loops takes most time.
LANES_PER_BLOCK = 128
#: Blocks are widened to a multiple of this number of lanes: those of a vector instruction.
LANES_PER_VECTOR = 8
#: Options of functions that only kernels call: they need no entry from Python.
_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class Models(NamedTuple):
    """The model for the decision that is made now, and that for later ones."""

    now: CompiledModel
    later: CompiledModel

    def check(self, forecasts: Forecasts | SharedForecasts) -> None:
        """Refuse models that are not whole, or do not fit together."""
        for model in self:
            check_kind("a model", model, CompiledModel)
            model.check(forecasts)
        now, later = self
        shared = ("forecasts", "values", "terminal")
        if any(not np.array_equal(getattr(now, name), getattr(later, name)) for name in shared):
            raise ValueError("the models for now and later are not about the same atoms and states")
        states, actions = len(now.terminal), int(now.branch_starts[1])
        if (np.diff(now.branch_starts) != actions).any() or len(now.parents) != states:
            raise ValueError("the model for now has a branch for each action, and looks at nothing")


def look_ahead(
    models: Models,
    forecasts: Forecasts | SharedForecasts,
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
    shared = SharedForecasts.of(forecasts)  # it keeps the tables where kernels find them
    exogenous = np.ascontiguousarray(exogenous)  # or the kernels are compiled for each layout

    # How the lanes are divided depends on their number alone, and not on that of the threads.
    blocks = max(1, -(-len(n) // LANES_PER_BLOCK))
    width = max(1, -(-len(n) // (blocks * LANES_PER_VECTOR))) * LANES_PER_VECTOR
    workers = max(1, min(get_num_threads(), blocks))
    step = width * -(-blocks // workers)

    def part(first: int) -> Any:
        lanes = slice(first, first + step)
        given: Any = (*models, shared.addresses, additive, np.float32(discount), width)
        return _action_values(*given, n[lanes], exogenous[lanes])

    if workers == 1:
        return np.asarray(part(0))
    # This thread takes a part, too: it waits while the kernel is compiled, and its clocks stop.
    with ThreadPoolExecutor(workers - 1) as threads:
        others = threads.map(part, range(step, len(n), step))
        return np.concatenate([part(0), *others])


@njit(cache=True, nogil=True)
def _action_values(
    now: Any, later: Any, forecasts: Any, additive: Any, discount: Any, width: int, n: Any, x: Any
) -> Any:
    num_actions = now.branch_starts[1] if len(now.branch_starts) > 1 else 0
    buffers = _buffers(now, later, forecasts.horizon, width)
    values = buffers[4]
    out = np.empty((len(n), num_actions))
    for lane in range(0, len(n), width):
        last = min(lane + width, len(n))
        _forecast(now, forecasts, x[lane:last], buffers[0])
        write_additive(additive, x[lane:last], buffers[0])
        _induce(now, later, discount, buffers)
        for k in range(last - lane):
            first = n[lane + k] * num_actions
            out[lane + k] = values[first : first + num_actions, k]
    return out


@njit(**_INNER)
def _buffers(now: Any, later: Any, horizon: int, width: int) -> Any:
    """Arrays for a block of lanes, which are the last axis of each."""
    conditions = max(len(now.probabilities), len(later.probabilities))
    observations = max(len(now.observation_signs), len(later.observation_signs))
    nodes = 0
    for state in range(len(now.terminal)):
        nodes = max(nodes, later.node_starts[state + 1] - later.node_starts[state])
    states = len(now.terminal)
    lists = max(len(now.base), len(later.base)) + 1
    return (
        np.empty((horizon + 1, len(now.values), width), np.float32),  # the chance of each atom
        np.empty((conditions, width), np.float32),  # that of each condition
        np.empty((observations, width), np.float32),  # that of each observation
        np.empty((2, nodes, width), np.float32),  # that of each node, and the best value seen there
        # The value of each list; the last row is zero, the value of what no list adds to.
        np.empty((lists, width), np.float32),
        # The best value of each n and of nowhere; before, after.
        np.empty((2, states + 1, width), np.float32),
    )


@njit(**_INNER)
def _induce(now: Any, later: Any, discount: Any, buffers: Any) -> None:
    """Backward induction for a block of lanes; leaves the values of all lists now."""
    chances, weights, seen, nodes, values, best = buffers
    best[:] = 0.0
    values[-1] = 0.0
    before, after = best[0], best[1]
    farthest = len(chances) - 1
    for h in range(farthest, -1, -1):
        model = later if h else now
        # Conditions without atoms are the same at all steps: they are written once for each model.
        _weigh_conditions(model, chances[h], weights, h in (farthest, 0))
        _observe(model, chances[h], seen)
        _back_up(model, discount, chances[h], weights, before, values)
        _choose(model, seen, nodes, values, after)
        before, after = after, before


# Kernels look up what is the same for all lanes before each loop over them, and call nothing:
# the loops are then turned into vector instructions. Constants are of single precision like all
# else; others would turn the whole loop into double precision. A loop over lanes takes about as
# long to start as to run, so what occurs most, a rule of one outcome and a leaf of one branch, is
# one loop.


@njit(**_INNER)
def _row_starts(forecasts: Any, x: Any) -> Any:
    """Where the forecasts of a batch (B, m) begin in each table, shape (B, f)."""
    variables, sizes, starts = forecasts.variables, forecasts.sizes, forecasts.parent_starts
    out = np.empty((x.shape[0], len(variables)), np.int64)
    for lane in range(x.shape[0]):
        for f in range(len(variables)):
            value = subset_index(x[lane], forecasts.parents, starts[f], starts[f + 1], sizes)
            row = np.int64(row_at(forecasts.lookups[f], value))
            out[lane, f] = row * forecasts.horizon * sizes[variables[f]]
    return out


@njit(**_INNER)
def _forecast(model: Any, forecasts: Any, x: Any, chances: Any) -> None:
    """The chance of every atom h steps ahead: from x itself, or from the forecasts."""
    which, variables, values = model.forecasts, model.variables, model.values
    tables, starts = forecasts.tables, _row_starts(forecasts, x)
    steps, atoms, width = chances.shape
    at = np.empty(width, np.int64)
    for atom in range(atoms):
        stride, table = model.strides[atom], tables[which[atom]]
        for k in range(width):
            lane = min(k, len(x) - 1)
            chances[0, atom, k] = x[lane, variables[atom]] == values[atom]
            at[k] = starts[lane, which[atom]] + values[atom]
        for h in range(1, steps):
            for k in range(width):
                chances[h, atom, k] = probability_at(table, at[k])
                at[k] += stride


@njit(**_INNER, fastmath=True)
def _weigh_conditions(model: Any, chances: Any, weights: Any, with_constants: bool) -> None:
    """The chance of every condition; of those without atoms only if they are asked for."""
    probabilities, atom_starts, atoms = model.probabilities, model.atom_starts, model.atoms
    width = weights.shape[1]
    for w in range(len(probabilities)):
        probability, first, last = probabilities[w], atom_starts[w], atom_starts[w + 1]
        if first < last:
            atom = atoms[first]
            for k in range(width):
                weights[w, k] = probability * chances[atom, k]
        elif with_constants:
            for k in range(width):
                weights[w, k] = probability
        for e in range(first + 1, last):
            atom = atoms[e]
            for k in range(width):
                weights[w, k] *= chances[atom, k]


@njit(**_INNER, fastmath=True)
def _back_up(  # noqa: C901, PLR0912 - calls of functions with arrays would count references
    model: Any, discount: Any, chances: Any, weights: Any, best: Any, values: Any
) -> None:
    """The value of every list: rewards, and the value of where its rules lead.

    That of a branch includes what its n's branches share, which is worked out before them. Most
    lists have no rule, or one of two outcomes.
    """
    branch_starts, width = model.branch_starts, values.shape[1]
    reward_starts, reward_atoms, rewards = model.reward_starts, model.reward_atoms, model.rewards
    rule_starts, rule_ends, outcome_starts = (
        model.rule_starts,
        model.rule_ends,
        model.outcome_starts,
    )
    otherwise, conditions, targets = model.otherwise, model.conditions, model.targets
    bases, paid_together, states = model.base, len(model.joint_rewards) > 0, len(branch_starts) - 1
    rules, outcomes = (rule_starts, rule_ends, outcome_starts), (otherwise, conditions, targets)
    moved, passed = np.empty((2, width), np.float32)
    # What the value of the next n is multiplied by: the discount, and that times the chance that
    # the rules which the branches of this n share do not decide.
    scales = np.empty((2, width), np.float32)
    for k in range(width):
        scales[0, k] = discount
    for state in range(states):
        first, shared = branch_starts[state], branch_starts[states] + state
        above, scale = len(values) - 1, 0  # nothing comes before the shared list
        for step in range(first - 1, branch_starts[state + 1]):
            own = step if step >= first else shared
            base, other, rule = bases[own], otherwise[own], rule_starts[own]
            count, o = rule_ends[own] - rule, outcome_starts[rule]
            if count == 0:
                for k in range(width):
                    values[own, k] = base + values[above, k] + scales[scale, k] * best[other, k]
            elif count == 1 and outcome_starts[rule + 1] == o + 2:
                w, target, w2, target2 = (
                    conditions[o],
                    targets[o],
                    conditions[o + 1],
                    targets[o + 1],
                )
                for k in range(width):
                    stays = best[other, k]
                    moves = stays + weights[w, k] * (best[target, k] - stays)
                    moves += weights[w2, k] * (best[target2, k] - stays)
                    values[own, k] = base + values[above, k] + scales[scale, k] * moves
            else:
                _follow_rules(rules, outcomes, own, weights, best, moved, passed)
                for k in range(width):
                    values[own, k] = base + values[above, k] + scales[scale, k] * moved[k]
            for e in range(reward_starts[own], reward_starts[own + 1]):
                reward, atom = rewards[e], reward_atoms[e]
                for k in range(width):
                    values[own, k] += reward * chances[atom, k]
            if paid_together:
                _add_joint_rewards(model, own, weights, values)
            if own == shared:
                above = shared
                if rule < rule_starts[own + 1]:
                    scale = 1
                    _pass_on(rules, outcomes, own, weights, discount, scales[1], passed)


@njit(**_INNER, fastmath=True)
def _add_joint_rewards(model: Any, own: int, weights: Any, values: Any) -> None:
    """Add what a list is expected to be paid for conditions of several variables."""
    starts, holding = model.joint_reward_starts, model.joint_reward_conditions
    for e in range(starts[own], starts[own + 1]):
        reward, w = model.joint_rewards[e], holding[e]
        for k in range(values.shape[1]):
            values[own, k] += reward * weights[w, k]


@njit(**_INNER, fastmath=True, inline="always")
def _follow_rules(
    rules: Any, outcomes: Any, own: int, weights: Any, best: Any, moved: Any, passed: Any
) -> None:
    """The value of where the rules of a list lead, the last rule first."""
    rule_starts, rule_ends, outcome_starts = rules
    otherwise, conditions, targets = outcomes
    target = otherwise[own]
    for k in range(len(moved)):
        moved[k] = best[target, k]
    for rule in range(rule_ends[own] - 1, rule_starts[own] - 1, -1):
        first, last = outcome_starts[rule], outcome_starts[rule + 1]
        if last == first + 1:
            w, target = conditions[first], targets[first]
            for k in range(len(moved)):
                moved[k] += weights[w, k] * (best[target, k] - moved[k])
            continue
        for k in range(len(moved)):
            passed[k] = moved[k]
        for o in range(first, last):
            w, target = conditions[o], targets[o]
            for k in range(len(moved)):
                moved[k] += weights[w, k] * (best[target, k] - passed[k])


@njit(**_INNER, fastmath=True, inline="always")
def _pass_on(
    rules: Any, outcomes: Any, own: int, weights: Any, discount: Any, left: Any, passed: Any
) -> None:
    """The chance that the rules of a list do not decide, discounted by a step."""
    rule_starts, _, outcome_starts = rules
    _, conditions, _ = outcomes
    for k in range(len(left)):
        left[k] = np.float32(1.0)
    for rule in range(rule_starts[own], rule_starts[own + 1]):
        for k in range(len(left)):
            passed[k] = left[k]
        for o in range(outcome_starts[rule], outcome_starts[rule + 1]):
            w = conditions[o]
            for k in range(len(left)):
                left[k] -= weights[w, k] * passed[k]
    for k in range(len(left)):
        left[k] *= discount


@njit(**_INNER, fastmath=True)
def _observe(model: Any, chances: Any, seen: Any) -> None:
    """The chance of every observation."""
    constants, signs = model.observation_constants, model.observation_signs
    starts, atoms = model.observation_atom_starts, model.observation_atoms
    width = seen.shape[1]
    for o in range(len(signs)):
        constant, sign, first, last = constants[o], signs[o], starts[o], starts[o + 1]
        if first < last:
            atom = atoms[first]
            for k in range(width):
                seen[o, k] = constant + sign * chances[atom, k]
        else:
            for k in range(width):
                seen[o, k] = constant
        for e in range(first + 1, last):
            atom = atoms[e]
            for k in range(width):
                seen[o, k] += sign * chances[atom, k]


@njit(**_INNER, fastmath={"nnan", "nsz", "contract", "reassoc"})  # there are infinities here
def _choose(model: Any, seen: Any, nodes: Any, values: Any, best: Any) -> None:
    """The value of every n: the best branch, on average over what is seen before."""
    node_starts, first_leaves = model.node_starts, model.first_leaves
    parents, observations = model.parents, model.node_observations
    branches = (model.node_branch_starts, model.node_branches)
    width = best.shape[1]
    reached, found = nodes[0], nodes[1]
    for state in range(len(model.terminal)):
        for k in range(width):
            best[state, k] = np.float32(0.0)
            reached[0, k] = np.float32(1.0)
            found[0, k] = np.float32(-np.inf)
        root = node_starts[state]
        end = root if model.terminal[state] else node_starts[state + 1]
        for node in range(root, end):
            at, above, o = node - root, parents[node], observations[node]
            is_leaf, branch = node >= first_leaves[state], _only(branches, node)
            if is_leaf and o >= 0 and branch >= 0:
                for k in range(width):
                    highest = max(found[above, k], values[branch, k])
                    best[state, k] += reached[above, k] * seen[o, k] * highest
            else:
                if o >= 0:
                    for k in range(width):
                        reached[at, k] = reached[above, k] * seen[o, k]
                        found[at, k] = found[above, k]
                _compare(branches, node, values, at, found)
                for k in range(width if is_leaf else 0):
                    best[state, k] += reached[at, k] * found[at, k]


@njit(**_INNER, inline="always")
def _only(branches: Any, node: int) -> Any:
    """The branch that can be compared at a node, or -1 if it is not exactly one."""
    starts, numbers = branches
    return numbers[starts[node]] if starts[node + 1] == starts[node] + 1 else -1


@njit(**_INNER, fastmath={"nnan", "nsz", "contract", "reassoc"}, inline="always")
def _compare(branches: Any, node: int, values: Any, at: int, found: Any) -> None:
    """Raise the best value found so far to that of the branches of a node, two at a time."""
    starts, numbers = branches
    last = starts[node + 1] - 1
    for b in range(starts[node], last + 1, 2):
        branch, branch2 = numbers[b], numbers[min(b + 1, last)]
        for k in range(found.shape[1]):
            found[at, k] = max(found[at, k], values[branch, k], values[branch2, k])
