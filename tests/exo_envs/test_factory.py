"""ExoFactory: its shape, its flag, its shells, and what it was made to show."""

import math
import re

import gymnasium as gym
import numpy as np
import pytest
from factories import each_size

from exo_envs import State
from exo_envs.domains.factory import (
    DOWN,
    UP,
    WORK,
    FactoryEnv,
    FactoryMDP,
    FactoryParameters,
    FactoryVectorEnv,
)
from exo_envs.domains.floor import Move
from exo_envs.testing import check_mdp

# --- shape -----------------------------------------------------------------------------------


def test_it_has_22_exogenous_variables_and_ten_to_the_eleven_states():
    mdp = FactoryMDP()
    assert mdp.exogenous_names == (
        *("order_0", "order_1", "order_2", "order_3", "clock"),
        *(f"machine_{i}" for i in range(5)),
        *("technician_0", "technician_1"),
        *(f"noise_{i}" for i in range(10)),
    )
    assert mdp.exogenous_sizes.tolist() == [6] * 4 + [5] + [2] * 5 + [5] * 2 + [2] * 10
    assert [v.name for v in mdp.endogenous_variables] == ["robot", "fulfilled"]
    assert mdp.endogenous_sizes.tolist() == [30, 2]
    assert mdp.num_states == 6**4 * 5 * 2**5 * 5**2 * 2**10 * 60
    assert 11 <= math.log10(mdp.num_states) < 12
    assert (mdp.num_actions, mdp.discount, mdp.horizon) == (6, 0.97, 50)
    assert mdp.station_cells.tolist() == [0, 5, 24, 29, 15]
    assert mdp.station_cells.dtype == np.int64


@each_size
def test_slices_find_their_variables(parameters):
    mdp = FactoryMDP(parameters)
    names = mdp.exogenous_names
    parts = [
        ("order", names[mdp.order_slice], parameters.queue_length),
        ("clock", (names[mdp.clock_index],), 1),
        ("machine", names[mdp.machine_slice], 5),
        ("technician", names[mdp.technician_slice], parameters.num_technicians),
        ("noise", names[mdp.noise_slice], parameters.num_noise),
    ]
    for kind, found, count in parts:
        assert [name.split("_")[0] for name in found] == [kind] * count
    assert sum((found for _, found, _ in parts), ()) == names


@each_size
def test_it_keeps_the_contract(parameters):
    check_mdp(FactoryMDP(parameters), rng=0)


# --- the flag --------------------------------------------------------------------------------


def factory_at(mdp, robot, fulfilled=0, **x):
    exogenous = np.zeros(len(mdp.exogenous_variables), dtype=np.int64)
    for name, value in x.items():
        exogenous[mdp.exogenous_indices([name])] = value
    return State(np.array([robot, fulfilled]), exogenous)


def test_an_order_pays_once_and_the_next_one_pays_again():
    # The same station twice in a row: only the belt tells the two orders apart.
    mdp = FactoryMDP(FactoryParameters(stall=0.0, fail=0.0))
    state = factory_at(mdp, 29, order_0=4, order_1=4, order_2=0, clock=4, machine_3=UP)
    rng = np.random.default_rng(0)
    rewards, flags = [], []
    for _ in range(15):
        state, reward, _ = mdp.transition(state, WORK, rng)
        rewards.append(float(reward))
        flags.append(int(state.endogenous[1]))
    assert rewards == [100, 0, 0, 0, 0] * 2 + [0] * 5
    assert flags == [1, 1, 1, 1, 0] * 2 + [0] * 5


def test_a_stalled_clock_leaves_the_flag_alone():
    mdp = FactoryMDP(FactoryParameters(stall=1.0))
    for clock in (1, 4):
        state = factory_at(mdp, 29, fulfilled=1, order_0=4, clock=clock, machine_3=UP)
        following = mdp.sample_next(state, Move.UP, np.random.default_rng(0))
        assert following.exogenous[mdp.clock_index] == clock
        assert following.endogenous.tolist() == [23, 1]


def test_the_flag_is_cleared_exactly_when_the_belt_moves():
    mdp = FactoryMDP()
    rng = np.random.default_rng(0)
    state = mdp.sample_initial(300, rng)
    state.endogenous[:, 1] = 1
    tagged = 0
    for _ in range(30):
        state.endogenous[:, 1] = 1
        # Orders behind a tag that never occurs by moving: all 1 but for the live one.
        state.exogenous[:, mdp.order_slice] = [5, 1, 1, 1]
        state = mdp.sample_next(state, np.full(300, Move.STAY), rng)
        belt_moved = state.exogenous[:, 0] == 1
        np.testing.assert_array_equal(state.endogenous[:, 1] == 0, belt_moved)
        tagged += belt_moved.sum()
    assert 1000 < tagged < 3000  # of 9000; an order is live for 5.4 steps


def test_work_on_the_live_order_while_the_belt_moves_is_paid_and_forgotten():
    mdp = FactoryMDP()
    state = factory_at(mdp, 29, order_0=4, order_1=4, clock=0, machine_3=UP)
    following, reward, _ = mdp.transition(state, WORK, np.random.default_rng(0))
    assert reward == 100
    assert following.endogenous.tolist() == [29, 0]


def test_work_with_a_down_machine_costs_and_does_not_fulfil():
    mdp = FactoryMDP(FactoryParameters(repair=0.0, self_repair=0.0))
    state = factory_at(mdp, 29, order_0=4, clock=4)
    for _ in range(2):
        state, reward, terms = mdp.transition(state, WORK, np.random.default_rng(0))
        assert reward == -300
        assert (terms[0], terms[mdp.machine_slice].tolist()) == (100, [0, 0, 0, -400, 0])
        assert state.endogenous.tolist() == [29, 0]


@pytest.mark.parametrize(
    ("robot", "x", "reward"),
    [
        (29, {"order_0": 1, "machine_3": UP}, 0),  # somebody else's order
        (29, {"order_0": 0, "machine_3": UP}, 0),  # no order
        (29, {"order_0": 1, "order_1": 4, "machine_3": DOWN}, -400),
        (28, {"order_0": 4, "machine_3": UP}, 0),  # not at a station
    ],
)
def test_other_work_does_not_fulfil(robot, x, reward):
    mdp = FactoryMDP()
    state = factory_at(mdp, robot, clock=4, **x)
    following, paid, _ = mdp.transition(state, WORK, np.random.default_rng(0))
    assert paid == reward
    assert following.endogenous.tolist() == [robot, 0]


def test_the_robot_does_not_move_the_factory():
    mdp = FactoryMDP()
    rng = np.random.default_rng(0)
    state = mdp.sample_uniform(200, rng)
    other = State(mdp.sample_uniform(200, rng).endogenous, state.exogenous)
    ways = [
        mdp.sample_next(s, np.full(200, a), rng, exogenous_rng=np.random.default_rng(5)).exogenous
        for s, a in ((state, Move.STAY), (state, WORK), (other, Move.LEFT))
    ]
    np.testing.assert_array_equal(ways[0], ways[1])
    np.testing.assert_array_equal(ways[0], ways[2])


# --- what it was made to show ------------------------------------------------------------------


def returns(mdp, policy, lanes=2000):
    rng, exogenous_rng = np.random.default_rng(0), np.random.default_rng(1)
    state = mdp.sample_initial(lanes, rng)
    total = np.zeros(lanes)
    for t in range(mdp.horizon):
        state, reward, _ = mdp.transition(
            state, policy(state, rng), rng, exogenous_rng=exogenous_rng
        )
        total += mdp.discount**t * reward
    return total


def walk_to(mdp, robot, target):
    """The move that shortens the way, STAY where it has none."""
    (row, column), (to_row, to_column) = (np.divmod(c, mdp.floor.columns) for c in (robot, target))
    ways = [column < to_column, column > to_column, row < to_row, row > to_row]
    return np.select(ways, [Move.RIGHT, Move.LEFT, Move.DOWN, Move.UP], Move.STAY)


def follow_the_live_order(mdp, looks_at_machines):
    def policy(state, rng):
        robot, fulfilled = state.endogenous.T
        live = state.exogenous[:, 0]
        station = np.maximum(live - 1, 0)
        target = mdp.station_cells[station]
        machines = state.exogenous[:, mdp.machine_slice]
        is_up = machines[np.arange(len(live)), station] == UP
        works = (robot == target) & (live > 0) & (fulfilled == 0)
        if looks_at_machines:
            works &= is_up
        return np.where(works, WORK, walk_to(mdp, robot, target))

    return policy


def test_whoever_does_not_work_earns_exactly_nothing():
    mdp = FactoryMDP()
    assert not returns(mdp, lambda s, rng: np.full(len(s.endogenous), Move.STAY)).any()
    assert not returns(mdp, lambda s, rng: rng.integers(WORK, size=len(s.endogenous))).any()


# The returns below are 10 standard errors or more from the thresholds, and the seed is fixed.


def test_random_work_loses():
    mean = returns(FactoryMDP(), lambda s, rng: rng.integers(6, size=len(s.endogenous))).mean()
    assert mean < -50


def test_the_order_without_the_machines_loses_and_both_together_pay():
    mdp = FactoryMDP()
    assert returns(mdp, follow_the_live_order(mdp, looks_at_machines=False)).mean() < -200
    assert returns(mdp, follow_the_live_order(mdp, looks_at_machines=True)).mean() > 120


# --- parameters and shells -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "choices"),
    [
        ("rows", 2, "at least 3"),
        ("columns", 6.0, "a whole number"),
        ("queue_length", 0, "at least 1"),
        ("clock_size", 0, "at least 1"),
        ("num_technicians", -1, "at least 0"),
        ("num_noise", "ten", "a whole number"),
        ("horizon", 0, "at least 1"),
        ("stall", 1.5, "0 ... 1"),
        ("fail", -0.1, "0 ... 1"),
        ("repair", math.nan, "a finite number"),
        ("wander", "often", "a finite number"),
        ("order_reward", math.inf, "a finite number"),
        ("discount", 0.0, "(0, 1]"),
        ("discount", 1.1, "(0, 1]"),
    ],
)
def test_bad_parameters_are_named(name, value, choices):
    message = f"{re.escape(name)} is .*{re.escape(choices)}.*, not {re.escape(repr(value))}"
    with pytest.raises(ValueError, match=message):
        FactoryParameters(**{name: value})


def test_parameters_reach_the_model():
    p = FactoryParameters(order_reward=7, down_cost=3, discount=0.5, horizon=9)
    mdp = FactoryMDP(p)
    assert (mdp.discount, mdp.horizon) == (0.5, 9)
    state = factory_at(mdp, 29, order_0=4, clock=4)
    assert mdp.reward(state, WORK) == 4


@pytest.mark.parametrize("make", [FactoryEnv, FactoryVectorEnv])
def test_both_shells_take_the_parameters(make):
    env = make(queue_length=2, num_noise=0, render_mode="ansi", render_backend="flat")
    assert env.mdp.parameters == FactoryParameters(queue_length=2, num_noise=0)
    env.reset(seed=0)
    env.render()
    env.close()
    with pytest.raises(ValueError, match="did you mean 'num_noise'"):
        make(num_noises=3)


def test_the_episode_ends_at_the_horizon_only():
    env = FactoryEnv(horizon=7)
    env.reset(seed=0)
    ends = [env.step(WORK)[2:4] for _ in range(7)]
    assert ends == [(False, False)] * 6 + [(False, True)]
    assert isinstance(env, gym.Env)
