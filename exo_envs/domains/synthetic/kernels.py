"""The loops of the planted problems, compiled: pure functions of states and of uniform numbers.

States come as flat batches, n of shape (lanes, 3) and x of shape (lanes, m). Values of n and
actions are in range. Those of x may be of any integer type; :func:`exogenous_step` looks at each
of them itself.

Most variables keep their value or are drawn anew from a uniform distribution: a loop without
branches, which compilers turn into vector instructions. The others, ``special``, have tables.

Arrays are taken out of a record before a loop that hands them to functions: in each turn of the
loop that would take longer than all the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exo_envs.compiled.functions import INNER, njit
from exo_envs.domains.synthetic.parameters import (
    BET,
    LEFT,
    NO_BET,
    NO_SWITCH,
    PASS,
    SITE,
    TURNED,
    Bets,
    Net,
)


@njit(cache=True, nogil=True, error_model="numpy")
def exogenous_step(
    first: int,
    last: int,
    exogenous: Any,  # (lanes, m)
    uniforms: Any,  # (lanes, m)
    net: Any,
    following: Any,  # (lanes, m)
) -> bool:
    """Write x' of some lanes: each variable is drawn anew, or is what its parents call for.

    Returns:
        Whether all x were in range. If not, some x' were not written.
    """
    w = Net(*net)
    noise, sizes, tops, special = w.noise, w.sizes, w.tops, w.special
    parents, strides, functions, cdfs = w.parents, w.strides, w.functions, w.cdfs
    for lane in range(first, last):
        x, uniform, out = exogenous[lane], uniforms[lane], following[lane]
        wrong = 0
        for i in range(len(noise)):
            wrong |= x[i] < 0 or x[i] > tops[i]
            # Below the noise, the number divided by it is uniform too.
            drawn = min(np.int32(uniform[i] / noise[i] * sizes[i]), tops[i])
            out[i] = drawn if uniform[i] < noise[i] else x[i]
        if wrong:
            return False
        for k in range(len(special)):
            i = special[k]
            if uniform[i] < noise[i]:
                quantile, value = uniform[i] / noise[i], 0
                for v in range(tops[i]):  # a sum of comparisons: nobody can predict their results
                    value += quantile >= cdfs[k, v]
                out[i] = value
            else:
                entry = 0
                for j in range(parents.shape[1]):
                    entry += strides[k, j] * np.int64(x[parents[k, j]])
                out[i] = functions[k, entry]
    return True


@njit(**INNER)
def _held(n: Any, action: Any, delays: Any) -> Any:
    """The bet in hand once the action is taken."""
    if n[LEFT] == delays[n[SITE]]:
        return action
    return NO_BET if n[LEFT] == 0 or action == PASS else n[BET]


@njit(**INNER)
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


@njit(**INNER)
def _settled(n: Any, x: Any, paying: Any, outcomes: Any, stakes: Any) -> Any:
    """What the bet in a state pays now."""
    site, left, bet = n[SITE], n[LEFT], n[BET]
    if left != 0 or bet == NO_BET:
        return 0.0
    # Compared with 1, not used as indices: the values of x were not looked at.
    one, other = int(x[paying[site, 0]] == 1), int(x[paying[site, 1]] == 1)
    return stakes[site] if outcomes[site, one, other] == bet - 1 else -stakes[site]


@njit(**INNER)
def _fee(n: Any, action: Any, fee: float, delays: Any, stakes: Any) -> Any:
    """What it costs to place or hold a bet."""
    return -fee * stakes[n[SITE]] if _held(n, action, delays) != NO_BET else 0.0


@njit(cache=True)
def endogenous_outcomes(endogenous: Any, exogenous: Any, action: Any, bets: Any) -> Any:
    """P(n'|n,a,x): n' if the bet goes straight, and the probability that it is turned round."""
    b = Bets(*bets)
    slip, delays, switches = b.slip, b.delays, b.switches
    following = np.empty_like(endogenous)
    turn = np.empty(len(endogenous))
    for lane in range(len(endogenous)):
        n, x, out = endogenous[lane], exogenous[lane], following[lane]
        turn[lane] = _successor(n, x, action[lane], slip, delays, switches, out)
    return following, turn


@njit(cache=True)
def reward_terms(
    endogenous: Any,
    exogenous: Any,
    bets: Any,
    terms: Any,  # (lanes, terms), zeros
) -> None:
    b = Bets(*bets)
    paying, outcomes, stakes, columns = b.paying, b.outcomes, b.stakes, b.columns
    for lane in range(len(endogenous)):
        n = endogenous[lane]
        terms[lane, columns[n[SITE]]] = _settled(n, exogenous[lane], paying, outcomes, stakes)


@njit(cache=True)
def endogenous_reward(endogenous: Any, action: Any, bets: Any) -> Any:
    b = Bets(*bets)
    fee, delays, stakes = b.fee, b.delays, b.stakes
    paid = np.empty(len(endogenous))
    for lane in range(len(endogenous)):
        paid[lane] = _fee(endogenous[lane], action[lane], fee, delays, stakes)
    return paid


@njit(cache=True, nogil=True)
def step(
    first: int,
    last: int,
    endogenous: Any,
    exogenous: Any,
    action: Any,
    endogenous_uniforms: Any,
    exogenous_uniforms: Any,
    next_endogenous: Any,
    next_exogenous: Any,
    rewards: Any,
    terminal: Any,
    problem: Any,  # its bets and its net
) -> bool:
    bets, net = problem
    b, n, x = Bets(*bets), endogenous, exogenous
    paying, outcomes, stakes, fee, delays = b.paying, b.outcomes, b.stakes, b.fee, b.delays
    slip, switches = b.slip, b.switches
    for lane in range(first, last):
        out = next_endogenous[lane]
        turn = _successor(n[lane], x[lane], action[lane], slip, delays, switches, out)
        if endogenous_uniforms[lane, 0] < turn:
            out[BET] = TURNED - out[BET]
        paid = _settled(n[lane], x[lane], paying, outcomes, stakes)
        rewards[lane] = paid + _fee(n[lane], action[lane], fee, delays, stakes)
        terminal[lane] = False
    return exogenous_step(first, last, x, exogenous_uniforms, net, next_exogenous)
