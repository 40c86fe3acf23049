"""Drawing a planted problem with real variables: its net, and the sites where it pays.

Behind the value of every variable is a *latent* one, a strictly increasing function of it, which is
a standard normal number in the long run. The net is one of latent values, so that everything about
it can be said in closed form; which values are shown is a matter of each variable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from exo_envs.core.mdp import Variable
from exo_envs.domains.synthetic.generator import CHAIN, Site
from exo_envs.domains.synthetic.real.parameters import RealSyntheticParameters

#: What the parents z_1, z_2 ... of a variable call for, before noise.
#: "sum": a weighted sum of them.
#: "all high": high if every one is above ``threshold`` (of its own sign), low if not.
#: "signs": high if both have the same sign, low if not.
#: "size and sign": as far from 0 as the first, on the side of the second.
Rule = Literal["sum", "all high", "signs", "size and sign"]
#: How a site pays, by the latent values of its variable, or of both its variables.
Payoff = Literal["high", "height", "both high", "same side", "product"]
SINGLE: tuple[Payoff, ...] = ("high", "height")
PAIRS: tuple[Payoff, ...] = ("both high", "same side", "product")
SIGN_RULES: tuple[Rule, ...] = ("signs", "size and sign")
MOST_PERSISTENT = 0.95


@dataclass(frozen=True)
class RealNode:
    """An exogenous variable of the net, and how its next value comes about.

    By "sum" and "size and sign" the next latent value is ``strength`` times what the parents call
    for, plus normal noise that makes the variance 1. By the other rules it is a normal number with
    the sign that the parents call for, or with any sign with probability 1 - ``strength``.
    """

    name: str
    role: str
    variable: Variable
    location: float  # of an unbounded variable: the value where the latent one is 0
    scale: float  # of an unbounded variable: the value at 1, less the value at 0
    parents: tuple[str, ...]
    rule: Rule
    weights: tuple[float, ...]  # of the parents
    strength: float


@dataclass(frozen=True)
class RealSite(Site):
    """A place where one variable, or two together, pay for having been foreseen."""

    payoff: Payoff = "high"
    threshold: float = 0.0  # the switch turns a bet round if its latent value is above this


@dataclass(frozen=True)
class RealProblem:
    """An instance: nodes in the order of the model, sites in the order they are visited."""

    nodes: tuple[RealNode, ...]
    sites: tuple[RealSite, ...]


def generate(parameters: RealSyntheticParameters) -> RealProblem:
    """Draw the instance that ``parameters`` name."""
    # Generators of their own, so that more distractors leave the rest of the instance alone.
    streams = np.random.SeedSequence(parameters.instance).spawn(3)
    core_rng, distractor_rng, order_rng = (np.random.default_rng(s) for s in streams)
    core = _Drawer(parameters, core_rng)
    sites = tuple(core.site(i) for i in range(parameters.num_paying))
    others = _Drawer(parameters, distractor_rng)
    others.distractors([node.name for node in core.nodes])
    nodes = core.nodes + others.nodes
    return RealProblem(tuple(nodes[i] for i in order_rng.permutation(len(nodes))), sites)


class _Drawer:
    """Draws variables and keeps them."""

    def __init__(self, parameters: RealSyntheticParameters, rng: np.random.Generator) -> None:
        self.parameters = parameters
        self.rng = rng
        self.nodes: list[RealNode] = []

    # --- what belongs to the right mask -----------------------------------------------------

    def site(self, i: int) -> RealSite:
        """Draw site ``i`` with what pays and what moves there, and the ancestors of both."""
        p, name = self.parameters, f"pays_{i}"
        delay = max(1, p.generations)
        if i >= p.num_paying - p.num_sign_pairs:
            delay = 1
            pair = [self._add_root(f"sign_{i}_{side}", "sign") for side in "ab"]
            rule = SIGN_RULES[self.rng.integers(len(SIGN_RULES))]
            if self.nodes[-2].variable.size == 2:  # both values are as far from the middle
                rule = "signs"
            self._add(name, "pays", pair, rule, self._strength(p.strength))
        else:
            ancestries = [f"{i}_{j}" for j in range(p.parents_per_paying)]
            rule = ("sum", "all high")[self.rng.integers(2)]
            self._add_child(name, "pays", ancestries, p.generations, rule)
        partner, payoffs = None, SINGLE
        if i < p.num_pairs:
            partner, payoffs = f"partner_{i}", PAIRS
            self._add_child(partner, "pays", [partner], min(delay, p.generations), "sum")
        switch = f"moves_{i}" if i < p.num_moving else None
        if switch is not None:
            # A bet meets the switch one step before its payoff: so much less is to be foreseen.
            self._add_child(switch, "moves", [switch], delay - 1, "sum")
        return RealSite(
            pays=name,
            delay=delay,
            stake=p.stake * self.rng.uniform(0.75, 1.25),
            switch=switch,
            partner=partner,
            payoff=payoffs[self.rng.integers(len(payoffs))],
            threshold=self.rng.uniform(-0.4, 0.4),
        )

    def _add_child(
        self, name: str, role: str, ancestries: list[str], generations: int, rule: Rule
    ) -> None:
        """A variable whose parents are each the end of a chain."""
        if generations == 0:
            self._add_root(name, role)
            return
        parents = []
        for suffix in ancestries:
            elder = ""
            for generation in range(generations, 0, -1):
                own = "parent" if generation == 1 else "grandparent"
                older, elder = elder, f"{'great_' * (generation - 2)}{own}_{suffix}"
                if older:
                    self._add(elder, own, [older], "sum", self._strength(self.parameters.strength))
                else:
                    self._add_root(elder, own)
            parents.append(elder)
        self._add(name, role, parents, rule, self._strength(self.parameters.strength))

    # --- what does not ----------------------------------------------------------------------

    def distractors(self, core: list[str]) -> None:
        """Draw what does not belong to the right mask."""
        p = self.parameters
        order: list[int] = []
        while len(order) < p.num_copies:  # every variable is copied before one is copied again
            order += self.rng.permutation(len(core)).tolist()
        for i in range(p.num_copies):
            strength = self._strength(p.copy_strength)
            self._add(f"copy_{i}", "copy", [core[order[i]]], "sum", strength)
        for i in range(p.num_noise):
            self._add_root(f"noise_{i}", "noise")
        for i in range(p.num_correlated):
            name, role = f"correlated_{i}", "correlated"
            if i % CHAIN == 0:
                self._add_root(name, role)
            else:
                strength = self._strength(p.copy_strength)
                self._add(name, role, [f"correlated_{i - 1}"], "sum", strength)

    # --- single variables -------------------------------------------------------------------

    def _add_root(self, name: str, role: str) -> str:
        """A variable that nothing drives but its own past."""
        strength = min(MOST_PERSISTENT, self.parameters.persistence * self.rng.uniform(0.5, 1.5))
        variable, location, scale = self._values(name)
        node = RealNode(name, role, variable, location, scale, (name,), "sum", (1.0,), strength)
        self.nodes.append(node)
        return name

    def _add(self, name: str, role: str, parents: list[str], rule: Rule, strength: float) -> None:
        signs = self.rng.choice([-1.0, 1.0], size=len(parents))
        if rule == "sum":  # of independent parents, so that the sum has variance 1
            signs /= math.sqrt(len(parents))
        variable, location, scale = self._values(name)
        weights = tuple(signs.tolist())
        self.nodes.append(
            RealNode(name, role, variable, location, scale, tuple(parents), rule, weights, strength)
        )

    def _strength(self, mean: float) -> float:
        return float(np.clip(mean + self.rng.uniform(-0.05, 0.05), 0.0, 0.99))

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
