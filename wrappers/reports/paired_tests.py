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
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from exo_envs.compiled.functions import njit
from exo_envs.core.mdp import BoolArray, IntArray

#: Tests of one target, which share its level.
TESTS = 3
#: The part of the states that chooses the event.
CHOOSING = 3
#: Pairs up to which the tail of the binomial distribution is added up; above it is normal.
EXACT_PAIRS = 4_000
#: Kinds of change times values that are counted apart at most.
MAX_COUNTS = 2_000_000
#: The part of what a stated power leaves to chance that is kept in reserve.
ROOM = 0.25
#: An effect in one direction is clear if the logarithm of its p-value is below this.
CLEAR = math.log(1e-4)


class Votes(NamedTuple):
    """Pairs of which only one is in an event."""

    first: int
    second: int

    @property
    def log_p(self) -> float:
        """The logarithm of the p-value, if the first should not be more than the second."""
        return log_binomial_tail(self.first, self.first + self.second)


class Draws(NamedTuple):
    """Numbers drawn twice from each of some states, as they are and with one variable changed."""

    unchanged: IntArray  # (2, N, targets)
    changed: IntArray  # (2, N, targets)
    kinds: IntArray  # (N,): the kind of change, from 0
    decreases: BoolArray  # (N,): whether the variable was changed to a smaller value


@dataclass(frozen=True)
class PairedTest:
    """What the draws say about one target.

    Attributes:
        pairs: how many pairs (y, z) were looked at.
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
        if votes.log_p < CLEAR:
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
        normal = NormalDist()
        threshold, margin = -normal.inv_cdf(level / TESTS), normal.inv_cdf(_with_room(power))
        # Fewer pairs than this say nothing, even if all of them say the same.
        fewest = math.log2(TESTS / level)
        least = (fewest + margin * math.sqrt(fewest)) / max(1, self.pairs)
        # The event is to be chosen, by fewer pairs, among three for each value.
        chance = normal.inv_cdf(1.0 - 0.5 / (3 * max(2, self.values)))
        choosing = self.states - self.pairs // 2

        def shows(effect: float) -> bool:
            # Pairs differ about an event in half of the cases at most; an effect adds to them.
            noise = max(min(self.unequal, 0.5), effect)
            spread = math.sqrt(max(noise - effect * effect, 0.0))
            found = threshold * math.sqrt(noise) + margin * spread
            chosen = chance * math.sqrt(noise) + margin * spread
            return (
                effect >= least
                and effect * math.sqrt(self.pairs) >= found
                and effect * math.sqrt(2 * choosing) >= chosen
            )

        return _smallest(shows)

    def detectable_mixed(self, level: float, power: float) -> float:
        """The same for an effect whose direction depends on other variables."""
        threshold = math.sqrt(2.0 * math.log(TESTS / level))
        needed = threshold + NormalDist().inv_cdf(_with_room(power))
        variance = self.squares / max(1, self.states)

        def shows(effect: float) -> bool:
            mean = 2.0 * effect * effect
            noise = max(variance, 2.0 * mean)  # an effect makes u unequal to 0 itself
            return mean * math.sqrt(self.states) >= needed * math.sqrt(noise)

        return _smallest(shows)


def paired_tests(draws: Draws, sizes: Sequence[int]) -> list[PairedTest]:
    """Test all targets.

    Args:
        draws: of the targets.
        sizes: how many values each target has. Where that and the kinds make a large table, values
            share its cells: what has one distribution still has one.
    """
    kinds = np.ascontiguousarray(draws.kinds, dtype=np.int64)
    decreases = np.ascontiguousarray(draws.decreases)
    states, targets = draws.changed.shape[1:]
    results = np.zeros((targets, 7))
    for k in range(targets):
        num_kinds = int(kinds.max(initial=0)) + 1
        num_values = min(int(sizes[k]), max(2, MAX_COUNTS // num_kinds))
        same, other = (
            np.ascontiguousarray(part[:, :, k], dtype=np.int64) % num_values
            for part in (draws.unchanged, draws.changed)
        )
        counts = np.zeros((num_kinds, num_values, 2), dtype=np.int64)
        _test(same, other, kinds, decreases, counts, results[k])
    pairs = 2 * (states - states // CHOOSING)
    return [
        PairedTest(
            pairs=pairs,
            steady=Votes(int(one), int(two)),
            by_kind=Votes(int(first), int(second)),
            unequal=unequal / max(1, 2 * states),
            distance=distance,
            squares=squares,
            states=states,
            values=int(size),
        )
        for size, (one, two, first, second, unequal, distance, squares) in zip(
            sizes, results.tolist(), strict=True
        )
    ]


def log_binomial_tail(successes: int, trials: int) -> float:
    """The logarithm of P(at least so many of ``trials`` fair coins fall on heads).

    >>> round(math.exp(log_binomial_tail(8, 10)), 4)
    0.0547
    """
    if successes <= 0 or trials <= 0:
        return 0.0
    if trials > EXACT_PAIRS:
        z = (2.0 * successes - 1.0 - trials) / math.sqrt(trials)
        tail = 0.5 * math.erfc(z / math.sqrt(2.0))
        # Where that underflows: Mills' ratio.
        return math.log(tail) if tail > 0 else -z * z / 2.0 - math.log(z * math.sqrt(2 * math.pi))
    heads = np.arange(successes, trials + 1)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, trials + 1)))])
    terms = factorials[trials] - factorials[heads] - factorials[trials - heads]
    largest = float(terms.max())
    total = largest + math.log(float(np.exp(terms - largest).sum()))
    return min(0.0, total - trials * math.log(2.0))


def _with_room(power: float) -> float:
    """A little more than is promised: now and then the wrong event is chosen."""
    return power + ROOM * (1.0 - power)


def _smallest(shows: Any) -> float:
    """The smallest effect that shows, to four digits; 1 if none does."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high


@njit(cache=True)
def _test(same: Any, other: Any, kinds: Any, decreases: Any, counts: Any, result: Any) -> None:
    """Choose events in a third of the states and count pairs in the rest; add up u of all.

    Args:
        same: y and y', (2, N).
        other: z and z', (2, N).
        kinds: of changes, (N,).
        decreases: whether z is drawn with the smaller value, (N,).
        counts: zeros, (kinds, values, 2).
        result: is written: votes for the steady event, votes by kind, unequal pairs, the sum of u,
            the sum of u^2.
    """
    number = len(kinds)
    choosing = number // CHOOSING
    for k in range(choosing):
        for draw in range(2):
            second = 0 if decreases[k] else 1
            counts[kinds[k], same[draw, k], 1 - second] += 1
            counts[kinds[k], other[draw, k], second] += 1
    steady = _steady_event(counts)
    _events_by_kind(counts)
    for k in range(choosing, number):
        for draw in range(2):
            y, z = same[draw, k], other[draw, k]
            if steady[y] != steady[z]:
                result[0 if steady[y] != decreases[k] else 1] += 1
            one, two = counts[kinds[k], y, 0], counts[kinds[k], z, 0]
            if one != two:
                result[2 if (one > two) != decreases[k] else 3] += 1
    for k in range(number):
        y, again, z, other_again = same[0, k], same[1, k], other[0, k], other[1, k]
        result[4] += (y != z) + (again != other_again)
        u = (y == again) + (z == other_again) - (y == z) - (again == other_again)
        result[5] += u
        result[6] += u * u


@njit(cache=True)
def _steady_event(counts: Any) -> Any:
    """The values of one event: one value, all up to one, or all above; the clearest of these."""
    values = counts.shape[1]
    event = np.zeros(values, dtype=np.bool_)
    first, second = counts[:, :, 0].sum(axis=0), counts[:, :, 1].sum(axis=0)
    best, low, high = 0.0, 0, 0
    one, two = 0, 0
    all_one, all_two = first.sum(), second.sum()
    for value in range(values):
        one, two = one + first[value], two + second[value]
        for begin, end, here, there in (
            (value, value + 1, first[value], second[value]),
            (0, value + 1, one, two),
            (value + 1, values, all_one - one, all_two - two),
        ):
            # Both samples have as many: what is in an event in both says nothing of a difference.
            share = (here + there) / max(1, all_one + all_two)
            spread = np.sqrt(max(share * (1.0 - share) * (all_one + all_two), 1e-300))
            if here > there and (here - there) / spread > best:
                best, low, high = (here - there) / spread, begin, end
    event[low:high] = True
    return event


@njit(cache=True)
def _events_by_kind(counts: Any) -> None:
    """Mark what is more frequent in the first by more than a standard deviation, kind by kind.

    If nothing is, what comes closest is marked. Marks are in ``counts[..., 0]``.
    """
    best, best_kind, best_value = -1.0, -1, -1
    any_event = False
    for kind in range(counts.shape[0]):
        for value in range(counts.shape[1]):
            one, two = counts[kind, value, 0], counts[kind, value, 1]
            counts[kind, value, 0] = 0
            if one <= two:
                continue
            score = (one - two) / np.sqrt(one + two)
            if score > 1.0:
                counts[kind, value, 0] = 1
                any_event = True
            elif score > best:
                best, best_kind, best_value = score, kind, value
    if not any_event and best_kind >= 0:
        counts[best_kind, best_value, 0] = 1
