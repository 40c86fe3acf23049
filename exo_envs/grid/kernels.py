"""The dynamics of ExoGrid for one lane; NumPy's broadcasting makes the batches.

Each kernel is a generalised ufunc: a pure function of the state and of uniform noise drawn
beforehand, with the layout of the floor in small tables.
"""

from __future__ import annotations

from typing import Any

from numba import float64, guvectorize, int64, njit, void

OBJECT, CARRIER, GUARD, INTENT, WEATHER = range(5)


@njit(cache=True)
def _arrived(n: Any, x: Any, tables: Any) -> Any:
    return n[0] == tables[x[OBJECT]]


@njit(cache=True)
def _crashes(n: Any, x: Any, action: Any, moves: Any, doors: Any) -> Any:
    target = moves[n[0], action]
    return target != n[0] and target == doors[x[GUARD]]


@guvectorize(
    [void(int64[:], float64[:], float64[:], int64, int64[:])],
    "(m),(m),(m),()->(m)",
    nopython=True,
    cache=True,
)
def exogenous_step(x: Any, uniform: Any, probability: Any, num_tables: Any, out: Any) -> None:
    """x': each event happens with its probability, independently of the others."""
    step = 1 - 2 * x[CARRIER] if uniform[OBJECT] < probability[OBJECT] else 0
    out[OBJECT] = (x[OBJECT] + step) % num_tables
    out[CARRIER] = x[CARRIER] ^ (uniform[CARRIER] < probability[CARRIER])
    out[GUARD] = x[INTENT] if uniform[GUARD] < probability[GUARD] else x[GUARD]
    out[INTENT] = x[INTENT] ^ (uniform[INTENT] < probability[INTENT])
    out[WEATHER] = x[WEATHER] ^ (uniform[WEATHER] < probability[WEATHER])


@guvectorize(
    [void(int64[:], int64[:], int64, float64, float64, int64[:, :], int64[:], int64[:], int64[:])],
    "(k),(m),(),(),(),(c,a),(t),(d)->(k)",
    nopython=True,
    cache=True,
)
def endogenous_step(
    n: Any,
    x: Any,
    action: Any,
    uniform: Any,
    slip: Any,
    moves: Any,
    tables: Any,
    doors: Any,
    out: Any,
) -> None:
    """n': the robot is done where the object is; else it moves, unless it slips or crashes."""
    done = len(moves)
    if n[0] == done or _arrived(n, x, tables):
        out[0] = done
    elif uniform < slip or _crashes(n, x, action, moves, doors):
        out[0] = n[0]
    else:
        out[0] = moves[n[0], action]


@guvectorize(
    [
        void(
            int64[:], int64[:], int64, float64, float64, int64[:, :], int64[:], int64[:], float64[:]
        )
    ],
    "(k),(m),(),(),(),(c,a),(t),(d)->(m)",
    nopython=True,
    cache=True,
)
def reward_terms(
    n: Any,
    x: Any,
    action: Any,
    goal: Any,
    crash: Any,
    moves: Any,
    tables: Any,
    doors: Any,
    out: Any,
) -> None:
    """R^i: the object pays for being found, the guard for being walked into."""
    out[:] = 0.0
    if n[0] != len(moves):
        if _arrived(n, x, tables):
            out[OBJECT] = goal
        if _crashes(n, x, action, moves, doors):
            out[GUARD] = -crash
