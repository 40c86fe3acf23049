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

from exo_envs.contract.checked_mdp import CheckedMDP
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray, IntArray, State
from planners.core.arrays import Ints, chunks, joint_values
from planners.dependence.group_testing import draw_probes
from planners.discretization.coarse import CoarseMDP
from planners.samples.counted import CountedMDP
from planners.samples.rollouts import ExogenousData
from planners.tables.scopes import Scope, by_scope, refuse_large_scope, scope_shape

#: Values of x with which every n is asked whether it is terminal.
NUM_PROBES = 32
#: States that a call which asks what is paid has at most, unless there are more pairs (n, a).
FEW_STATES = 512
#: The same for a model that answers one state at a time, and never one twice in a call.
MANY_STATES = 50_000
#: Values of x, over all questions and variables, up to which it is asked what every bin pays.
EXACT_VALUES = 400_000_000
#: Questions about each pair (n, a) that show which terms pay at all, where those are too many.
NUM_LOOKS = 8
#: Questions about all pairs together that show this, at least.
MIN_LOOKS = 20_000
#: Rewards that differ by a smaller share of their size are the same.
TOLERANCE = 1e-9


class EndDependsOnExogenousError(ArgumentError):
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

    What a bin pays is the mean over the values that stand for it, so only terms that look at bins
    are asked with each of these. If that takes too many questions, it is first looked which of
    these terms ever pay (:func:`_ever_paying`).

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
    coarse = coarse_model(mdp)
    binned = set() if coarse is None else {s for s in number if set(coarse.binned) & set(s)}
    asking = _Asking(mdp, coarse, endogenous[n], action)
    columns = [column for column, scope in enumerate(scopes) if scope not in binned]
    tables = _tables(asking, scopes, columns, number, with_bins=False)
    columns = [column for column, scope in enumerate(scopes) if scope in binned]
    if coarse is not None and columns:
        most = max(number[scope] for scope in binned)
        if most * coarse.num_stand_ins * pairs * len(sizes) > EXACT_VALUES:
            columns = _ever_paying(asking, coarse, scopes, columns)
        tables |= _tables(asking, scopes, columns, number, with_bins=True)
    scoped: dict[Scope, FloatArray] = {}
    for column in sorted(tables):
        scope, table = scopes[column], tables.pop(column).reshape(-1, pairs)
        scoped[scope] = scoped[scope] + table if scope in scoped else table
    return as_rewards(base, scoped, terminal, sizes, in_place=True)


class _Asking(NamedTuple):
    """What is asked about: all pairs (n, a) of a model."""

    mdp: ExoMDP
    coarse: CoarseMDP | None  # the model behind it if it has bins
    endogenous: IntArray  # (pairs, k)
    action: Ints  # (pairs,)

    def terms(self, pair: Ints, x: IntArray, with_bins: bool) -> FloatArray:
        """What is paid; unless ``with_bins``, one value is enough to stand for a bin."""
        if with_bins or self.coarse is None:
            return self.mdp.reward_terms(State(self.endogenous[pair], x), self.action[pair])
        return self.terms_at(pair, x, 0)

    def terms_at(self, pair: Ints, x: IntArray, number: int) -> FloatArray:
        """What is paid where one of the values that stand for each bin has its place."""
        assert self.coarse is not None
        if isinstance(self.mdp, CountedMDP):
            self.mdp.reward_samples += len(pair)
        state = State(self.endogenous[pair], x)
        return self.coarse.reward_terms_at(state, self.action[pair], number)

    def mean(self, terms: FloatArray, with_bins: bool) -> FloatArray:
        """The mean over all values that stand for a bin, which are paid alike."""
        if with_bins or self.coarse is None or self.coarse.num_stand_ins == 1:
            return terms
        return np.mean(np.broadcast_to(terms, (self.coarse.num_stand_ins, *terms.shape)), axis=0)


def coarse_model(mdp: ExoMDP) -> CoarseMDP | None:
    """The model, or that behind one that checks its answers, if it sees some of x in bins."""
    model = mdp.model if isinstance(mdp, CheckedMDP) else mdp
    return model if isinstance(model, CoarseMDP) and model.has_bins else None


def _tables(
    asking: _Asking,
    scopes: Sequence[Scope],
    columns: Sequence[int],
    number: dict[Scope, int],
    *,
    with_bins: bool,
) -> dict[int, FloatArray]:
    """Of some columns of the terms those that pay, (joint values * pairs,)."""
    pairs, sizes = len(asking.action), asking.mdp.exogenous_sizes
    few = max(pairs, FEW_STATES if asking.mdp.is_batched else MANY_STATES)
    tables: dict[int, FloatArray] = {}
    for group in disjoint_scopes({scopes[column]: number[scopes[column]] for column in columns}):
        together = set(group)
        own_columns = {column for column in columns if scopes[column] in together}
        most = max(number[scope] for scope in group)
        x = scope_values(group, np.arange(most), sizes)
        for part in _parts(most * pairs, few, len(sizes)):
            value, pair = np.divmod(np.arange(part.start, part.stop), pairs)
            terms = asking.terms(pair, x[value], with_bins)
            paying = np.flatnonzero((terms != 0).any(axis=0)).tolist()
            for column in own_columns.intersection(paying):
                length = number[scopes[column]] * pairs
                own = terms[: max(0, length - part.start), column]
                if own.any():
                    table = tables.setdefault(column, np.zeros(length))
                    table[part.start : part.start + len(own)] = asking.mean(own, with_bins)
    return tables


def _ever_paying(
    asking: _Asking, coarse: CoarseMDP, scopes: Sequence[Scope], columns: Sequence[int]
) -> list[int]:
    """Those of some columns that pay in some state, as far as many states of chance show.

    Every pair (n, a) is asked about NUM_LOOKS times, and MIN_LOOKS questions are asked. A column
    that pays in a share q of the n, a and values of its variables is overlooked in so many
    questions with probability (1 - q) ** questions.
    """
    pairs, sizes = len(asking.action), asking.mdp.exogenous_sizes
    drawn = np.array(sorted({j for column in columns for j in scopes[column]}))
    rng, paying = np.random.default_rng(0), np.zeros(len(scopes), dtype=np.bool_)
    for part in chunks(max(MIN_LOOKS, NUM_LOOKS * pairs), len(sizes)):
        pair = np.arange(part.start, part.stop) % pairs
        x = np.zeros((len(pair), len(sizes)), dtype=np.int64)
        x[:, drawn] = rng.random((len(pair), len(drawn))) * sizes[drawn]
        chosen = int(rng.integers(coarse.num_stand_ins))
        paying |= (asking.terms_at(pair, x, chosen) != 0).any(axis=0)
    return [column for column in columns if paying[column]]


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
    base: FloatArray,
    terms: dict[Scope, FloatArray],
    terminal: BoolArray,
    sizes: IntArray,
    *,
    in_place: bool = False,
) -> Rewards:
    """From R of all pairs. A terminal state pays nothing, whatever the model says about it.

    With ``in_place`` the terms are written to. Most of what thousands of variables pay is zeros
    that were never written, and takes no memory as long as it is not copied.
    """
    shape, over = (len(terminal), -1), terminal[:, None]
    base = np.where(over, 0.0, base.reshape(shape))
    kept: dict[Scope, FloatArray] = {}
    for scope, table in terms.items():
        shaped = table.reshape(len(table), *shape)
        if in_place:
            shaped[:, terminal] = 0.0
        else:
            shaped = np.where(over, 0.0, shaped)
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
