"""Rewards and terminal states of a model, as tables over the surveyed n.

The terms R^i(n, x^i, a) are functions, not distributions: asking once for each value is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exo_envs import ExoMDP, State
from exo_envs.mdp import BoolArray, FloatArray, IntArray
from planners.arrays import Ints, chunks
from planners.information import ExogenousData, draw_probes, find_relevant

#: Values of x with which every n is asked whether it is terminal.
NUM_PROBES = 32
#: Values of x in which the terms of a total reward are looked for.
NUM_BASES = 4
#: Rewards that differ by a smaller share of their size are the same.
TOLERANCE = 1e-9


class EndDependsOnExogenousError(ValueError):
    """Whether an episode is over cannot be told from n alone."""


class Rewards(NamedTuple):
    """R(n, a) and the R^i of the variables that pay."""

    base_reward: FloatArray  # (S, A)
    terms: dict[int, FloatArray]  # variable -> (size, S, A)


def terminal_states(
    mdp: ExoMDP, endogenous: IntArray, data: ExogenousData, rng: np.random.Generator
) -> BoolArray:
    """Which of the n, shape (S, k), are terminal, shape (S,).

    Raises:
        EndDependsOnExogenousError: if that depends on x as well.
    """
    probes = draw_probes(data, NUM_PROBES, rng)
    terminal = np.stack(
        [mdp.is_terminal(State(endogenous, np.tile(x, (len(endogenous), 1)))) for x in probes]
    )
    varies = np.flatnonzero(terminal.any(axis=0) & ~terminal.all(axis=0))
    if len(varies):
        raise EndDependsOnExogenousError(
            f"whether n = {endogenous[varies[0]].tolist()} is terminal depends on x; a planner "
            "cannot tell from n alone. Carry the end of the episode in an endogenous variable "
            "(such as 'done', which sample_endogenous sets)"
        )
    return np.asarray(terminal[0])


def reward_terms(mdp: ExoMDP, endogenous: IntArray, terminal: BoolArray) -> Rewards:
    """The tables from ``mdp.reward_terms``, exactly.

    Term i looks at no other variable, so all variables are given their v-th value at once: as
    many calls as the largest variable has values, however many variables there are.
    """
    states, actions, sizes = len(endogenous), mdp.num_actions, mdp.exogenous_sizes
    pairs = states * actions
    n, action = np.divmod(np.arange(pairs), actions)
    base = mdp.endogenous_reward(endogenous[n], action)
    tables: dict[int, FloatArray] = {}
    for value in range(int(sizes.max(initial=0))):
        x = np.minimum(value, sizes - 1)
        for part in chunks(pairs, len(sizes)):
            state = State(endogenous[n[part]], np.tile(x, (part.stop - part.start, 1)))
            terms = mdp.reward_terms(state, action[part])
            for i in np.flatnonzero((terms != 0).any(axis=0) & (value < sizes)).tolist():
                table = tables.setdefault(i, np.zeros((int(sizes[i]), pairs)))
                table[value, part] = terms[:, i]
    return _rewards(base, {i: tables[i] for i in sorted(tables)}, terminal)


def total_rewards(
    mdp: ExoMDP,
    endogenous: IntArray,
    terminal: BoolArray,
    data: ExogenousData,
    rng: np.random.Generator,
) -> Rewards:
    """The tables from ``mdp.reward`` alone, assuming that it is a sum over variables.

    The variables that pay at (n, a) are found by group tests; the term of one is the difference
    that it makes, value by value, to the reward in a state from the rollouts. What a sum leaves
    open is where each term has its zero. The zeros are chosen, from the amounts that occur, so
    that R(n, a) is as near to zero as can be; if several choices are, those amounts that are most
    frequent in the rollouts. So not to pay is nothing, and to pay or to cost is something; with
    ``ignored_rewards="zero"`` a variable that is left out of a mask counts as if it did neither.
    Averages of ignored terms do not depend on where the zeros are.

    Raises:
        ValueError: if the difference that a variable makes depends on other variables.
    """
    states, actions, sizes = len(endogenous), mdp.num_actions, data.sizes

    def reward(pairs: Ints, x: IntArray) -> FloatArray:
        n, action = np.divmod(pairs, actions)
        x, out = np.broadcast_to(x, (len(pairs), len(sizes))), np.empty(len(pairs))
        for part in chunks(len(pairs), len(sizes)):
            state = State(endogenous[n[part]], np.ascontiguousarray(x[part]))
            out[part] = mdp.reward(state, action[part])
        return out

    def differ(pairs: Ints, x: IntArray, y: IntArray, seed: int) -> BoolArray:
        del seed  # rewards are functions of the state
        first, second = reward(pairs, x), reward(pairs, y)
        return np.abs(first - second) > TOLERANCE * (1 + np.abs(first) + np.abs(second))

    everything = np.arange(states * actions)
    alive = everything[~np.repeat(terminal, actions)]
    pays = find_relevant(differ, len(everything), data, rng, questions=alive)
    bases = data.sample(NUM_BASES, rng)
    amounts = np.stack([reward(everything, x) for x in bases])  # (bases, pairs)
    terms: dict[int, FloatArray] = {}
    for i in np.flatnonzero(pays.any(axis=0)).tolist():
        pairs = np.flatnonzero(pays[:, i])
        differences = np.empty((NUM_BASES, int(sizes[i]), len(pairs)))
        for b, x in enumerate(bases):
            for value in range(int(sizes[i])):
                changed = x.copy()
                changed[i] = value
                differences[b, value] = reward(pairs, changed) - amounts[b, pairs]
        differences -= differences[:, :1]  # of the first value: the same whatever the base is
        _check_sum(mdp, i, differences)
        terms[i] = np.zeros((int(sizes[i]), len(everything)))
        terms[i][:, pairs] = differences[0]
    base = amounts[0] - sum(table[bases[0, i]] for i, table in terms.items())
    return _rewards(_choose_zeros(base, terms, data), terms, terminal)


def _rewards(base: FloatArray, terms: dict[int, FloatArray], terminal: BoolArray) -> Rewards:
    """From R of all pairs. A terminal state pays nothing, whatever the model says about it."""
    shape, over = (len(terminal), -1), terminal[:, None]
    shaped = {
        i: np.where(over, 0.0, table.reshape(len(table), *shape)) for i, table in terms.items()
    }
    kept = {i: table for i, table in shaped.items() if table.any()}
    return Rewards(np.where(over, 0.0, base.reshape(shape)), kept)


def _choose_zeros(
    base: FloatArray, terms: dict[int, FloatArray], data: ExogenousData
) -> FloatArray:
    """Shift each term, in place, and R(n, a) against it; gives the new R(n, a)."""
    for i, table in terms.items():
        weights = np.bincount(data.values[:, :-1, i].reshape(-1), minlength=len(table))
        rounded = table.round(9)
        often = np.stack([weights @ (rounded == amount) for amount in rounded])
        usual = np.take_along_axis(table, often.argmax(axis=0)[None], axis=0)[0]
        np.subtract(table, usual, out=table)
        base = base + usual
    moved = True
    while moved:  # one term at a time, until no change brings R(n, a) nearer to zero
        moved = False
        for table in terms.values():
            distance = np.abs(base + table)
            best = distance.argmin(axis=0)[None]
            nearest = np.take_along_axis(distance, best, axis=0)[0]
            closer = nearest < np.abs(base) - TOLERANCE * (1 + np.abs(base))
            shift = np.where(closer, np.take_along_axis(table, best, axis=0)[0], 0.0)
            np.subtract(table, shift, out=table)
            base = base + shift
            moved |= bool(closer.any())
    return base


def _check_sum(mdp: ExoMDP, i: int, differences: FloatArray) -> None:
    spread = np.abs(differences - differences[:1]).max()
    if spread > 1e-6 * (1 + np.abs(differences).max()):
        raise ValueError(
            f"what {mdp.exogenous_names[i]!r} pays depends on other exogenous variables (by "
            f"{spread:g}), so the reward is not a sum over them; make one variable of those that "
            "pay together"
        )
