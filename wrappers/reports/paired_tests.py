"""Whether two samples from the same states differ, and how small a difference would show.

From each of N states a number is drawn twice as the state is (y, y') and twice with one variable
changed (z, z'). If the variable does not matter, all four have one distribution, whichever state it
is, and so exchanging a y for a z changes nothing. Three tests use that:

* *One direction.* Of each pair (y, z) the first is drawn with the smaller value of the variable. A
  third of the states chooses an event that is more frequent in the first: a single value of the
  target, or all values up to one, or all above. In the other states each pair of which only one is
  in the event speaks for the first or for the second, and under the null it does either as often:
  a binomial test (McNemar's), which is exact. How much more often the first is in the event is the
  *effect*: the probability that the change moves.
* *One direction for each kind of change.* The same with an event for each kind: all values that are
  more frequent in the first.
* *Any direction.* If the direction of the effect depends on other variables (XOR) it cancels out.
  u = [y = y'] + [z = z'] - [y = z] - [y' = z'] does not: its mean is the squared distance of the
  two distributions, averaged over states. Under the null u and -u are as likely, so the sum of u
  over the root of the sum of u^2 exceeds t with probability exp(-t^2 / 2) at most (Efron 1969).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from exo_envs.core.mdp import BoolArray, IntArray
from exo_envs.core.statistics import fair_coins_log_tail, normal_quantile

#: Tests of one target, which share its level.
TESTS = 3
#: One state in so many chooses the event; the others vote.
STATES_PER_CHOICE = 3
#: Kinds of change times values that are counted apart at most.
MAX_COUNTS = 2_000_000
#: The part of what a stated power leaves to chance that is kept in reserve.
RESERVE_SHARE = 0.25
#: An effect in one direction is clear if the logarithm of its p-value is below this.
CLEAR_LOG_P = math.log(1e-4)


class Votes(NamedTuple):
    """Pairs of which only one is in an event."""

    first: int
    second: int

    @property
    def log_p(self) -> float:
        """The logarithm of the p-value, if the first should not be more than the second."""
        return fair_coins_log_tail(self.first, self.first + self.second)


@dataclass(frozen=True)
class PairedTest:
    """What the draws say about one target.

    Attributes:
        pairs: how many pairs (y, z) voted.
        steady: of these, how many had only one in an event that was chosen for all changes.
        by_kind: the same for an event that was chosen for each kind of change.
        unequal: the share of all pairs with y != z.
        distance: the sum of u.
        squares: the sum of u^2.
        states: how many u there are.
        values: how many values the target has.
    """

    pairs: int
    steady: Votes
    by_kind: Votes
    unequal: float
    distance: float
    squares: float
    states: int
    values: int

    @property
    def effect(self) -> float:
        """The probability that the change moves: in one direction if that is clear, or in any."""
        votes = min(self.steady, self.by_kind, key=lambda own: own.log_p)
        if votes.log_p < CLEAR_LOG_P:
            return (votes.first - votes.second) / max(1, self.pairs)
        # The root mean square of what changes, if that moves from one value to another.
        return math.sqrt(max(0.0, self.distance / max(1, self.states)) / 2.0)

    @property
    def log_p(self) -> float:
        """The logarithm of the p-value of all tests together."""
        t = self.distance / math.sqrt(self.squares) if self.squares else 0.0
        mixed = -t * t / 2.0 if t > 0 else 0.0
        return min(0.0, math.log(TESTS) + min(self.steady.log_p, self.by_kind.log_p, mixed))

    def detectable(self, level: float, power: float) -> float:
        """An effect in one direction that would have been found with this probability.

        Args:
            level: of this one test.
            power: the probability.
        """
        threshold, margin = -normal_quantile(level / TESTS), _margin(power)
        # Fewer pairs than this say nothing, even if all of them say the same.
        fewest = math.log2(TESTS / level)
        least = (fewest + margin * math.sqrt(fewest)) / max(1, self.pairs)
        # The event is to be chosen, by fewer pairs, among three for each value.
        chance = normal_quantile(1.0 - 0.5 / (3 * max(2, self.values)))
        choosing = self.states - self.pairs // 2

        low, high = 0.0, 1.0  # the smallest effect that shows is between them
        for _ in range(40):
            effect = (low + high) / 2.0
            # Pairs differ about an event in half of the cases at most; an effect adds to them.
            noise = max(min(self.unequal, 0.5), effect)
            spread = math.sqrt(max(noise - effect * effect, 0.0))
            found = threshold * math.sqrt(noise) + margin * spread
            chosen = chance * math.sqrt(noise) + margin * spread
            shows = (
                effect >= least
                and effect * math.sqrt(self.pairs) >= found
                and effect * math.sqrt(2 * choosing) >= chosen
            )
            low, high = (low, effect) if shows else (effect, high)
        return high

    def detectable_mixed(self, level: float, power: float) -> float:
        """The same for an effect whose direction depends on other variables."""
        needed = math.sqrt(2.0 * math.log(TESTS / level)) + _margin(power)
        root = math.sqrt(max(1, self.states))
        deviation = math.sqrt(self.squares) / root
        # The mean of u is twice the square of an effect, which makes u unequal to 0 itself.
        return min(1.0, max(needed / root, math.sqrt(needed * deviation / (2.0 * root))))


def paired_tests(
    unchanged: IntArray,
    changed: IntArray,
    kinds: IntArray,
    decreases: BoolArray,
    sizes: Sequence[int],
) -> list[PairedTest]:
    """Test all targets.

    Args:
        unchanged: numbers drawn twice from each of some states, (2, N, targets).
        changed: the same with one variable changed.
        kinds: of the changes, from 0, (N,).
        decreases: whether the variable was changed to a smaller value, (N,).
        sizes: how many values each target has. Where that and the kinds make a large table, values
            share its cells: what has one distribution still has one.
    """
    first = np.where(decreases[:, None], changed, unchanged)
    second = np.where(decreases[:, None], unchanged, changed)
    num_kinds = int(kinds.max(initial=0)) + 1
    # A copy of each target's draws is contiguous, which makes the many passes over it fast.
    return [
        _paired_test(first[:, :, k].copy(), second[:, :, k].copy(), kinds, num_kinds, size)
        for k, size in enumerate(sizes)
    ]


def _paired_test(
    first: IntArray, second: IntArray, kinds: IntArray, num_kinds: int, size: int
) -> PairedTest:
    """Choose events in a third of the states, let the others vote, and add up u of all."""
    states = len(kinds)
    choosing = states // STATES_PER_CHOICE
    num_values = min(size, max(2, MAX_COUNTS // num_kinds))
    if num_values < size:
        first, second = first % num_values, second % num_values
    cells = kinds * num_values
    counts = [
        np.bincount(
            (cells[:choosing] + drawn[:, :choosing]).ravel(), minlength=num_kinds * num_values
        )
        for drawn in (first, second)
    ]
    by_kind = _events_by_kind(*counts)
    steady = _steady_event(*(own.reshape(num_kinds, num_values).sum(axis=0) for own in counts))
    one, two, cells = first[:, choosing:], second[:, choosing:], cells[choosing:]
    is_other, is_other_again = first != second
    u = (first[0] == first[1]).astype(np.int8) + (second[0] == second[1])
    u = u - ~is_other - ~is_other_again
    return PairedTest(
        pairs=2 * (states - choosing),
        steady=_votes(steady[one], steady[two]),
        by_kind=_votes(by_kind[cells + one], by_kind[cells + two]),
        unequal=(int(is_other.sum()) + int(is_other_again.sum())) / max(1, 2 * states),
        distance=float(u.sum()),
        squares=float((u * u).sum()),
        states=states,
        values=size,
    )


def _votes(first: BoolArray, second: BoolArray) -> Votes:
    return Votes(int((first & ~second).sum()), int((second & ~first).sum()))


def _steady_event(first: IntArray, second: IntArray) -> BoolArray:
    """The values of one event: one value, all up to one, or all above; the clearest of these."""
    total = max(1, int(first.sum() + second.sum()))
    here, there = (
        np.stack([own, own.cumsum(), own.sum() - own.cumsum()], axis=1) for own in (first, second)
    )  # (values, 3)
    # Both samples have as many: what is in an event in both says nothing of a difference.
    share = (here + there) / total
    clear = (here - there) / np.sqrt(np.maximum(share * (1.0 - share) * total, 1e-300))
    value, kind = divmod(int(clear.argmax()), 3)
    event = np.zeros(len(first), dtype=np.bool_)
    if clear[value, kind] > 0:
        event[(slice(value, value + 1), slice(value + 1), slice(value + 1, None))[kind]] = True
    return event


def _events_by_kind(first: IntArray, second: IntArray) -> BoolArray:
    """What is more frequent in the first by more than a standard deviation, or comes closest."""
    clear = (first - second) / np.sqrt(np.maximum(first + second, 1))
    event: BoolArray = clear > 1.0
    closest = int(clear.argmax())
    event[closest] |= clear[closest] > 0
    return event


def _margin(power: float) -> float:
    """Standard deviations for a power and a little more, as the wrong event may be chosen."""
    return normal_quantile(power + RESERVE_SHARE * (1.0 - power))
