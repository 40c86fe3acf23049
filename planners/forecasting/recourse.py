"""What an agent will have seen before a later decision, and how it may choose then.

A plan that fixes a later action now is worth too little: when the time comes, the agent sees the
variables that its actions look at and chooses accordingly. So the value of a later state is

    E over what is seen of the maximum over actions,    not    the maximum of the expectations.

A :class:`ChoiceTree` says how for one n. Its variables are seen one after another; a *branch* is
what is left of the list of an action once the seen variables are filled in. Values of a variable
that make no difference to any action are one *observation*.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Atom = int
Conjunction = tuple[Atom, ...]  # the atoms that hold together
RuleOutcome = tuple[int, float, Conjunction]  # target, probability, condition
Rules = list[tuple[RuleOutcome, ...]]

#: Joint observations before a decision, at most; the variables beyond that are averaged.
MAX_LEAVES = 16
#: Entries in the lists of an n up to which it is worked out what its actions look at.
MAX_ENTRIES = 4_000


class ActionList(NamedTuple):
    """What an action pays and where it leads, as far as that depends on the action."""

    base: float
    rewards: list[tuple[Conjunction, float]]
    rules: Rules

    def atoms(self) -> Iterator[Atom]:
        for condition, _ in self.rewards:
            yield from condition
        for rule in self.rules:
            for _, _, condition in rule:
                yield from condition


class Observation(NamedTuple):
    """Some values of a variable; its chance is ``constant + sign * (sum over atoms)``."""

    constant: float
    sign: float
    atoms: tuple[Atom, ...]


class ChoiceNode(NamedTuple):
    """Something was seen, after what the parent had seen."""

    parent: int  # number of the node in the tree; -1 for the root
    observation: int  # number of the observation in the tree; -1 for the root
    branches: tuple[int, ...]  # of the actions that look at nothing further


class ChoiceTree(NamedTuple):
    """How the best action at one n depends on what is seen."""

    branches: list[ActionList]
    observations: list[Observation]
    nodes: list[ChoiceNode]  # parents before children; the last ``num_leaves`` have seen everything
    num_leaves: int

    @classmethod
    def blind(cls, lists: Sequence[ActionList]) -> ChoiceTree:
        """The action is chosen before anything is seen: the best one on average."""
        return cls(list(lists), [], [ChoiceNode(-1, -1, tuple(range(len(lists))))], 1)

    @classmethod
    def seeing(
        cls, lists: Sequence[ActionList], variable_of: Mapping[Atom, int], sizes: Sequence[int]
    ) -> ChoiceTree:
        """The action is chosen once the variables that the lists look at are seen.

        If these have too many joint observations, the ones that move the agent are seen, then the
        ones that change rewards most.
        """
        entries = sum(len(own.rewards) + sum(map(len, own.rules)) for own in lists)
        if entries > MAX_ENTRIES or len(lists) < 2:
            return cls.blind(lists)
        groups = _groups(lists, variable_of, sizes)
        looked_at = [{variable_of[atom] for atom in own.atoms()} for own in lists]
        seen: list[int] = []
        for variable in sorted(groups, key=lambda i: (-_spread(lists, groups[i]), i)):
            leaves = math.prod(len(groups[i]) for i in (*seen, variable))
            if leaves <= MAX_LEAVES:
                seen.append(variable)
        # An action is compared as soon as all that it looks at is seen: few variables first.
        seen.sort(key=lambda i: (sum(i in variables for variables in looked_at), i))
        return _grow(lists, looked_at, {i: groups[i] for i in seen}, variable_of)


def _groups(
    lists: Sequence[ActionList], variable_of: Mapping[Atom, int], sizes: Sequence[int]
) -> dict[int, list[tuple[Atom, ...]]]:
    """For each variable its atoms, in groups that do the same.

    If some of its values do nothing, the last group stands for these, and is empty.
    """
    does: dict[Atom, list[Any]] = defaultdict(list)
    for a, own in enumerate(lists):
        for condition, reward in own.rewards:
            for atom in condition:
                others = tuple(other for other in condition if other != atom)
                does[atom].append((a, reward, others) if others else (a, reward))
        for k, rule in enumerate(own.rules):
            for target, chance, condition in rule:
                for atom in condition:
                    others = tuple(other for other in condition if other != atom)
                    does[atom].append((a, k, target, chance, others))
    alike: dict[int, dict[Any, list[Atom]]] = defaultdict(lambda: defaultdict(list))
    for atom, effects in does.items():
        alike[variable_of[atom]][tuple(sorted(effects, key=repr))].append(atom)
    groups = {i: [tuple(sorted(atoms)) for atoms in found.values()] for i, found in alike.items()}
    for i, named in groups.items():
        if sum(map(len, named)) < sizes[i]:
            named.append(())
    return groups


def _spread(lists: Sequence[ActionList], groups: Sequence[tuple[Atom, ...]]) -> float:
    """How much there is to see: infinite for what moves the agent, else rewards at stake."""
    atoms = {atom for group in groups for atom in group}
    for own in lists:
        if any(atoms.intersection(condition) for rule in own.rules for _, _, condition in rule):
            return math.inf
    return max(
        (
            abs(reward)
            for own in lists
            for condition, reward in own.rewards
            if not atoms.isdisjoint(condition)
        ),
        default=0.0,
    )


def _grow(
    lists: Sequence[ActionList],
    looked_at: Sequence[set[int]],
    seen: Mapping[int, list[tuple[Atom, ...]]],
    variable_of: Mapping[Atom, int],
) -> ChoiceTree:
    """The tree in which the ``seen`` variables are seen in this order."""
    order = list(seen)
    tree = ChoiceTree([], [], [], 0)
    known: dict[tuple[int, tuple[int, ...]], int] = {}  # action, what it looks at -> branch

    def branches(level: int, chosen: tuple[int, ...]) -> Iterator[int]:
        """The branches of actions that look at the last of the seen variables, and no further."""
        for a, own in enumerate(lists):
            places = [k for k, i in enumerate(order) if i in looked_at[a]]
            if max(places, default=-1) != level:
                continue
            key = a, tuple(chosen[k] for k in places)
            if key not in known:
                known[key] = len(tree.branches)
                values = {order[k]: set(seen[order[k]][chosen[k]][:1]) for k in places}
                tree.branches.append(_fill_in(own, values, variable_of))
            yield known[key]

    first = {i: sum(len(seen[j]) for j in order[:k]) for k, i in enumerate(order)}
    for i in order:
        others = tuple(atom for group in seen[i][:-1] for atom in group)
        tree.observations.extend(Observation(0.0, 1.0, group) for group in seen[i][:-1])
        tree.observations.append(Observation(1.0, -1.0, others))  # the last group: what is left
    tree.nodes.append(ChoiceNode(-1, -1, tuple(branches(-1, ()))))
    level_nodes: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    for level, i in enumerate(order):
        below = []
        for parent, chosen in level_nodes:
            for group in range(len(seen[i])):
                now = (*chosen, group)
                below.append((len(tree.nodes), now))
                node = ChoiceNode(parent, first[i] + group, tuple(branches(level, now)))
                tree.nodes.append(node)
        level_nodes = below
    return tree._replace(num_leaves=len(level_nodes))


def _fill_in(
    own: ActionList, values: Mapping[int, set[Atom]], variable_of: Mapping[Atom, int]
) -> ActionList:
    """What is left of a list if some variables are known: for each, the atom that is true."""

    def is_open(atom: Atom) -> bool:
        return variable_of[atom] not in values

    def is_true(atom: Atom) -> bool:
        return atom in values.get(variable_of[atom], ())

    base = own.base + sum(
        reward for condition, reward in own.rewards if all(map(is_true, condition))
    )
    rewards = [
        (tuple(filter(is_open, condition)), reward)
        for condition, reward in own.rewards
        if any(map(is_open, condition))
        and all(is_open(atom) or is_true(atom) for atom in condition)
    ]
    rules: Rules = []
    for rule in own.rules:
        left = tuple(
            (target, chance, tuple(filter(is_open, condition)))
            for target, chance, condition in rule
            if all(is_open(atom) or is_true(atom) for atom in condition)
        )
        if left:
            rules.append(left)
        if sum(chance for _, chance, condition in left if not condition) > 1.0 - 1e-12:
            break  # it decides: what comes behind it is never reached
    return ActionList(base, rewards, rules)
