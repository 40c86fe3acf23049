"""The loops over lanes of ExoFactory, compiled.

Pure functions: states, actions and the noise go in, new arrays come out. The last dimension of
``exogenous`` is [orders, clock, machines, technicians, noise]. No value of it is used as an index.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled import njit
from exo_envs.floor import Move

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NUM_STATIONS = 5  # one in each corner of the floor and one near the middle
WORK = len(Move)  # the action after those of Move
DOWN, UP = 0, 1  # the values of a machine


@njit(cache=True)
def step_exogenous(
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
) -> Ints:
    """Draw x' given x, shape (lanes, m)."""
    machines = queue_length + 1
    technicians = machines + NUM_STATIONS
    noise = technicians + num_technicians
    following = np.empty_like(exogenous)
    for lane in range(len(exogenous)):
        x, u, y = exogenous[lane], uniforms[lane], following[lane]
        _step_belt(x[:machines], u[:machines], y[:machines], clock_size, order_cdf, stall)
        for station in range(NUM_STATIONS):
            i = machines + station
            chance = self_repair
            for j in range(technicians, noise):
                if x[j] == station:
                    chance = repair
            y[i] = u[i] >= fail if x[i] == UP else u[i] < chance  # UP is 1
        for i in range(technicians, noise):
            y[i] = _step_technician(x[i], u[i], wander)
        for i in range(len(noise_flips)):
            y[noise + i] = x[noise + i] ^ (u[noise + i] < noise_flips[i])
    return following


@njit(cache=True)
def _step_belt(
    x: Ints, u: Floats, y: Ints, clock_size: int, order_cdf: Floats, stall: float
) -> None:
    """Write the orders and the clock, which comes after them, to ``y``."""
    last, clock = len(x) - 2, len(x) - 1
    if x[clock] == 0:
        for i in range(last):
            y[i] = x[i + 1]
        y[last] = np.searchsorted(order_cdf, u[last], side="right")
        y[clock] = clock_size - 1
    else:
        for i in range(clock):
            y[i] = x[i]
        y[clock] = x[clock] if u[clock] < stall else x[clock] - 1


@njit(cache=True)
def _step_technician(station: int, u: float, wander: float) -> int:
    """The station where a technician stands next."""
    if u >= wander:
        return station
    # Given that he goes, u / wander is uniform again: it picks one of the other stations.
    other = min(int(u / wander * (NUM_STATIONS - 1)), NUM_STATIONS - 2)
    return other + 1 if other >= station else other


@njit(cache=True)
def step_endogenous(
    endogenous: Ints,  # (lanes, 2)
    exogenous: Ints,  # (lanes, m)
    action: Ints,  # (lanes,)
    queue_length: int,
    targets: Ints,  # (cells, actions): where an action leads
    station_at: Ints,  # (cells,): the station in a cell, or -1
) -> Ints:
    """N' given n, a and x, shape (lanes, 2)."""
    machines = queue_length + 1
    following = np.empty_like(endogenous)
    for lane in range(len(endogenous)):
        robot, fulfilled = endogenous[lane, 0], endogenous[lane, 1]
        following[lane, 0] = targets[robot, action[lane]]
        if exogenous[lane, queue_length] == 0:  # the belt moves: there is a new live order
            fulfilled = 0
        elif action[lane] == WORK and station_at[robot] >= 0:
            station = station_at[robot]
            is_live = exogenous[lane, 0] == station + 1
            if is_live and exogenous[lane, machines + station] == UP:
                fulfilled = 1
        following[lane, 1] = fulfilled
    return following


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
