"""The loops of ExoCrowd, compiled: pure functions of states and of uniform random numbers.

States come as flat batches, n of shape (lanes, 1) and x of shape (lanes, m). Values of n and
actions are in range. Of x only :func:`exogenous_step` uses values as an index, and it looks at each
of these itself: they are few of many. The layout of x is that of
:class:`exo_envs.domains.crowd.CrowdMDP`: occupancies, then three values an agent, porters first,
then objects.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import INNER, njit
from exo_envs.core.mdp import BoolArray, FloatArray
from exo_envs.domains.crowd.parameters import Phase, World

Int64Array = NDArray[np.int64]


@njit(cache=True, nogil=True, error_model="numpy")
def exogenous_step(
    first: int,
    last: int,
    exogenous: Int64Array,  # (lanes, m)
    uniforms: FloatArray,  # (lanes, num_agents): one number decides what an agent does
    world: World,
    following: Int64Array,  # (lanes, m), of which these lanes are filled with x'
) -> bool:
    """Draw x' from P(x' | x) for some lanes; False if a value of x is out of range.

    One loop without calls of functions that take arrays: those would be half of its time.
    """
    w = World(*world)
    num_cells, num_tables = w.ways.shape[0], w.ways.shape[1]
    objects = num_cells + 3 * w.num_agents
    either_way = 0.5 * (1.0 + w.stand_still)
    for lane in range(first, last):
        for j in range(num_cells):
            following[lane, j] = 0
        for agent in range(w.num_agents):
            j = num_cells + 3 * agent
            cell, destination, carrying = exogenous[lane, j], exogenous[lane, j + 1], 0
            if not (0 <= cell < num_cells and 0 <= destination < num_tables):
                return False
            u = uniforms[lane, agent]
            arrived = cell == w.table_cells[destination]
            # A sum of comparisons, not branches: nobody can predict how these turn out.
            onward = w.ways[cell, destination, (u >= w.stand_still) + (u >= either_way)]
            if agent < w.num_porters:
                value, carrying = exogenous[lane, objects + agent], exogenous[lane, j + 2]
                if not (0 <= value < 2 * (num_tables + 1) and 0 <= carrying < 2):
                    return False
                flag = (num_tables + 1) * (value > num_tables)  # of the goal: it stays
                cell, destination, carrying, place = _advance_porter(
                    *(cell, destination, carrying, value - flag, onward, arrived, u),
                    *(w.pick_up, w.stroll, num_tables),
                )
                following[lane, objects + agent] = place + flag
            else:
                cell = onward  # which is the cell itself if the agent has arrived
                another = _another(destination, u, num_tables)
                destination = another if arrived else destination
            following[lane, j] = cell
            following[lane, j + 1] = destination
            following[lane, j + 2] = carrying
            following[lane, cell] = 1
        for j in range(objects + w.num_porters, exogenous.shape[1]):
            if not 0 <= exogenous[lane, j] < 2 * (num_tables + 1):
                return False
            following[lane, j] = exogenous[lane, j]
    return True


@njit(**INNER, error_model="numpy")
def _advance_porter(
    cell: int,
    destination: int,
    carrying: int,
    place: int,  # of its object
    onward: int,  # the cell to which it moves if it walks
    arrived: bool,  # at its destination
    u: float,
    pick_up: float,
    stroll: float,
    num_tables: int,
) -> tuple[int, int, int, int]:
    """One step of a porter and its object: cell, destination, carrying and place."""
    hand = num_tables
    if carrying != (place == hand):
        # They disagree, which never happens by itself: the object is put down and gone for.
        table = destination if place == hand else place
        return cell, table, 0, table
    if not arrived:
        return onward, destination, carrying, place
    if carrying:  # puts it down, and perhaps goes for a stroll
        onto = destination
        if u < stroll:
            destination = _another(onto, u / stroll, num_tables)
        return cell, destination, 0, onto
    if place != destination:  # turns back
        return cell, place, 0, place
    if u < pick_up:
        return cell, _another(destination, u / pick_up, num_tables), 1, hand
    return cell, destination, 0, place


@njit(cache=True)
def begin(
    uniforms: FloatArray,  # (lanes, 3 * num_agents + num_objects + 1)
    world: World,
    exogenous: Int64Array,  # (lanes, m), filled with x
) -> None:
    """Draw x from P(x_0): agents are about the straight line between two tables."""
    w = World(*world)
    positions, columns, phase_bounds = w.table_positions, w.columns, w.phase_bounds
    num_cells, num_tables = w.ways.shape[0], w.ways.shape[1]
    hand = num_tables
    objects = num_cells + 3 * w.num_agents
    for lane in range(exogenous.shape[0]):
        for j in range(num_cells):
            exogenous[lane, j] = 0
        for j in range(objects, exogenous.shape[1]):
            exogenous[lane, j] = _index(uniforms[lane, j - num_cells], num_tables)
        for agent in range(w.num_agents):
            origin = _index(uniforms[lane, 3 * agent], num_tables)
            destination = _another(origin, uniforms[lane, 3 * agent + 1], num_tables)
            progress = uniforms[lane, 3 * agent + 2]
            arrival = 1.0 - w.stand_still  # it stands there for one step, see _cell
            carrying = 0
            if agent < w.num_porters:
                phase, progress = _phase(progress, phase_bounds)
                place = origin
                if phase == Phase.CARRYING:
                    carrying = 1
                    place = hand
                elif phase == Phase.RETURNING:
                    place = destination
                    arrival = 0.0  # it is then waiting
                elif phase == Phase.WAITING:
                    destination = origin
                exogenous[lane, objects + agent] = place
            cell = _cell(positions[origin], positions[destination], columns, progress, arrival)
            j = num_cells + 3 * agent
            exogenous[lane, j] = cell
            exogenous[lane, j + 1] = destination
            exogenous[lane, j + 2] = carrying
            exogenous[lane, cell] = 1
        goal = w.first_goal + _index(uniforms[lane, -1], w.last_goal - w.first_goal + 1)
        exogenous[lane, objects + goal] += hand + 1


@njit(**INNER)
def _phase(u: float, bounds: FloatArray) -> tuple[int, float]:
    """The phase in which the u-quantile of a porter's time is, and how much of it has passed."""
    phase, start = 0, 0.0
    while u >= bounds[phase]:
        start = bounds[phase]
        phase += 1
    return phase, (u - start) / (bounds[phase] - start)


@njit(**INNER)
def _cell(
    origin: Int64Array,  # (2,): the row and column of a table
    destination: Int64Array,  # (2,)
    columns: int,
    progress: float,  # 0 ... 1: how much of the time on the way has passed
    arrival: float,  # the time spent there at the end, as a part of that for a cell on the way
) -> int:
    """Where an agent on its way is: as many steps on as fit the time, near the straight line."""
    row, column = origin[0], origin[1]
    down, right = destination[0] - row, destination[1] - column
    steps = abs(down) + abs(right)
    if steps > 0:
        # The bound: a progress below 1 times the time may round up to the time.
        taken = min(int(progress * (steps + arrival)), steps if arrival > 0 else steps - 1)
        vertical = (2 * taken * abs(down) + steps) // (2 * steps)  # rounded
        horizontal = taken - vertical
        row += vertical if down > 0 else -vertical
        column += horizontal if right > 0 else -horizontal
    return row * columns + column


@njit(cache=True, nogil=True)
def endogenous_step(
    first: int,
    last: int,
    endogenous: Int64Array,  # (lanes, 1)
    exogenous: Int64Array,  # (lanes, m)
    actions: Int64Array,  # (lanes,)
    _: FloatArray,  # (lanes, 0): n' needs no random numbers
    following: Int64Array,  # (lanes, 1), of which these lanes are filled with n'
    rewards: FloatArray,  # (lanes,), of which these lanes are filled with the sum of the terms
    terms: FloatArray,  # (lanes, m), zeros, or no rows: only what pays is written
    world: World,
) -> None:
    """N', which is certain given (n, a, x), what it pays, and R^i if there is room for it."""
    w = World(*world)
    num_cells, num_tables = w.ways.shape[0], w.ways.shape[1]
    for lane in range(first, last):
        robot, reward = endogenous[lane, 0], 0.0
        target = w.targets[robot, actions[lane]]
        if target != robot and exogenous[lane, target] == 1:
            if len(terms):
                terms[lane, target] = -w.crash_cost
            target = robot
            reward -= w.crash_cost
        if w.table_at[robot] >= 0:
            wanted = w.table_at[robot] + num_tables + 1
            for j in range(num_cells + 3 * w.num_agents, exogenous.shape[1]):
                if exogenous[lane, j] == wanted:
                    target = num_cells
                    reward += w.goal_reward
                    if len(terms):
                        terms[lane, j] = w.goal_reward
        following[lane, 0] = target
        rewards[lane] = reward


@njit(cache=True, nogil=True)
def step(
    first: int,
    last: int,
    endogenous: Int64Array,  # (lanes, 1)
    exogenous: Int64Array,  # (lanes, m)
    actions: Int64Array,  # (lanes,)
    for_n: FloatArray,  # (lanes, 0)
    uniforms: FloatArray,  # (lanes, num_agents), as in exogenous_step
    next_endogenous: Int64Array,  # (lanes, 1), of which these lanes are filled, and so below
    next_exogenous: Int64Array,  # (lanes, m)
    rewards: FloatArray,  # (lanes,)
    terminal: BoolArray,  # (lanes,)
    world: World,
) -> bool:
    """A whole step of some lanes; False if a value of x is out of range."""
    n, x = endogenous, exogenous
    terms = np.empty((0, 0))
    endogenous_step(first, last, n, x, actions, for_n, next_endogenous, rewards, terms, world)
    if not exogenous_step(first, last, x, uniforms, world, next_exogenous):
        return False
    done = World(*world).ways.shape[0]
    for lane in range(first, last):
        if n[lane, 0] == done:  # nothing moves any more
            for j in range(x.shape[1]):
                next_exogenous[lane, j] = x[lane, j]
        terminal[lane] = next_endogenous[lane, 0] == done
    return True


@njit(**INNER, error_model="numpy")
def _another(table: int, u: float, num_tables: int) -> int:
    """One of the other tables, each as likely."""
    other = _index(u, num_tables - 1)
    return other + 1 if other >= table else other


@njit(**INNER, error_model="numpy")
def _index(u: float, size: int) -> int:
    """One of 0 ... size - 1; u below 1 times the size may round up to the size."""
    return min(int(u * size), size - 1)
