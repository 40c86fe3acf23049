"""How small an effect the tests of a learner can find: the power of the G-test.

G is twice the samples times the plug-in information. Where the true information is I it has, about,
a noncentral chi-squared distribution with noncentrality 2 · transitions · I. So one number, the
noncentrality that is found with the stated power, says both which information so many transitions
can find, and how many transitions find so much information.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

from exo_envs.core.arguments import check_flag, check_level, check_positive, check_real
from exo_envs.core.statistics import chi_squared_quantile

#: Nats that a variable tells if it moves a probability from 50 to 70 %.
NOTABLE = 0.0823
#: How often an effect should be found that counts as detectable.
POWER = 0.9
#: Steps of a bisection: each halves the interval, so the result is precise to all digits.
HALVINGS = 80


def detectable_information(
    transitions: float,
    freedom: float,
    tests: float = 1,
    level: float = 0.05,
    power: float = POWER,
    *,
    worth_table: bool = True,
) -> float:
    """The least conditional information, in nats, that is found with probability ``power``.

    Args:
        transitions: the samples of the test. If G is inflated by some factor (steps of one rollout
            depend on each other), give them divided by this factor.
        freedom: the degrees of freedom of the test: (values of the one variable - 1) times (values
            of the other - 1), for each joint value of what both are given.
        tests: the number of tests that share the level.
        level: the probability of any false alarm, over all tests.
        power: the probability to be found.
        worth_table: whether a variable must be worth its table, too, as learners ask: G is larger
            than twice the freedom (Akaike's criterion; see
            :class:`planners.dependence.parents.ParentSearch`).

    >>> round(detectable_information(10_000, freedom=1), 6)
    0.000522
    """
    transitions = check_positive("transitions", transitions)
    return _noncentrality(freedom, tests, level, power, worth_table) / (2.0 * transitions)


def needed_transitions(
    effect: float,
    freedom: float,
    tests: float = 1,
    level: float = 0.05,
    power: float = POWER,
    *,
    worth_table: bool = True,
) -> int:
    """The transitions with which so much information is found with probability ``power``.

    Args:
        effect: conditional information, in nats.
        freedom: as in :func:`detectable_information`, with ``tests``, ``level``, ``power`` and
            ``worth_table``.
        tests: the number of tests that share the level.
        level: the probability of any false alarm, over all tests.
        power: the probability to be found.
        worth_table: whether a variable must be worth its table, too.

    >>> needed_transitions(0.0823, freedom=1, tests=100)
    138
    """
    effect = check_positive("effect", effect)
    return math.ceil(_noncentrality(freedom, tests, level, power, worth_table) / (2.0 * effect))


def chi_squared_power(threshold: float, freedom: float, noncentrality: float) -> float:
    """P(noncentral chi-squared > ``threshold``), by Sankaran's approximation (1963).

    Its error is below 0.003 where the power is about 0.9.

    >>> round(chi_squared_power(3.841459, 1, 10.5074), 2)
    0.9
    """
    f, d = freedom, noncentrality
    mean, p = f + d, (f + 2.0 * d) / (f + d) ** 2
    h = 1.0 - 2.0 * mean * (f + 3.0 * d) / (3.0 * (f + 2.0 * d) ** 2)
    m = (h - 1.0) * (1.0 - 3.0 * h)
    centre = 1.0 + h * p * (h - 1.0 - 0.5 * (2.0 - h) * m * p)
    spread = h * math.sqrt(2.0 * p) * (1.0 + 0.5 * m * p)
    return 1.0 - NormalDist().cdf(((threshold / mean) ** h - centre) / spread)


def rounded(count: int) -> int:
    """A number with two digits, rounded up.

    >>> rounded(387_412), rounded(7)
    (390000, 7)
    """
    unit = 10 ** max(0, len(str(count)) - 2)
    return -(-count // unit) * unit


def _noncentrality(
    freedom: float, tests: float, level: float, power: float, worth_table: bool
) -> float:
    return _found_with(
        check_positive("freedom", freedom),
        check_real("tests", tests, 1.0),
        check_level("level", level),
        check_level("power", power),
        check_flag("worth_table", worth_table),
    )


@lru_cache(maxsize=4096)
def _found_with(
    freedom: float, tests: float, level: float, power: float, worth_table: bool
) -> float:
    """The noncentrality with which the test has this power."""
    threshold = chi_squared_quantile(freedom, level / tests)
    if worth_table:
        threshold = max(threshold, 2.0 * freedom)
    low, high = 0.0, threshold
    while chi_squared_power(threshold, freedom, high) < power:
        low, high = high, 2.0 * high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if chi_squared_power(threshold, freedom, middle) < power:
            low = middle
        else:
            high = middle
    return high
