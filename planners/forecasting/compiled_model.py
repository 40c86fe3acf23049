"""Rewards and decision lists of a model, flattened for the look-ahead.

A *condition* is a conjunction of atoms, and an *atom* says that a variable has some value.
Forecasts give the probability of each atom h steps ahead.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise, repeat, takewhile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.ranges import ROUNDING
from exo_envs.core.arguments import exact, exact_reals, exact_starts
from exo_envs.core.errors import ArgumentError
from planners.core.arrays import Ints, joint_values, starts_of
from planners.forecasting.forecasts import Forecasts
from planners.forecasting.recourse import ActionList, Atom, ChoiceTree, Condition, Outcome
from planners.forecasting.shared_tables import SharedForecasts
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.scopes import scope_shape

#: The largest probability, and what rounding may add.
CERTAIN = 1.0 + ROUNDING
NO_INTS: Ints = np.zeros(0, dtype=np.int64)
NO_REALS: NDArray[np.float32] = np.zeros(0, dtype=np.float32)


class CompiledModel(NamedTuple):
    """Rewards and rules by the conditions under which they apply, and who chooses among them.

    A form of its own because a look-ahead has forecasts and no x: it cannot look up a row, and
    weighs every condition instead, each once. There is a list of rewards and rules for each branch
    of each n (:mod:`planners.forecasting.recourse`), and behind those one for each n: what the
    lists of all its actions begin with. Numbers are kept in the precision of the forecasts.
    """

    forecasts: Ints  # (atoms,): which forecast tells of each atom
    variables: Ints  # (atoms,): the exogenous variable that is forecast
    values: Ints  # (atoms,): the value that the atom speaks of
    strides: Ints  # (atoms,): the number of values of the variable
    terminal: NDArray[np.bool_]  # (N,)
    base: NDArray[np.float32]  # (lists,)
    reward_starts: Ints  # (lists + 1,): the rewards of each list
    reward_atoms: Ints  # (rewards,): the atom that each is paid for
    rewards: NDArray[np.float32]  # (rewards,)
    otherwise: Ints  # (lists,): where a list leads if none of its rules decides
    rule_starts: Ints  # (lists + 1,): the rules of each list
    rule_ends: Ints  # (lists,): where they end, not counting a last rule that always decides
    outcome_starts: Ints  # (rules + 1,): the outcomes of each rule
    targets: Ints  # (outcomes,)
    conditions: Ints  # (outcomes,): the condition of each outcome
    probabilities: NDArray[np.float32]  # (conditions,): of the outcomes, if it holds
    atom_starts: Ints  # (conditions + 1,): the atoms of each condition
    atoms: Ints
    branch_starts: Ints  # (N + 1,): the branches of each n
    node_starts: Ints  # (N + 1,): the nodes of its tree, the root first
    first_leaves: Ints  # (N,): the first of the nodes that have seen everything
    parents: Ints  # (nodes,): counted from the root
    node_observations: Ints  # (nodes,): what was seen there; -1 at a root
    node_branch_starts: Ints  # (nodes + 1,): what can be compared there
    node_branches: Ints  # branches of that n, by their lists
    observation_constants: NDArray[np.float32]  # (observations,)
    observation_signs: NDArray[np.float32]  # (observations,)
    observation_atom_starts: Ints  # (observations + 1,)
    observation_atoms: Ints
    # What several variables pay together; these arrays are empty if there is no such reward, and
    # files from before there were any do not have them.
    joint_reward_starts: Ints = NO_INTS  # (lists + 1,): the rewards of each list
    joint_reward_conditions: Ints = NO_INTS  # (joint rewards,): the condition each is paid for
    joint_rewards: NDArray[np.float32] = NO_REALS  # (joint rewards,)

    def check(self, forecasts: Forecasts | SharedForecasts) -> None:
        """Refuse arrays that do not belong together, such as those of a damaged file.

        Args:
            forecasts: those that tell of the atoms.
        """
        atoms = len(exact("forecasts", self.forecasts, 0, len(forecasts.variables)))
        for name, wanted in (
            ("variables", forecasts.variables[self.forecasts]),
            ("strides", forecasts.sizes[forecasts.variables[self.forecasts]]),
        ):
            if (exact(name, getattr(self, name), length=atoms) != wanted).any():
                raise ArgumentError(f"{name} of the atoms are not those of their forecasts")
        if (exact("values", self.values, length=atoms) >= self.strides).any():
            raise ArgumentError("an atom has a value that its variable does not have")
        states = len(self.terminal)
        if self.terminal.dtype != np.bool_ or self.terminal.shape != (states,) or not states:
            raise ArgumentError("terminal says of each state whether it is one")
        self._check_lists(states, atoms)
        self._check_trees(states, atoms)

    def _check_lists(self, states: int, atoms: int) -> None:
        lists = len(exact_reals("base", self.base))
        exact_starts("branch_starts", self.branch_starts, states, lists - states, at_least=1)
        paid = len(exact("reward_atoms", self.reward_atoms, 0, atoms))
        exact_reals("rewards", self.rewards, (paid,))
        exact_starts("reward_starts", self.reward_starts, lists, paid)
        exact("otherwise", self.otherwise, 0, states + 1, length=lists)
        rules = len(self.outcome_starts) - 1
        exact_starts("rule_starts", self.rule_starts, lists, rules)
        ends = exact("rule_ends", self.rule_ends, length=lists)
        if (ends < self.rule_starts[:-1]).any() or (ends > self.rule_starts[1:]).any():
            raise ArgumentError("rule_ends are not among the rules of their lists")
        outcomes = len(exact("targets", self.targets, 0, states))
        exact_starts("outcome_starts", self.outcome_starts, rules, outcomes)
        conditions = len(exact_reals("probabilities", self.probabilities, low=0.0, high=CERTAIN))
        exact("conditions", self.conditions, 0, conditions, length=outcomes)
        paid = len(exact("joint_reward_conditions", self.joint_reward_conditions, 0, conditions))
        exact_reals("joint_rewards", self.joint_rewards, (paid,))
        if paid or len(exact("joint_reward_starts", self.joint_reward_starts)):
            exact_starts("joint_reward_starts", self.joint_reward_starts, lists, paid)
        exact("atoms", self.atoms, 0, atoms)
        exact_starts("atom_starts", self.atom_starts, conditions, len(self.atoms))

    def _check_trees(self, states: int, atoms: int) -> None:
        nodes = len(self.parents)
        roots = exact_starts("node_starts", self.node_starts, states, nodes, at_least=1)
        leaves = exact("first_leaves", self.first_leaves, length=states)
        if (leaves < roots[:-1]).any() or (leaves >= roots[1:]).any():
            raise ArgumentError("first_leaves are not among the nodes of their trees")
        seen = len(exact_reals("observation_constants", self.observation_constants))
        exact_reals("observation_signs", self.observation_signs, (seen,))
        exact("observation_atoms", self.observation_atoms, 0, atoms)
        own = len(self.observation_atoms)
        exact_starts("observation_atom_starts", self.observation_atom_starts, seen, own)
        above = exact("parents", self.parents, -1)
        observed = exact("node_observations", self.node_observations, -1, seen, length=nodes)
        place = np.arange(nodes) - np.repeat(roots[:-1], np.diff(roots))  # counted from the root
        is_root = place == 0
        if (above >= place).any() or ((above < 0) != is_root).any():
            raise ArgumentError("parents are not nodes before their children")
        if ((observed < 0) != is_root).any():
            raise ArgumentError("node_observations: something is seen at all nodes but the roots")
        exact("node_branches", self.node_branches, 0, int(self.branch_starts[-1]))
        branches = len(self.node_branches)
        exact_starts("node_branch_starts", self.node_branch_starts, nodes, branches)

    @classmethod
    def compile(cls, mdp: FactoredMDP, *, recourse: bool) -> tuple[CompiledModel, CompiledModel]:
        """Take the tables of ``mdp`` apart.

        Returns:
            The model for the decision that is made now, with a branch for each action; and that for
            later ones. The second is the first without ``recourse``.
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
        variable_of = dict(zip(used.tolist(), which.tolist(), strict=True))
        states = [lists[k : k + mdp.num_actions] for k in range(0, len(lists), mdp.num_actions)]
        atoms = {
            "forecasts": which,
            "variables": variables[which],
            "values": used - first_atoms[which],
            "strides": np.diff(first_atoms)[which],
            "terminal": mdp.terminal,
        }
        number = {atom: k for k, atom in enumerate(used.tolist())}
        now = cls(**atoms, **_flatten(list(map(ChoiceTree.blind, states)), shared, number))
        if not recourse:
            return now, now
        sizes = np.diff(first_atoms).tolist()
        trees = [ChoiceTree.seeing(own, variable_of, sizes) for own in states]
        return now, cls(**atoms, **_flatten(trees, shared, number))


def _flatten(
    trees: Sequence[ChoiceTree], shared: Sequence[ActionList], number: Mapping[Atom, int]
) -> dict[str, Any]:
    """All lists and trees in flat arrays, with atoms by their numbers."""
    lists = [branch for tree in trees for branch in tree.branches] + list(shared)
    # What one variable pays, and what several pay together.
    singles = [[entry for entry in own.rewards if len(entry[0]) == 1] for own in lists]
    joints = [[entry for entry in own.rewards if len(entry[0]) > 1] for own in lists]
    paid = list(chain.from_iterable(singles))
    paid_together = list(chain.from_iterable(joints))
    rules = [rule for own in lists for rule in own.rules]
    outcomes = [outcome for rule in rules for outcome in rule]
    needed = chain(
        (outcome[1:] for outcome in outcomes), ((1.0, condition) for condition, _ in paid_together)
    )
    conditions = list(dict.fromkeys(needed))
    numbered = {condition: k for k, condition in enumerate(conditions)}
    # Where a list leads if no rule decides: the target of a last rule that always does.
    nowhere = len(shared)
    otherwise = np.full(len(lists), nowhere, dtype=np.int64)
    for k, own in enumerate(lists):
        if own.rules and [outcome[1:] for outcome in own.rules[-1]] == [(1.0, ())]:
            otherwise[k] = own.rules[-1][0][0]
    rule_starts = starts_of([own.rules for own in lists])
    branch_starts = starts_of([tree.branches for tree in trees])
    nodes = [node for tree in trees for node in tree.nodes]
    seen = list(dict.fromkeys(chain.from_iterable(tree.observations for tree in trees)))
    place = {observation: k for k, observation in enumerate(seen)}
    node_starts = starts_of([tree.nodes for tree in trees])
    in_tree = np.repeat(np.arange(len(trees)), np.diff(node_starts))  # the tree of each node
    return {
        "base": np.array([own.base for own in lists], dtype=np.float32),
        "reward_starts": starts_of(singles),
        "reward_atoms": _ints(number[atom] for (atom,), _ in paid),
        "rewards": np.array([reward for _, reward in paid], dtype=np.float32),
        "otherwise": otherwise,
        "rule_starts": rule_starts,
        "rule_ends": rule_starts[1:] - (otherwise < nowhere),
        "outcome_starts": starts_of(rules),
        "targets": _ints(target for target, _, _ in outcomes),
        "conditions": _ints(numbered[outcome[1:]] for outcome in outcomes),
        "probabilities": np.array([chance for chance, _ in conditions], dtype=np.float32),
        "atom_starts": starts_of([condition for _, condition in conditions]),
        "atoms": _ints(number[atom] for _, condition in conditions for atom in condition),
        "branch_starts": branch_starts,
        "node_starts": node_starts,
        "first_leaves": node_starts[1:] - _ints(tree.num_leaves for tree in trees),
        "parents": _ints(node.parent for node in nodes),
        "node_observations": _ints(
            -1 if node.observation < 0 else place[tree.observations[node.observation]]
            for tree in trees
            for node in tree.nodes
        ),
        "node_branch_starts": starts_of([node.branches for node in nodes]),
        "node_branches": _ints(
            branch_starts[k] + branch
            for k, node in zip(in_tree.tolist(), nodes, strict=True)
            for branch in node.branches
        ),
        "observation_constants": np.array([one.constant for one in seen], dtype=np.float32),
        "observation_signs": np.array([one.sign for one in seen], dtype=np.float32),
        "observation_atom_starts": starts_of([one.atoms for one in seen]),
        "observation_atoms": _ints(number[atom] for one in seen for atom in one.atoms),
        "joint_reward_starts": starts_of(joints) if paid_together else NO_INTS,
        "joint_reward_conditions": _ints(
            numbered[1.0, condition] for condition, _ in paid_together
        ),
        "joint_rewards": np.array([reward for _, reward in paid_together], dtype=np.float32),
    }


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)


def needed_variables(mdp: FactoredMDP) -> tuple[int, ...]:
    """The variables that pay or move the agent: those worth forecasting."""
    paying = {i for scope, table in mdp.scoped_terms.items() if table.any() for i in scope}
    return tuple(sorted(paying | set(mdp.decision_lists.dependencies())))


def _reward_lists(mdp: FactoredMDP, atom_of: dict[int, int]) -> list[list[tuple[Condition, float]]]:
    """For each pair: (condition, reward), those that any action earns first."""
    lists: list[list[tuple[Condition, float]]] = [
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


def _share(lists: list[list[Any]], num_actions: int) -> tuple[list[list[Any]], list[list[Any]]]:
    """What is left of each list, and what the lists of each n's actions begin with alike."""
    shared = []
    for first in range(0, len(lists), num_actions):
        places = zip(*lists[first : first + num_actions], strict=False)
        alike = takewhile(lambda entries: entries.count(entries[0]) == num_actions, places)
        shared.append([entries[0] for entries in alike])
    own = [entries[len(shared[pair // num_actions]) :] for pair, entries in enumerate(lists)]
    return own, shared
