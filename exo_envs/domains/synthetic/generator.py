"""Drawing a planted problem: its dynamic Bayes net, and the sites where it pays."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from exo_envs.core.mdp import FloatArray, IntArray
from exo_envs.domains.synthetic.parameters import SyntheticParameters

CHAIN = 5  # variables in a chain of correlated distractors
FAIR = 0.5
#: What a bet is on, by the values of two variables.
Outcomes = tuple[tuple[int, int], tuple[int, int]]
SINGLE: Outcomes = ((0, 0), (1, 1))  # the value of the first, whatever the second
_PAIRS = ("xor", "both")  # what two variables that pay together are bet on


@dataclass(frozen=True, eq=False)
class Node:
    """An exogenous variable of the net, and how its next value comes about.

    With probability ``noise`` it is drawn from ``base``, else it is what the parents call for.
    Every ``base`` is also the stationary distribution of its variable.
    """

    name: str
    role: str
    parents: tuple[str, ...]
    function: IntArray  # (*sizes of the parents): the value that they call for
    noise: float
    base: FloatArray  # (size,)

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.base)

    @property
    def table(self) -> FloatArray:
        """P(x'|parents), shape (*sizes of the parents, size)."""
        called_for = np.eye(self.size)[self.function]
        return (1 - self.noise) * called_for + self.noise * self.base


@dataclass(frozen=True)
class Site:
    """A place where one variable, or two together, pay for having been foreseen."""

    pays: str
    delay: int  # steps from placing a bet to its payoff
    stake: float
    switch: str | None  # turns a bet round if it is 1, one step before the payoff
    partner: str | None = None  # pays together with ``pays``
    #: What a bet is on, by the values of ``pays`` and, if there is one, of ``partner``.
    outcomes: Outcomes = SINGLE

    @property
    def scope(self) -> tuple[str, ...]:
        """The variables that the reward term of the site looks at."""
        return (self.pays,) if self.partner is None else (self.pays, self.partner)

    @property
    def variables(self) -> tuple[str, ...]:
        """What acts here: all that pays, and the switch if there is one."""
        return self.scope if self.switch is None else (*self.scope, self.switch)


@dataclass(frozen=True)
class Problem:
    """An instance: nodes in the order of the model, sites in the order they are visited."""

    nodes: tuple[Node, ...]
    sites: tuple[Site, ...]


def generate(parameters: SyntheticParameters) -> Problem:
    """Draw the instance that ``parameters`` name."""
    # Generators of their own, so that more distractors leave the rest of the instance alone.
    streams = np.random.SeedSequence(parameters.instance).spawn(3)
    core_rng, distractor_rng, order_rng = (np.random.default_rng(s) for s in streams)
    core = _Core(parameters, core_rng)
    sites = tuple(core.site(i) for i in range(parameters.num_paying))
    nodes = core.nodes + list(_distractors(parameters, core.nodes, distractor_rng))
    return Problem(tuple(nodes[i] for i in order_rng.permutation(len(nodes))), sites)


class _Core:
    """Draws what belongs to the right mask, site by site."""

    def __init__(self, parameters: SyntheticParameters, rng: np.random.Generator) -> None:
        self.parameters = parameters
        self.rng = rng
        self.nodes: list[Node] = []

    def site(self, i: int) -> Site:
        """Draw site ``i`` with its paying variable, its switch and the ancestors of both."""
        p, name, on = self.parameters, f"pays_{i}", self._bit()
        pair = _PAIRS[self._bit()] if i < p.num_pairs else None
        # Both on as often as not, unless an XOR drives the first: that is a fair bit.
        pays_chance = FAIR if pair != "both" else FAIR**0.5
        if i >= p.num_paying - p.num_xor_pairs:
            delay = 1
            bits = [self._add_root(f"xor_{i}_{side}", "xor", FAIR, on=1) for side in "ab"]
            self._add(name, "pays", bits, np.array([[on, 1 - on], [1 - on, on]]), FAIR, on)
        elif p.generations == 0:
            delay = 1
            self._add_root(name, "pays", pays_chance, on)
        else:
            delay = p.generations
            ancestries = [(f"{i}_{j}", delay) for j in range(p.parents_per_paying)]
            self._add_child(name, "pays", ancestries, on, pays_chance)
        partner, outcomes = None, SINGLE
        if pair is not None:
            partner = f"partner_{i}"
            outcomes = self._partner(partner, pair, on, min(delay, p.generations), pays_chance)
        switch = f"moves_{i}" if i < p.num_moving else None
        # A bet meets the switch one step before its payoff: so much less needs to be foreseen.
        if switch is not None and delay == 1:
            self._add_root(switch, "moves", FAIR, on=1)
        elif switch is not None:
            self._add_child(switch, "moves", [(switch, delay - 1)], on=1)
        stake = p.stake * self.rng.uniform(0.75, 1.25)
        return Site(name, delay, stake, switch, partner, outcomes)

    def _partner(
        self, name: str, pair: str, first_on: int, generations: int, chance: float
    ) -> Outcomes:
        """Draw the second variable of a pair; return what is bet on, by the values of both."""
        on = self._bit()
        if generations == 0:
            self._add_root(name, "pays", chance, on)
        else:
            self._add_child(name, "pays", [(name, generations)], on, chance)
        first, second = np.ogrid[:2, :2]
        both_on = (first == first_on) & (second == on)
        (a, b), (c, d) = np.where(pair == "xor", first ^ second, both_on).astype(int).tolist()
        return (a, b), (c, d)

    def _add_child(
        self,
        name: str,
        role: str,
        ancestries: list[tuple[str, int]],
        on: int,
        chance: float = FAIR,
    ) -> None:
        """A variable that turns on when all its parents are, each the end of a chain."""
        parents, calls = [], []
        # As many fair bits would hardly ever all be on: these are as often as the variable is.
        each = chance ** (1 / len(ancestries))
        for suffix, generations in ancestries:
            parent, parent_on = self._add_chain(suffix, generations, each)
            parents.append(parent)
            calls.append(np.arange(2) == parent_on)
        all_on = functools.reduce(np.logical_and.outer, calls)
        self._add(name, role, parents, np.where(all_on, on, 1 - on), chance, on)

    def _add_chain(self, suffix: str, generations: int, chance: float) -> tuple[str, int]:
        """A chain of ancestors; returns the youngest, and its value when it is on."""
        name, on = "", 0
        for generation in range(generations, 0, -1):
            elder, elder_on, on = name, on, self._bit()
            role = "parent" if generation == 1 else "grandparent"
            name = f"{'great_' * (generation - 2)}{role}_{suffix}"
            if generation == generations:
                self._add_root(name, role, chance, on)
            else:
                follows = np.where(np.arange(2) == elder_on, on, 1 - on)
                self._add(name, role, [elder], follows, chance, on)
        return name, on

    def _add_root(self, name: str, role: str, chance: float, on: int) -> str:
        self.nodes.append(_root(name, role, _bernoulli(chance, on), self.parameters.persistence))
        return name

    def _add(
        self, name: str, role: str, parents: list[str], function: IntArray, chance: float, on: int
    ) -> None:
        noise = self.parameters.noise * self.rng.uniform(0.5, 1.5)
        base = _bernoulli(chance, on)
        self.nodes.append(Node(name, role, tuple(parents), function, noise, base))

    def _bit(self) -> int:
        return int(self.rng.integers(2))


def _distractors(
    parameters: SyntheticParameters, core: list[Node], rng: np.random.Generator
) -> Iterator[Node]:
    """What does not belong to the right mask."""
    p = parameters
    order: list[int] = []
    while len(order) < p.num_copies:  # every variable is copied before one is copied again
        order += rng.permutation(len(core)).tolist()
    for i in range(p.num_copies):
        yield _follower(f"copy_{i}", "copy", core[order[i]], p.copy_noise, rng)

    sizes = np.geomspace(2, p.noise_size, p.num_noise).round().astype(np.int64)
    for i, size in enumerate(sizes.tolist()):
        yield _root(f"noise_{i}", "noise", np.full(size, 1 / size), p.persistence)

    leader = None
    for i in range(p.num_correlated):
        name, role = f"correlated_{i}", "correlated"
        if leader is None or i % CHAIN == 0:
            size = int(rng.integers(2, 4))
            leader = _root(name, role, np.full(size, 1 / size), p.persistence)
        else:
            leader = _follower(name, role, leader, p.copy_noise, rng)
        yield leader


def _root(name: str, role: str, base: FloatArray, persistence: float) -> Node:
    """A variable that nothing drives: it keeps its value or is drawn anew."""
    if persistence == 0:  # then it does not even depend on itself
        return Node(name, role, (), np.array(0), 1.0, base)
    return Node(name, role, (name,), np.arange(len(base)), 1 - persistence, base)


def _follower(name: str, role: str, leader: Node, noise: float, rng: np.random.Generator) -> Node:
    """A variable that takes the value that another one had."""
    identity = np.arange(leader.size)
    return Node(name, role, (leader.name,), identity, noise * rng.uniform(0.5, 1.5), leader.base)


def _bernoulli(chance: float, on: int) -> FloatArray:
    """The distribution of a bit that has the value ``on`` with probability ``chance``."""
    return np.where(np.arange(2) == on, chance, 1 - chance)
