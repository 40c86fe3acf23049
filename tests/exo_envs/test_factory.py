"""ExoFactory: against a reference written from its description, and what it was made to show."""

import math
import re

import gymnasium as gym
import numpy as np
import pytest

from exo_envs import State
from exo_envs.factory import (
    DOWN,
    UP,
    WORK,
    FactoryEnv,
    FactoryMDP,
    FactoryParameters,
    FactoryVectorEnv,
)
from exo_envs.floor import Move
from exo_envs.testing import check_mdp

STEPS = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]  # stay, up, down, left, right
SMALL = FactoryParameters(
    rows=3, columns=4, queue_length=2, clock_size=3, num_technicians=3, num_noise=3, no_order=0.4
)
BARE = FactoryParameters(queue_length=1, clock_size=1, num_technicians=0, num_noise=0)
each_size = pytest.mark.parametrize("parameters", [FactoryParameters(), SMALL, BARE])


class GivenNoise:
    """Stands in for a generator: hands out the uniform numbers it was given."""

    def __init__(self, uniforms):
        self.uniforms = uniforms

    def random(self, shape):
        return self.uniforms.reshape(shape)  # a number for each variable of each lane


# --- the reference: one state at a time, variables by name ----------------------------------


def stations(p):
    """Their rows and columns: the four corners, and one near the middle."""
    bottom, right = p.rows - 1, p.columns - 1
    return [(0, 0), (0, right), (bottom, 0), (bottom, right), (p.rows // 2, p.columns // 2)]


def pick(u, weights):
    """The value that the uniform number ``u`` selects from a distribution."""
    for value, weight in enumerate(weights):
        if u < weight:
            return value
        u -= weight
    return len(weights) - 1


def reference_exogenous(p, x, u):
    """The next exogenous values; ``u`` is the noise, both are dicts by variable name."""
    y = dict(x)
    if x["clock"] == 0:
        for i in range(p.queue_length - 1):
            y[f"order_{i}"] = x[f"order_{i + 1}"]
        last = f"order_{p.queue_length - 1}"
        y[last] = pick(u[last], [p.no_order] + [(1 - p.no_order) / 5] * 5)
        y["clock"] = p.clock_size - 1
    elif u["clock"] >= p.stall:
        y["clock"] = x["clock"] - 1
    attended = {x[f"technician_{i}"] for i in range(p.num_technicians)}
    for i in range(5):
        name = f"machine_{i}"
        if x[name] == UP:
            y[name] = DOWN if u[name] < p.fail else UP
        else:
            y[name] = UP if u[name] < (p.repair if i in attended else p.self_repair) else DOWN
    for i in range(p.num_technicians):
        name = f"technician_{i}"
        others = [station for station in range(5) if station != x[name]]
        choice = pick(u[name], [p.wander / 4] * 4 + [1 - p.wander])
        y[name] = [*others, x[name]][choice]
    for i in range(p.num_noise):
        name = f"noise_{i}"
        flip = 0.5 if i % 2 == 0 else p.noise_flip
        y[name] = 1 - x[name] if u[name] < flip else x[name]
    return y


def reference_robot(p, robot, fulfilled, x, action):
    """The robot's next cell and flag, and the rewards that are not 0."""
    row, column = divmod(robot, p.columns)
    rewards = {}
    if action == WORK:
        if (row, column) in stations(p):
            station = stations(p).index((row, column))
            is_up = x[f"machine_{station}"] == UP
            if x["order_0"] - 1 == station:
                if not fulfilled:
                    rewards["order_0"] = p.order_reward
                if is_up:
                    fulfilled = 1
            if not is_up:
                rewards[f"machine_{station}"] = -p.down_cost
    else:
        down, right = STEPS[action]
        row = min(max(row + down, 0), p.rows - 1)
        column = min(max(column + right, 0), p.columns - 1)
    if x["clock"] == 0:
        fulfilled = 0
    return row * p.columns + column, fulfilled, rewards


def random_cases(mdp, count, seed):
    """States from the whole space, half of them with the robot at the live order's station."""
    rng = np.random.default_rng(seed)
    state = mdp.sample_uniform(count, rng)
    live = state.exogenous[:, 0]
    there = (live > 0) & (rng.random(count) < 0.5)
    state.endogenous[there, 0] = mdp.station_cells[live[there] - 1]
    action = np.where(rng.random(count) < 0.5, WORK, rng.integers(WORK, size=count))
    return state, action, rng


@each_size
def test_exogenous_dynamics_are_as_described(parameters):
    mdp = FactoryMDP(parameters)
    state, _, rng = random_cases(mdp, 2000, seed=0)
    uniforms = rng.random(state.exogenous.shape)
    following = mdp.sample_exogenous(state.exogenous, GivenNoise(uniforms))
    names = mdp.exogenous_names
    for x, u, y in zip(
        state.exogenous.tolist(), uniforms.tolist(), following.tolist(), strict=True
    ):
        expected = reference_exogenous(
            parameters, dict(zip(names, x, strict=True)), dict(zip(names, u, strict=True))
        )
        assert dict(zip(names, y, strict=True)) == expected


@each_size
def test_endogenous_dynamics_and_rewards_are_as_described(parameters):
    mdp = FactoryMDP(parameters)
    state, action, rng = random_cases(mdp, 4000, seed=1)
    following = mdp.sample_endogenous(state, action, rng)
    terms = mdp.reward_terms(state, action)
    names = mdp.exogenous_names
    for n, x, a, n_next, row in zip(*state, action, following, terms, strict=True):
        robot, fulfilled, rewards = reference_robot(
            parameters, *n.tolist(), dict(zip(names, x.tolist(), strict=True)), a
        )
        assert n_next.tolist() == [robot, fulfilled]
        assert {names[i]: row[i] for i in np.flatnonzero(row)} == rewards
    assert (terms != 0).any(axis=0).sum() == 6  # the live order and the machines, all were seen


@pytest.mark.parametrize("extreme", [0.0, np.nextafter(1.0, 0.0)])
@pytest.mark.parametrize("probability", [0.0, 0.1, 1.0])
def test_the_ends_of_the_noise_stay_in_the_space(extreme, probability):
    mdp = FactoryMDP(FactoryParameters(no_order=probability, wander=probability))
    x = mdp.sample_uniform(500, np.random.default_rng(0)).exogenous
    following = mdp.sample_exogenous(x, GivenNoise(np.full(x.shape, extreme)))
    assert (following >= 0).all()
    assert (following < mdp.exogenous_sizes).all()
    if probability in (0.0, 1.0):
        moved = following[x[:, mdp.clock_index] == 0]
        assert (moved[:, mdp.order_slice][:, -1] == 0).all() == (probability == 1.0)
        walked = (following != x)[:, mdp.technician_slice]
        assert (walked == (probability == 1.0)).all()


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


@pytest.mark.parametrize("shape", [(), (1,), (6,), (2, 3), (0,)])
def test_any_leading_dimensions_give_the_same_values(shape):
    mdp = FactoryMDP()
    count = math.prod(shape)
    (n, x), action, rng = random_cases(mdp, count, seed=2)
    uniforms = rng.random(x.shape)
    flat = State(n, x)
    state = State(n.reshape(*shape, 2), x.reshape(*shape, 22))
    one_by_one = mdp.sample_exogenous(x, GivenNoise(uniforms))
    together = mdp.sample_exogenous(state.exogenous, GivenNoise(uniforms.reshape(*shape, 22)))
    np.testing.assert_array_equal(together, one_by_one.reshape(*shape, 22), strict=True)
    for method, width in ((mdp.reward_terms, 22), (_endogenous(mdp), 2)):
        np.testing.assert_array_equal(
            method(state, action.reshape(shape)),
            method(flat, action).reshape(*shape, width),
            strict=True,
        )


def _endogenous(mdp):
    return lambda state, action: mdp.sample_endogenous(state, action, np.random.default_rng())


def test_small_integers_and_strided_or_read_only_arrays_will_do():
    mdp = FactoryMDP()
    state, action, _ = random_cases(mdp, 40, seed=3)
    wide = State(*(np.repeat(part, 2, axis=-1).astype(np.int8) for part in state))
    odd = State(*(part[..., ::2] for part in wide))
    for part in wide:
        part.flags.writeable = False
    expected = mdp.transition(state, action, np.random.default_rng(0))
    found = mdp.transition(odd, action.astype(np.int32), np.random.default_rng(0))
    np.testing.assert_array_equal(found.reward_terms, expected.reward_terms)
    for part, right in zip(found.state, expected.state, strict=True):
        np.testing.assert_array_equal(part, right, strict=True)


@pytest.mark.parametrize("action", [6, 1000])
def test_an_action_that_does_not_exist_is_an_error_in_the_model_too(action):
    mdp = FactoryMDP()
    state = mdp.sample_initial(3, np.random.default_rng(0))
    with pytest.raises(IndexError):
        mdp.sample_next(state, np.full(3, action), np.random.default_rng(0))


# --- chances ---------------------------------------------------------------------------------

SAMPLES = 100_000
# Hoeffding: a frequency of so many samples is off by more than this with probability 1e-6.
TOLERANCE = math.sqrt(math.log(2 / 1e-6) / (2 * SAMPLES))


def sample_from(x, seed=0, **parameters):
    mdp = FactoryMDP(FactoryParameters(**parameters))
    start = np.zeros(len(mdp.exogenous_variables), dtype=np.int64)
    for name, value in x.items():
        start[mdp.exogenous_indices([name])] = value
    rng = np.random.default_rng(seed)
    following = mdp.sample_exogenous(np.tile(start, (SAMPLES, 1)), rng)
    return {name: following[:, i] for i, name in enumerate(mdp.exogenous_names)}


def assert_chances(values, chances):
    for value, chance in chances.items():
        assert np.mean(values == value) == pytest.approx(chance, abs=TOLERANCE), value
    assert set(np.unique(values)) <= set(chances)


@pytest.mark.parametrize("clock", [4, 3, 2, 1])
def test_the_clock_stalls(clock):
    y = sample_from({"clock": clock, "order_0": 2, "order_1": 5, "order_3": 1}, seed=clock)
    assert_chances(y["clock"], {clock: 0.1, clock - 1: 0.9})
    for name, value in (("order_0", 2), ("order_1", 5), ("order_2", 0), ("order_3", 1)):
        assert (y[name] == value).all()


def test_the_belt_moves_for_certain_when_the_clock_has_run_out():
    y = sample_from({"clock": 0, "order_0": 2, "order_1": 5, "order_2": 3, "order_3": 1})
    for name, value in (("clock", 4), ("order_0", 5), ("order_1", 3), ("order_2", 1)):
        assert (y[name] == value).all()
    assert_chances(y["order_3"], dict.fromkeys(range(6), 1 / 6))


def test_no_order_arrives_as_often_as_one_says():
    y = sample_from({"clock": 0}, no_order=0.6)
    assert_chances(y["order_3"], {0: 0.6, **dict.fromkeys(range(1, 6), 0.08)})


def test_machines_fail_and_are_repaired_where_a_technician_stands():
    x = {"machine_0": DOWN, "machine_1": DOWN, "machine_2": DOWN, "machine_3": UP, "machine_4": UP}
    y = sample_from({**x, "technician_0": 1, "technician_1": 3})
    for machine, is_up in enumerate([0.03, 0.6, 0.03, 0.9, 0.9]):
        assert_chances(y[f"machine_{machine}"], {UP: is_up, DOWN: 1 - is_up})
    two_at_one = sample_from({**x, "technician_0": 1, "technician_1": 1})
    assert_chances(two_at_one["machine_1"], {UP: 0.6, DOWN: 0.4})


def test_technicians_wander_to_any_other_station():
    y = sample_from({"technician_0": 2, "technician_1": 0})
    assert_chances(y["technician_0"], {2: 0.8, **dict.fromkeys((0, 1, 3, 4), 0.05)})
    assert_chances(y["technician_1"], {0: 0.8, **dict.fromkeys((1, 2, 3, 4), 0.05)})


def test_even_noise_is_a_coin_and_odd_noise_persists():
    y = sample_from({f"noise_{i}": 1 for i in range(5)})
    for i in range(10):
        start = int(i < 5)
        stays = 0.5 if i % 2 == 0 else 0.9
        assert_chances(y[f"noise_{i}"], {start: stays, 1 - start: 1 - stays})


def test_episodes_start_anywhere_with_nothing_fulfilled():
    n, x = FactoryMDP(FactoryParameters(no_order=0.0)).sample_initial(
        2000, np.random.default_rng(0)
    )
    assert set(n[:, 0]) == set(range(30))
    assert not n[:, 1].any()
    for i, size in enumerate(FactoryMDP().exogenous_sizes):
        # Orders arrive in every place of the belt as they do later: here, always.
        assert set(x[:, i]) == set(range(1 if i < 4 else 0, size))


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
