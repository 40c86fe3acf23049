"""A sweep of value iteration: V <- R - shift + discount * E[W], over all x or some of them.

It walks through x in C order, like a mileage counter. While the digits up to some variable stay
the same, so do the rewards of those variables and the rows of the rules that look at no other:
only what depends on the digits that have turned is looked up again. W(x, n') = E[V(x', n') | x]
comes from :mod:`~planners.value_iteration.expectation`.

Indices into large arrays are unsigned: see :class:`SuccessorRows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from exo_envs.compiled.functions import INNER, njit
from exo_envs.core.clock import tick
from exo_envs.core.mdp import ExoMDP, IntArray
from planners.core.arrays import Floats, Ints, set_joint_values, subset_index
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.indexing import num_exogenous_states
from planners.tables.ragged import Ragged
from planners.value_iteration.expectation import Expectation, share
from planners.value_iteration.successors import SuccessorRows, successor_rows

#: Values of V that are renewed in one go. In between, the clock is looked at, and threads take
#: turns.
PIECE_VALUES = 1 << 17
ONE = np.uint64(1)


class RewardTables(NamedTuple):
    """The reward tables of all terms; the first one includes the base reward.

    They are in the order of the last variables that they look at.
    """

    scopes: Ragged  # the variables of each term, increasing
    starts: Ints  # (k + 1,)
    tables: Floats  # (joint values, N, A) for each, one after another

    @classmethod
    def of(cls, mdp: FactoredMDP, dtype: Any) -> RewardTables:
        """Lay out the tables of a model; those of a single term stay where they are."""
        tables = list(mdp.scoped_terms.values()) or [np.zeros((1, *mdp.base_reward.shape))]
        scopes = Ragged.of(list(mdp.scoped_terms))
        starts: Ints = np.cumsum([0, *(table.size for table in tables)])
        if len(tables) == 1 and tables[0].dtype == dtype and not mdp.base_reward.any():
            return cls(scopes, starts, np.ascontiguousarray(tables[0]).reshape(-1))
        flat = np.empty(starts[-1], dtype=dtype)
        for k, table in enumerate(tables):
            tick()
            base = mdp.base_reward if k == 0 else np.zeros(1)
            out = flat[starts[k] : starts[k + 1]].reshape(table.shape)
            np.add(table, base, out=out, casting="same_kind")
        return cls(scopes, starts, flat)


class SweepModel(NamedTuple):
    """All that a sweep reads of a model."""

    discount: Any  # of the type of V, like all numbers here
    num_actions: int
    terminal: Any  # (N,)
    sizes: Ints  # (m,) of the exogenous variables
    rewards: RewardTables
    successors: SuccessorRows


class Kept(NamedTuple):
    """The rewards and successor rows of the best actions, for sweeps with these actions fixed.

    Both arrays have no rows where there is no memory for them.
    """

    rewards: Floats  # (X, N)
    rows: Any  # (X, N)


class Sweeps:
    """Sweeps over all states of a model, one after another; threads share each of them.

    Attributes:
        values: V, (X, N); at first zero.
        ranges: the least and the largest change at each x in the last sweep, (2, X).
    """

    def __init__(self, mdp: FactoredMDP, dtype: np.dtype[Any], threads: int = 1) -> None:
        shape = num_exogenous_states(mdp), mdp.num_endogenous_states
        tick()
        rows = successor_rows(mdp.decision_lists, dtype)
        tick()
        model = mdp.num_actions, mdp.terminal, mdp.exogenous_sizes, RewardTables.of(mdp, dtype)
        self.model = SweepModel(dtype.type(mdp.discount), *model, rows)
        self.expectation = Expectation(mdp.exogenous_sizes, mdp.factors, shape[1], dtype)
        self.threads = threads
        self.values: Floats = np.zeros(shape, dtype)
        self.ranges: Floats = np.zeros((2, shape[0]), dtype)
        self.kept = Kept(np.empty((0, shape[1]), dtype), np.empty((0, shape[1]), np.uint32))

    def keep(self) -> None:
        """Keep the rewards and rows of the best actions from the next sweep with these on."""
        shape = self.values.shape
        self.kept = Kept(np.empty(shape, self.values.dtype), np.empty(shape, np.uint32))

    def improve(self, shift: float, actions: IntArray) -> None:
        """A sweep with the best actions, which are written to ``actions``, (X, N)."""
        self._share(sweep, self.model, self.kept, True, shift, actions)

    def follow(self, shift: float, actions: IntArray, changes: Floats) -> None:
        """A sweep with these actions, those of the last sweep with the best ones.

        The changes of V are written to ``changes``, (X, N), if it has rows and the rewards and
        rows of the actions were kept.
        """
        if not len(self.kept.rows):
            self._share(sweep, self.model, self.kept, False, shift, actions)
            return
        rows = self.model.successors
        entries = rows.entry_starts, rows.targets, rows.probabilities
        # Numba recognises plain tuples in a fraction of the time, and a sweep over a small model
        # takes microseconds.
        model = self.model.discount, self.model.terminal, *entries
        self._share(sweep_kept, model, tuple(self.kept), shift, changes)

    def _share(self, kernel: Any, *given: Any) -> None:
        """Renew V by a kernel, some x at a time."""
        *model, shift, written = given
        expected = self.expectation.of(self.values, self.threads)
        height = max(1, PIECE_VALUES // self.values.shape[1])
        arrays = self.values.dtype.type(shift), expected, self.values, written, self.ranges
        share(
            [
                partial(kernel, *model, (first, min(first + height, len(expected))), *arrays)
                for first in range(0, len(expected), height)
            ],
            self.threads,
        )


def action_type(mdp: ExoMDP) -> np.dtype[Any]:
    """The smallest type that holds the actions."""
    return np.min_scalar_type(mdp.num_actions - 1)


def backward_induction(mdp: FactoredMDP, steps: int, dtype: Any = np.float64) -> Iterator[Floats]:
    """V with 0, 1, ... ``steps`` steps left, each of shape (X, N).

    A policy that knows how many steps are left can do better than one that does not, so bounds on
    all policies are made of these values (:mod:`planners.bounds`). The array is overwritten when
    the next one is asked for; copy what is to be kept. The discount may be 1.

    >>> from planners import ReducedMDP
    >>> from exo_envs.domains.grid import GridMDP
    >>> reduced = ReducedMDP.estimate(GridMDP(), ["object"], rng=0)
    >>> [round(float(values.max())) for values in backward_induction(reduced, 2)]
    [0, 100, 100]
    """
    sweeps = Sweeps(mdp, np.dtype(dtype))
    actions = np.zeros(sweeps.values.shape, action_type(mdp))
    yield sweeps.values
    for _ in range(steps):
        sweeps.improve(0.0, actions)
        yield sweeps.values


@njit(cache=True, nogil=True)
def sweep(
    model: Any,
    kept: Any,
    improving: bool,
    some: Any,
    shift: Any,
    expected: Any,
    values: Any,
    actions: Any,
    ranges: Any,
) -> None:
    """Renew V at some x, with the best actions if ``improving``, else with the given ones.

    Args:
        model: a :class:`SweepModel`.
        kept: a :class:`Kept`, overwritten for these x if ``improving``.
        improving: whether to look for the best actions.
        some: the first of these x, and the one after the last.
        shift: what is subtracted from every reward.
        expected: W, shape (X, N).
        values: V, shape (X, N), overwritten for these x; it may be W.
        actions: (X, N), overwritten for these x if ``improving``.
        ranges: the least and the largest change of V at each x, shape (2, X), overwritten for
            these x.
    """
    first, last = some
    sizes, rewards, groups = model.sizes, model.rewards, model.successors.groups
    digits = np.zeros(len(sizes), np.int64)
    rows = np.zeros(len(groups.rules.values), np.uint64)  # of each rule, at the current x
    num_pairs = len(model.terminal) * model.num_actions
    sums = np.empty((max(len(rewards.scopes.starts) - 1, 1), num_pairs), values.dtype)
    new = np.empty(len(model.terminal), values.dtype)
    for x in range(first, last):
        turned = _turn(x, x == first, digits, sizes)
        _find_rows(groups, turned, digits, sizes, rows)
        paid = _add_rewards(rewards, turned, digits, sizes, sums)
        _choose(model, improving, shift, expected[x], paid, rows, actions[x], new)
        if improving and len(kept.rows):
            for n in range(len(new)):
                pair = np.uint64(n * model.num_actions + actions[x, n])
                kept.rewards[x, n] = paid[pair]
                kept.rows[x, n] = rows[model.successors.rule_starts[pair]]
        ranges[0, x], ranges[1, x] = _renew(values[x], new)


@njit(cache=True, nogil=True)
def sweep_kept(
    model: Any,
    kept: Any,
    some: Any,
    shift: Any,
    expected: Any,
    values: Any,
    changes: Any,
    ranges: Any,
) -> None:
    """The same with the kept actions, which is faster.

    The changes of V are written to ``changes``, shape (X, N), unless that has no rows.
    """
    first, last = some
    discount, terminal, entry_starts, targets, probabilities = model
    rewards, rows = kept
    recording = len(changes) > 0
    new = np.empty(len(terminal), values.dtype)
    for x in range(first, last):
        w, own_rewards, own_rows = expected[x], rewards[x], rows[x]
        for n in range(len(terminal)):
            new[n] = 0
            if not terminal[n]:
                value = _mean(own_rows[n], w, entry_starts, targets, probabilities)
                new[n] = own_rewards[n] + discount * value - shift
        v = values[x]
        if recording:
            record = changes[x]
            for n in range(len(new)):
                record[n] = new[n] - v[n]
        ranges[0, x], ranges[1, x] = _renew(v, new)


@njit(**INNER)
def _choose(
    model: Any, improving: bool, shift: Any, w: Any, rewards: Any, rows: Any, actions: Any, new: Any
) -> None:
    """The new V of all states of one x, given the rewards and rows at x.

    Either with the best actions, which are written down, or with the given ones.
    """
    discount, num_actions, terminal, _, _, successors = model
    rule_starts, _, entry_starts, targets, probabilities, left = successors
    several = len(rows) >= len(rule_starts)  # some pair has several rules
    for n in range(len(terminal)):
        best = -new.dtype.type(np.inf)
        best_action = 0
        first, last = (0, num_actions) if improving else (actions[n], actions[n] + 1)
        pair = np.uint64(n * num_actions + first)
        for a in range(first, first if terminal[n] else last):
            row = rows[rule_starts[pair]] if several else rows[pair]
            mean = _mean(row, w, entry_starts, targets, probabilities)
            if several:
                mean += _rest(
                    pair, w, rows, rule_starts, entry_starts, targets, probabilities, left
                )
            value = rewards[pair] + discount * mean
            pair += ONE
            # Without branches: which action is better is hard to predict.
            better = value > best
            best_action = a if better else best_action
            best = value if better else best
        new[n] = 0 if terminal[n] else best - shift
        actions[n] = best_action


@njit(cache=True, inline="always")
def _mean(row: Any, w: Any, entry_starts: Any, targets: Any, probabilities: Any) -> Any:
    """The mean of W(x, n') over one row of successors."""
    total = w.dtype.type(0)
    entry, stop = entry_starts[row], entry_starts[row + ONE]
    while entry < stop:
        total += probabilities[entry] * w[targets[entry]]
        entry += ONE
    return total


@njit(**INNER)
def _rest(
    pair: Any,
    w: Any,
    rows: Any,
    rule_starts: Any,
    entry_starts: Any,
    targets: Any,
    probabilities: Any,
    left: Any,
) -> Any:
    """What the rules of a pair after the first one add to the mean of W(x, n')."""
    total = w.dtype.type(0)
    rule = rule_starts[pair]
    passed = left[rows[rule]]
    rule += ONE
    while passed > 0 and rule < rule_starts[pair + ONE]:
        total += passed * _mean(rows[rule], w, entry_starts, targets, probabilities)
        passed *= left[rows[rule]]
        rule += ONE
    return total


# Without NaN the extremes of several numbers are found at once. There is none: finite numbers are
# added up, and V that grows beyond all bounds is seen by its size.
@njit(**INNER, fastmath={"nnan", "nsz"})
def _renew(v: Any, new: Any) -> Any:
    """Overwrite V at one x: the least and the largest change."""
    least = v.dtype.type(np.inf)
    largest = -least
    for n in range(len(new)):
        change = new[n] - v[n]
        v[n] = new[n]
        least, largest = min(least, change), max(largest, change)
    return least, largest


@njit(cache=True, inline="always")
def _turn(x: int, start: bool, digits: Any, sizes: Any) -> Any:
    """Set the digits of x, given those of x - 1, and return the first that changed."""
    if start:
        set_joint_values(x, sizes, digits)
        return -1
    i = len(sizes) - 1
    while digits[i] + 1 == sizes[i]:
        digits[i] = 0
        i -= 1
    digits[i] += 1
    return i


@njit(**INNER)
def _find_rows(groups: Any, turned: int, digits: Any, sizes: Any, rows: Any) -> None:
    """The current row of each rule, unless nothing that it looks at has changed."""
    variables, variable_starts = groups.variables
    rules, starts = groups.rules
    for group in range(len(groups.row_starts)):
        first, last = variable_starts[group], variable_starts[group + 1]
        newest = -1 if first == last else variables[last - 1]
        if newest < turned:
            continue
        value = subset_index(digits, variables, first, last, sizes)
        start, size = starts[group], starts[group + 1] - starts[group]
        place = groups.row_starts[group] + value * size
        for k in range(size):
            rows[rules[start + k]] = groups.rows[place + k]


@njit(**INNER)
def _add_rewards(rewards: Any, turned: int, digits: Any, sizes: Any, sums: Any) -> Any:
    """R(x, n, a) for all pairs: the sum of the tables at the current digits.

    ``sums[k]`` holds the sum of the tables up to that of the k-th term.
    """
    variables, scopes = rewards.scopes
    starts, tables = rewards.starts, rewards.tables
    size = sums.shape[1]
    if len(scopes) == 1:
        return tables[:size]
    place = starts[0] + subset_index(digits, variables, scopes[0], scopes[1], sizes) * size
    total = tables[place : place + size]
    for k in range(1, len(scopes) - 1):
        if variables[scopes[k + 1] - 1] >= turned:
            value = subset_index(digits, variables, scopes[k], scopes[k + 1], sizes)
            place = starts[k] + value * size
            term = tables[place : place + size]
            out = sums[k]
            for i in range(size):
                out[i] = total[i] + term[i]
        total = sums[k]
    return total
