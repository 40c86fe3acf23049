"""Means that a few rare events decide, and intervals for them.

Where every five-hundredth sample is a catastrophe, normal theory fails: if none was seen the
standard error knows nothing of it, and if one was seen the standard error is a guess. So such a
mean is taken to be the sum of two parts,

* what is ordinary, to which normal theory applies, and
* the events, which are few, so that their number is a Poisson variable: what they add to the mean
  has the interval of Fay and Feuer (1997, "Confidence intervals for directly standardized rates: a
  method based on the gamma distribution"). For events that weigh the same it is the exact Poisson
  interval. It also takes what an event may weigh that was *not* seen.

The parts are put together by recovering their variances from their intervals (Zou and Donner 2008).
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from exo_envs.core.mdp import FloatArray
from exo_envs.core.statistics import chi_squared_quantile
from planners.core.arrays import Ints

#: Events from which on normal theory is as good: their number is about normal.
ENOUGH_EVENTS = 20
#: Events that are looked for at most. More than ENOUGH_EVENTS, or of 30 some would seem ordinary.
MAX_EVENTS = 40
#: An event is at least so many standard deviations of the others away from them.
FAR_DEVIATIONS = 6.0
#: Events matter from this share of the variance on.
VARIANCE_SHARE = 0.3
#: At most one sample in this many is an event.
SAMPLES_PER_EVENT = 10


class Events(NamedTuple):
    """Events of one kind, losses or gains, and what each adds to a mean, in absolute value."""

    number: int = 0  # that were seen
    total: float = 0.0  # what they add to the mean
    squares: float = 0.0  # of what each of them adds, summed
    largest: float = 0.0  # that one event may add, seen or not

    @classmethod
    def of(cls, sizes: FloatArray, samples: int, possible: float = 0.0) -> Events:
        """From the sizes of those that were seen, and the size that one event may have."""
        largest = max(possible, float(sizes.max(initial=0.0))) / samples
        added = sizes / samples
        return cls(len(sizes), float(added.sum()), float(added @ added), largest)

    def interval(self, level: float) -> tuple[float, float]:
        """What the events add to the true mean (Fay and Feuer)."""
        tail = (1.0 - level) / 2.0
        low = _gamma(self.total, self.squares, 1.0 - tail)
        high = _gamma(self.total + self.largest, self.squares + self.largest**2, tail)
        return low, high


def _gamma(mean: float, variance: float, tail: float) -> float:
    """The value that a gamma variable with this mean and variance exceeds with some probability."""
    if mean <= 0.0 or variance <= 0.0:
        return 0.0
    return variance / (2.0 * mean) * chi_squared_quantile(2.0 * mean**2 / variance, tail)


class Mixture(NamedTuple):
    """How a mean comes about: ordinary samples, and a few events that outweigh them."""

    error: float  # the standard error of what is ordinary
    losses: Events
    gains: Events

    def interval(self, mean: float, level: float) -> tuple[float, float]:
        """A confidence interval of the mean; it is not symmetric."""
        half = NormalDist().inv_cdf(0.5 + level / 2.0) * self.error
        least_loss, most_loss = self.losses.interval(level)
        least_gain, most_gain = self.gains.interval(level)
        below = math.hypot(half, most_loss - self.losses.total, self.gains.total - least_gain)
        above = math.hypot(half, self.losses.total - least_loss, most_gain - self.gains.total)
        return mean - below, mean + above

    @property
    def number(self) -> int:
        return self.losses.number + self.gains.number


@lru_cache(maxsize=1024)
def most_per_episode(seen: int, episodes: int, level: float = 0.95) -> float:
    """How often something may come up in an episode that did in some of so many (Poisson).

    >>> round(most_per_episode(0, 500), 4)
    0.0074
    """
    return chi_squared_quantile(2.0 * seen + 2.0, (1.0 - level) / 2.0) / (2.0 * episodes)


def readable(number: float) -> str:
    """A number for people.

    >>> readable(-10_000.4), readable(0.0312)
    ('-10,000', '0.031')
    """
    return f"{number:,.0f}" if abs(number) >= 10.0 else f"{number:.2g}"


def two_digits(number: float) -> int:
    """Two significant digits, for people.

    >>> two_digits(13_642.0)
    14000
    """
    return int(float(f"{number:.1e}"))


def find_mixture(samples: FloatArray, *, loss: float = 0.0, gain: float = 0.0) -> Mixture | None:
    """The ordinary samples and the events among them; None if normal theory will do.

    Args:
        samples: independent ones, shape (samples,).
        loss: what one event may cost that was hardly seen, as far as it is known; 0 if there is
            none.
        gain: the same for what it may bring.
    """
    if not np.isfinite(samples).all():
        return None
    events = find_events(samples)
    if not len(events) and not loss and not gain:
        return None
    is_event = np.zeros(len(samples), dtype=bool)
    is_event[events] = True
    ordinary = samples[~is_event]
    centre = ordinary.mean()
    difference = samples[is_event] - centre
    # The events count as ordinary samples at the centre here: the mean is the sum of the parts.
    error = math.sqrt(float(((ordinary - centre) ** 2).sum()) / max(1, len(samples) - 1))
    return Mixture(
        error / math.sqrt(len(samples)),
        Events.of(-difference[difference < 0], len(samples), loss),
        Events.of(difference[difference > 0], len(samples), gain),
    )


def about_events(mixture: Mixture, samples: int) -> str:
    """What to mind about a mean that a few samples decide, for people."""
    needed = two_digits(samples * ENOUGH_EVENTS / max(1, mixture.number))
    return (
        f"{mixture.number} of {samples:,} samples decide the mean, too few for normal theory: the "
        f"interval bounds how often such samples come up; about {needed:,} samples would do"
    )


def find_events(samples: FloatArray) -> Ints:
    """Which samples are few, far from all others, and decide the variance: their positions.

    >>> find_events(np.array([0.0, 1.0] * 50 + [-100.0]))
    array([100])
    >>> find_events(np.arange(100.0))
    array([], dtype=int64)
    """
    most = min(MAX_EVENTS, len(samples) // SAMPLES_PER_EVENT)
    none: Ints = np.zeros(0, dtype=np.int64)
    if not most:
        return none
    centred = samples - np.median(samples)
    distance = np.abs(centred)
    farthest = np.argpartition(distance, -most)[-most:]
    order = farthest[np.argsort(-distance[farthest], kind="stable")]
    rest = len(samples) - np.arange(1, most + 1)
    sums = centred.sum() - centred[order].cumsum()
    squares = (centred**2).sum() - (centred[order] ** 2).cumsum()
    deviation = np.sqrt(np.maximum(squares - sums**2 / rest, 0.0) / rest)
    # A rest that is the same but for rounding has no deviation.
    deviation[deviation < 1e-9 * distance[order]] = 0.0
    far = np.flatnonzero(distance[order] > FAR_DEVIATIONS * deviation)
    if not len(far) or distance[order[0]] == 0.0:
        return none
    events = order[: far[-1] + 1]
    events = events[distance[events] > 0.0]
    outside = centred[events] - (centred.sum() - centred[events].sum()) / rest[len(events) - 1]
    squared = float(outside @ outside)
    total = float(((centred - centred.mean()) ** 2).sum())
    # So many events of the same size would be as uncertain as these together (Kish).
    is_few = float(np.abs(outside).sum()) ** 2 <= ENOUGH_EVENTS * squared
    return np.sort(events) if squared >= VARIANCE_SHARE * total and is_few else none
