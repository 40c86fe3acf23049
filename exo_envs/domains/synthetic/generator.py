"""Drawing a planted problem: its dynamic Bayes net, and the sites where it pays.

There are two kinds of nets. One has variables of few values, mostly bits. The other has real ones:
behind the value of each is a *latent* value, a strictly increasing function of it, which is a
standard normal number in the long run. That net is one of latent values, so that everything about
it can be said in closed form; which values are shown is a matter of each variable.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from exo_envs.core.mdp import FloatArray, IntArray, Variable
from exo_envs.domains.synthetic.parameters import (
    PlantedParameters,
    RealSyntheticParameters,
    SyntheticParameters,
)

CHAIN = 5  # variables in a chain of correlated distractors
FAIR_CHANCE = 0.5
MOST_PERSISTENT = 0.95
#: What a bet is on, by the values of two bits.
Outcomes = tuple[tuple[int, int], tuple[int, int]]
FIRST: Outcomes = ((0, 0), (1, 1))  # the value of the first, whatever the second
#: What the parents z_1, z_2 ... of a real variable call for, before noise.
#: "sum": a weighted sum of them.
#: "all high": high if every one is above ``threshold`` (of its own sign), low if not.
#: "signs": high if both have the same sign, low if not.
#: "size and sign": as far from 0 as the first, on the side of the second.
Rule = Literal["sum", "all high", "signs", "size and sign"]
#: How a site pays, by the latent values of its variable, or of both its variables.
Payoff = Literal["high", "height", "both high", "same side", "product"]


@dataclass(frozen=True)
class PlantedNode:
    name: str
    role: str
    parents: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Node(PlantedNode):
    """A variable of few values, and how its next value comes about.

    With probability ``noise`` it is drawn from ``base``, else it is what the parents call for.
    Every ``base`` is also the stationary distribution of its variable.
    """

    function: IntArray  # (*sizes of the parents): the value that they call for
    noise: float
    base: FloatArray  # (size,)

    @property
    def size(self) -> int:
        return len(self.base)

    @property
    def table(self) -> FloatArray:
        """P(x'|parents), shape (*sizes of the parents, size)."""
        called_for = np.eye(self.size)[self.function]
        return (1 - self.noise) * called_for + self.noise * self.base


@dataclass(frozen=True)
class RealNode(PlantedNode):
    """A variable with a latent value, and how its next value comes about.

    By "sum" and "size and sign" the next latent value is ``strength`` times what the parents call
    for, plus normal noise that makes the variance 1. By the other rules it is a normal number with
    the sign that the parents call for, or with any sign with probability 1 - ``strength``.
    """

    variable: Variable
    location: float  # of an unbounded variable: the value where the latent one is 0
    scale: float  # of an unbounded variable: the value at 1, less the value at 0
    rule: Rule
    weights: tuple[float, ...]  # of the parents
    strength: float


@dataclass(frozen=True)
class Site:
    """A place where one variable, or two together, pay for having been foreseen."""

    pays: str
    delay: int  # steps from placing a bet to its payoff
    stake: float
    switch: str | None  # turns a bet round if it is on, one step before the payoff
    partner: str | None = None  # pays together with ``pays``
    #: What a bet is on, by the values of ``pays`` and, if there is one, of ``partner``.
    outcomes: Outcomes = FIRST
    #: How it pays instead if its variables have latent values.
    payoff: Payoff = "high"
    threshold: float = 0.0  # a switch with a latent value is on if that is above this

    @property
    def scope(self) -> tuple[str, ...]:
        """The variables that the reward term of the site looks at."""
        return (self.pays,) if self.partner is None else (self.pays, self.partner)

    @property
    def variables(self) -> tuple[str, ...]:
        """What acts here: all that pays, and the switch if there is one."""
        return self.scope if self.switch is None else (*self.scope, self.switch)


P = TypeVar("P", bound=PlantedParameters)
N = TypeVar("N", bound=PlantedNode)


class Generator(ABC, Generic[P, N]):
    """Draws variables, and keeps them as ``nodes``."""

    def __init__(self, parameters: P, rng: np.random.Generator) -> None:
        self.parameters = parameters
        self.rng = rng
        self.nodes: list[N] = []

    @classmethod
    def generate(cls, parameters: P) -> tuple[tuple[N, ...], tuple[Site, ...]]:
        """The nodes of an instance in the model's order, and its sites as they are visited."""
        # Generators of their own, so that more distractors leave the rest of the instance alone.
        streams = np.random.SeedSequence(parameters.instance).spawn(3)
        core_rng, distractor_rng, order_rng = (np.random.default_rng(s) for s in streams)
        core = cls(parameters, core_rng)
        sites = tuple(core.site(i) for i in range(parameters.num_paying))
        others = cls(parameters, distractor_rng)
        others.add_distractors(core.nodes)
        nodes = core.nodes + others.nodes
        return tuple(nodes[i] for i in order_rng.permutation(len(nodes))), sites

    # --- what a kind of net writes ----------------------------------------------------------

    @abstractmethod
    def site(self, i: int) -> Site:
        """Draw site ``i`` with what pays and what moves there, and the ancestors of both."""

    @abstractmethod
    def add_root(self, name: str, role: str, how: Any) -> None:
        """A variable that nothing drives but its own past."""

    @abstractmethod
    def add_child(self, name: str, role: str, parents: list[str], how: Any) -> None:
        """A variable that follows its parents."""

    @abstractmethod
    def ancestor(self, how: Any, parents: int) -> Any:
        """How one of so many ancestries of a variable is drawn that is itself drawn ``how``."""

    @abstractmethod
    def add_free(self, role: str, i: int) -> None:
        """Distractor ``i`` of a role, which depends on nothing but itself."""

    @abstractmethod
    def add_follower(self, role: str, i: int, leader: N) -> None:
        """Distractor ``i`` of a role, which takes on what another variable was."""

    # --- what follows from it ---------------------------------------------------------------

    def add_family(
        self, name: str, role: str, ancestries: list[str], generations: int, how: Any
    ) -> None:
        """A variable whose parents are the youngest of a chain of ancestors each."""
        parents = []
        for suffix in ancestries if generations else ():
            youngest: list[str] = []
            for generation in range(generations, 0, -1):
                own = "parent" if generation == 1 else "grandparent"
                ancestor = f"{'great_' * (generation - 2)}{own}_{suffix}"
                its_how = self.ancestor(how, len(ancestries))
                if youngest:
                    self.add_child(ancestor, own, youngest, its_how)
                else:
                    self.add_root(ancestor, own, its_how)
                youngest = [ancestor]
            parents += youngest
        if parents:
            self.add_child(name, role, parents, how)
        else:
            self.add_root(name, role, how)

    def add_distractors(self, core: list[N]) -> None:
        """Draw what does not belong to the right mask."""
        p = self.parameters
        order: list[int] = []
        while len(order) < p.num_copies:  # every variable is copied before one is copied again
            order += self.rng.permutation(len(core)).tolist()
        for i in range(p.num_copies):
            self.add_follower("copy", i, core[order[i]])
        for i in range(p.num_noise):
            self.add_free("noise", i)
        for i in range(p.num_correlated):
            if i % CHAIN == 0:
                self.add_free("correlated", i)
            else:
                self.add_follower("correlated", i, self.nodes[-1])


class BitGenerator(Generator[SyntheticParameters, Node]):
    """Draws a net of few values. ``how`` is the chance that a bit is on, and its value then."""

    def __init__(self, parameters: SyntheticParameters, rng: np.random.Generator) -> None:
        super().__init__(parameters, rng)
        self._on: dict[str, int] = {}
        sizes = np.geomspace(2, parameters.noise_size, parameters.num_noise)
        self._noise_sizes = sizes.round().astype(np.int64).tolist()

    def site(self, i: int) -> Site:
        p, name, on = self.parameters, f"pays_{i}", self._bit()
        pair = ("xor", "both")[self._bit()] if i < p.num_pairs else None
        # Both on as often as not, unless an XOR drives the first: that is a fair bit.
        chance = FAIR_CHANCE if pair != "both" else FAIR_CHANCE**0.5
        delay = max(1, p.generations)
        if i >= p.num_paying - p.num_xor_pairs:
            delay = 1
            bits = [f"xor_{i}_{side}" for side in "ab"]
            for bit in bits:
                self.add_root(bit, "xor", (FAIR_CHANCE, 1))
            self._add(name, "pays", bits, np.array([[on, 1 - on], [1 - on, on]]), (FAIR_CHANCE, on))
        else:
            ancestries = [f"{i}_{j}" for j in range(p.parents_per_paying)]
            self.add_family(name, "pays", ancestries, p.generations, (chance, on))
        partner, outcomes = None, FIRST
        if pair is not None:
            partner, its_on = f"partner_{i}", self._bit()
            depth = min(delay, p.generations)
            self.add_family(partner, "pays", [partner], depth, (chance, its_on))
            first, second = np.ogrid[:2, :2]
            both_on = (first == on) & (second == its_on)
            (a, b), (c, d) = np.where(pair == "xor", first ^ second, both_on).astype(int).tolist()
            outcomes = (a, b), (c, d)
        switch = f"moves_{i}" if i < p.num_moving else None
        if switch is not None:
            # A bet meets the switch one step before its payoff: so much less is to be foreseen.
            self.add_family(switch, "moves", [switch], delay - 1, (FAIR_CHANCE, 1))
        stake = p.stake * self.rng.uniform(0.75, 1.25)
        return Site(name, delay, stake, switch, partner, outcomes)

    def ancestor(self, how: tuple[float, int], parents: int) -> tuple[float, int]:
        """As many fair bits would hardly ever all be on: these are as often as their child is."""
        return how[0] ** (1 / parents), self._bit()

    def add_root(self, name: str, role: str, how: tuple[float, int]) -> None:
        """A bit that keeps its value or is drawn anew."""
        self._on[name] = how[1]
        self._add_lasting(name, role, _bernoulli(*how))

    def add_child(self, name: str, role: str, parents: list[str], how: tuple[float, int]) -> None:
        """A bit that turns on when all its parents are."""
        calls = [np.arange(2) == self._on[parent] for parent in parents]
        all_on = functools.reduce(np.logical_and.outer, calls)
        self._add(name, role, parents, np.where(all_on, how[1], 1 - how[1]), how)

    def add_free(self, role: str, i: int) -> None:
        size = self._noise_sizes[i] if role == "noise" else int(self.rng.integers(2, 4))
        self._add_lasting(f"{role}_{i}", role, np.full(size, 1 / size))

    def add_follower(self, role: str, i: int, leader: Node) -> None:
        noise = self.parameters.copy_noise * self.rng.uniform(0.5, 1.5)
        identity, name = np.arange(leader.size), f"{role}_{i}"
        self.nodes.append(Node(name, role, (leader.name,), identity, noise, leader.base))

    def _add(
        self, name: str, role: str, parents: list[str], function: IntArray, how: tuple[float, int]
    ) -> None:
        self._on[name] = how[1]
        noise = self.parameters.noise * self.rng.uniform(0.5, 1.5)
        self.nodes.append(Node(name, role, tuple(parents), function, noise, _bernoulli(*how)))

    def _add_lasting(self, name: str, role: str, base: FloatArray) -> None:
        persistence = self.parameters.persistence
        if persistence == 0:  # then it does not even depend on itself
            self.nodes.append(Node(name, role, (), np.array(0), 1.0, base))
            return
        identity = np.arange(len(base))
        self.nodes.append(Node(name, role, (name,), identity, 1 - persistence, base))

    def _bit(self) -> int:
        return int(self.rng.integers(2))


def _bernoulli(chance: float, on: int) -> FloatArray:
    """The distribution of a bit that has the value ``on`` with probability ``chance``."""
    return np.where(np.arange(2) == on, chance, 1 - chance)


class RealGenerator(Generator[RealSyntheticParameters, RealNode]):
    """Draws a net of latent values. ``how`` is the rule by which a variable follows its parents."""

    def site(self, i: int) -> Site:
        p, name = self.parameters, f"pays_{i}"
        delay = max(1, p.generations)
        if i >= p.num_paying - p.num_sign_pairs:
            delay = 1
            signs = [f"sign_{i}_{side}" for side in "ab"]
            for sign in signs:
                self.add_root(sign, "sign")
            rule: Rule = ("signs", "size and sign")[self.rng.integers(2)]
            if self.nodes[-2].variable.size == 2:  # both values are as far from the middle
                rule = "signs"
            self.add_child(name, "pays", signs, rule)
        else:
            ancestries = [f"{i}_{j}" for j in range(p.parents_per_paying)]
            rule = ("sum", "all high")[self.rng.integers(2)]
            self.add_family(name, "pays", ancestries, p.generations, rule)
        partner: str | None = None
        payoffs: tuple[Payoff, ...] = ("high", "height")
        if i < p.num_pairs:
            partner, payoffs = f"partner_{i}", ("both high", "same side", "product")
            self.add_family(partner, "pays", [partner], min(delay, p.generations), "sum")
        switch = f"moves_{i}" if i < p.num_moving else None
        if switch is not None:
            # A bet meets the switch one step before its payoff: so much less is to be foreseen.
            self.add_family(switch, "moves", [switch], delay - 1, "sum")
        return Site(
            pays=name,
            delay=delay,
            stake=p.stake * self.rng.uniform(0.75, 1.25),
            switch=switch,
            partner=partner,
            payoff=payoffs[self.rng.integers(len(payoffs))],
            threshold=self.rng.uniform(-0.4, 0.4),
        )

    def ancestor(self, how: Rule, parents: int) -> Rule:
        return "sum"

    def add_root(self, name: str, role: str, how: Rule = "sum") -> None:
        strength = min(MOST_PERSISTENT, self.parameters.persistence * self.rng.uniform(0.5, 1.5))
        values = self._values(name)
        self.nodes.append(RealNode(name, role, (name,), *values, "sum", (1.0,), strength))

    def add_child(
        self, name: str, role: str, parents: list[str], how: Rule, mean: float | None = None
    ) -> None:
        """A variable whose strength is ``mean`` on average, by default that of the parameters."""
        mean = self.parameters.strength if mean is None else mean
        strength = float(np.clip(mean + self.rng.uniform(-0.05, 0.05), 0.0, 0.99))
        signs = self.rng.choice([-1.0, 1.0], size=len(parents))
        if how == "sum":  # of independent parents, so that the sum has variance 1
            signs /= math.sqrt(len(parents))
        weights, values = tuple(signs.tolist()), self._values(name)
        self.nodes.append(RealNode(name, role, tuple(parents), *values, how, weights, strength))

    def add_free(self, role: str, i: int) -> None:
        self.add_root(f"{role}_{i}", role)

    def add_follower(self, role: str, i: int, leader: RealNode) -> None:
        mean = self.parameters.copy_strength
        self.add_child(f"{role}_{i}", role, [leader.name], "sum", mean)

    def _values(self, name: str) -> tuple[Variable, float, float]:
        """Which values a variable has, and where they lie if it has no bounds."""
        p = self.parameters
        is_whole, is_unbounded = self.rng.random(2) < (p.whole_share, p.unbounded_share)
        location, log_scale, share = self.rng.uniform((-50.0, -2.0, 0.0), (50.0, 5.0, 1.0))
        scale = math.exp(log_scale)
        if is_whole:
            size = p.smallest_size * (p.largest_size / p.smallest_size) ** share
            return Variable(name, max(2, 2 * round(size / 2))), 0.0, 1.0
        if is_unbounded:
            return Variable(name, low=-math.inf, high=math.inf), location, scale
        return Variable(name, low=location, high=location + scale), 0.0, 1.0
