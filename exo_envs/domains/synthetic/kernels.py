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

from exo_envs.compiled.functions import njit
from exo_envs.domains.synthetic.codes import BET, LEFT, NO_BET, NO_SWITCH, PASS, SHORT, SITE, TURNED


@njit(cache=True, nogil=True, error_model="numpy")
def exogenous_step(
    first: int,
    last: int,
    exogenous: Any,  # (lanes, m)
    uniforms: Any,  # (lanes, m)
    noise: Any,  # (m,): the probability that each variable is drawn anew
    sizes: Any,  # (m,) float64: how many values it has
    tops: Any,  # (m,) int32: its largest value
    special: Any,  # (k,): the variables that do more than keep their value
    edge_starts: Any,  # (k + 1,)
    parents: Any,
    strides: Any,
    function_starts: Any,  # (k,)
    functions: Any,
    cdf_starts: Any,  # (k,)
    cdfs: Any,
    following: Any,  # (lanes, m)
) -> bool:
    """Write x' of some lanes: each variable is drawn anew, or is what its parents call for.

    Returns:
        Whether all x were in range. If not, some x' were not written.
    """
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
                if cdf_starts[k] != SHORT:
                    quantile, value = uniform[i] / noise[i], 0
                    while value < tops[i] and quantile >= cdfs[cdf_starts[k] + value]:
                        value += 1
                    out[i] = value
            elif function_starts[k] == SHORT:
                out[i] = x[parents[edge_starts[k]]]
            else:
                entry = function_starts[k]
                for edge in range(edge_starts[k], edge_starts[k + 1]):
                    entry += strides[edge] * np.int64(x[parents[edge]])
                out[i] = functions[entry]
    return True


@njit(cache=True, nogil=True)
def _held(n: Any, action: Any, delays: Any) -> Any:
    """The bet in hand once the action is taken."""
    if n[LEFT] == delays[n[SITE]]:
        return action
    return NO_BET if n[LEFT] == 0 or action == PASS else n[BET]


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def endogenous_step(
    first: int,
    last: int,
    endogenous: Any,
    exogenous: Any,
    action: Any,
    uniforms: Any,  # (lanes, 1)
    slip: float,
    delays: Any,
    switches: Any,
    following: Any,
) -> None:
    """Write n' of some lanes: a bet goes straight, or it is turned round."""
    for lane in range(first, last):
        out = following[lane]
        turn = _successor(
            endogenous[lane], exogenous[lane], action[lane], slip, delays, switches, out
        )
        if uniforms[lane, 0] < turn:
            out[BET] = TURNED - out[BET]


@njit(cache=True, nogil=True)
def _settled(n: Any, x: Any, paying: Any, outcomes: Any, stakes: Any) -> Any:
    """What the bet in a state pays now."""
    site, left, bet = n[SITE], n[LEFT], n[BET]
    if left != 0 or bet == NO_BET:
        return 0.0
    # Compared with 1, not used as indices: the values of x were not looked at.
    one, other = int(x[paying[site, 0]] == 1), int(x[paying[site, 1]] == 1)
    return stakes[site] if outcomes[site, one, other] == bet - 1 else -stakes[site]


@njit(cache=True)
def reward_terms(
    endogenous: Any,
    exogenous: Any,
    columns: Any,  # (sites,): the term of each site
    paying: Any,  # (sites, 2): the variables that it looks at, the same one twice if it is one
    outcomes: Any,  # (sites, 2, 2): what is bet on, by the values of both
    stakes: Any,
    terms: Any,  # (lanes, terms), zeros
) -> None:
    """Write R^i: what pays at the site settles the bet."""
    for lane in range(len(endogenous)):
        paid = _settled(endogenous[lane], exogenous[lane], paying, outcomes, stakes)
        terms[lane, columns[endogenous[lane, SITE]]] = paid


@njit(cache=True, nogil=True)
def _fee(n: Any, action: Any, fee: float, delays: Any, stakes: Any) -> Any:
    """What it costs to place or hold a bet."""
    return -fee * stakes[n[SITE]] if _held(n, action, delays) != NO_BET else 0.0


@njit(cache=True)
def endogenous_reward(endogenous: Any, action: Any, fee: float, delays: Any, stakes: Any) -> Any:
    """R(n,a): a bet in hand costs its fee, step by step."""
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
    slip: float,  # this and the next two as in endogenous_step
    delays: Any,
    switches: Any,
    paying: Any,  # this and the next two as in reward_terms
    outcomes: Any,
    stakes: Any,
    fee: float,
    noise: Any,  # this and the others as in exogenous_step
    sizes: Any,
    tops: Any,
    special: Any,
    edge_starts: Any,
    parents: Any,
    strides: Any,
    function_starts: Any,
    functions: Any,
    cdf_starts: Any,
    cdfs: Any,
) -> bool:
    """A whole step of some lanes."""
    for lane in range(first, last):
        n = endogenous[lane]
        paid = _settled(n, exogenous[lane], paying, outcomes, stakes)
        rewards[lane] = paid + _fee(n, action[lane], fee, delays, stakes)
        terminal[lane] = False
    endogenous_step(
        *(first, last, endogenous, exogenous, action, endogenous_uniforms),
        *(slip, delays, switches, next_endogenous),
    )
    return exogenous_step(
        *(first, last, exogenous, exogenous_uniforms, noise, sizes, tops, special),
        *(edge_starts, parents, strides, function_starts, functions, cdf_starts, cdfs),
        next_exogenous,
    )
