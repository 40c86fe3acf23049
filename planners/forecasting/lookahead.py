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

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import INNER, njit
from exo_envs.compiled.threads import in_parts
from exo_envs.core.arguments import check_kind
from exo_envs.core.errors import ArgumentError
from planners.core.arrays import Ints
from planners.forecasting import flat_models as where
from planners.forecasting.additive import AdditiveForecasts, write_additive
from planners.forecasting.compiled_model import CompiledModel
from planners.forecasting.flat_models import FlatModel, FlatModels
from planners.forecasting.forecasts import Forecasts
from planners.forecasting.shared_tables import SharedForecasts, probability_at, row_at

#: Lanes that the kernel takes at once, at most: with fewer, starting its loops takes most time.
LANES_PER_BLOCK = 128
#: Blocks are widened to a multiple of this number of lanes: those of a vector instruction.
LANES_PER_VECTOR = 8


class Models(NamedTuple):
    """The model for the decision that is made now, and that for later ones."""

    now: CompiledModel
    later: CompiledModel

    def flat(self) -> FlatModels:
        """The models as kernels read them."""
        now = FlatModel.of(self.now)
        return FlatModels(now, now if self.later is self.now else FlatModel.of(self.later))

    def check(self, forecasts: Forecasts | SharedForecasts) -> None:
        """Refuse models that are not whole, or do not fit together."""
        for model in self:
            check_kind("a model", model, CompiledModel)
            model.check(forecasts)
        now, later = self
        shared = ("forecasts", "values", "terminal")
        if any(not np.array_equal(getattr(now, name), getattr(later, name)) for name in shared):
            raise ArgumentError(
                "the models for now and later are not about the same atoms and states"
            )
        states, actions = len(now.terminal), int(now.branch_starts[1])
        if (np.diff(now.branch_starts) != actions).any() or len(now.parents) != states:
            raise ArgumentError(
                "the model for now has a branch for each action, and looks at nothing"
            )


def look_ahead(
    models: Models | FlatModels,
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
    models = models if isinstance(models, FlatModels) else models.flat()
    additive = AdditiveForecasts.none(forecasts.sizes) if additive is None else additive
    shared = SharedForecasts.of(forecasts)  # it keeps the tables where kernels find them
    exogenous = np.ascontiguousarray(exogenous)  # or the kernels are compiled for each layout

    # How the lanes are divided depends on their number alone, and not on that of the threads.
    blocks = max(1, -(-len(n) // LANES_PER_BLOCK))
    width = max(1, -(-len(n) // (blocks * LANES_PER_VECTOR))) * LANES_PER_VECTOR

    def part(first: int, last: int) -> Any:
        lanes = slice(first * width, last * width)
        given: Any = (*models, shared.addresses, additive, np.float32(discount), width)
        return _action_values(*given, n[lanes], exogenous[lanes])

    return np.concatenate(in_parts(part, blocks))


@njit(cache=True, nogil=True)
def _action_values(
    now: Any, later: Any, forecasts: Any, additive: Any, discount: Any, width: int, n: Any, x: Any
) -> Any:
    """What each first action is worth in each lane: backward induction, a block at a time."""
    ints, other = now.ints, later.ints
    atoms, states = ints[where.ATOM_COUNT], ints[where.STATE_COUNT]
    num_actions = ints[ints[where.BRANCH_STARTS] + 1]
    farthest = forecasts.horizon
    # Arrays for a block of lanes, which are the last axis of each: the chance of each atom,
    # condition and observation; that of each node, and the best value seen there.
    chances = np.empty((farthest + 1, atoms, width), np.float32)
    weights = np.empty(
        (max(ints[where.CONDITION_COUNT], other[where.CONDITION_COUNT]), width), np.float32
    )
    seen = np.empty(
        (max(ints[where.OBSERVATION_COUNT], other[where.OBSERVATION_COUNT]), width), np.float32
    )
    reached = np.empty((max(ints[where.TREE_SIZE], other[where.TREE_SIZE]), width), np.float32)
    found = np.empty((max(ints[where.TREE_SIZE], other[where.TREE_SIZE]), width), np.float32)
    # The value of each list; the last row is zero, the value of what no list adds to.
    lists = max(ints[where.LIST_COUNT], other[where.LIST_COUNT])
    values = np.empty((lists + 1, width), np.float32)
    # The best value of each n and of nowhere; before, after.
    best = np.empty((2, states + 1, width), np.float32)
    spare = np.empty((4, width), np.float32)
    out = np.empty((len(n), num_actions), np.float64)
    for lane in range(0, len(n), width):
        last = min(lane + width, len(n))
        _forecast(now, forecasts, x, lane, last, chances)
        write_additive(additive, x[lane:last], chances)
        for k in range(width):
            values[lists, k] = np.float32(0.0)
            for state in range(states + 1):
                best[0, state, k] = np.float32(0.0)
                best[1, state, k] = np.float32(0.0)
        for h in range(farthest, -1, -1):
            model = later if h else now
            before, after = best[(farthest - h) % 2], best[(farthest - h + 1) % 2]
            # Conditions without atoms are the same at all steps, and written once for each model.
            _weigh_conditions(model, chances[h], weights, h in (farthest, 0))
            _observe(model, chances[h], seen)
            _back_up(model, discount, chances[h], weights, before, values, spare)
            _choose(model, seen, reached, found, values, after)
        for k in range(last - lane):
            first = n[lane + k] * num_actions
            for action in range(num_actions):
                out[lane + k, action] = values[first + action, k]
    return out


# Kernels look up what is the same for all lanes before each loop over them, and call nothing:
# the loops are then turned into vector instructions. Constants are of single precision like all
# else; others would turn the whole loop into double precision. A loop over lanes takes about as
# long to start as to run, so what occurs most, a rule of one outcome and a leaf of one branch, is
# one loop.


@njit(**INNER)
def _forecast(model: Any, forecasts: Any, x: Any, lane: int, end: int, chances: Any) -> None:
    """The chance of every atom h steps ahead: from lanes of x itself, or from the forecasts."""
    ints = model.ints
    which, variables, values = ints[where.FORECASTS], ints[where.VARIABLES], ints[where.VALUES]
    sizes, starts, parents = forecasts.sizes, forecasts.parent_starts, forecasts.parents
    steps, atoms, width = chances.shape
    at = np.empty(width, np.int64)
    rows = np.empty((len(forecasts.variables), width), np.int64)
    for f in range(len(forecasts.variables)):
        lookup, first, last = forecasts.lookups[f], starts[f], starts[f + 1]
        length = forecasts.horizon * sizes[forecasts.variables[f]]
        for k in range(width):
            own = min(lane + k, end - 1)
            value = 0
            for p in range(first, last):
                value = value * sizes[parents[p]] + x[own, parents[p]]
            rows[f, k] = row_at(lookup, value) * length
    for atom in range(atoms):
        f, variable, wanted = ints[which + atom], ints[variables + atom], ints[values + atom]
        stride, table = ints[ints[where.STRIDES] + atom], forecasts.tables[f]
        for k in range(width):
            chances[0, atom, k] = x[min(lane + k, end - 1), variable] == wanted
            at[k] = rows[f, k] + wanted
        for h in range(1, steps):
            for k in range(width):
                chances[h, atom, k] = probability_at(table, at[k])
                at[k] += stride


@njit(**INNER, fastmath=True)
def _weigh_conditions(model: Any, chances: Any, weights: Any, with_constants: bool) -> None:
    """The chance of every condition; of those without atoms only if they are asked for."""
    ints, reals = model.ints, model.reals
    probabilities, atom_starts, atoms = (
        ints[where.PROBABILITIES],
        ints[where.ATOM_STARTS],
        ints[where.ATOMS],
    )
    width = weights.shape[1]
    for w in range(ints[where.CONDITION_COUNT]):
        probability = reals[probabilities + w]
        first, last = ints[atom_starts + w], ints[atom_starts + w + 1]
        if first < last:
            atom = ints[atoms + first]
            for k in range(width):
                weights[w, k] = probability * chances[atom, k]
        elif with_constants:
            for k in range(width):
                weights[w, k] = probability
        for e in range(first + 1, last):
            atom = ints[atoms + e]
            for k in range(width):
                weights[w, k] *= chances[atom, k]


@njit(**INNER, fastmath=True)
def _back_up(  # noqa: C901, PLR0912, PLR0915 - calls of functions with arrays would count references
    model: Any, discount: Any, chances: Any, weights: Any, best: Any, values: Any, spare: Any
) -> None:
    """The value of every list: rewards, and the value of where its rules lead.

    That of a branch includes what its n's branches share, which is worked out before them. Most
    lists have no rule, or one of two outcomes.
    """
    ints, reals = model.ints, model.reals
    branch_starts, otherwise, base_at = (
        ints[where.BRANCH_STARTS],
        ints[where.OTHERWISE],
        ints[where.BASE],
    )
    reward_starts, reward_atoms, rewards = (
        ints[where.REWARD_STARTS],
        ints[where.REWARD_ATOMS],
        ints[where.REWARDS],
    )
    rule_starts, rule_ends = ints[where.RULE_STARTS], ints[where.RULE_ENDS]
    outcome_starts, conditions, targets = (
        ints[where.OUTCOME_STARTS],
        ints[where.CONDITIONS],
        ints[where.TARGETS],
    )
    joint_starts, held = ints[where.JOINT_REWARD_STARTS], ints[where.JOINT_REWARD_CONDITIONS]
    states, width = ints[where.STATE_COUNT], values.shape[1]
    moved, passed = spare[2], spare[3]
    # What the value of the next n is multiplied by: the discount, and that times the chance that
    # the rules which the branches of this n share do not decide.
    scales = spare[:2]
    for k in range(width):
        scales[0, k] = discount
    for state in range(states):
        first = ints[branch_starts + state]
        shared = ints[branch_starts + states] + state
        above, scale = len(values) - 1, 0  # nothing comes before the shared list
        for step in range(first - 1, ints[branch_starts + state + 1]):
            own = step if step >= first else shared
            base, other = reals[base_at + own], ints[otherwise + own]
            rule, end = ints[rule_starts + own], ints[rule_ends + own]
            o = ints[outcome_starts + rule]
            if rule == end:
                for k in range(width):
                    values[own, k] = base + values[above, k] + scales[scale, k] * best[other, k]
            elif rule + 1 == end and ints[outcome_starts + end] == o + 2:
                w, target = ints[conditions + o], ints[targets + o]
                w2, target2 = ints[conditions + o + 1], ints[targets + o + 1]
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
                    o, last = ints[outcome_starts + one], ints[outcome_starts + one + 1]
                    if last == o + 1:
                        w, target = ints[conditions + o], ints[targets + o]
                        for k in range(width):
                            moved[k] += weights[w, k] * (best[target, k] - moved[k])
                        continue
                    for k in range(width):
                        passed[k] = moved[k]
                    for outcome in range(o, last):
                        w, target = ints[conditions + outcome], ints[targets + outcome]
                        for k in range(width):
                            moved[k] += weights[w, k] * (best[target, k] - passed[k])
                for k in range(width):
                    values[own, k] = base + values[above, k] + scales[scale, k] * moved[k]
            for e in range(ints[reward_starts + own], ints[reward_starts + own + 1]):
                reward, atom = reals[rewards + e], ints[reward_atoms + e]
                for k in range(width):
                    values[own, k] += reward * chances[atom, k]
            if ints[where.JOINT_COUNT]:
                for e in range(ints[joint_starts + own], ints[joint_starts + own + 1]):
                    reward, w = reals[ints[where.JOINT_REWARDS] + e], ints[held + e]
                    for k in range(width):
                        values[own, k] += reward * weights[w, k]
            if own == shared:
                above = shared
                last = ints[rule_starts + own + 1]
                if rule < last:
                    # The chance that these rules do not decide, discounted by a step.
                    scale = 1
                    for k in range(width):
                        scales[1, k] = np.float32(1.0)
                    for one in range(rule, last):
                        for k in range(width):
                            passed[k] = scales[1, k]
                        for outcome in range(
                            ints[outcome_starts + one], ints[outcome_starts + one + 1]
                        ):
                            w = ints[conditions + outcome]
                            for k in range(width):
                                scales[1, k] -= weights[w, k] * passed[k]
                    for k in range(width):
                        scales[1, k] *= discount


@njit(**INNER, fastmath=True)
def _observe(model: Any, chances: Any, seen: Any) -> None:
    """The chance of every observation."""
    ints, reals = model.ints, model.reals
    constants, signs = ints[where.OBSERVATION_CONSTANTS], ints[where.OBSERVATION_SIGNS]
    starts, atoms = ints[where.OBSERVATION_ATOM_STARTS], ints[where.OBSERVATION_ATOMS]
    width = seen.shape[1]
    for o in range(ints[where.OBSERVATION_COUNT]):
        constant, sign = reals[constants + o], reals[signs + o]
        first, last = ints[starts + o], ints[starts + o + 1]
        if first < last:
            atom = ints[atoms + first]
            for k in range(width):
                seen[o, k] = constant + sign * chances[atom, k]
        else:
            for k in range(width):
                seen[o, k] = constant
        for e in range(first + 1, last):
            atom = ints[atoms + e]
            for k in range(width):
                seen[o, k] += sign * chances[atom, k]


@njit(**INNER, fastmath={"nnan", "nsz", "contract", "reassoc"})  # there are infinities here
def _choose(  # noqa: C901 - as above
    model: Any, seen: Any, reached: Any, found: Any, values: Any, best: Any
) -> None:
    """The value of every n: the best branch, on average over what is seen before."""
    ints = model.ints
    node_starts, first_leaves, terminal = (
        ints[where.NODE_STARTS],
        ints[where.FIRST_LEAVES],
        ints[where.TERMINAL],
    )
    parents, observations = ints[where.PARENTS], ints[where.NODE_OBSERVATIONS]
    starts, branches = ints[where.NODE_BRANCH_STARTS], ints[where.NODE_BRANCHES]
    width = best.shape[1]
    for state in range(ints[where.STATE_COUNT]):
        for k in range(width):
            best[state, k] = np.float32(0.0)
            reached[0, k] = np.float32(1.0)
            found[0, k] = np.float32(-np.inf)
        root, leaf = ints[node_starts + state], ints[first_leaves + state]
        end = root if ints[terminal + state] else ints[node_starts + state + 1]
        for node in range(root, end):
            at, above, o = node - root, ints[parents + node], ints[observations + node]
            first, last = branches + ints[starts + node], branches + ints[starts + node + 1]
            if node >= leaf and o >= 0 and last == first + 1:
                branch = ints[first]
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
                branch, branch2 = ints[b], ints[min(b + 1, last - 1)]
                for k in range(width):
                    found[at, k] = max(found[at, k], values[branch, k], values[branch2, k])
            for k in range(width if node >= leaf else 0):
                best[state, k] += reached[at, k] * found[at, k]
