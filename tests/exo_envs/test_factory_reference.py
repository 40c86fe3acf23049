"""ExoFactory: its dynamics, against a reference written from its description."""

import math

import numpy as np
import pytest
from factories import GivenNoise, each_size, random_cases

from exo_envs.domains.factory import DOWN, UP, WORK, FactoryMDP, FactoryParameters

STEPS = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]  # stay, up, down, left, right


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
