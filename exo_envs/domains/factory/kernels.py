"""The loops over lanes of ExoFactory, compiled.

Pure functions: states, actions and the noise go in, new arrays come out. The last dimension of
``exogenous`` is [orders, clock, machines, technicians, noise]. No value of it is used as an index.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import njit
from exo_envs.domains.factory.parameters import DOWN, NUM_STATIONS, UP, WORK, World

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@njit(cache=True, nogil=True, error_model="numpy")
def exogenous_step(
    first: int,
    last: int,
    exogenous: Ints,  # (lanes, m)
    uniforms: Floats,  # (lanes, m), in [0, 1): entry i is the noise of variable i
    world: World,
    following: Ints,  # (lanes, m)
) -> None:
    """Write x' of some lanes.

    One loop without calls of functions that take arrays: those would be most of its time.
    """
    w = World(*world)
    newest, clock, machines = w.queue_length - 1, w.queue_length, w.queue_length + 1
    technicians = machines + NUM_STATIONS
    noise = technicians + w.num_technicians
    for lane in range(first, last):
        moves = exogenous[lane, clock] == 0  # the belt: the orders, then the clock
        for i in range(newest):
            following[lane, i] = exogenous[lane, i + moves]
        following[lane, newest] = exogenous[lane, newest]
        following[lane, clock] = exogenous[lane, clock] - (uniforms[lane, clock] >= w.stall)
        if moves:
            order = 0  # the one whose share of [0, 1) holds the number
            for i in range(NUM_STATIONS):
                order += uniforms[lane, newest] >= w.order_cdf[i]
            following[lane, newest] = order
            following[lane, clock] = w.clock_size - 1
        for station in range(NUM_STATIONS):
            i = machines + station
            chance = w.self_repair
            for j in range(technicians, noise):
                chance = w.repair if exogenous[lane, j] == station else chance
            # An up machine stays up with 1 - w.fail: UP is 1.
            stays, comes = uniforms[lane, i] >= w.fail, uniforms[lane, i] < chance
            following[lane, i] = stays if exogenous[lane, i] == UP else comes
        for i in range(technicians, noise):
            station, u = exogenous[lane, i], uniforms[lane, i]
            # Given that he goes, u / wander is uniform again: it picks one of the other stations.
            other = min(int(u / w.wander * (NUM_STATIONS - 1)), NUM_STATIONS - 2)
            other += other >= station
            following[lane, i] = station if u >= w.wander else other
        for i in range(noise, exogenous.shape[1]):
            flips = uniforms[lane, i] < w.noise_flips[i - noise]
            following[lane, i] = exogenous[lane, i] ^ flips


@njit(cache=True, nogil=True)
def endogenous_step(
    first: int,
    last: int,
    endogenous: Ints,  # (lanes, 2)
    exogenous: Ints,  # (lanes, m)
    action: Ints,  # (lanes,)
    _: Floats,  # (lanes, 0): n' needs no random numbers
    following: Ints,  # (lanes, 2)
    rewards: Floats,  # (lanes,)
    terms: Floats,  # (lanes, m), zeros, or no rows
    world: World,
) -> None:
    """Write n' of some lanes, what the step pays, and R^i if there is room for it."""
    w = World(*world)
    clock, machines = w.queue_length, w.queue_length + 1
    for lane in range(first, last):
        robot, fulfilled = endogenous[lane, 0], endogenous[lane, 1]
        station, reward = w.station_at[robot], 0.0
        if action[lane] == WORK and station >= 0:
            is_live = exogenous[lane, 0] == station + 1
            machine = exogenous[lane, machines + station]
            order = w.order_reward * (is_live and fulfilled == 0)
            down = 0.0 - w.down_cost * (machine == DOWN)
            reward = order + down
            if len(terms):
                terms[lane, 0], terms[lane, machines + station] = order, down
            if is_live and machine == UP:
                fulfilled = 1
        if exogenous[lane, clock] == 0:  # the belt moves: there is a new live order
            fulfilled = 0
        following[lane, 0] = w.targets[robot, action[lane]]
        following[lane, 1] = fulfilled
        rewards[lane] = reward


@njit(cache=True, nogil=True)
def step(
    first: int,
    last: int,
    endogenous: Ints,
    exogenous: Ints,
    action: Ints,
    for_n: Floats,  # (lanes, 0)
    uniforms: Floats,
    next_endogenous: Ints,
    next_exogenous: Ints,
    rewards: Floats,
    terminal: NDArray[np.bool_],
    world: World,
) -> bool:
    exogenous_step(first, last, exogenous, uniforms, world, next_exogenous)
    endogenous_step(
        *(first, last, endogenous, exogenous, action, for_n),
        *(next_endogenous, rewards, np.empty((0, 0)), world),
    )
    for lane in range(first, last):
        terminal[lane] = False
    return True
