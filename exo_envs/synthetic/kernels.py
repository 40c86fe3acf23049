"""The loops of the planted problems, compiled: pure functions of states and of uniform numbers.

States come as flat batches, n of shape (lanes, 3) and x of shape (lanes, m).

The net comes as flat tables. The edges of variable i are between ``edge_starts`` i and i + 1; the
value that its parents call for and the distribution it is drawn anew from are at its starts in
``functions`` and ``cdfs``. Most variables need neither table, which keeps large nets in the cache:
SHORT instead of a start stands for "the value of the only parent" and for "uniform".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exo_envs.compiled import njit
from exo_envs.synthetic.codes import BET, LEFT, NO_BET, NO_SWITCH, PASS, SHORT, SITE


@njit(cache=True)
def exogenous_step(
    exogenous: Any,  # (lanes, m)
    uniforms: Any,  # (lanes, m)
    noise: Any,
    sizes: Any,
    edge_starts: Any,
    parents: Any,
    strides: Any,
    function_starts: Any,
    functions: Any,
    cdf_starts: Any,
    cdfs: Any,
) -> Any:
    """x': each variable is drawn anew, or takes the value that its parents call for."""
    following = np.empty_like(exogenous)
    for lane in range(len(exogenous)):
        x, uniform, out = exogenous[lane], uniforms[lane], following[lane]
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
    return following


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


@njit(cache=True)
def endogenous_outcomes(
    endogenous: Any, exogenous: Any, action: Any, slip: float, delays: Any, switches: Any
) -> Any:
    """P(n'|n,a,x): n' if the bet goes straight, and the probability that it is turned round."""
    following = np.empty_like(endogenous)
    turn = np.empty(len(endogenous))
    for lane in range(len(endogenous)):
        turn[lane] = _successor(
            endogenous[lane], exogenous[lane], action[lane], slip, delays, switches, following[lane]
        )
    return following, turn


@njit(cache=True)
def reward_terms(
    endogenous: Any,
    exogenous: Any,
    num_terms: int,
    columns: Any,  # (sites,): the term of each site
    paying: Any,  # (sites, 2): the variables that it looks at, the same one twice if it is one
    outcomes: Any,  # (sites, 2, 2): what is bet on, by the values of both
    stakes: Any,
) -> Any:
    """R^i: what pays at the site settles the bet."""
    terms = np.zeros((len(exogenous), num_terms))
    for lane in range(len(endogenous)):
        site, left, bet = endogenous[lane]
        if left == 0 and bet != NO_BET:
            # Compared with 1, not used as indices: the values of x were not looked at.
            first = int(exogenous[lane, paying[site, 0]] == 1)
            second = int(exogenous[lane, paying[site, 1]] == 1)
            won = outcomes[site, first, second] == bet - 1
            terms[lane, columns[site]] = stakes[site] if won else -stakes[site]
    return terms


@njit(cache=True)
def endogenous_reward(endogenous: Any, action: Any, fee: float, delays: Any, stakes: Any) -> Any:
    """R(n,a): a bet in hand costs its fee, step by step."""
    paid = np.zeros(len(endogenous))
    for lane in range(len(endogenous)):
        if _held(endogenous[lane], action[lane], delays) != NO_BET:
            paid[lane] = -fee * stakes[endogenous[lane, SITE]]
    return paid
