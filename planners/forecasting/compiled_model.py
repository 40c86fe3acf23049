"""Rewards and decision lists of a model, taken apart for the look-ahead.

A look-ahead has forecasts and no x: it cannot look up a row, and weighs conditions instead, each
once. A *condition* is a conjunction of atoms, and an *atom* says that a variable has some value.
There is a list of rewards and rules for each branch of each n
(:mod:`planners.forecasting.recourse`), and behind those one for each n: what the lists of all its
actions begin with. Each record holds what one kernel reads; numbers are kept in the precision of
the forecasts.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise, repeat, takewhile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.ranges import ROUNDING
from exo_envs.core.arguments import check_kind, exact, exact_reals, exact_starts
from exo_envs.core.errors import ArgumentError
from planners.core.arrays import Ints, joint_values, starts_of
from planners.forecasting.forecasts import Forecasts
from planners.forecasting.recourse import ActionList, Atom, ChoiceTree, Conjunction, RuleOutcome
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.indexing import scope_shape
from planners.tables.ragged import Ragged

#: The largest probability, and what rounding may add.
MAX_PROBABILITY = 1.0 + ROUNDING

Singles = NDArray[np.float32]


class Atoms(NamedTuple):
    """Which variable has which value."""

    forecasts: Ints  # (atoms,): which forecast tells of each atom, increasing
    variables: Ints  # (atoms,): the exogenous variable that is forecast
    values: Ints  # (atoms,): the value that the atom speaks of

    def check(self, forecasts: Forecasts) -> None:
        count = len(exact("forecasts", self.forecasts, 0, len(forecasts.variables)))
        told_of = forecasts.variables[self.forecasts]
        if (np.diff(self.forecasts) < 0).any() or (
            exact("variables", self.variables, length=count) != told_of
        ).any():
            raise ArgumentError("variables of the atoms are not those of their forecasts")
        if (exact("values", self.values, length=count) >= forecasts.sizes[told_of]).any():
            raise ArgumentError("an atom has a value that its variable does not have")


class Conditions(NamedTuple):
    """What is weighed by forecasts: conditions, and what is seen before a decision."""

    probabilities: Singles  # (conditions,): of the outcomes, if the condition holds
    atoms: Ragged  # of each condition
    constants: Singles  # (observations,): the chance of one is constant + sign * (sum over atoms)
    signs: Singles  # (observations,)
    observed: Ragged  # the atoms of each observation

    def check(self, atoms: int) -> None:
        exact_reals("probabilities", self.probabilities, low=0.0, high=MAX_PROBABILITY)
        self.atoms.check("the atoms of conditions", len(self.probabilities), 0, atoms)
        exact_reals("constants", self.constants)
        exact_reals("signs", self.signs, (len(self.constants),))
        self.observed.check("the atoms of observations", len(self.constants), 0, atoms)


class Lists(NamedTuple):
    """What the list of each branch pays, and where its rules lead."""

    branch_starts: Ints  # (N + 1,): the branches of each n
    base: Singles  # (lists,)
    paid: Ragged  # the conditions that each list pays for
    rewards: Singles  # beside them
    otherwise: Ints  # (lists,): where a list leads if none of its rules decides
    rule_starts: Ints  # (lists + 1,): the rules of each list
    rule_ends: Ints  # (lists,): where they end, not counting a last rule that always decides
    outcomes: Ragged  # the conditions of the outcomes of each rule
    targets: Ints  # beside them

    def check(self, states: int, conditions: int) -> None:
        lists = len(exact_reals("base", self.base))
        exact_starts("branch_starts", self.branch_starts, states, lists - states, at_least=1)
        self.paid.check("what lists pay for", lists, 0, conditions)
        exact_reals("rewards", self.rewards, self.paid.values.shape)
        exact("otherwise", self.otherwise, 0, states + 1, length=lists)
        rules = len(self.outcomes.starts) - 1
        self.outcomes.check("the outcomes of rules", rules, 0, conditions)
        exact("targets", self.targets, 0, states, length=len(self.outcomes.values))
        exact_starts("rule_starts", self.rule_starts, lists, rules)
        ends = exact("rule_ends", self.rule_ends, length=lists)
        if (ends < self.rule_starts[:-1]).any() or (ends > self.rule_starts[1:]).any():
            raise ArgumentError("rule_ends are not among the rules of their lists")


class Trees(NamedTuple):
    """How each n chooses among its branches, depending on what is seen."""

    terminal: NDArray[np.bool_]  # (N,)
    node_starts: Ints  # (N + 1,): the nodes of its tree, the root first
    first_leaves: Ints  # (N,): the first of the nodes that have seen everything
    parents: Ints  # (nodes,): counted from the root
    observations: Ints  # (nodes,): what was seen there; -1 at a root
    branches: Ragged  # what can be compared at each node, by lists

    def check(self, states: int, branches: int, seen: int) -> None:
        if self.terminal.dtype != np.bool_ or self.terminal.shape != (states,) or not states:
            raise ArgumentError("terminal says of each state whether it is one")
        nodes = len(self.parents)
        roots = exact_starts("node_starts", self.node_starts, states, nodes, at_least=1)
        leaves = exact("first_leaves", self.first_leaves, length=states)
        if (leaves < roots[:-1]).any() or (leaves >= roots[1:]).any():
            raise ArgumentError("first_leaves are not among the nodes of their trees")
        above = exact("parents", self.parents, -1)
        observed = exact("observations", self.observations, -1, seen, length=nodes)
        place = np.arange(nodes) - np.repeat(roots[:-1], np.diff(roots))  # counted from the root
        is_root = place == 0
        if (above >= place).any() or ((above < 0) != is_root).any():
            raise ArgumentError("parents are not nodes before their children")
        if ((observed < 0) != is_root).any():
            raise ArgumentError("observations: something is seen at all nodes but the roots")
        self.branches.check("the branches of nodes", nodes, 0, branches)


class CompiledModel(NamedTuple):
    """All that one step of a look-ahead reads of a model."""

    conditions: Conditions
    lists: Lists
    trees: Trees


class Models(NamedTuple):
    """The model for the decision that is made now, and that for later ones."""

    atoms: Atoms
    now: CompiledModel
    later: CompiledModel

    @classmethod
    def of(cls, mdp: FactoredMDP, *, recourse: bool) -> Models:
        """Take the tables of ``mdp`` apart.

        The model for now has a branch for each action; that for later ones is the same without
        ``recourse``.
        """
        variables = np.array(needed_variables(mdp), dtype=np.int64)
        # Atoms are numbered through all values of all variables; those that matter are kept.
        first_atoms = np.concatenate([[0], mdp.exogenous_sizes[variables].cumsum()])
        atom_of = dict(zip(variables.tolist(), first_atoms.tolist(), strict=False))
        rewards, shared_rewards = _share(_reward_lists(mdp, atom_of), mdp.num_actions)
        rules, shared_rules = _share(_rule_lists(mdp, atom_of), mdp.num_actions)
        base = mdp.base_reward.reshape(-1).tolist()
        lists = [ActionList(*own) for own in zip(base, rewards, rules, strict=True)]
        shared = [ActionList(0.0, *own) for own in zip(shared_rewards, shared_rules, strict=True)]
        used = np.array(sorted({atom for own in (*lists, *shared) for atom in own.atoms()}), int)
        which = np.searchsorted(first_atoms, used, side="right") - 1
        atoms = Atoms(which, variables[which], used - first_atoms[which])
        number = {atom: k for k, atom in enumerate(used.tolist())}
        states = [lists[k : k + mdp.num_actions] for k in range(0, len(lists), mdp.num_actions)]
        now = _flatten(mdp, list(map(ChoiceTree.blind, states)), shared, number)
        if not recourse:
            return cls(atoms, now, now)
        variable_of = dict(zip(used.tolist(), which.tolist(), strict=True))
        sizes = np.diff(first_atoms).tolist()
        trees = [ChoiceTree.seeing(own, variable_of, sizes) for own in states]
        return cls(atoms, now, _flatten(mdp, trees, shared, number))

    def check(self, forecasts: Forecasts) -> None:
        """Refuse models that are not whole, or do not fit together or to these forecasts."""
        check_kind("atoms", self.atoms, Atoms)
        self.atoms.check(forecasts)
        states = len(self.now.trees.terminal)
        for model in (self.now, self.later):
            check_kind("a model", model, CompiledModel)
            conditions, lists, trees = model
            conditions.check(len(self.atoms.values))
            lists.check(states, len(conditions.probabilities))
            trees.check(states, int(lists.branch_starts[-1]), len(conditions.constants))
        if not np.array_equal(self.now.trees.terminal, self.later.trees.terminal):
            raise ArgumentError("the models for now and later are not about the same states")
        lists = self.now.lists
        each = np.diff(lists.branch_starts)
        if (each != each[0]).any() or len(self.now.trees.parents) != states:
            raise ArgumentError(
                "the model for now has a branch for each action, and looks at nothing"
            )


def _flatten(
    mdp: FactoredMDP,
    trees: Sequence[ChoiceTree],
    shared: Sequence[ActionList],
    number: Mapping[Atom, int],
) -> CompiledModel:
    """All lists and trees in flat arrays, with atoms by their numbers."""
    lists = [branch for tree in trees for branch in tree.branches] + list(shared)
    # What one variable pays comes before what several pay together.
    paid = [sorted(own.rewards, key=lambda entry: len(entry[0]) > 1) for own in lists]
    rules = [rule for own in lists for rule in own.rules]
    outcomes = [outcome for rule in rules for outcome in rule]
    needed = chain(
        (outcome[1:] for outcome in outcomes),
        ((1.0, condition) for entries in paid for condition, _ in entries),
    )
    place = {condition: k for k, condition in enumerate(dict.fromkeys(needed))}
    # Where a list leads if no rule decides: the target of a last rule that always does.
    nowhere = len(shared)
    otherwise = np.full(len(lists), nowhere, dtype=np.int64)
    for k, own in enumerate(lists):
        if own.rules and [outcome[1:] for outcome in own.rules[-1]] == [(1.0, ())]:
            otherwise[k] = own.rules[-1][0][0]
    rule_starts = starts_of([own.rules for own in lists])
    branch_starts = starts_of([tree.branches for tree in trees])
    seen = list(dict.fromkeys(chain.from_iterable(tree.observations for tree in trees)))
    seen_at = {observation: k for k, observation in enumerate(seen)}
    nodes = [(k, node) for k, tree in enumerate(trees) for node in tree.nodes]
    node_starts = starts_of([tree.nodes for tree in trees])
    return CompiledModel(
        Conditions(
            probabilities=_singles(chance for chance, _ in place),
            atoms=Ragged.of([[number[atom] for atom in atoms] for _, atoms in place]),
            constants=_singles(one.constant for one in seen),
            signs=_singles(one.sign for one in seen),
            observed=Ragged.of([[number[atom] for atom in one.atoms] for one in seen]),
        ),
        Lists(
            branch_starts=branch_starts,
            base=_singles(own.base for own in lists),
            paid=Ragged.of([[place[1.0, condition] for condition, _ in own] for own in paid]),
            rewards=_singles(reward for own in paid for _, reward in own),
            otherwise=otherwise,
            rule_starts=rule_starts,
            rule_ends=rule_starts[1:] - (otherwise < nowhere),
            outcomes=Ragged.of([[place[outcome[1:]] for outcome in rule] for rule in rules]),
            targets=_ints(target for target, _, _ in outcomes),
        ),
        Trees(
            terminal=mdp.terminal,
            node_starts=node_starts,
            first_leaves=node_starts[1:] - _ints(tree.num_leaves for tree in trees),
            parents=_ints(node.parent for _, node in nodes),
            observations=_ints(
                -1 if node.observation < 0 else seen_at[trees[k].observations[node.observation]]
                for k, node in nodes
            ),
            branches=Ragged.of([branch_starts[k] + _ints(node.branches) for k, node in nodes]),
        ),
    )


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)


def _singles(values: Iterable[float]) -> Singles:
    return np.fromiter(values, dtype=np.float32)


def needed_variables(mdp: FactoredMDP) -> tuple[int, ...]:
    """The variables that pay or move the agent: those worth forecasting."""
    paying = {i for scope, table in mdp.scoped_terms.items() if table.any() for i in scope}
    return tuple(sorted(paying | set(mdp.decision_lists.dependencies())))


def _reward_lists(
    mdp: FactoredMDP, atom_of: dict[int, int]
) -> list[list[tuple[Conjunction, float]]]:
    """For each pair: (condition, reward), those that any action earns first."""
    lists: list[list[tuple[Conjunction, float]]] = [
        [] for _ in range(mdp.num_endogenous_states * mdp.num_actions)
    ]
    for scope, table in mdp.scoped_terms.items():
        values = joint_values(np.arange(len(table)), scope_shape(scope, mdp.exogenous_sizes))
        first_atoms = np.array([atom_of.get(i, 0) for i in scope])
        conditions = [tuple(atoms) for atoms in (values + first_atoms).tolist()]
        for value, n, a in zip(*np.nonzero(table), strict=True):
            entry = (conditions[value], float(table[value, n, a]))
            lists[n * mdp.num_actions + a].append(entry)
    for first in range(0, len(lists), mdp.num_actions):
        group = lists[first : first + mdp.num_actions]
        common = set.intersection(*map(set, group))
        for entries in group:
            entries.sort(key=lambda entry: (entry not in common, entry))
    return lists


def _rule_lists(mdp: FactoredMDP, atom_of: dict[int, int]) -> list[list[tuple[RuleOutcome, ...]]]:
    """For each pair: its rules, each a tuple of outcomes."""
    variables, row_starts, targets, probabilities = mdp.decision_lists.tables
    sizes = mdp.exogenous_sizes

    def outcomes(rule: int) -> Iterator[RuleOutcome]:
        looked_at = variables.piece(rule)
        first_atoms = [atom_of[i] for i in looked_at.tolist()]
        first, last = row_starts[rule : rule + 2]
        joint = joint_values(np.arange(last - first), sizes[looked_at])
        for row, values in enumerate(joint.tolist(), first):
            entries = slice(*targets.starts[row : row + 2])
            condition = tuple(map(operator.add, first_atoms, values))
            said = targets.values[entries].tolist(), probabilities[entries].tolist()
            yield from zip(*said, repeat(condition))

    rules = [tuple(outcomes(rule)) for rule in range(len(row_starts) - 1)]
    starts = mdp.decision_lists.rule_starts
    return [[rule for rule in rules[a:b] if rule] for a, b in pairwise(starts)]


def _share(lists: list[list[Any]], num_actions: int) -> tuple[list[list[Any]], list[list[Any]]]:
    """What is left of each list, and what the lists of each n's actions begin with alike."""
    shared = []
    for first in range(0, len(lists), num_actions):
        places = zip(*lists[first : first + num_actions], strict=False)
        alike = takewhile(lambda entries: entries.count(entries[0]) == num_actions, places)
        shared.append([entries[0] for entries in alike])
    own = [entries[len(shared[pair // num_actions]) :] for pair, entries in enumerate(lists)]
    return own, shared
