"""The arguments of a planted problem with real variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from exo_envs.core.arguments import (
    Constraints,
    check_discount,
    check_fields,
    check_horizon,
    check_total,
    real,
    whole,
)
from exo_envs.core.errors import ArgumentError

#: The smallest and largest value of every whole-numbered argument.
WHOLE = {
    "instance": (0, None),
    "num_paying": (1, None),
    "num_sign_pairs": (0, None),
    "num_pairs": (0, None),
    "parents_per_paying": (1, 3),
    "generations": (0, 3),
    "num_moving": (0, None),
    "num_copies": (0, None),
    "num_noise": (0, None),
    "num_correlated": (0, None),
    "smallest_size": (2, 10**9),
    "largest_size": (2, 10**9),
}
#: Real arguments, with the smallest and largest value.
REAL = {
    "whole_share": (0.0, 1.0),
    "unbounded_share": (0.0, 1.0),
    "persistence": (0.0, 0.95),
    "strength": (0.0, 0.98),
    "copy_strength": (0.0, 0.98),
    "slip": (0.0, 0.5),
}


@dataclass(frozen=True)
class RealSyntheticParameters:
    """What a planted problem with real variables is made of; all of it is ours.

    Attributes:
        instance: which of the problems of this size: it draws the order of the variables, the
            values that they have, the sign and strength of every link, what pays in which way, the
            stakes, and what is copied. With more distractors the required variables stay the same.
        num_paying: the number of sites, each with one variable that pays there.
        num_sign_pairs: how many of the sites (the last ones) have a paying variable with two
            parents that act only together: on their signs, or by the size of one and the sign of
            the other. The others have ``parents_per_paying``.
        num_pairs: how many of the sites (the first ones) pay by two variables together: by
            whether both are high, whether both are on the same side of their middle, or by their
            product.
        parents_per_paying: the parents of a paying variable: it follows a sum of them, or is high
            when all of them are.
        generations: how far the ancestry of a paying variable goes back: 1 for parents, 2 for
            grandparents too, 0 for none. A bet at a site is placed as many steps ahead.
        num_moving: how many of the sites (the first ones) have a switch: a variable that pays
            nothing but turns a bet round while it is above a threshold, so that n' depends on it.
        num_copies: distractors that follow a variable of the right mask, one step late.
        num_noise: distractors that depend on nothing but themselves.
        num_correlated: distractors in chains of up to five, each following the one before.
        whole_share: the share of the variables that are whole numbers; the others are real.
        smallest_size: the number of values of a whole variable, at least; all are even.
        largest_size: the same at most; sizes are drawn evenly on a logarithmic scale.
        unbounded_share: the share of the real variables that have no bounds.
        persistence: the mean correlation of a variable without parents with its next value; an
            instance draws that of each between half and one and a half times this, up to 0.95.
        strength: the mean correlation of a variable with what its parents call for; an instance
            draws that of each variable up to 0.05 off.
        copy_strength: the same for the distractors that follow something.
        slip: the probability that a bet is turned round when it should not be, or not when it
            should.
        stake: the mean of what a bet wins or loses; an instance draws that of each site between
            three quarters and five quarters of this.
        fee: the price of a bet for every step until its payoff, as a part of the stake.
        discount: the paper's gamma.
        horizon: the length of an episode.
    """

    instance: int = 0
    num_paying: int = 3
    num_sign_pairs: int = 1
    num_pairs: int = 0
    parents_per_paying: int = 1
    generations: int = 2
    num_moving: int = 1
    num_copies: int = 5
    num_noise: int = 8
    num_correlated: int = 6
    whole_share: float = 0.2
    smallest_size: int = 2
    largest_size: int = 16
    unbounded_share: float = 0.0
    persistence: float = 0.5
    strength: float = 0.9
    copy_strength: float = 0.8
    slip: float = 0.05
    stake: float = 10.0
    fee: float = 0.15
    discount: float = 0.97
    horizon: int = 50

    constraints: ClassVar[Constraints] = {
        **{name: whole(*limits) for name, limits in WHOLE.items()},
        **dict.fromkeys((*REAL, "stake", "fee"), real()),
        "discount": check_discount,
        "horizon": check_horizon,
    }

    def __post_init__(self) -> None:
        """Refuse what no problem can be made of."""
        check_fields(self)
        for name in ("num_sign_pairs", "num_pairs", "num_moving"):
            if getattr(self, name) > self.num_paying:
                raise ArgumentError(
                    f"{name} counts sites, of which there are num_paying={self.num_paying}, "
                    f"not {getattr(self, name)}"
                )
        for name, (low, high) in REAL.items():
            self._check(name, low <= getattr(self, name) <= high, f"from {low:g} to {high:g}")
        self._check("stake", self.stake > 0, "above 0")
        self._check("fee", self.fee >= 0, "of at least 0")
        if self.smallest_size > self.largest_size:
            raise ArgumentError(
                f"smallest_size is at most largest_size={self.largest_size}, "
                f"not {self.smallest_size}"
            )
        ancestors = max(2, self.parents_per_paying * self.generations)
        with_chain = self.num_moving + self.num_pairs  # a switch, or the second of a pair
        sites = self.num_paying * (1 + ancestors) + with_chain * (1 + self.generations)
        counts = ("num_paying", "num_copies", "num_noise", "num_correlated")
        distractors = self.num_copies + self.num_noise + self.num_correlated
        check_total("variables", sites + distractors, self, *counts)

    def _check(self, name: str, holds: bool, choices: str) -> None:
        if not holds:
            raise ArgumentError(f"{name} is a number {choices}, not {getattr(self, name)!r}")
