"""The loops over lanes of ExoFactory, compiled.

Pure functions: states, actions and the noise go in, new arrays come out. The last dimension of
``exogenous`` is [orders, clock, machines, technicians, noise]. No value of it is used as an index.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import njit
from exo_envs.domains.factory.stations import DOWN, NUM_STATIONS, UP, WORK

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@njit(cache=True, nogil=True, error_model="numpy")
def step_exogenous(
    first: int,
    last: int,
    exogenous: Ints,  # (lanes, m)
    uniforms: Floats,  # (lanes, m), in [0, 1): entry i is the noise of variable i
    queue_length: int,
    num_technicians: int,
    clock_size: int,
    order_cdf: Floats,  # (NUM_STATIONS + 1,): of the order that enters the belt
    stall: float,
    fail: float,
    repair: float,
    self_repair: float,
    wander: float,
    noise_flips: Floats,  # (num_noise,)
    following: Ints,  # (lanes, m)
) -> None:
    """Write x' of some lanes.

    One loop without calls of functions that take arrays: those would be most of its time.
    """
    newest, clock = queue_length - 1, queue_length
    machines = queue_length + 1
    technicians = machines + NUM_STATIONS
    noise = technicians + num_technicians
    for lane in range(first, last):
        moves = exogenous[lane, clock] == 0  # the belt: the orders, then the clock
        for i in range(newest):
            following[lane, i] = exogenous[lane, i + moves]
        following[lane, newest] = exogenous[lane, newest]
        following[lane, clock] = exogenous[lane, clock] - (uniforms[lane, clock] >= stall)
        if moves:
            order = 0  # the one whose share of [0, 1) holds the number
            for i in range(NUM_STATIONS):
                order += uniforms[lane, newest] >= order_cdf[i]
            following[lane, newest] = order
            following[lane, clock] = clock_size - 1
        for station in range(NUM_STATIONS):
            i = machines + station
            chance = self_repair
            for j in range(technicians, noise):
                chance = repair if exogenous[lane, j] == station else chance
            # An up machine stays up with 1 - fail: UP is 1.
            stays, comes = uniforms[lane, i] >= fail, uniforms[lane, i] < chance
            following[lane, i] = stays if exogenous[lane, i] == UP else comes
        for i in range(technicians, noise):
            station, u = exogenous[lane, i], uniforms[lane, i]
            # Given that he goes, u / wander is uniform again: it picks one of the other stations.
            other = min(int(u / wander * (NUM_STATIONS - 1)), NUM_STATIONS - 2)
            other += other >= station
            following[lane, i] = station if u >= wander else other
        for i in range(noise, exogenous.shape[1]):
            flips = uniforms[lane, i] < noise_flips[i - noise]
            following[lane, i] = exogenous[lane, i] ^ flips


@njit(cache=True, nogil=True)
def step_endogenous(
    first: int,
    last: int,
    endogenous: Ints,  # (lanes, 2)
    exogenous: Ints,  # (lanes, m)
    action: Ints,  # (lanes,)
    queue_length: int,
    targets: Ints,  # (cells, actions): where an action leads
    station_at: Ints,  # (cells,): the station in a cell, or -1
    order_reward: float,
    down_cost: float,
    following: Ints,  # (lanes, 2)
    rewards: Floats,  # (lanes,)
) -> None:
    """Write n' of some lanes, and what all that :func:`reward_terms` finds adds up to."""
    machines = queue_length + 1
    for lane in range(first, last):
        robot, fulfilled = endogenous[lane, 0], endogenous[lane, 1]
        station, reward = station_at[robot], 0.0
        if action[lane] == WORK and station >= 0:
            is_live = exogenous[lane, 0] == station + 1
            machine = exogenous[lane, machines + station]
            if is_live and fulfilled == 0:
                reward += order_reward
            if machine == DOWN:
                reward -= down_cost
            if is_live and machine == UP:
                fulfilled = 1
        if exogenous[lane, queue_length] == 0:  # the belt moves: there is a new live order
            fulfilled = 0
        following[lane, 0] = targets[robot, action[lane]]
        following[lane, 1] = fulfilled
        rewards[lane] = reward


@njit(cache=True, nogil=True)
def step(
    first: int,
    last: int,
    endogenous: Ints,
    exogenous: Ints,
    action: Ints,
    _: Floats,  # (lanes, 0): n' needs no random numbers
    uniforms: Floats,
    next_endogenous: Ints,
    next_exogenous: Ints,
    rewards: Floats,
    terminal: NDArray[np.bool_],
    queue_length: int,  # this and those up to noise_flips as in step_exogenous
    num_technicians: int,
    clock_size: int,
    order_cdf: Floats,
    stall: float,
    fail: float,
    repair: float,
    self_repair: float,
    wander: float,
    noise_flips: Floats,
    targets: Ints,  # this and the others as in step_endogenous
    station_at: Ints,
    order_reward: float,
    down_cost: float,
) -> bool:
    """A whole step of some lanes; an episode never ends by itself."""
    step_exogenous(
        *(first, last, exogenous, uniforms, queue_length, num_technicians, clock_size, order_cdf),
        *(stall, fail, repair, self_repair, wander, noise_flips, next_exogenous),
    )
    step_endogenous(
        *(first, last, endogenous, exogenous, action),
        *(queue_length, targets, station_at, order_reward, down_cost),
        *(next_endogenous, rewards),
    )
    for lane in range(first, last):
        terminal[lane] = False
    return True


@njit(cache=True)
def reward_terms(
    endogenous: Ints,  # (lanes, 2)
    exogenous: Ints,  # (lanes, m)
    action: Ints,  # (lanes,)
    queue_length: int,
    station_at: Ints,  # (cells,): the station in a cell, or -1
    order_reward: float,
    down_cost: float,
) -> Floats:
    """What each exogenous variable pays, shape (lanes, m)."""
    machines = queue_length + 1
    terms = np.zeros(exogenous.shape)
    for lane in range(len(endogenous)):
        station = station_at[endogenous[lane, 0]]
        if action[lane] != WORK or station < 0:
            continue
        if exogenous[lane, 0] == station + 1 and endogenous[lane, 1] == 0:
            terms[lane, 0] = order_reward
        if exogenous[lane, machines + station] == DOWN:
            terms[lane, machines + station] = -down_cost
    return terms
