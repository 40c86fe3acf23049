"""The loops of ExoGrid, compiled: pure functions of states and of uniform random numbers.

States come as flat batches, n of shape (lanes, 1) and x of shape (lanes, 5). No value of x is used
as an index.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exo_envs.compiled.functions import njit

OBJECT, CARRIER, GUARD, INTENT, WEATHER = range(5)


@njit(cache=True, nogil=True)
def exogenous_step(
    first: int,
    last: int,
    exogenous: Any,
    uniforms: Any,
    probability: Any,  # (5,): of the event that each variable waits for
    num_tables: int,
    following: Any,
) -> None:
    """Write x' of some lanes: each event happens with its probability, independent of others."""
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
    slip: float,
    goal_reward: float,
    crash_cost: float,
    moves: Any,  # (cells, actions)
    table_at: Any,  # (cells,): the table in a cell, or -1
    door_at: Any,  # (cells,): the door in a cell, or -1
    following: Any,  # (lanes, 1)
    rewards: Any,  # (lanes,)
) -> None:
    """Write n' of some lanes, and what all that :func:`reward_terms` finds adds up to.

    The robot is done where the object is; else it moves, unless it slips or crashes.
    """
    done = len(moves)
    for lane in range(first, last):
        robot = endogenous[lane, 0]
        following[lane, 0], rewards[lane] = robot, 0.0
        if robot == done:
            continue
        reward = 0.0
        target = moves[robot, action[lane]]
        crashes = target != robot and door_at[target] == exogenous[lane, GUARD]
        found = table_at[robot] == exogenous[lane, OBJECT]
        if crashes:
            reward -= crash_cost
        if found:
            reward += goal_reward
            following[lane, 0] = done
        elif uniforms[lane, 0] >= slip and not crashes:
            following[lane, 0] = target
        rewards[lane] = reward


@njit(cache=True)
def reward_terms(
    endogenous: Any,
    exogenous: Any,
    action: Any,
    goal_reward: float,
    crash_cost: float,
    moves: Any,
    table_at: Any,
    door_at: Any,
) -> Any:
    """R^i: the object pays for being found, the guard for being walked into."""
    terms = np.zeros(exogenous.shape)
    for lane in range(len(endogenous)):
        robot = endogenous[lane, 0]
        if robot == len(moves):
            continue
        if table_at[robot] == exogenous[lane, OBJECT]:
            terms[lane, OBJECT] = goal_reward
        target = moves[robot, action[lane]]
        if target != robot and door_at[target] == exogenous[lane, GUARD]:
            terms[lane, GUARD] = -crash_cost
    return terms


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
    probability: Any,  # this and the next one as in exogenous_step
    num_tables: int,
    slip: float,  # this and the others as in endogenous_step
    goal_reward: float,
    crash_cost: float,
    moves: Any,
    table_at: Any,
    door_at: Any,
) -> bool:
    """A whole step of some lanes."""
    endogenous_step(
        *(first, last, endogenous, exogenous, action, endogenous_uniforms),
        *(slip, goal_reward, crash_cost, moves, table_at, door_at),
        *(next_endogenous, rewards),
    )
    exogenous_step(
        *(first, last, exogenous, exogenous_uniforms, probability, num_tables, next_exogenous)
    )
    done = len(moves)
    for lane in range(first, last):
        if endogenous[lane, 0] == done:  # nothing moves any more
            for i in range(exogenous.shape[1]):
                next_exogenous[lane, i] = exogenous[lane, i]
        terminal[lane] = next_endogenous[lane, 0] == done
    return True
