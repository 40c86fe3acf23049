"""The loops of the planted problems, compiled: pure functions of states and of uniform numbers.

States come as flat batches, n of shape (lanes, 3) and x of shape (lanes, m). Values of n and
actions are in range. Those of x may be of any integer type; :func:`exogenous_step` looks at each
of them itself.

Most variables keep their value or are drawn anew from a uniform distribution: a loop without
branches, which compilers turn into vector instructions. The others, ``special``, come as flat
tables. The edges of the k-th of them are between ``edge_starts`` k and k + 1; the value that its
parents call for and the distribution it is drawn anew from are at its starts in ``functions`` and
``cdfs``. SHORT instead of a start stands for "the value of the only parent" and for "uniform".
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
    SHORT,
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
                if w.cdf_starts[k] != SHORT:
                    quantile, value = uniform[i] / noise[i], 0
                    while value < tops[i] and quantile >= w.cdfs[w.cdf_starts[k] + value]:
                        value += 1
                    out[i] = value
            elif w.function_starts[k] == SHORT:
                out[i] = x[w.parents[w.edge_starts[k]]]
            else:
                entry = w.function_starts[k]
                for edge in range(w.edge_starts[k], w.edge_starts[k + 1]):
                    entry += w.strides[edge] * np.int64(x[w.parents[edge]])
                out[i] = w.functions[entry]
    return True


@njit(**INNER)
def _held(n: Any, action: Any, bets: Any) -> Any:
    """The bet in hand once the action is taken."""
    if n[LEFT] == bets.delays[n[SITE]]:
        return action
    return NO_BET if n[LEFT] == 0 or action == PASS else n[BET]


@njit(**INNER)
def _successor(n: Any, x: Any, action: Any, bets: Any, out: Any) -> Any:
    """Write the n' of a bet that goes straight; return the probability that it is turned round."""
    site, left = n[SITE], n[LEFT]
    if left == 0:  # on to the next site
        out[SITE] = (site + 1) % len(bets.delays)
        out[LEFT] = bets.delays[out[SITE]]
        out[BET] = NO_BET
        return 0.0
    out[SITE] = site
    out[LEFT] = left - 1
    out[BET] = _held(n, action, bets)
    if left != 1 or out[BET] == NO_BET:
        return 0.0
    switch = bets.switches[site]
    return 1.0 - bets.slip if switch != NO_SWITCH and x[switch] == 1 else bets.slip


@njit(**INNER)
def _settled(n: Any, x: Any, bets: Any) -> Any:
    """What the bet in a state pays now."""
    site, left, bet = n[SITE], n[LEFT], n[BET]
    if left != 0 or bet == NO_BET:
        return 0.0
    # Compared with 1, not used as indices: the values of x were not looked at.
    one, other = int(x[bets.paying[site, 0]] == 1), int(x[bets.paying[site, 1]] == 1)
    won = bets.outcomes[site, one, other] == bet - 1
    return bets.stakes[site] if won else -bets.stakes[site]


@njit(**INNER)
def _fee(n: Any, action: Any, bets: Any) -> Any:
    """What it costs to place or hold a bet."""
    return -bets.fee * bets.stakes[n[SITE]] if _held(n, action, bets) != NO_BET else 0.0


@njit(cache=True)
def endogenous_outcomes(endogenous: Any, exogenous: Any, action: Any, bets: Any) -> Any:
    """P(n'|n,a,x): n' if the bet goes straight, and the probability that it is turned round."""
    b = Bets(*bets)
    following = np.empty_like(endogenous)
    turn = np.empty(len(endogenous))
    for lane in range(len(endogenous)):
        n, x = endogenous[lane], exogenous[lane]
        turn[lane] = _successor(n, x, action[lane], b, following[lane])
    return following, turn


@njit(cache=True, nogil=True)
def endogenous_step(
    first: int,
    last: int,
    endogenous: Any,
    exogenous: Any,
    action: Any,
    uniforms: Any,  # (lanes, 1)
    bets: Any,
    following: Any,
) -> None:
    """Write n' of some lanes: a bet goes straight, or it is turned round."""
    b = Bets(*bets)
    for lane in range(first, last):
        out = following[lane]
        turn = _successor(endogenous[lane], exogenous[lane], action[lane], b, out)
        if uniforms[lane, 0] < turn:
            out[BET] = TURNED - out[BET]


@njit(cache=True)
def reward_terms(
    endogenous: Any,
    exogenous: Any,
    bets: Any,
    terms: Any,  # (lanes, terms), zeros
) -> None:
    """Write R^i: what pays at the site settles the bet."""
    b = Bets(*bets)
    for lane in range(len(endogenous)):
        n = endogenous[lane]
        terms[lane, b.columns[n[SITE]]] = _settled(n, exogenous[lane], b)


@njit(cache=True)
def endogenous_reward(endogenous: Any, action: Any, bets: Any) -> Any:
    """R(n,a): a bet in hand costs its fee, step by step."""
    b = Bets(*bets)
    paid = np.empty(len(endogenous))
    for lane in range(len(endogenous)):
        paid[lane] = _fee(endogenous[lane], action[lane], b)
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
    """A whole step of some lanes."""
    bets, net = problem
    b, n, x = Bets(*bets), endogenous, exogenous
    for lane in range(first, last):
        rewards[lane] = _settled(n[lane], x[lane], b) + _fee(n[lane], action[lane], b)
        terminal[lane] = False
    endogenous_step(first, last, n, x, action, endogenous_uniforms, bets, next_endogenous)
    return exogenous_step(first, last, x, exogenous_uniforms, net, next_exogenous)
