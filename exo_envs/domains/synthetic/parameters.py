"""The arguments of the planted problems, as users give them and as the kernels take them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from exo_envs.core.arguments import (
    Constraint,
    Constraints,
    check_discount,
    check_fields,
    check_horizon,
    check_real,
    check_total,
    whole,
)
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import FloatArray, IntArray

SITE, LEFT, BET = range(3)  # the endogenous variables
PASS = 0  # the action; 1 + v is a bet on the value v
NO_BET = 0  # the value of BET; 1 + v is a bet on the value v
TURNED = 3  # minus a bet is the opposite bet
NO_SWITCH = -1  # in the place of a variable that turns bets round

#: Values of all noise variables, at most: each has its probability and what it calls for.
MAX_NOISE_VALUES = 100_000_000


def number_where(holds: Callable[[float], bool], choices: str) -> Constraint:
    """A field is a finite number of which something holds."""

    def check(name: str, value: Any) -> float:
        real = check_real(name, value)
        if not holds(real):
            raise ArgumentError(f"{name} is a number {choices}, not {real!r}")
        return real

    return check


def between(low: float, high: float) -> Constraint:
    """A field is a number in this range."""
    return number_where(lambda real: low <= real <= high, f"from {low:g} to {high:g}")


@dataclass(frozen=True)
class PlantedParameters:
    """What every planted problem is made of; all of it is ours.

    Attributes:
        instance: which of the problems of this size: it draws the order of the variables, the
            stakes, what is copied, and all that the kind of problem leaves open. With more
            distractors the required variables stay the same. (It is not the seed of the
            environment's noise.)
        num_paying: the number of sites, each with one variable that pays there.
        num_pairs: how many of the sites (the first ones) pay by two variables together. Such a
            site has one reward term, which looks at both (``reward_scopes``), and the second
            variable has an ancestry of its own.
        parents_per_paying: the parents of a paying variable.
        generations: how far the ancestry of a paying variable goes back: 1 for parents, 2 for
            grandparents too, 0 for none. A bet at a site is placed as many steps ahead.
        num_moving: how many of the sites (the first ones) have a switch: a variable that pays
            nothing but can turn a bet round, so that n' depends on it. Its ancestry is one
            generation shorter.
        num_copies: distractors that follow a variable of the right mask, one step late.
        num_noise: distractors that depend on nothing but themselves.
        num_correlated: distractors in chains of up to five, each following the one before.
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
    num_pairs: int = 0
    parents_per_paying: int = 1
    generations: int = 2
    num_moving: int = 1
    num_copies: int = 5
    num_noise: int = 8
    num_correlated: int = 6
    slip: float = 0.05
    stake: float = 10.0
    fee: float = 0.15
    discount: float = 0.97
    horizon: int = 50

    constraints: ClassVar[Constraints] = {
        "num_paying": whole(1),
        **dict.fromkeys(("instance", "num_pairs", "num_moving", "num_copies"), whole(0)),
        **dict.fromkeys(("num_noise", "num_correlated"), whole(0)),
        "parents_per_paying": whole(1, 3),
        "generations": whole(0, 3),
        "slip": between(0.0, 0.5),
        "stake": number_where(lambda stake: stake > 0, "above 0"),
        "fee": number_where(lambda fee: fee >= 0, "of at least 0"),
        "discount": check_discount,
        "horizon": check_horizon,
    }
    #: Arguments that count sites; of these there are ``num_paying``.
    site_counts: ClassVar[tuple[str, ...]] = ("num_pairs", "num_moving")

    def __post_init__(self) -> None:
        check_fields(self)
        for name in self.site_counts:
            if getattr(self, name) > self.num_paying:
                raise ArgumentError(
                    f"{name} counts sites, of which there are num_paying={self.num_paying}, "
                    f"not {getattr(self, name)}"
                )
        ancestors = max(2, self.parents_per_paying * self.generations)  # 2: that act together
        with_chain = self.num_moving + self.num_pairs  # a switch, or the second of a pair
        sites = self.num_paying * (1 + ancestors) + with_chain * (1 + self.generations)
        counts = ("num_paying", "num_copies", "num_noise", "num_correlated")
        distractors = self.num_copies + self.num_noise + self.num_correlated
        check_total("variables", sites + distractors, self, *counts)


@dataclass(frozen=True)
class SyntheticParameters(PlantedParameters):
    """The arguments of a problem of few values: these and those of :class:`PlantedParameters`.

    An instance also draws the polarity and noise of every link. A paying variable turns on when all
    its parents are on. Two variables that pay together are bet on as a function of both, their XOR
    or whether both are on.

    Attributes:
        num_xor_pairs: how many of the sites (the last ones) have a paying variable whose next value
            is the XOR of two fair bits; the others have ``parents_per_paying``.
        noise_size: the number of values of the largest of the ``num_noise`` distractors; the sizes
            are spread evenly, on a logarithmic scale, from 2 to this.
        persistence: the probability that a variable without parents keeps its value; otherwise it
            is drawn anew.
        noise: the mean probability that a variable ignores its parents and is drawn anew; an
            instance draws that of each variable between half and one and a half times this.
        copy_noise: the same for the distractors that follow something.
    """

    num_xor_pairs: int = 1
    noise_size: int = 64
    persistence: float = 0.5
    noise: float = 0.1
    copy_noise: float = 0.25

    constraints: ClassVar[Constraints] = {
        "num_xor_pairs": whole(0),
        "noise_size": whole(2),
        "persistence": number_where(lambda share: 0 <= share < 1, "at least 0 and below 1"),
        **dict.fromkeys(("noise", "copy_noise"), between(0.0, 0.5)),  # an instance has 1.5 times it
    }
    site_counts: ClassVar[tuple[str, ...]] = ("num_xor_pairs", *PlantedParameters.site_counts)

    def __post_init__(self) -> None:
        super().__post_init__()
        values, sizes = self.num_noise * self.noise_size, ("num_noise", "noise_size")
        check_total("values of noise", values, self, *sizes, most=MAX_NOISE_VALUES)


@dataclass(frozen=True)
class RealSyntheticParameters(PlantedParameters):
    """The arguments of a problem with real variables, beside :class:`PlantedParameters`.

    An instance also draws the values that variables have, the sign and strength of every link, and
    what pays in which way. A paying variable follows a sum of its parents, or is high when all of
    them are. Two variables that pay together do so by whether both are high, whether both are on
    the same side of their middle, or by their product. A switch turns bets round while it is above
    a threshold.

    Attributes:
        num_sign_pairs: how many of the sites (the last ones) have a paying variable with two
            parents that act only together: on their signs, or by the size of one and the sign of
            the other. The others have ``parents_per_paying``.
        whole_share: the share of the variables that are whole numbers; the others are real.
        smallest_size: the number of values of a whole variable, at least; all are even.
        largest_size: the same at most; sizes are drawn evenly on a logarithmic scale.
        unbounded_share: the share of the real variables that have no bounds.
        persistence: the mean correlation of a variable without parents with its next value; an
            instance draws that of each between half and one and a half times this, up to 0.95.
        strength: the mean correlation of a variable with what its parents call for; an instance
            draws that of each variable up to 0.05 off.
        copy_strength: the same for the distractors that follow something.
    """

    num_sign_pairs: int = 1
    whole_share: float = 0.2
    smallest_size: int = 2
    largest_size: int = 16
    unbounded_share: float = 0.0
    persistence: float = 0.5
    strength: float = 0.9
    copy_strength: float = 0.8

    site_counts: ClassVar[tuple[str, ...]] = ("num_sign_pairs", *PlantedParameters.site_counts)
    constraints: ClassVar[Constraints] = {
        "num_sign_pairs": whole(0),
        **dict.fromkeys(("whole_share", "unbounded_share"), between(0.0, 1.0)),
        **dict.fromkeys(("smallest_size", "largest_size"), whole(2, 10**9)),
        "persistence": between(0.0, 0.95),
        **dict.fromkeys(("strength", "copy_strength"), between(0.0, 0.98)),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.smallest_size > self.largest_size:
            raise ArgumentError(
                f"smallest_size is at most largest_size={self.largest_size}, "
                f"not {self.smallest_size}"
            )


class Bets(NamedTuple):
    """All that the kernels need to know of bets.

    It reaches them as a plain tuple: Numba takes ten times as long to read a named one.
    """

    slip: float
    fee: float
    delays: IntArray  # (sites,)
    stakes: FloatArray  # (sites,)
    switches: IntArray  # (sites,): the variable that turns bets round, or NO_SWITCH
    paying: IntArray  # (sites, 2): the variables that pay, the same one twice if it is one
    outcomes: IntArray  # (sites, 2, 2): what is bet on, by the values of both
    columns: IntArray  # (sites,): the reward term of each


class Net(NamedTuple):
    """All that the kernels need to know of the net; a plain tuple, too."""

    noise: FloatArray  # (m,): the probability that each variable is drawn anew
    sizes: FloatArray  # (m,): how many values it has
    tops: NDArray[Any]  # (m,) int32: its largest value
    special: IntArray  # (k,): the variables that do more than keep their value
    parents: IntArray  # (k, parents), and zeros where there are fewer, as below
    strides: IntArray  # (k, parents): what a parent's value adds to a position in ``functions``
    functions: IntArray  # (k, joint values of the parents): the value that they call for
    cdfs: FloatArray  # (k, values): of the distribution that a variable is drawn from anew
