"""The loops of ExoGrid, compiled: pure functions of states and of uniform random numbers.

States come as flat batches, n of shape (lanes, 1) and x of shape (lanes, 5). No value of x is used
as an index.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exo_envs.compiled import njit

OBJECT, CARRIER, GUARD, INTENT, WEATHER = range(5)


@njit(cache=True)
def exogenous_step(exogenous: Any, uniforms: Any, probability: Any, num_tables: int) -> Any:
    """x': each event happens with its probability, independently of the others."""
    following = np.empty_like(exogenous)
    for lane in range(len(exogenous)):
        x, y = exogenous[lane], following[lane]
        happens = uniforms[lane] < probability
        step = 1 - 2 * x[CARRIER] if happens[OBJECT] else 0
        y[OBJECT] = (x[OBJECT] + step) % num_tables
        y[CARRIER] = x[CARRIER] ^ happens[CARRIER]
        y[GUARD] = x[INTENT] if happens[GUARD] else x[GUARD]
        y[INTENT] = x[INTENT] ^ happens[INTENT]
        y[WEATHER] = x[WEATHER] ^ happens[WEATHER]
    return following


@njit(cache=True)
def endogenous_step(
    endogenous: Any,
    exogenous: Any,
    action: Any,
    uniforms: Any,  # (lanes,)
    slip: float,
    moves: Any,  # (cells, actions)
    table_at: Any,  # (cells,): the table in a cell, or -1
    door_at: Any,  # (cells,): the door in a cell, or -1
) -> Any:
    """n': the robot is done where the object is; else it moves, unless it slips or crashes."""
    following = endogenous.copy()
    for lane in range(len(endogenous)):
        robot, x = endogenous[lane, 0], exogenous[lane]
        if robot == len(moves):
            continue
        if table_at[robot] == x[OBJECT]:
            following[lane, 0] = len(moves)
        elif uniforms[lane] >= slip and not _crashes(robot, x, action[lane], moves, door_at):
            following[lane, 0] = moves[robot, action[lane]]
    return following


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
        robot, x = endogenous[lane, 0], exogenous[lane]
        if robot == len(moves):
            continue
        if table_at[robot] == x[OBJECT]:
            terms[lane, OBJECT] = goal_reward
        if _crashes(robot, x, action[lane], moves, door_at):
            terms[lane, GUARD] = -crash_cost
    return terms


@njit(cache=True)
def _crashes(robot: Any, x: Any, action: Any, moves: Any, door_at: Any) -> Any:
    target = moves[robot, action]
    return target != robot and door_at[target] == x[GUARD]
