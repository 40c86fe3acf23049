"""The loops of ExoGrid, compiled: pure functions of states and of uniform random numbers.

States come as flat batches, n of shape (lanes, 1) and x of shape (lanes, 5). No value of x is used
as an index.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exo_envs.compiled.functions import njit
from exo_envs.domains.grid.parameters import World

OBJECT, CARRIER, GUARD, INTENT, WEATHER = range(5)


@njit(cache=True, nogil=True)
def exogenous_step(
    first: int,
    last: int,
    exogenous: Any,
    uniforms: Any,
    world: Any,
    following: Any,
) -> None:
    """Write x' of some lanes: each event happens with its probability, independent of others."""
    w = World(*world)
    probability, num_tables = w.probability, w.num_tables
    for lane in range(first, last):
        obj, carrier = exogenous[lane, OBJECT], exogenous[lane, CARRIER]
        intent, weather = exogenous[lane, INTENT], exogenous[lane, WEATHER]
        follows = uniforms[lane, GUARD] < probability[GUARD]
        carried = obj + (1 - 2 * carrier) * (uniforms[lane, OBJECT] < probability[OBJECT])
        following[lane, OBJECT] = carried + num_tables * ((carried < 0) - (carried >= num_tables))
        following[lane, CARRIER] = carrier ^ (uniforms[lane, CARRIER] < probability[CARRIER])
        following[lane, GUARD] = intent if follows else exogenous[lane, GUARD]
        following[lane, INTENT] = intent ^ (uniforms[lane, INTENT] < probability[INTENT])
        following[lane, WEATHER] = weather ^ (uniforms[lane, WEATHER] < probability[WEATHER])


@njit(cache=True, nogil=True)
def endogenous_step(
    first: int,
    last: int,
    endogenous: Any,
    exogenous: Any,
    action: Any,
    uniforms: Any,  # (lanes, 1)
    following: Any,  # (lanes, 1)
    rewards: Any,  # (lanes,)
    terms: Any,  # (lanes, 5), zeros, or no rows
    world: Any,
) -> None:
    """Write n' of some lanes, what the step pays, and R^i if there is room for it.

    The robot is done where the object is; else it moves, unless it slips or crashes.
    """
    w = World(*world)
    done = len(w.moves)
    for lane in range(first, last):
        robot = endogenous[lane, 0]
        following[lane, 0], rewards[lane] = robot, 0.0
        if robot == done:
            continue
        target = w.moves[robot, action[lane]]
        crashes = target != robot and w.door_at[target] == exogenous[lane, GUARD]
        found = w.table_at[robot] == exogenous[lane, OBJECT]
        crash, goal = 0.0 - w.crash_cost * crashes, w.goal_reward * found
        if found:
            following[lane, 0] = done
        elif uniforms[lane, 0] >= w.slip and not crashes:
            following[lane, 0] = target
        rewards[lane] = crash + goal
        if len(terms):
            terms[lane, GUARD], terms[lane, OBJECT] = crash, goal


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
    world: Any,
) -> bool:
    n, x = endogenous, exogenous
    endogenous_step(
        *(first, last, n, x, action, endogenous_uniforms),
        *(next_endogenous, rewards, np.empty((0, 0)), world),
    )
    exogenous_step(first, last, x, exogenous_uniforms, world, next_exogenous)
    done = len(World(*world).moves)
    for lane in range(first, last):
        if n[lane, 0] == done:  # nothing moves any more
            for i in range(x.shape[1]):
                next_exogenous[lane, i] = x[lane, i]
        terminal[lane] = next_endogenous[lane, 0] == done
    return True
