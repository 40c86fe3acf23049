"""Rewards and terminal states of a model, as tables over the surveyed n.

A model that tells its terms R^i(n, x^i, a) is asked once for each value, which is exact: terms are
functions, not distributions. So it is for terms that look at several variables
(``ExoMDP.reward_scopes``), once for each joint value of these.

A black box tells a total reward only. It is taken to be a sum of terms of one variable each, or of
few that pay together, and taken apart by changing variables.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, NoReturn

import numpy as np

from exo_envs.core.arguments import check_choice
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray, IntArray, State
from planners.core.arrays import Ints, chunks, joint_values
from planners.reduced.questions import draw_probes, find_relevant
from planners.samples.rollouts import ExogenousData
from planners.tables.indexing import Scope, in_order, refuse_large_scope, scope_rows, scope_shape

Reward = Literal["terms", "total"]

#: Values of x with which every n is asked whether it is terminal.
NUM_PROBES = 32
#: Rewards that differ by a smaller share of their size are the same.
TOLERANCE = 1e-9
#: Values of x in which the terms of a total reward are looked for.
NUM_BASES = 4
#: Values of x in which it is checked that the terms add up to the reward.
NUM_CHECKED = 16
#: Values of each of two variables with which it is tried whether they pay together.
NUM_TRIED = 6
#: Values of a term that may be its zero; if there are more, the most frequent ones are looked at.
MAX_ZEROS = 512
#: Names that an error lists at most.
MAX_SHOWN = 8


class EndDependsOnExogenousError(ArgumentError):
    """Whether an episode is over cannot be told from n alone."""


class Rewards(NamedTuple):
    """R(n, a), and what pays by its scope, in the order of the last variable of each."""

    base_reward: FloatArray  # (S, A)
    scoped_terms: dict[Scope, FloatArray]  # (joint values, S, A) each


def check_reward(reward: str) -> None:
    check_choice("kind of reward", reward, ("terms", "total"))


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


def find_rewards(
    mdp: ExoMDP,
    endogenous: IntArray,
    terminal: BoolArray,
    data: ExogenousData,
    rng: np.random.Generator,
    kind: Reward,
) -> Rewards:
    """The tables from what the model tells: its terms, or a total reward only."""
    if kind == "terms":
        return reward_terms(mdp, endogenous, terminal)
    return total_rewards(mdp, endogenous, terminal, data, rng)


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
    actions, sizes = mdp.num_actions, mdp.exogenous_sizes
    pairs = len(endogenous) * actions
    n, action = np.divmod(np.arange(pairs), actions)
    scopes = [tuple(sorted(scope)) for scope in mdp.scope_indices]
    for scope in scopes:
        refuse_large_scope(scope, mdp.exogenous_names, sizes, pairs)
    number = {scope: math.prod(scope_shape(scope, sizes)) for scope in scopes}
    tables: dict[int, FloatArray] = {}  # column of the terms -> (joint values * pairs,)
    for group in disjoint_scopes(number):
        together, most = set(group), max(number[scope] for scope in group)
        own_columns = {column for column, scope in enumerate(scopes) if scope in together}
        x = scope_values(group, np.arange(most), sizes)
        for part in chunks(most * pairs, len(sizes)):
            value, pair = np.divmod(np.arange(part.start, part.stop), pairs)
            terms = mdp.reward_terms(State(endogenous[n[pair]], x[value]), action[pair])
            paying = np.flatnonzero((terms != 0).any(axis=0)).tolist()
            for column in own_columns.intersection(paying):
                length = number[scopes[column]] * pairs
                own = terms[: max(0, length - part.start), column]
                if own.any():
                    table = tables.setdefault(column, np.zeros(length))
                    table[part.start : part.start + len(own)] = own
    scoped: dict[Scope, FloatArray] = {}
    for column in sorted(tables):
        scope, table = scopes[column], tables.pop(column).reshape(-1, pairs)
        scoped[scope] = scoped[scope] + table if scope in scoped else table
    base = mdp.endogenous_reward(endogenous[n], action)
    return _as_rewards(base, scoped, terminal, sizes)


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


def _as_rewards(
    base: FloatArray, terms: dict[Scope, FloatArray], terminal: BoolArray, sizes: IntArray
) -> Rewards:
    """From R of all pairs. A terminal state pays nothing, whatever the model says about it.

    The terms are written to. Most of what thousands of variables pay is zeros that were never
    written, and takes no memory as long as it is not copied.
    """
    shape = len(terminal), -1
    base = np.where(terminal[:, None], 0.0, base.reshape(shape))
    kept: dict[Scope, FloatArray] = {}
    for scope, table in terms.items():
        shaped = table.reshape(len(table), *shape)
        shaped[:, terminal] = 0.0
        needed, paid = _needed(scope, shaped, sizes)
        if not needed:
            base = base + paid[0]
        elif paid.any():
            kept[needed] = kept[needed] + paid if needed in kept else paid
    return Rewards(base, in_order(kept))


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


def total_rewards(
    mdp: ExoMDP,
    endogenous: IntArray,
    terminal: BoolArray,
    data: ExogenousData,
    rng: np.random.Generator,
) -> Rewards:
    """The tables from ``mdp.reward`` alone.

    The variables that pay at (n, a) are found by group tests; the term of one is the difference
    that it makes, value by value, to the reward in a state from the rollouts. If that depends on
    the state, it is found out which other variables it depends on, and variables that depend on
    each other have one term together. Then it is checked that the terms add up to the reward in
    other states of the rollouts.

    What a sum leaves open is where each term has its zero. The zeros are chosen, from the amounts
    that occur, so that R(n, a) is as near to zero as can be; if several choices are, those amounts
    that are most frequent in the rollouts. So not to pay is nothing, and to pay or to cost is
    something; with ``ignored_rewards="zero"`` a variable that is left out of a mask counts as if it
    did neither. Averages of ignored terms do not depend on where the zeros are.

    Raises:
        TooLargeError: variables that pay together have too many joint values.
        ValueError: the difference that variables make depends on others, and it is not found on
            which.
    """
    box = _BlackBox(mdp, endogenous, terminal, data, rng)
    base, terms = box.add_up(box.scopes(i for i in box.paying if _depends(box.single[i])))
    if box.is_wrong(base, terms):  # what one pays depends on others, and not in the bases
        base, terms = box.add_up(box.scopes(box.paying))
        if box.is_wrong(base, terms):
            _refuse_sum(mdp, box.paying)
    return _as_rewards(_choose_zeros(base, terms, data), terms, terminal, data.sizes)


class _BlackBox:
    """What is asked of a model that tells a total reward only.

    Attributes:
        pays: whether a pair (n, a) pays by each variable, shape (pairs, m).
        paying: the variables that pay.
        pairs_of: where each of them does.
        single: what each of them pays, see :meth:`differences`.
    """

    def __init__(
        self,
        mdp: ExoMDP,
        endogenous: IntArray,
        terminal: BoolArray,
        data: ExogenousData,
        rng: np.random.Generator,
    ) -> None:
        self.mdp, self.endogenous, self.data, self.sizes = mdp, endogenous, data, data.sizes
        self.everything = np.arange(len(endogenous) * mdp.num_actions)
        self.alive = self.everything[~np.repeat(terminal, mdp.num_actions)]
        self.pays = find_relevant(
            self._differ, len(self.everything), data, rng, questions=self.alive
        )
        self.bases = data.sample(NUM_BASES, rng)
        # What the bases pay at all pairs, (bases, pairs).
        self.amounts = np.stack([self.reward(self.everything, x) for x in self.bases])
        self.paying = np.flatnonzero(self.pays.any(axis=0)).tolist()
        self.pairs_of = {i: np.flatnonzero(self.pays[:, i]) for i in self.paying}
        self.single = {i: self.differences((i,), pairs) for i, pairs in self.pairs_of.items()}

    def reward(self, pairs: Ints, x: IntArray) -> FloatArray:
        """What is paid at some pairs, for one x or one x each."""
        n, action = np.divmod(pairs, self.mdp.num_actions)
        x, out = np.broadcast_to(x, (len(pairs), len(self.sizes))), np.empty(len(pairs))
        for part in chunks(len(pairs), len(self.sizes)):
            state = State(self.endogenous[n[part]], np.ascontiguousarray(x[part]))
            out[part] = self.mdp.reward(state, action[part])
        return out

    def _differ(self, pairs: Ints, x: IntArray, y: IntArray, seed: int) -> BoolArray:
        del seed  # rewards are functions of the state
        first, second = self.reward(pairs, x), self.reward(pairs, y)
        return np.abs(first - second) > TOLERANCE * (1 + np.abs(first) + np.abs(second))

    def differences(self, scope: Scope, pairs: Ints) -> FloatArray:
        """What each joint value pays more than the first: (bases, joint values, pairs)."""
        shape = scope_shape(scope, self.sizes)
        out = np.empty((NUM_BASES, math.prod(shape), len(pairs)))
        for value, own in enumerate(joint_values(np.arange(math.prod(shape)), shape)):
            for b, x in enumerate(self.bases):
                changed = x.copy()
                changed[list(scope)] = own
                out[b, value] = self.reward(pairs, changed) - self.amounts[b, pairs]
        out -= out[:, :1].copy()  # of the first value: the same whatever the base is
        return out

    def scopes(self, coupled: Iterable[int]) -> list[Scope]:
        """The variables that pay in groups, such that each pays apart from the other groups.

        Args:
            coupled: the variables of which it is found out what they pay together with.
        """
        group = {i: {i} for i in self.paying}
        for i in coupled:
            for j in self.paying:
                if j not in group[i] and self._pay_together(i, j):
                    group[i] |= group[j]
                    for member in group[j]:
                        group[member] = group[i]
        return sorted({tuple(sorted(members)) for members in group.values()})

    def _pay_together(self, i: int, j: int) -> bool:
        """Whether the difference that variable i makes depends on variable j."""
        pairs = self.pairs_of[i]
        tried = [
            np.linspace(0, self.sizes[k] - 1, min(int(self.sizes[k]), NUM_TRIED)).astype(np.int64)
            for k in (i, j)
        ]
        for x in self.bases:
            paid = np.empty((len(tried[1]), len(tried[0]), len(pairs)))
            for (a, first), (b, second) in itertools.product(*map(enumerate, tried)):
                changed = x.copy()
                changed[[i, j]] = first, second
                paid[b, a] = self.reward(pairs, changed)
            if _depends(paid - paid[:, :1]):
                return True
        return False

    def add_up(self, scopes: Sequence[Scope]) -> tuple[FloatArray, dict[Scope, FloatArray]]:
        """R(n, a) and the terms of these scopes: they add up to the reward in the first base."""
        terms: dict[Scope, FloatArray] = {}
        for scope in scopes:
            refuse_large_scope(scope, self.mdp.exogenous_names, self.sizes, len(self.everything))
            pairs = np.flatnonzero(self.pays[:, list(scope)].any(axis=1))
            found = self.single[scope[0]] if len(scope) == 1 else self.differences(scope, pairs)
            if _depends(found):
                _refuse_sum(self.mdp, scope)
            terms[scope] = np.zeros((found.shape[1], len(self.everything)))
            terms[scope][:, pairs] = found[0]
        return self.amounts[0] - self._paid(terms, self.bases[0]), terms

    def _paid(self, terms: dict[Scope, FloatArray], x: IntArray) -> FloatArray | int:
        """What terms pay for one x at all pairs."""
        return sum(table[scope_rows(scope, x, self.sizes)] for scope, table in terms.items())

    def is_wrong(self, base: FloatArray, terms: dict[Scope, FloatArray]) -> bool:
        """Whether they do not add up to the reward elsewhere in the rollouts."""
        rng = np.random.default_rng([self.data.seed, len(self.paying)])
        for x in self.data.sample(NUM_CHECKED, rng):
            found = (base + self._paid(terms, x))[self.alive]
            if _depends(np.stack([found, self.reward(self.alive, x)])):
                return True
        return False


def _choose_zeros(
    base: FloatArray, terms: dict[Scope, FloatArray], data: ExogenousData
) -> FloatArray:
    """Shift each term, in place, and R(n, a) against it; gives the new R(n, a)."""
    for scope, table in terms.items():
        rows = scope_rows(scope, data.values[:, :-1], data.sizes)
        weights = np.bincount(rows.reshape(-1), minlength=len(table))
        rounded = table.round(9)
        tried = np.arange(len(table))
        if len(table) > MAX_ZEROS:
            tried = np.sort(np.argsort(-weights, kind="stable")[:MAX_ZEROS])
        often = np.stack([weights @ (rounded == amount) for amount in rounded[tried]])
        usual = np.take_along_axis(table, tried[often.argmax(axis=0)][None], axis=0)[0]
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


def _depends(differences: FloatArray) -> bool:
    """Whether differences are not the same for all of the first axis."""
    spread = np.abs(differences - differences[:1]).max(initial=0.0)
    return bool(spread > 1e-6 * (1 + np.abs(differences).max(initial=0.0)))


def _refuse_sum(mdp: ExoMDP, variables: Sequence[int]) -> NoReturn:
    names = ", ".join(repr(mdp.exogenous_names[i]) for i in variables[:MAX_SHOWN])
    if len(variables) > MAX_SHOWN:
        names += f" and {len(variables) - MAX_SHOWN} more"
    pay = "pays" if len(variables) == 1 else "pay"
    raise ArgumentError(
        f"what {names} {pay} depends on other exogenous variables, and it was not found on which; "
        "let the model say which variables each reward term looks at (reward_terms with "
        "reward_scopes), and use reward='terms'"
    )
