"""Rewards and decision lists of a model, flattened for the look-ahead.

A *condition* is a conjunction of atoms, and an *atom* says that a variable has some value.
Forecasts give the probability of each atom h steps ahead.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from itertools import pairwise, repeat, takewhile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planners.arrays import Ints, joint_values, starts_of
from planners.tables import FactoredMDP

Outcome = tuple[int, float, tuple[int, ...]]  # target, probability, condition


class CompiledModel(NamedTuple):
    """The rewards and the rules of all pairs, by the conditions under which they apply.

    A form of its own because a look-ahead has forecasts and no x: it cannot look up a row, and
    weighs every condition instead, each once. Lists belong to pairs ``n * A + a``; what the lists
    of all actions of an n begin with is kept once, under the pair ``N * A + n``.
    """

    forecasts: Ints  # (atoms,): which forecast tells of each atom
    variables: Ints  # (atoms,): the exogenous variable that is forecast
    values: Ints  # (atoms,): the value that the atom speaks of
    strides: Ints  # (atoms,): the number of values of the variable
    base: NDArray[np.float64]  # (N * A + N,)
    terminal: NDArray[np.bool_]  # (N,)
    reward_starts: Ints  # (N * A + N + 1,): the rewards of each pair
    reward_atoms: Ints  # (rewards,): the atom that each is paid for
    rewards: NDArray[np.float64]  # (rewards,)
    otherwise: Ints  # (N * A + N,): where a pair leads if none of its rules decides
    rule_starts: Ints  # (N * A + N + 1,): the rules of each pair
    rule_ends: Ints  # (N * A + N,): where they end, not counting a last rule that always decides
    outcome_starts: Ints  # (rules + 1,): the outcomes of each rule
    targets: Ints  # (outcomes,)
    conditions: Ints  # (outcomes,): the condition of each outcome
    probabilities: NDArray[np.float64]  # (conditions,): of the outcomes, if it holds
    atom_starts: Ints  # (conditions + 1,): the atoms of each condition
    atoms: Ints

    @classmethod
    def compile(cls, mdp: FactoredMDP) -> CompiledModel:
        """Take the tables of ``mdp`` apart."""
        variables = np.array(needed_variables(mdp), dtype=np.int64)
        # Atoms are numbered through all values of all variables; those that matter are kept.
        first_atoms = np.concatenate([[0], mdp.exogenous_sizes[variables].cumsum()])
        atom_of = dict(zip(variables.tolist(), first_atoms.tolist(), strict=False))
        rewards = _share(_reward_lists(mdp, atom_of), mdp.num_actions)
        lists = _share(_rule_lists(mdp, atom_of), mdp.num_actions)
        paid = [entry for entries in rewards for entry in entries]
        rules = [rule for rules in lists for rule in rules]
        outcomes = [outcome for rule in rules for outcome in rule]
        conditions = list(dict.fromkeys(outcome[1:] for outcome in outcomes))
        number = {condition: k for k, condition in enumerate(conditions)}
        atoms = [atom for _, condition in conditions for atom in condition]
        used, renumbered = np.unique(
            np.array([*(atom for atom, _ in paid), *atoms], dtype=np.int64), return_inverse=True
        )
        which = np.searchsorted(first_atoms, used, side="right") - 1
        # Where a pair leads if no rule decides: the target of a last rule that always does.
        nowhere = mdp.num_endogenous_states
        otherwise = np.full(len(lists), nowhere, dtype=np.int64)
        for pair, own in enumerate(lists):
            if own and [outcome[1:] for outcome in own[-1]] == [(1.0, ())]:
                otherwise[pair] = own[-1][0][0]
        rule_starts = starts_of(lists)
        return cls(
            forecasts=which,
            variables=variables[which],
            values=used - first_atoms[which],
            strides=np.diff(first_atoms)[which],
            base=np.append(mdp.base_reward, np.zeros(nowhere)),
            terminal=mdp.terminal,
            reward_starts=starts_of(rewards),
            reward_atoms=renumbered[: len(paid)],
            rewards=np.array([reward for _, reward in paid], dtype=np.float64),
            otherwise=otherwise,
            rule_starts=rule_starts,
            rule_ends=rule_starts[1:] - (otherwise < nowhere),
            outcome_starts=starts_of(rules),
            targets=np.array([target for target, _, _ in outcomes], dtype=np.int64),
            conditions=np.array([number[outcome[1:]] for outcome in outcomes], dtype=np.int64),
            probabilities=np.array([chance for chance, _ in conditions], dtype=np.float64),
            atom_starts=starts_of([condition for _, condition in conditions]),
            atoms=renumbered[len(paid) :],
        )


def needed_variables(mdp: FactoredMDP) -> tuple[int, ...]:
    """The variables that pay or move the agent: those worth forecasting."""
    paying = {i for i, table in mdp.terms.items() if table.any()}
    return tuple(sorted(paying | set(mdp.decision_lists.dependencies())))


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


def _rule_lists(mdp: FactoredMDP, atom_of: dict[int, int]) -> list[list[tuple[Outcome, ...]]]:
    """For each pair: its rules, each a tuple of outcomes."""
    given = mdp.decision_lists

    def outcomes(rule: int) -> Iterator[Outcome]:
        looked_at = given.variables[slice(*given.variable_starts[rule : rule + 2])]
        first_atoms = [atom_of[i] for i in looked_at.tolist()]
        first, last = given.row_starts[rule : rule + 2]
        joint = joint_values(np.arange(last - first), given.sizes[looked_at])
        for row, values in enumerate(joint.tolist(), first):
            entries = slice(*given.entry_starts[row : row + 2])
            condition = tuple(map(operator.add, first_atoms, values))
            said = given.targets[entries].tolist(), given.probabilities[entries].tolist()
            yield from zip(*said, repeat(condition))

    rules = [tuple(outcomes(rule)) for rule in range(len(given.row_starts) - 1)]
    return [[rule for rule in rules[a:b] if rule] for a, b in pairwise(given.rule_starts)]


def _share(lists: list[list[Any]], num_actions: int) -> list[list[Any]]:
    """Move what the lists of an n's actions begin with alike to a list behind the others."""
    shared = []
    for first in range(0, len(lists), num_actions):
        places = zip(*lists[first : first + num_actions], strict=False)
        alike = takewhile(lambda entries: entries.count(entries[0]) == num_actions, places)
        shared.append([entries[0] for entries in alike])
    own = [entries[len(shared[pair // num_actions]) :] for pair, entries in enumerate(lists)]
    return own + shared
