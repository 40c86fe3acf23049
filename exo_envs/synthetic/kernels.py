"""The dynamics of the planted problems for one lane; NumPy's broadcasting makes the batches.

Each kernel is a generalised ufunc: a pure function of the state and of uniform noise drawn
beforehand.

The net comes as flat tables. The edges of variable i are between ``edge_starts`` i and i + 1; the
value that its parents call for and the distribution it is drawn anew from are at its starts in
``functions`` and ``cdfs``. Most variables need neither table, which keeps large nets in the cache:
SHORT instead of a start stands for "the value of the only parent" and for "uniform".
"""

from __future__ import annotations

from typing import Any

from numba import float64, guvectorize, int64, njit, void

SITE, LEFT, BET = range(3)  # the endogenous variables
PASS = 0  # the action; 1 + v is a bet on the value v
NO_BET = 0  # the value of BET; 1 + v is a bet on the value v
TURNED = 3  # minus a bet is the opposite bet
NO_SWITCH = -1
SHORT = -1


@guvectorize(
    [
        void(
            int64[:], float64[:], float64[:], int64[:], int64[:], int64[:], int64[:],
            int64[:], int64[:], int64[:], float64[:], int64[:],
        )
    ],
    "(m),(m),(m),(m),(s),(e),(e),(m),(f),(m),(c)->(m)",
    nopython=True,
    cache=True,
)  # fmt: skip
def exogenous_step(
    x: Any,
    uniform: Any,
    noise: Any,
    sizes: Any,
    edge_starts: Any,
    parents: Any,
    strides: Any,
    function_starts: Any,
    functions: Any,
    cdf_starts: Any,
    cdfs: Any,
    out: Any,
) -> None:
    """x': each variable is drawn anew, or takes the value that its parents call for."""
    for i in range(len(x)):
        if uniform[i] < noise[i]:
            quantile = uniform[i] / noise[i]  # given that, it is uniform too
            last = sizes[i] - 1
            value = 0
            if cdf_starts[i] == SHORT:
                value = min(int(quantile * sizes[i]), last)
            else:
                while value < last and quantile >= cdfs[cdf_starts[i] + value]:
                    value += 1
            out[i] = value
        elif function_starts[i] == SHORT:
            out[i] = x[parents[edge_starts[i]]]
        else:
            entry = function_starts[i]
            for edge in range(edge_starts[i], edge_starts[i + 1]):
                entry += strides[edge] * x[parents[edge]]
            out[i] = functions[entry]


@njit(cache=True)
def _held(n: Any, action: Any, delays: Any) -> Any:
    """The bet in hand once the action is taken."""
    if n[LEFT] == delays[n[SITE]]:
        return action
    return NO_BET if n[LEFT] == 0 or action == PASS else n[BET]


@njit(cache=True)
def _successor(n: Any, x: Any, action: Any, slip: Any, delays: Any, switches: Any, out: Any) -> Any:
    """Write the n' of a bet that goes straight; return the probability that it is turned round."""
    site, left = n[SITE], n[LEFT]
    if left == 0:  # on to the next site
        out[SITE] = (site + 1) % len(delays)
        out[LEFT] = delays[out[SITE]]
        out[BET] = NO_BET
        return 0.0
    out[SITE] = site
    out[LEFT] = left - 1
    out[BET] = _held(n, action, delays)
    if left != 1 or out[BET] == NO_BET:
        return 0.0
    if switches[site] != NO_SWITCH and x[switches[site]] == 1:
        return 1.0 - slip
    return slip


@guvectorize(
    [void(int64[:], int64[:], int64, float64, float64, int64[:], int64[:], int64[:])],
    "(k),(m),(),(),(),(s),(s)->(k)",
    nopython=True,
    cache=True,
)
def endogenous_step(
    n: Any, x: Any, action: Any, uniform: Any, slip: Any, delays: Any, switches: Any, out: Any
) -> None:
    """n': a bet is placed, carried, given up, turned round or settled."""
    if uniform < _successor(n, x, action, slip, delays, switches, out):
        out[BET] = TURNED - out[BET]


@guvectorize(
    [void(int64[:], int64[:], int64, float64, int64[:], int64[:], int64[:], float64[:])],
    "(k),(m),(),(),(s),(s)->(k),()",
    nopython=True,
    cache=True,
)
def endogenous_outcomes(
    n: Any, x: Any, action: Any, slip: Any, delays: Any, switches: Any, out: Any, turn: Any
) -> None:
    """P(n'|n,a,x) itself: n' if the bet goes straight, and the probability that it does not."""
    turn[0] = _successor(n, x, action, slip, delays, switches, out)


@guvectorize(
    [void(int64[:], int64[:], int64[:], float64[:], float64[:])],
    "(k),(m),(s),(s)->(m)",
    nopython=True,
    cache=True,
)
def reward_terms(n: Any, x: Any, paying: Any, stakes: Any, out: Any) -> None:
    """R^i: the paying variable of the site settles the bet."""
    out[:] = 0.0
    if n[LEFT] == 0 and n[BET] != NO_BET:
        i = paying[n[SITE]]
        out[i] = stakes[n[SITE]] if x[i] == n[BET] - 1 else -stakes[n[SITE]]


@guvectorize(
    [void(int64[:], int64, float64, int64[:], float64[:], float64[:])],
    "(k),(),(),(s),(s)->()",
    nopython=True,
    cache=True,
)
def endogenous_reward(n: Any, action: Any, fee: Any, delays: Any, stakes: Any, out: Any) -> None:
    """R(n,a): a bet in hand costs its fee, step by step."""
    out[0] = 0.0 if _held(n, action, delays) == NO_BET else -fee * stakes[n[SITE]]
