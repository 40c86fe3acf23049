"""Rewards and terminal states of a model, as tables over the surveyed n.

The terms R^i(n, x^i, a) are functions, not distributions: asking once for each value is exact.
So it is for terms that look at several variables (``ExoMDP.reward_scopes``), once for each joint
value of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from exo_envs import ExoMDP, State
from exo_envs.mdp import BoolArray, FloatArray, IntArray
from planners.arrays import Ints, chunks, joint_values
from planners.information import ExogenousData, draw_probes
from planners.tables import Scope, by_scope, refuse_large_scope, scope_shape

#: Values of x with which every n is asked whether it is terminal.
NUM_PROBES = 32
#: States that a call which asks what is paid has at most, unless there are more pairs (n, a).
FEW_STATES = 512
#: The same for a model that answers one state at a time, and never one twice in a call.
MANY_STATES = 50_000
#: Rewards that differ by a smaller share of their size are the same.
TOLERANCE = 1e-9


class EndDependsOnExogenousError(ValueError):
    """Whether an episode is over cannot be told from n alone."""


class Rewards(NamedTuple):
    """R(n, a), the R^i of the variables that pay, and what several variables pay together."""

    base_reward: FloatArray  # (S, A)
    terms: dict[int, FloatArray]  # variable -> (size, S, A)
    joint_terms: dict[Scope, FloatArray]  # scope -> (joint values, S, A)

    @property
    def scoped_terms(self) -> dict[Scope, FloatArray]:
        """All terms by their scopes."""
        return by_scope(self.terms, self.joint_terms)


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
            "cannot tell from n alone. exo_envs.carry_end(mdp) is the same model with the end of "
            "the episode in an endogenous variable"
        )
    return np.asarray(terminal[0])


def reward_terms(mdp: ExoMDP, endogenous: IntArray, terminal: BoolArray) -> Rewards:
    """The tables from ``mdp.reward_terms``, exactly.

    A term looks at no variable outside of its scope, so all scopes that share no variable are given
    their v-th joint value at once. If each term has a variable of its own, that takes as many
    questions about each (n, a) as the largest variable has values, however many variables there
    are. Terms of the same scope are added up. Of a scope of several variables those are left out
    that make no difference to what is paid.

    Raises:
        TooLargeError: the table of a term of several variables would be too large.
    """
    states, actions, sizes = len(endogenous), mdp.num_actions, mdp.exogenous_sizes
    pairs = states * actions
    n, action = np.divmod(np.arange(pairs), actions)
    base = mdp.endogenous_reward(endogenous[n], action)
    scopes = [tuple(sorted(scope)) for scope in mdp.scope_indices]
    for scope in scopes:
        refuse_large_scope(scope, mdp.exogenous_names, sizes, pairs)
    number = {scope: math.prod(scope_shape(scope, sizes)) for scope in scopes}
    tables: dict[int, FloatArray] = {}  # by column, (joint values * pairs,)
    for group in disjoint_scopes(number):
        together = set(group)
        columns = {column for column, scope in enumerate(scopes) if scope in together}
        most = max(number[scope] for scope in group)
        x = scope_values(group, np.arange(most), sizes)
        few = FEW_STATES if mdp.is_batched else MANY_STATES
        for part in _parts(most * pairs, max(pairs, few), len(sizes)):
            value, pair = np.divmod(np.arange(part.start, part.stop), pairs)
            terms = mdp.reward_terms(State(endogenous[n[pair]], x[value]), action[pair])
            for column in columns.intersection(np.flatnonzero((terms != 0).any(axis=0)).tolist()):
                length = number[scopes[column]] * pairs
                own = terms[: max(0, length - part.start), column]
                if own.any():
                    table = tables.setdefault(column, np.zeros(length))
                    table[part.start : part.start + len(own)] = own
    scoped: dict[Scope, FloatArray] = {}
    for column in sorted(tables):
        scope, table = scopes[column], tables[column].reshape(-1, pairs)
        scoped[scope] = scoped[scope] + table if scope in scoped else table
    return as_rewards(base, scoped, terminal, sizes)


def _parts(count: int, step: int, width: int) -> Iterator[slice]:
    """Slices of some questions, of so many at most."""
    for chunk in chunks(count, width):
        for start in range(chunk.start, chunk.stop, step):
            yield slice(start, min(chunk.stop, start + step))


def disjoint_scopes(number: dict[Scope, int]) -> list[list[Scope]]:
    """Scopes in groups in which no two share a variable, those of most joint values first.

    Args:
        number: of joint values of each scope.
    """
    groups: list[list[Scope]] = []
    taken: list[set[int]] = []
    for scope in sorted(number, key=lambda scope: -number[scope]):
        for group, variables in zip(groups, taken, strict=True):
            if variables.isdisjoint(scope):
                group.append(scope)
                variables.update(scope)
                break
        else:
            groups.append([scope])
            taken.append(set(scope))
    return groups


def scope_values(group: Sequence[Scope], value: Ints, sizes: IntArray) -> Ints:
    """x, shape (B, m), in which each scope of a group has the joint value of that number, (B,).

    Of a scope that does not have as many joint values it is the last one. Variables that are in no
    scope of the group are 0.
    """
    x = np.zeros((len(value), len(sizes)), dtype=np.int64)
    alone = [scope[0] for scope in group if len(scope) == 1]
    x[:, alone] = np.minimum(value[:, None], sizes[alone] - 1)
    for scope in group:
        if len(scope) > 1:
            shape = scope_shape(scope, sizes)
            x[:, list(scope)] = joint_values(np.minimum(value, math.prod(shape) - 1), shape)
    return x


def as_rewards(
    base: FloatArray, terms: dict[Scope, FloatArray], terminal: BoolArray, sizes: IntArray
) -> Rewards:
    """From R of all pairs. A terminal state pays nothing, whatever the model says about it."""
    shape, over = (len(terminal), -1), terminal[:, None]
    base = np.where(over, 0.0, base.reshape(shape))
    kept: dict[Scope, FloatArray] = {}
    for scope, table in terms.items():
        shaped = np.where(over, 0.0, table.reshape(len(table), *shape))
        needed, paid = _needed(scope, shaped, sizes)
        if not needed:
            base = base + paid[0]
        elif paid.any():
            kept[needed] = kept[needed] + paid if needed in kept else paid
    single = {scope[0]: kept[scope] for scope in sorted(kept) if len(scope) == 1}
    return Rewards(base, single, {scope: kept[scope] for scope in sorted(kept) if len(scope) > 1})


def _needed(scope: Scope, table: FloatArray, sizes: IntArray) -> tuple[Scope, FloatArray]:
    """A term without those of several variables that make no difference to it."""
    if len(scope) == 1:
        return scope, table
    split = table.reshape(*scope_shape(scope, sizes), *table.shape[1:])
    limit = TOLERANCE * (1 + float(np.abs(table).max(initial=0.0)))
    kept: list[int] = []
    for i in scope:
        if float(np.ptp(split, axis=len(kept)).max(initial=0.0)) > limit:
            kept.append(i)
        else:
            split = np.asarray(split.take(0, axis=len(kept)))
    return tuple(kept), np.ascontiguousarray(split).reshape(-1, *table.shape[1:])
