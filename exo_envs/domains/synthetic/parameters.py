"""The arguments of a planted problem."""

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

#: Values of all noise variables, at most: each has its probability and what it calls for.
MAX_NOISE_VALUES = 100_000_000
#: The smallest and largest value of every whole-numbered argument.
WHOLE = {
    "instance": (0, None),
    "num_paying": (1, None),
    "num_xor_pairs": (0, None),
    "num_pairs": (0, None),
    "parents_per_paying": (1, 3),
    "generations": (0, 3),
    "num_moving": (0, None),
    "num_copies": (0, None),
    "num_noise": (0, None),
    "noise_size": (2, None),
    "num_correlated": (0, None),
}


@dataclass(frozen=True)
class SyntheticParameters:
    """What a planted problem is made of; all of it is ours.

    Attributes:
        instance: which of the problems of this size: it draws the order of the variables, the
            polarity and noise of every link, the stakes, and what is copied. With more distractors
            an instance stays the same problem. (It is not the seed of the environment's noise.)
        num_paying: the number of sites, each with one variable that pays there.
        num_xor_pairs: how many of the sites (the last ones) have a paying variable whose next value
            is the XOR of two fair bits; the others have ``parents_per_paying``.
        num_pairs: how many of the sites (the first ones) pay by two variables together: the bet is
            on a function of both, their XOR or whether both are on, as the instance draws it. Such
            a site has one reward term, which looks at both (``reward_scopes``), and the second
            variable has an ancestry of its own.
        parents_per_paying: the parents of a paying variable: it turns on when all of them are on.
        generations: how far the ancestry of a paying variable goes back: 1 for parents, 2 for
            grandparents too, 0 for none. A bet at a site is placed as many steps ahead.
        num_moving: how many of the sites (the first ones) have a switch: a variable that pays
            nothing but can turn a bet round, so that n' depends on it. Its ancestry is one
            generation shorter.
        num_copies: distractors that follow a variable of the right mask, one step late.
        num_noise: distractors that depend on nothing but themselves.
        noise_size: the number of values of the largest of them; the sizes are spread evenly, on a
            logarithmic scale, from 2 to this.
        num_correlated: distractors in chains of up to five, each following the one before.
        persistence: the probability that a variable without parents keeps its value; otherwise it
            is drawn anew.
        noise: the mean probability that a variable ignores its parents and is drawn anew; an
            instance draws that of each variable between half and one and a half times this.
        copy_noise: the same for the distractors that follow something.
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
    num_xor_pairs: int = 1
    num_pairs: int = 0
    parents_per_paying: int = 1
    generations: int = 2
    num_moving: int = 1
    num_copies: int = 5
    num_noise: int = 8
    noise_size: int = 64
    num_correlated: int = 6
    persistence: float = 0.5
    noise: float = 0.1
    copy_noise: float = 0.25
    slip: float = 0.05
    stake: float = 10.0
    fee: float = 0.15
    discount: float = 0.97
    horizon: int = 50

    constraints: ClassVar[Constraints] = {
        **{name: whole(*limits) for name, limits in WHOLE.items()},
        **dict.fromkeys(("persistence", "noise", "copy_noise", "slip", "stake", "fee"), real()),
        "discount": check_discount,
        "horizon": check_horizon,
    }

    def __post_init__(self) -> None:
        """Refuse what no problem can be made of."""
        check_fields(self)
        for name in ("num_xor_pairs", "num_pairs", "num_moving"):
            if getattr(self, name) > self.num_paying:
                raise ArgumentError(
                    f"{name} counts sites, of which there are num_paying={self.num_paying}, "
                    f"not {getattr(self, name)}"
                )
        # The factor that an instance applies to the noises reaches 1.5.
        self._check("persistence", 0 <= self.persistence < 1, "at least 0 and below 1")
        self._check("noise", 0 <= self.noise <= 0.5, "from 0 to 0.5")
        self._check("copy_noise", 0 <= self.copy_noise <= 0.5, "from 0 to 0.5")
        self._check("slip", 0 <= self.slip <= 0.5, "from 0 to 0.5")
        self._check("stake", self.stake > 0, "positive")
        self._check("fee", self.fee >= 0, "not negative")
        self._check_totals()

    def _check(self, name: str, holds: bool, choices: str) -> None:
        if not holds:
            raise ArgumentError(f"{name} is a number {choices}, not {getattr(self, name)!r}")

    def _check_totals(self) -> None:
        """Refuse more than fits into memory."""
        ancestors = max(2, self.parents_per_paying * self.generations)  # 2: the bits of an XOR
        with_chain = self.num_moving + self.num_pairs  # a switch, or the second of a pair
        sites = self.num_paying * (1 + ancestors) + with_chain * (1 + self.generations)
        counts = ("num_paying", "num_copies", "num_noise", "num_correlated")
        distractors = self.num_copies + self.num_noise + self.num_correlated
        check_total("variables", sites + distractors, self, *counts)
        values, sizes = self.num_noise * self.noise_size, ("num_noise", "noise_size")
        check_total("values of noise", values, self, *sizes, most=MAX_NOISE_VALUES)
