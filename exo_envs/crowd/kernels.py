"""The loops of ExoCrowd, compiled: pure functions of states and of uniform random numbers.

States come as flat batches, x of shape (lanes, m); each function fills its last argument and says
whether every value that it had to look up was in range (what is out of range is never used as an
index). The layout of x is that of :class:`exo_envs.crowd.CrowdMDP`: occupancies, then three
values an agent, porters first, then objects.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from exo_envs.mdp import FloatArray

Int64Array = NDArray[np.int64]


@njit(cache=True)
def advance(
    exogenous: Int64Array,  # (lanes, m)
    uniforms: FloatArray,  # (lanes, num_agents): one number decides what an agent does
    ways: Int64Array,  # (num_cells, num_tables, 3): the cell itself, two next ones to a table
    table_cells: Int64Array,  # (num_tables,)
    num_porters: int,
    stand_still: float,
    pick_up: float,
    following: Int64Array,  # (lanes, m), filled with x'
) -> bool:
    """Draw x' from P(x' | x)."""
    num_cells, num_tables = ways.shape[:2]
    num_agents = uniforms.shape[1]
    objects = num_cells + 3 * num_agents
    for lane in range(len(exogenous)):
        x, y = exogenous[lane], following[lane]
        y[:num_cells] = 0
        for agent in range(num_agents):
            j = num_cells + 3 * agent
            cell, destination, carrying = x[j], x[j + 1], 0
            if not (0 <= cell < num_cells and 0 <= destination < num_tables):
                return False
            u = uniforms[lane, agent]
            arrived = cell == table_cells[destination]
            # A sum of comparisons, not branches: nobody can predict how these turn out.
            step = (u >= stand_still) + (u >= 0.5 * (1.0 + stand_still))
            onward = ways[cell, destination, step]
            if agent < num_porters:
                value = x[objects + agent]
                if not (0 <= value < 2 * (num_tables + 1) and 0 <= x[j + 2] < 2):
                    return False
                flag = (num_tables + 1) * (value > num_tables)  # of the goal: it stays
                cell, destination, carrying, place = _advance_porter(
                    cell,
                    destination,
                    x[j + 2],
                    value - flag,
                    onward,
                    arrived,
                    u,
                    pick_up,
                    num_tables,
                )
                y[objects + agent] = place + flag
            elif arrived:
                destination = _another(destination, u, num_tables)
            else:
                cell = onward
            y[j], y[j + 1], y[j + 2] = cell, destination, carrying
            y[cell] = 1
        for j in range(objects + num_porters, len(x)):
            y[j] = x[j]
    return True


@njit(cache=True)
def _advance_porter(
    cell: int,
    destination: int,
    carrying: int,
    place: int,  # of its object
    onward: int,  # the cell to which it moves if it walks
    arrived: bool,  # at its destination
    u: float,
    pick_up: float,
    num_tables: int,
) -> tuple[int, int, int, int]:
    """One step of a porter and its object: cell, destination, carrying and place."""
    hand = num_tables
    if place != (hand if carrying else destination):
        # They disagree, which never happens by itself: the object is put down and gone for.
        table = destination if place == hand else place
        return cell, table, 0, table
    if not arrived:
        return onward, destination, carrying, place
    if carrying:
        return cell, destination, 0, destination
    if u < pick_up:
        return cell, _another(destination, u / pick_up, num_tables), 1, hand
    return cell, destination, carrying, place


@njit(cache=True)
def begin(
    uniforms: FloatArray,  # (lanes, 3 * num_agents + num_objects + 1)
    table_positions: Int64Array,  # (num_tables, 2): rows and columns
    columns: int,
    num_cells: int,
    num_agents: int,
    num_porters: int,
    carrying_share: float,
    goals: tuple[int, int],  # the first object that may be the goal, and the last
    exogenous: Int64Array,  # (lanes, m), filled with x
) -> bool:
    """Draw x from P(x_0): agents are on the straight line between two tables."""
    num_tables = table_positions.shape[0]
    objects = num_cells + 3 * num_agents
    num_objects = exogenous.shape[1] - objects
    hand = num_tables
    for lane in range(exogenous.shape[0]):
        exogenous[lane, :num_cells] = 0
        for i in range(num_objects):
            exogenous[lane, objects + i] = _index(uniforms[lane, 3 * num_agents + i], num_tables)
        for agent in range(num_agents):
            origin = _index(uniforms[lane, 3 * agent], num_tables)
            destination = _another(origin, uniforms[lane, 3 * agent + 1], num_tables)
            progress = uniforms[lane, 3 * agent + 2]
            carrying = 0
            if agent < num_porters:
                if progress < carrying_share:
                    carrying = 1
                    progress /= carrying_share
                    exogenous[lane, objects + agent] = hand
                else:
                    progress = 0.0
                    destination = origin
                    exogenous[lane, objects + agent] = origin
            down = table_positions[destination, 0] - table_positions[origin, 0]
            right = table_positions[destination, 1] - table_positions[origin, 1]
            row = table_positions[origin, 0] + math.floor(progress * down + 0.5)
            column = table_positions[origin, 1] + math.floor(progress * right + 0.5)
            j = num_cells + 3 * agent
            exogenous[lane, j] = row * columns + column
            exogenous[lane, j + 1] = destination
            exogenous[lane, j + 2] = carrying
            exogenous[lane, row * columns + column] = 1
        goal = goals[0] + _index(uniforms[lane, -1], goals[1] - goals[0] + 1)
        exogenous[lane, objects + goal] += hand + 1
    return True


@njit(cache=True)
def move_robot(
    robots: Int64Array,  # (lanes,)
    exogenous: Int64Array,  # (lanes, m)
    actions: Int64Array,  # (lanes,)
    targets: Int64Array,  # (num_cells + 1, num_actions): where a move leads; the last is `done`
    table_at: Int64Array,  # (num_cells + 1,): the table in a cell, or -1
    num_tables: int,
    num_objects: int,
    following: Int64Array,  # (lanes,), filled with n'
) -> bool:
    """Find n', which is certain given (n, a, x)."""
    objects = exogenous.shape[1] - num_objects
    done = targets.shape[0] - 1
    for lane in range(robots.shape[0]):
        robot, action = robots[lane], actions[lane]
        if not (0 <= robot <= done and 0 <= action < targets.shape[1]):
            return False
        target = targets[robot, action]
        if target != robot and exogenous[lane, target] == 1:
            target = robot
        if table_at[robot] >= 0:
            wanted = table_at[robot] + num_tables + 1
            for j in range(objects, exogenous.shape[1]):
                if exogenous[lane, j] == wanted:
                    target = done
        following[lane] = target
    return True


@njit(cache=True)
def pay(
    robots: Int64Array,  # (lanes,)
    exogenous: Int64Array,  # (lanes, m)
    actions: Int64Array,  # (lanes,)
    targets: Int64Array,  # as in move_robot
    table_at: Int64Array,  # as in move_robot
    num_tables: int,
    num_objects: int,
    goal_reward: float,
    crash_cost: float,
    terms: FloatArray,  # (lanes, m), zeros: only what pays is written
) -> bool:
    """Find the reward terms R^i(n, x^i, a)."""
    objects = exogenous.shape[1] - num_objects
    done = targets.shape[0] - 1
    for lane in range(robots.shape[0]):
        robot, action = robots[lane], actions[lane]
        if not (0 <= robot <= done and 0 <= action < targets.shape[1]):
            return False
        target = targets[robot, action]
        if target != robot and exogenous[lane, target] == 1:
            terms[lane, target] = -crash_cost
        if table_at[robot] >= 0:
            wanted = table_at[robot] + num_tables + 1
            for j in range(objects, exogenous.shape[1]):
                if exogenous[lane, j] == wanted:
                    terms[lane, j] = goal_reward
    return True


@njit(cache=True)
def _another(table: int, u: float, num_tables: int) -> int:
    """One of the other tables, each as likely."""
    other = _index(u, num_tables - 1)
    return other + 1 if other >= table else other


@njit(cache=True)
def _index(u: float, size: int) -> int:
    """One of 0 ... size - 1; u below 1 times the size may round up to the size."""
    return min(int(u * size), size - 1)
