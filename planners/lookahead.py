"""Backward induction over (steps ahead, n) with forecasts in place of x (DESIGN: large masks).

The reward is a sum over variables and n is small. So the expected reward and the expected move
of each (h, n, a) follow from the forecasts of single variables, and a decision costs
O(horizon * N * A), however many joint values the mask has.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.factored import FactoredMDP
from planners.forecast import Forecasts

Ints = NDArray[np.int64]

#: How many lanes the kernel takes at once, at most: their arithmetic fills the processor's vectors.
TOGETHER = 16


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

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays in the order in which the kernel takes them."""
        return tuple(getattr(self, field.name) for field in fields(self))

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
    return tuple(sorted(paying | set(mdp.moves.dependencies())))


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
    moves = mdp.moves
    lists = []
    for pair in range(mdp.num_endogenous_states * mdp.num_actions):
        rules = []
        for rule in range(moves.rule_starts[pair], moves.rule_starts[pair + 1]):
            start, end = moves.variable_starts[rule : rule + 2]
            looked_at = moves.variables[start:end]
            sizes = tuple(int(moves.sizes[i]) for i in looked_at)
            outcomes: list[Outcome] = []
            first = moves.row_starts[rule]
            for row in range(first, moves.row_starts[rule + 1]):
                start, end = moves.entry_starts[row : row + 2]
                if start == end:
                    continue
                joint = np.unravel_index(row - first, sizes) if sizes else ()
                condition = tuple(
                    atom_of[int(i)] + int(v) for i, v in zip(looked_at, joint, strict=True)
                )
                outcomes += [
                    (int(moves.targets[e]), float(moves.probabilities[e]), condition)
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
    """The best first action of each lane and the values (B, A) of all of them."""
    values = _decide(
        n,
        exogenous,
        forecasts.rows(exogenous),
        forecasts.horizon,
        discount,
        forecasts.tables,
        *programme.arrays,
    )
    return values.argmax(axis=1), values


@njit(cache=True, fastmath=True)
def _decide(
    n: Any,
    x: Any,
    starts: Any,
    horizon: int,
    discount: float,
    tables: Any,
    variables: Any,
    first_atoms: Any,
    base: Any,
    terminal: Any,
    reward_pairs: Any,
    reward_atoms: Any,
    rewards: Any,
    rule_starts: Any,
    outcome_starts: Any,
    targets: Any,
    probabilities: Any,
    atom_starts: Any,
    atoms: Any,
) -> Any:
    num_states, num_pairs = len(terminal), len(base)
    num_actions = num_pairs // num_states
    width = min(TOGETHER, len(n))
    # The last axis of all of these are lanes.
    chances = np.zeros((first_atoms[-1], width))  # of each atom, h steps ahead
    weights = np.zeros((len(targets), width))  # of each outcome
    values = np.zeros((num_pairs + num_states, width))  # of each pair, and of what they share
    best = np.zeros((num_states, width))
    left = np.zeros((3, width))  # what the rules so far passed on; what one rule decides
    out = np.zeros((len(n), num_actions))
    for lane in range(0, len(n), width):
        best[:] = 0.0
        for h in range(horizon, -1, -1):
            _look(h, x[lane : lane + width], starts[lane:], tables, variables, first_atoms, chances)
            _weigh(probabilities, atom_starts, atoms, chances, weights)
            _pay(base, reward_pairs, reward_atoms, rewards, chances, values)
            for state in range(num_states):
                shared = num_pairs + state
                left[0] = discount
                rules = rule_starts[shared], rule_starts[shared + 1]
                _follow(rules, outcome_starts, targets, weights, best, left, 0, values, shared)
                for pair in range(state * num_actions, (state + 1) * num_actions):
                    for k in range(width):
                        left[1, k] = left[0, k]
                        values[pair, k] += values[shared, k]
                    rules = rule_starts[pair], rule_starts[pair + 1]
                    _follow(rules, outcome_starts, targets, weights, best, left, 1, values, pair)
            _choose(terminal, values, best)
        for k in range(min(width, len(n) - lane)):
            first = n[lane + k] * num_actions
            out[lane + k] = values[first : first + num_actions, k]
    return out


@njit(cache=True)
def _look(
    h: int, x: Any, starts: Any, tables: Any, variables: Any, first_atoms: Any, chances: Any
) -> None:
    """The chance of every atom h steps ahead: from the forecasts, or from x itself."""
    for f in range(len(variables)):
        first, size = first_atoms[f], first_atoms[f + 1] - first_atoms[f]
        for k in range(len(x)):
            at = starts[k, f] + (h - 1) * size
            for v in range(size):
                chances[first + v, k] = tables[at + v] if h > 0 else x[k, variables[f]] == v


@njit(cache=True, fastmath=True)
def _weigh(probabilities: Any, atom_starts: Any, atoms: Any, chances: Any, weights: Any) -> None:
    """The chance of every outcome, if its rule is asked."""
    width = weights.shape[1]
    for o in range(len(probabilities)):
        for k in range(width):
            weights[o, k] = probabilities[o]
        for atom in atoms[atom_starts[o] : atom_starts[o + 1]]:
            for k in range(width):
                weights[o, k] *= chances[atom, k]


@njit(cache=True, fastmath=True)
def _pay(
    base: Any, reward_pairs: Any, reward_atoms: Any, rewards: Any, chances: Any, values: Any
) -> None:
    """The expected reward of every pair."""
    width = values.shape[1]
    values[len(base) :] = 0.0
    for pair in range(len(base)):
        for k in range(width):
            values[pair, k] = base[pair]
    for e in range(len(rewards)):
        for k in range(width):
            values[reward_pairs[e], k] += rewards[e] * chances[reward_atoms[e], k]


@njit(cache=True, fastmath=True)
def _follow(
    rules: Any,
    outcome_starts: Any,
    targets: Any,
    weights: Any,
    best: Any,
    left: Any,
    which: int,
    values: Any,
    pair: int,
) -> None:
    """Ask some rules: add to a pair's value what they lead to, leave what they pass on."""
    width = values.shape[1]
    for rule in range(rules[0], rules[1]):
        for k in range(width):
            left[2, k] = 1.0
        for o in range(outcome_starts[rule], outcome_starts[rule + 1]):
            target = targets[o]
            for k in range(width):
                values[pair, k] += left[which, k] * weights[o, k] * best[target, k]
                left[2, k] -= weights[o, k]
        for k in range(width):
            left[which, k] *= left[2, k]


@njit(cache=True)
def _choose(terminal: Any, values: Any, best: Any) -> None:
    """The value of the best action in every state."""
    width = values.shape[1]
    num_actions = (len(values) - len(terminal)) // len(terminal)
    for state in range(len(terminal)):
        for k in range(width):
            best[state, k] = 0.0 if terminal[state] else values[state * num_actions, k]
        if not terminal[state]:
            for pair in range(state * num_actions + 1, (state + 1) * num_actions):
                for k in range(width):
                    best[state, k] = max(best[state, k], values[pair, k])
