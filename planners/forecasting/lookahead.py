"""Backward induction over (steps ahead, n) with forecasts in place of x.

The reward is a sum over variables and n is small. So the expected reward and the expected move
of each (h, n, a) follow from the forecasts of single variables, and a decision costs
O(horizon * N * A), however many joint values the mask has.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import get_num_threads, njit
from numpy.typing import NDArray

from planners.arrays import Ints
from planners.forecasting.forecasts import Forecasts
from planners.tables.factored_mdp import FactoredMDP

#: How many lanes the kernel takes at once, at most: their arithmetic fills the processor's vectors.
TOGETHER = 32
#: A thread is worth starting for so many.
LANES_PER_THREAD = 64


class _Lists(NamedTuple):
    """A programme as the kernel takes it."""

    forecasts: Any  # (atoms,): the forecast that tells of each atom,
    variables: Any  # (atoms,): its variable,
    values: Any  # (atoms,): the value it speaks of,
    strides: Any  # (atoms,): and how many values there are
    base: Any  # (N * A + N,)
    terminal: Any  # (N,)
    reward_starts: Any  # (N * A + N + 1,): the rewards of each pair
    reward_atoms: Any
    rewards: Any
    otherwise: Any  # (N * A + N,): where a pair leads if none of its rules decides
    rule_starts: Any  # as in the programme
    rule_ends: Any  # (N * A + N,): without a last rule that always decides
    outcome_starts: Any
    targets: Any
    conditions: Any  # (outcomes,): the condition of each outcome
    probabilities: Any  # (conditions,): of outcomes, if it holds
    atom_starts: Any  # (conditions + 1,): its atoms
    atoms: Any


@dataclass(frozen=True)
class Programme:
    """Rewards and moves of a model as lists of (condition, effect), flattened for the kernel.

    A condition is a conjunction of atoms "a forecast variable has this value"; atoms are numbered
    through all values of all ``variables``. Lists belong to pairs ``n * A + a``; what all actions
    of an n share is kept once, under the pair ``N * A + n``.
    """

    variables: Ints  # the exogenous variables that atoms speak of
    first_atoms: Ints  # (variables + 1,): the atom of each variable's value 0
    base: NDArray[np.float64]  # (N * A,)
    terminal: NDArray[np.bool_]  # (N,)
    reward_pairs: Ints  # (rewards,): where each reward is paid
    reward_atoms: Ints  # (rewards,): for what
    rewards: NDArray[np.float64]
    rule_starts: Ints  # (N * A + N + 1,): the rules of each pair
    outcome_starts: Ints  # (rules + 1,): the outcomes of each rule
    targets: Ints  # (outcomes,)
    probabilities: NDArray[np.float64]  # (outcomes,), if the condition holds
    atom_starts: Ints  # (outcomes + 1,): the condition of each outcome
    atoms: Ints

    @cached_property
    def lists(self) -> _Lists:
        """What the kernel takes: atoms that anything looks at, and each condition once."""
        both = np.concatenate([self.reward_atoms, self.atoms])
        used, atoms = np.unique(both, return_inverse=True)
        paid, asked = np.split(atoms, [len(self.reward_atoms)])
        which = np.searchsorted(self.first_atoms, used, side="right") - 1
        parts = [tuple(part.tolist()) for part in np.split(asked, self.atom_starts[1:-1])]
        weighed = list(zip(self.probabilities.tolist(), parts, strict=True))
        conditions = {condition: k for k, condition in enumerate(dict.fromkeys(weighed))}
        # The last outcome of each pair, and whether it is what happens if nothing else does.
        last = self.outcome_starts[self.rule_starts[1:]] - 1
        sure = (
            (self.rule_starts[1:] > self.rule_starts[:-1])
            & (self.outcome_starts[self.rule_starts[1:] - 1] == last)
            & (self.probabilities[last] == 1.0)
            & (self.atom_starts[last] == self.atom_starts[last + 1])
        )
        return _Lists(
            forecasts=which,
            variables=self.variables[which],
            values=used - self.first_atoms[which],
            strides=np.diff(self.first_atoms)[which],
            base=np.append(self.base, np.zeros(len(self.terminal))),
            terminal=self.terminal,
            reward_starts=np.searchsorted(self.reward_pairs, range(len(self.rule_starts))),
            reward_atoms=paid,
            rewards=self.rewards,
            otherwise=np.where(sure, self.targets[last], len(self.terminal)),
            rule_starts=self.rule_starts,
            rule_ends=self.rule_starts[1:] - sure,
            outcome_starts=self.outcome_starts,
            targets=self.targets,
            conditions=np.array([conditions[condition] for condition in weighed]),
            probabilities=np.array([chance for chance, _ in conditions], dtype=np.float64),
            atom_starts=_starts([atoms for _, atoms in conditions]),
            atoms=np.array([a for _, atoms in conditions for a in atoms], dtype=np.int64),
        )

    @classmethod
    def compile(cls, mdp: FactoredMDP) -> Programme:
        """Take the tables of ``mdp`` apart."""
        variables = np.array(needed_variables(mdp), dtype=np.int64)
        first_atoms = np.concatenate([[0], mdp.exogenous_sizes[variables].cumsum()])
        atom_of = dict(zip(variables.tolist(), first_atoms.tolist(), strict=False))
        num_actions = mdp.num_actions
        rewards = _hoist(_reward_lists(mdp, atom_of), num_actions)
        rules = _hoist(_rule_lists(mdp, atom_of), num_actions)
        paid = [(pair, *entry) for pair, entries in enumerate(rewards) for entry in entries]
        flat_rules = [rule for entries in rules for rule in entries]
        outcomes = [outcome for rule in flat_rules for outcome in rule]
        return cls(
            variables=variables,
            first_atoms=first_atoms.astype(np.int64),
            base=mdp.base_reward.reshape(-1),
            terminal=mdp.terminal,
            reward_pairs=np.array([pair for pair, _, _ in paid], dtype=np.int64),
            reward_atoms=np.array([atom for _, atom, _ in paid], dtype=np.int64),
            rewards=np.array([reward for _, _, reward in paid], dtype=np.float64),
            rule_starts=_starts(rules),
            outcome_starts=_starts(flat_rules),
            targets=np.array([target for target, _, _ in outcomes], dtype=np.int64),
            probabilities=np.array([p for _, p, _ in outcomes], dtype=np.float64),
            atom_starts=_starts([condition for _, _, condition in outcomes]),
            atoms=np.array([a for _, _, condition in outcomes for a in condition], dtype=np.int64),
        )


def needed_variables(mdp: FactoredMDP) -> tuple[int, ...]:
    """The variables that pay or move the agent: those worth forecasting."""
    paying = {i for i, table in mdp.terms.items() if table.any()}
    return tuple(sorted(paying | set(mdp.decision_lists.dependencies())))


def _starts(lists: list[Any]) -> Ints:
    return np.concatenate([[0], np.cumsum([len(entries) for entries in lists])]).astype(np.int64)


def _reward_lists(mdp: FactoredMDP, atom_of: dict[int, int]) -> list[list[tuple[int, float]]]:
    """For each pair: (atom, reward), those that any action earns first."""
    lists: list[list[tuple[int, float]]] = [
        [] for _ in range(mdp.num_endogenous_states * mdp.num_actions)
    ]
    for i, table in mdp.terms.items():
        for value, n, a in zip(*np.nonzero(table), strict=True):
            entry = (atom_of[i] + int(value), float(table[value, n, a]))
            lists[n * mdp.num_actions + a].append(entry)
    for first in range(0, len(lists), mdp.num_actions):
        group = lists[first : first + mdp.num_actions]
        common = set.intersection(*map(set, group))
        for entries in group:
            entries.sort(key=lambda entry: (entry not in common, entry))
    return lists


Outcome = tuple[int, float, tuple[int, ...]]  # target, probability, condition


def _rule_lists(mdp: FactoredMDP, atom_of: dict[int, int]) -> list[list[tuple[Outcome, ...]]]:
    """For each pair: its rules, each a tuple of outcomes."""
    given = mdp.decision_lists
    lists = []
    for pair in range(mdp.num_endogenous_states * mdp.num_actions):
        rules = []
        for rule in range(given.rule_starts[pair], given.rule_starts[pair + 1]):
            start, end = given.variable_starts[rule : rule + 2]
            looked_at = given.variables[start:end]
            sizes = tuple(int(given.sizes[i]) for i in looked_at)
            outcomes: list[Outcome] = []
            first = given.row_starts[rule]
            for row in range(first, given.row_starts[rule + 1]):
                start, end = given.entry_starts[row : row + 2]
                if start == end:
                    continue
                joint = np.unravel_index(row - first, sizes) if sizes else ()
                condition = tuple(
                    atom_of[int(i)] + int(v) for i, v in zip(looked_at, joint, strict=True)
                )
                outcomes += [
                    (int(given.targets[e]), float(given.probabilities[e]), condition)
                    for e in range(start, end)
                ]
            if outcomes:
                rules.append(tuple(outcomes))
        lists.append(rules)
    return lists


def _hoist(lists: list[list[Any]], num_actions: int) -> list[list[Any]]:
    """Move what the lists of an n's actions begin with alike to a list behind the others."""
    shared = []
    for first in range(0, len(lists), num_actions):
        group = lists[first : first + num_actions]
        length = 0
        while all(len(entries) > length for entries in group) and all(
            entries[length] == group[0][length] for entries in group
        ):
            length += 1
        shared.append(group[0][:length])
    own = [entries[len(shared[pair // num_actions]) :] for pair, entries in enumerate(lists)]
    return own + shared


def decide(
    programme: Programme,
    forecasts: Forecasts,
    discount: float,
    n: Ints,
    exogenous: Ints,
) -> tuple[Ints, NDArray[np.float64]]:
    """The best first action of each lane and the values (B, A) of all of them.

    Large batches are shared by as many threads as Numba may use (``NUMBA_NUM_THREADS``).
    """
    starts = forecasts.rows(exogenous)

    def part(lanes: slice) -> NDArray[np.float64]:
        lists, tables = programme.lists, forecasts.tables
        decided: NDArray[np.float64] = _decide(
            n[lanes], exogenous[lanes], starts[lanes], forecasts.horizon, discount, tables, lists
        )
        return decided

    workers = min(get_num_threads(), len(n) // LANES_PER_THREAD)
    if workers > 1:
        width = -(-len(n) // (workers * TOGETHER)) * TOGETHER
        parts = [slice(first, first + width) for first in range(0, len(n), width)]
        with ThreadPoolExecutor(workers) as threads:
            values = np.concatenate(list(threads.map(part, parts)))
    else:
        values = part(slice(None))
    return values.argmax(axis=1), values


@njit(cache=True, nogil=True)
def _decide(
    n: Any, x: Any, starts: Any, horizon: int, discount: float, tables: Any, lists: Any
) -> Any:
    num_states, num_lists = len(lists.terminal), len(lists.base)
    num_actions = num_lists // num_states - 1
    width = min(TOGETHER, len(n))
    rules = lists.rule_starts, lists.outcome_starts, lists.conditions
    # The last axis of all of these are lanes.
    chances = np.empty((horizon + 1, len(lists.values), width), np.float32)  # of each atom
    weights = np.empty((len(lists.probabilities), width))  # of each condition
    values = np.empty((num_lists, width))  # of each pair, and of what they share
    moved = np.empty((num_lists, width))  # the value of where their rules lead
    left = np.empty((num_states, width))  # what shared rules pass on
    best = np.empty((num_states + 1, width))  # of each state, and of nowhere
    out = np.empty((len(n), num_actions))
    for lane in range(0, len(n), width):
        last = min(lane + width, len(n))
        atoms = lists.forecasts, lists.variables, lists.values, lists.strides
        _look(x[lane:last], starts[lane:last], tables, *atoms, chances)
        best[:] = 0.0
        for h in range(horizon, -1, -1):
            ahead = chances[h]
            _weigh(lists.probabilities, lists.atom_starts, lists.atoms, ahead, weights)
            _pay(lists.base, lists.reward_starts, lists.reward_atoms, lists.rewards, ahead, values)
            _follow(lists.otherwise, lists.rule_ends, *rules, lists.targets, weights, best, moved)
            _leave(*rules, weights, left)
            _choose(lists.terminal, discount, moved, left, values, best)
        for k in range(last - lane):
            first = n[lane + k] * num_actions
            out[lane + k] = values[first : first + num_actions, k]
    return out


# Kernels look up what is the same for all lanes before each loop over them, and call nothing:
# the loops are then turned into vector instructions.


@njit(cache=True)
def _look(
    x: Any,
    starts: Any,
    tables: Any,
    forecasts: Any,
    variables: Any,
    values: Any,
    strides: Any,
    chances: Any,
) -> None:
    """The chance of every atom h steps ahead: from x itself, or from the forecasts."""
    steps, atoms, width = chances.shape
    at = np.empty(width, np.int64)
    for atom in range(atoms):
        stride = strides[atom]
        for k in range(width):
            lane = min(k, len(x) - 1)
            chances[0, atom, k] = x[lane, variables[atom]] == values[atom]
            at[k] = starts[lane, forecasts[atom]] + values[atom]
        for h in range(1, steps):
            for k in range(width):
                chances[h, atom, k] = tables[at[k]]
                at[k] += stride


@njit(cache=True, fastmath=True)
def _weigh(probabilities: Any, atom_starts: Any, atoms: Any, chances: Any, weights: Any) -> None:
    """The chance of every condition."""
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
def _pay(
    base: Any, reward_starts: Any, reward_atoms: Any, rewards: Any, chances: Any, values: Any
) -> None:
    """The expected reward of every pair, and of what the pairs of a state share."""
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
def _follow(
    otherwise: Any,
    rule_ends: Any,
    rule_starts: Any,
    outcome_starts: Any,
    conditions: Any,
    targets: Any,
    weights: Any,
    best: Any,
    moved: Any,
) -> None:
    """The value of where the rules of every pair lead, the last rule first."""
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
def _leave(rule_starts: Any, outcome_starts: Any, conditions: Any, weights: Any, left: Any) -> None:
    """The chance that the rules which the pairs of a state share do not decide."""
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
def _choose(terminal: Any, discount: float, moved: Any, left: Any, values: Any, best: Any) -> None:
    """The value of every pair, and of the best action in every state."""
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
