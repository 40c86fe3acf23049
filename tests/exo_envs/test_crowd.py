"""ExoCrowd: against a slow reference written from its description."""

import math
from collections import Counter

import numpy as np
import pytest

from exo_envs import ExoVectorEnv, State
from exo_envs.crowd import CrowdEnv, CrowdMDP, CrowdParameters, CrowdVectorEnv
from exo_envs.crowd.tables import place_tables
from exo_envs.floor import Floor, Move
from exo_envs.testing import check_mdp

CROWDS = {
    "default": {},
    "fixed": {"goal": "fixed"},
    "odd": {"grid_size": 5, "num_agents": 4, "num_porters": 3, "num_objects": 4, "num_tables": 3},
    "restless": {"stand_still": 0, "pick_up": 1},
    "strolling": {"stroll": 1.0},
    "sometimes": {"stroll": 0.4, "goal": "fixed"},
    "frozen": {"stand_still": 1.0, "pick_up": 0.0},
    "nobody": {"num_agents": 0, "num_porters": 0, "num_objects": 2, "goal": "fixed"},
}
STEPS = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]


class FixedNoise:
    """Stands in for a generator: hands out the given uniform numbers, once."""

    def __init__(self, uniforms):
        self.uniforms = uniforms

    def random(self, shape):
        uniforms, self.uniforms = self.uniforms, None
        assert uniforms.shape == tuple(shape)
        return uniforms


# --- the reference -------------------------------------------------------------------------


def other_table(table, u, num_tables):
    """The u-quantile of the uniform distribution over the other tables."""
    others = [other for other in range(num_tables) if other != table]
    return others[math.floor(u * len(others))]


def step_towards(cell, goal, size, u, stand_still):
    (row, column), (goal_row, goal_column) = divmod(cell, size), divmod(goal, size)
    nearer = []
    if row != goal_row:
        nearer.append((row + (1 if goal_row > row else -1), column))
    if column != goal_column:
        nearer.append((row, column + (1 if goal_column > column else -1)))
    if u < stand_still or not nearer:
        return cell
    first = (u - stand_still) / (1 - stand_still) < 0.5
    row, column = nearer[0] if first else nearer[-1]
    return row * size + column


def reference_porter(p, tables, porter, place, u):
    """The next cell, destination and carrying of a porter, and place of its object."""
    cell, table, carrying = porter
    hand = p.num_tables
    if carrying != (place == hand):
        place = table if place == hand else place
        return (cell, place, 0), place
    if cell != tables[table]:
        cell = step_towards(cell, tables[table], p.grid_size, u, p.stand_still)
        return (cell, table, carrying), place
    if carrying:
        strolls = u < p.stroll
        onward = other_table(table, u / p.stroll, p.num_tables) if strolls else table
        return (cell, onward, 0), table
    if place != table:
        return (cell, place, 0), place
    if u < p.pick_up:
        return (cell, other_table(table, u / p.pick_up, p.num_tables), 1), hand
    return porter, place


def reference_wanderer(p, tables, wanderer, u):
    cell, table, _ = wanderer
    if cell == tables[table]:
        return cell, other_table(table, u, p.num_tables), 0
    return step_towards(cell, tables[table], p.grid_size, u, p.stand_still), table, 0


def reference_exogenous(p, tables, x, noise):
    """The next value of every variable, by name, from values by name."""
    parts = ("cell", "destination", "carrying")
    y = {name: 0 for name in x if name.startswith("occupancy")}
    y |= {name: value for name, value in x.items() if name.startswith("object")}
    for i in range(p.num_agents):
        name = f"porter_{i}" if i < p.num_porters else f"wanderer_{i - p.num_porters}"
        agent = tuple(x[f"{name}_{part}"] for part in parts)
        if i < p.num_porters:
            flag, place = divmod(x[f"object_{i}"], p.num_tables + 1)
            agent, place = reference_porter(p, tables, agent, place, noise[i])
            y[f"object_{i}"] = place + (p.num_tables + 1) * flag
        else:
            agent = reference_wanderer(p, tables, agent, noise[i])
        y |= {f"{name}_{part}": value for part, value in zip(parts, agent, strict=True)}
        row, column = divmod(agent[0], p.grid_size)
        y[f"occupancy_{row}_{column}"] = 1
    return y


def reference_robot(p, tables, robot, x, action):
    """The robot's next value, and the terms that are not zero."""
    size = p.grid_size
    done = size * size
    if robot == done:
        return done, {}
    terms = {}
    row, column = robot // size + STEPS[action][0], robot % size + STEPS[action][1]
    target = robot
    if 0 <= row < size and 0 <= column < size:
        target = row * size + column
    if target != robot and x[f"occupancy_{row}_{column}"]:
        terms[f"occupancy_{row}_{column}"] = -p.crash_cost
        target = robot
    for i in range(p.num_objects):
        flag, place = divmod(x[f"object_{i}"], p.num_tables + 1)
        if flag and place < p.num_tables and tables[place] == robot:
            terms[f"object_{i}"] = p.goal_reward
            target = done
    return target, terms


def crowd(name):
    return CrowdMDP(CrowdParameters(**CROWDS[name]))


def some_states(mdp, size, rng):
    """Half of them as they occur, half of them anything, the robot anywhere."""
    reached = mdp.sample_initial(size // 2, rng).exogenous
    for _ in range(7):
        reached = mdp.sample_exogenous(reached, rng)
    anything = mdp.sample_uniform(size, rng)
    exogenous = np.concatenate([reached, anything.exogenous[size // 2 :]])
    return State(anything.endogenous, exogenous)


def by_name(mdp, x):
    return dict(zip(mdp.exogenous_names, x.tolist(), strict=True))


@pytest.mark.parametrize("name", CROWDS)
def test_exogenous_dynamics_are_those_of_the_reference(name):
    mdp, rng = crowd(name), np.random.default_rng(0)
    states = some_states(mdp, 400, rng)
    noise = rng.random((400, mdp.parameters.num_agents))
    following = mdp.sample_exogenous(states.exogenous, FixedNoise(noise))
    tables = mdp.table_cells.tolist()
    for x, u, y in zip(states.exogenous, noise, following, strict=True):
        expected = reference_exogenous(mdp.parameters, tables, by_name(mdp, x), u)
        assert by_name(mdp, y) == expected


@pytest.mark.parametrize("name", CROWDS)
def test_robot_and_rewards_are_those_of_the_reference(name):
    mdp, rng = crowd(name), np.random.default_rng(1)
    states = some_states(mdp, 600, rng)
    # Many robots at tables, where it matters.
    states.endogenous[::2, 0] = rng.choice(mdp.table_cells, size=300)
    actions = rng.integers(mdp.num_actions, size=600)
    following = mdp.sample_endogenous(states, actions, rng)
    terms = mdp.reward_terms(states, actions)
    tables = mdp.table_cells.tolist()
    paid = Counter()
    for lane, x in enumerate(states.exogenous):
        robot, expected = reference_robot(
            mdp.parameters, tables, states.endogenous[lane, 0], by_name(mdp, x), actions[lane]
        )
        assert following[lane, 0] == robot
        where = np.flatnonzero(terms[lane])
        assert {mdp.exogenous_names[i]: terms[lane, i] for i in where} == expected
        paid.update(variable.partition("_")[0] for variable in expected)
    assert paid["object"] > 10
    assert paid["occupancy"] > 10


def test_initial_noise_that_rounds_up_stays_in_range():
    mdp = CrowdMDP()
    for u in (0.0, np.nextafter(1.0, 0.0)):
        x = mdp.sample_initial(1, FixedNoise(np.full((1, 61), u))).exogenous
        assert ((x >= 0) & (x < mdp.exogenous_sizes)).all()
        x = mdp.sample_exogenous(x, FixedNoise(np.full((1, 16), u)))
        assert ((x >= 0) & (x < mdp.exogenous_sizes)).all()


# --- what must hold -------------------------------------------------------------------------


def assert_consistent(mdp, x):
    """The rules of reachable states, over a batch (lanes, m)."""
    agents = x[:, mdp.agent_slice].reshape(len(x), -1, 3)
    cells, _, carrying = np.moveaxis(agents, -1, 0)
    occupied = np.zeros((len(x), mdp.floor.num_cells), dtype=np.int64)
    np.put_along_axis(occupied, cells, 1, axis=1)
    assert (x[:, mdp.occupancy_slice] == occupied).all()
    place, is_goal = mdp.decode_object(x[:, mdp.object_slice])
    porters = slice(0, mdp.num_porters)
    in_hand = place == mdp.parameters.num_tables
    assert (in_hand[:, porters] == carrying[:, porters]).all()
    assert not in_hand[:, mdp.num_porters :].any()
    assert not carrying[:, mdp.num_porters :].any()
    assert (is_goal.sum(axis=1) == 1).all()


def phases(mdp, x):
    """What the porters do, (lanes, num_porters): 0 carry, 1 stroll, 2 return, 3 wait."""
    agents = x[:, mdp.agent_slice].reshape(len(x), -1, 3)[:, : mdp.num_porters]
    cells, destinations, carrying = np.moveaxis(agents, -1, 0)
    place, _ = mdp.decode_object(x[:, mdp.object_slice][:, : mdp.num_porters])
    waiting = cells == mdp.table_cells[destinations]
    return np.select([carrying == 1, place != destinations, ~waiting], [0, 1, 2], 3)


@pytest.mark.parametrize("name", CROWDS)
def test_trajectories_stay_consistent(name):
    mdp, rng = crowd(name), np.random.default_rng(2)
    x = mdp.sample_initial(100, rng).exogenous
    movable = mdp.parameters.goal == "movable"
    goal = mdp.decode_object(x[:, mdp.object_slice])[1].argmax(axis=1)
    assert ((goal < mdp.num_porters) == movable).all()
    for _ in range(30):
        assert_consistent(mdp, x)
        before = x
        x = mdp.sample_exogenous(x, rng)
        phase, next_phase = phases(mdp, before), phases(mdp, x)
        # The phases follow each other; a porter that does not stroll goes from 0 to 3.
        assert np.isin(next_phase - phase, [0, 1, -3, 3]).all()
        assert (phase[next_phase - phase == 3] == 0).all()
        porters_objects = slice(mdp.object_slice.start, mdp.object_slice.start + mdp.num_porters)
        moved = x[:, porters_objects] != before[:, porters_objects]
        assert (moved == ((phase != next_phase) & ((phase == 0) | (phase == 3)))).all()
        fixed = slice(porters_objects.stop, None)
        assert (x[:, fixed] == before[:, fixed]).all()
        assert (mdp.decode_object(x[:, mdp.object_slice])[1].argmax(axis=1) == goal).all()
        rows, columns = np.divmod(
            np.stack([before, x])[..., mdp.agent_slice].reshape(2, 100, -1, 3)[..., 0],
            mdp.floor.columns,
        )
        assert (np.abs(np.diff(rows, axis=0)) + np.abs(np.diff(columns, axis=0)) <= 1).all()


def test_any_state_is_consistent_after_one_step():
    mdp, rng = CrowdMDP(), np.random.default_rng(3)
    x = mdp.sample_uniform(500, rng).exogenous
    x[:, mdp.object_slice] = mdp.sample_initial(500, rng).exogenous[:, mdp.object_slice]
    assert_consistent(mdp, mdp.sample_exogenous(x, rng))


@pytest.mark.parametrize("goal", ["movable", "fixed"])
def test_every_candidate_becomes_the_goal(goal):
    mdp = CrowdMDP(CrowdParameters(goal=goal))
    x = mdp.sample_initial(600, np.random.default_rng(4)).exogenous
    counts = mdp.decode_object(x[:, mdp.object_slice])[1].sum(axis=0)
    candidates = slice(0, 6) if goal == "movable" else slice(6, 12)
    # 100 expected of each; a count is outside with probability 1e-7.
    assert ((counts[candidates] > 50) & (counts[candidates] < 155)).all()
    assert counts.sum() == 600 == counts[candidates].sum()


def test_every_porter_takes_its_object_to_every_table():
    mdp, rng = CrowdMDP(), np.random.default_rng(5)
    x = mdp.sample_initial(50, rng).exogenous
    seen = np.zeros((6, 7), dtype=bool)
    for _ in range(100):
        x = mdp.sample_exogenous(x, rng)
        place, _ = mdp.decode_object(x[:, mdp.object_slice][:, :6])
        for i in range(6):
            seen[i, place[:, i]] = True
    assert seen.all()


@pytest.mark.parametrize(
    "numbers",
    [{}, {"stroll": 1.0}, {"stroll": 0.3, "pick_up": 0.1, "stand_still": 0.3, "num_tables": 3}],
)
def test_porters_start_as_busy_as_they_stay(numbers):
    """Every share is within Hoeffding's bound for 16 of them at an error probability of 1e-6."""
    p = CrowdParameters(num_agents=60, num_porters=60, num_objects=60, **numbers)
    mdp, rng = CrowdMDP(p), np.random.default_rng(6)
    rows, columns = np.divmod(mdp.table_cells, mdp.floor.columns)
    apart = np.abs(rows[:, None] - rows) + np.abs(columns[:, None] - columns)
    walk = apart[apart > 0].mean() / (1 - p.stand_still)
    steps = np.array([walk + 1, p.stroll * (walk + 1), p.stroll * walk, 1 / p.pick_up])
    x = mdp.sample_initial(2000, rng).exogenous
    start = phases(mdp, x)
    for _ in range(500):
        x = mdp.sample_exogenous(x, rng)
    bound = np.sqrt(np.log(2 * 16 / 1e-6) / (2 * start.size))  # 0.0085
    for phase in (start, phases(mdp, x)):
        shares = np.bincount(phase.ravel(), minlength=4) / phase.size
        np.testing.assert_allclose(shares, steps / steps.sum(), atol=bound)


def test_objects_lie_about_without_porters_that_stroll():
    """The bounds are Hoeffding's, each at an error probability of 1e-6."""
    mdp, rng = CrowdMDP(CrowdParameters(stroll=1.0)), np.random.default_rng(16)
    x = mdp.sample_initial(3000, rng).exogenous
    for _ in range(100):
        x = mdp.sample_exogenous(x, rng)
    place, _ = mdp.decode_object(x[:, mdp.object_slice][:, :6])
    lies = place < 6
    table = mdp.table_cells[np.where(lies, place, 0)]
    away = x[:, mdp.agent_slice].reshape(3000, -1, 3)[:, :6, 0] != table
    # At its object's table a porter is for 1 / 0.5 steps before and 1 / 0.9 after each walk of
    # 6.4 cells, in a cycle in which the object lies for 2 * 6.4 / 0.9 + 1 + 1 / 0.5 steps.
    assert away[lies].mean() == pytest.approx(1 - 3.11 / 17.22, abs=0.025)
    # Others pass by: of the cells where objects lie 2 in 5 are free. Objects of one lane are not
    # independent in this, so it counts the first of each.
    free = np.take_along_axis(x, table, axis=1) == 0
    assert free[lies[:, 0], 0].mean() == pytest.approx(0.4, abs=0.06)


# --- names, sizes and the floor -------------------------------------------------------------


def test_names_and_sizes_are_those_of_the_paper():
    mdp = CrowdMDP()
    names = mdp.exogenous_names
    assert len(names) == 124
    assert names[:2] == ("occupancy_0_0", "occupancy_0_1")
    assert names[63:68] == (
        "occupancy_7_7",
        "porter_0_cell",
        "porter_0_destination",
        "porter_0_carrying",
        "porter_1_cell",
    )
    assert names[82] == "wanderer_0_cell"
    assert names[111:113] == ("wanderer_9_carrying", "object_0")
    assert names[mdp.occupancy_slice][-1] == "occupancy_7_7"
    assert names[mdp.agent_slice][0] == "porter_0_cell"
    assert names[mdp.object_slice] == tuple(f"object_{i}" for i in range(12))
    assert 80 <= math.log10(mdp.num_states) < 81
    assert mdp.done == 64 == mdp.endogenous_variables[0].size - 1


@pytest.mark.parametrize(
    ("size", "num_tables"), [(2, 3), (3, 8), (5, 6), (8, 6), (9, 20), (16, 40)]
)
def test_tables_stand_apart_and_not_in_the_lower_left_quarter(size, num_tables):
    cells = place_tables(Floor(size, size), num_tables)
    assert cells.dtype == np.int64
    assert len(set(cells.tolist())) == num_tables
    rows, columns = np.divmod(cells, size)
    assert ((rows < size - size // 2) | (columns >= size // 2)).all()
    apart = np.abs(rows[:, None] - rows) + np.abs(columns[:, None] - columns)
    nearest = (apart + 100 * np.eye(num_tables, dtype=int)).min(axis=1)
    if (size, num_tables) == (8, 6):
        assert nearest.min() == 4


def test_the_robot_starts_next_to_the_centre_and_not_in_the_lower_left_quarter():
    for size in (2, 3, 5, 8, 16):
        mdp = CrowdMDP(CrowdParameters(grid_size=size, num_tables=3))
        row, column = mdp.floor.position(mdp.start)
        assert (row, column) == (size // 2 - 1, size // 2)
        assert row < size - size // 2
        assert (mdp.sample_initial(3, np.random.default_rng(17)).endogenous == mdp.start).all()
    mdp = CrowdMDP()
    assert mdp.start not in mdp.table_cells


def test_objects_decode():
    place, is_goal = CrowdMDP().decode_object(np.arange(14))
    assert place.tolist() == [*range(7), *range(7)]
    assert is_goal.tolist() == [False] * 7 + [True] * 7


@pytest.mark.parametrize(
    ("numbers", "num_variables"),
    [
        ({"grid_size": 16, "num_agents": 64}, 256 + 192 + 12),
        ({"grid_size": 64, "num_agents": 1900, "num_objects": 204}, 10_000),
    ],
)
def test_bigger_crowds(numbers, num_variables):
    mdp, rng = CrowdMDP(CrowdParameters(**numbers)), np.random.default_rng(7)
    assert mdp.num_porters == 6
    assert len(mdp.exogenous_variables) == num_variables
    x = mdp.sample_initial(3, rng).exogenous
    for _ in range(3):
        x = mdp.sample_exogenous(x, rng)
        assert_consistent(mdp, x)


# --- rewards, by hand -----------------------------------------------------------------------


def empty_floor(mdp):
    """Nobody about, and no goal."""
    return np.zeros((1, len(mdp.exogenous_variables)), dtype=np.int64)


def test_crashing_costs_and_stops_the_robot_but_standing_in_a_crowd_does_not():
    mdp, rng = CrowdMDP(), np.random.default_rng(8)
    x = empty_floor(mdp)
    x[0, [48, 56]] = 1  # the cell above the robot, and its own
    state = State(np.array([[56]]), x)
    for action, reward, robot in [
        (Move.UP, -100.0, 56),
        (Move.STAY, 0.0, 56),
        (Move.LEFT, 0.0, 56),  # the edge
        (Move.RIGHT, 0.0, 57),
    ]:
        actions = np.array([action])
        assert mdp.reward(state, actions) == reward
        assert mdp.sample_endogenous(state, actions, rng) == robot
    crash = mdp.reward_terms(state, np.array([Move.UP]))[0]
    assert np.flatnonzero(crash).tolist() == [48]


@pytest.mark.parametrize("action", list(Move))
def test_the_goal_pays_for_any_action_and_ends_the_episode(action):
    mdp, rng = CrowdMDP(), np.random.default_rng(9)
    x = empty_floor(mdp)
    x[0, mdp.object_slice.start + 3] = 2 + 7  # the goal, on table 2
    there = State(mdp.table_cells[[2]][:, None], x)
    actions = np.array([action])
    assert mdp.reward(there, actions) == 1000.0
    after = mdp.sample_next(there, actions, rng)
    assert mdp.is_terminal(after).all()
    assert mdp.reward(after, actions) == 0.0
    assert not mdp.reward_terms(after, actions).any()
    x[0, mdp.object_slice.start + 3] = 6 + 7  # in a hand
    assert mdp.reward(State(there.endogenous, x), actions) == 0.0


# --- the contract ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["default", "fixed", "odd"])
def test_contract(name):
    check_mdp(crowd(name), rng=np.random.default_rng(10))


def test_batches_of_any_shape_agree():
    mdp, rng = CrowdMDP(), np.random.default_rng(11)
    states = some_states(mdp, 6, rng)
    actions, noise = rng.integers(5, size=6), rng.random((6, 16))
    terms = mdp.reward_terms(states, actions)
    robots = mdp.sample_endogenous(states, actions, rng)
    following = mdp.sample_exogenous(states.exogenous, FixedNoise(noise))
    square = State(states.endogenous.reshape(2, 3, 1), states.exogenous.reshape(2, 3, -1))
    assert (mdp.reward_terms(square, actions.reshape(2, 3)).reshape(6, -1) == terms).all()
    assert (mdp.sample_endogenous(square, actions.reshape(2, 3), rng).ravel() == robots[:, 0]).all()
    y = mdp.sample_exogenous(square.exogenous, FixedNoise(noise))
    assert y.shape == (2, 3, 124)
    assert (y.reshape(6, -1) == following).all()
    for lane in range(6):
        state = State(states.endogenous[lane], states.exogenous[lane])
        assert (mdp.reward_terms(state, actions[lane]) == terms[lane]).all()
        assert mdp.sample_endogenous(state, actions[lane], rng).tolist() == robots[lane].tolist()
        y = mdp.sample_exogenous(state.exogenous, FixedNoise(noise[[lane]]))
        assert y.shape == (124,)
        assert (y == following[lane]).all()


def test_layout_and_integer_type_do_not_matter():
    mdp, rng = CrowdMDP(), np.random.default_rng(12)
    states, noise = some_states(mdp, 8, rng), rng.random((8, 16))
    following = mdp.sample_exogenous(states.exogenous, FixedNoise(noise))
    frozen = states.exogenous.copy()
    frozen.flags.writeable = False
    for x in (np.asfortranarray(states.exogenous), states.exogenous.astype(np.int16), frozen):
        assert (mdp.sample_exogenous(x, FixedNoise(noise)) == following).all()


def test_a_batch_of_none_and_actions_that_broadcast():
    mdp, rng = CrowdMDP(), np.random.default_rng(13)
    none = mdp.sample_initial(0, rng)
    assert mdp.sample_next(none, np.zeros(0, dtype=int), rng).exogenous.shape == (0, 124)
    assert mdp.reward_terms(none, np.zeros(0, dtype=int)).shape == (0, 124)
    states = mdp.sample_initial(4, rng)
    every_action = State(states.endogenous[:, None], states.exogenous[:, None])
    terms = mdp.reward_terms(every_action, np.arange(5))
    assert terms.shape == (4, 5, 124)
    for action in range(5):
        assert (terms[:, action] == mdp.reward_terms(states, np.full(4, action))).all()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("porter_0_cell", 64),
        ("wanderer_9_destination", -1),
        ("object_5", 14),
        ("porter_1_carrying", 2),
    ],
)
def test_values_out_of_range_are_named(variable, value):
    mdp, rng = CrowdMDP(), np.random.default_rng(14)
    x = mdp.sample_initial(2, rng).exogenous
    x[1, mdp.exogenous_indices([variable])] = value
    with pytest.raises(ValueError, match=f"'{variable}' cannot be {value}"):
        mdp.sample_exogenous(x, rng)


def test_wrong_actions_robots_and_widths_are_named():
    mdp, rng = CrowdMDP(), np.random.default_rng(15)
    state = mdp.sample_initial(1, rng)
    for method in (mdp.reward_terms, lambda s, a: mdp.sample_endogenous(s, a, rng)):
        with pytest.raises(ValueError, match="no action 5"):
            method(state, np.array([5]))
        with pytest.raises(ValueError, match="'robot' cannot be 65"):
            method(State(np.array([[65]]), state.exogenous), np.array([0]))
        with pytest.raises(ValueError, match="123 variables"):
            method(State(state.endogenous, state.exogenous[:, 1:]), np.array([0]))


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"goal": "moveable"}, "did you mean 'movable'"),
        ({"goal": "x"}, "'movable', 'fixed'"),
        ({"grid_size": 1}, "grid_size is a whole number, at least 2, not 1"),
        ({"grid_size": 8.0}, "grid_size is a whole number, at least 2, not 8.0"),
        ({"num_agents": True}, "num_agents is a whole number, at least 0, not True"),
        ({"num_agents": -1}, "num_agents"),
        ({"num_agents": 5}, "num_porters=6 is more than num_agents=5"),
        ({"num_objects": 5}, "num_porters=6 is more than num_objects=5"),
        ({"num_porters": 0}, "needs a porter"),
        ({"num_objects": 6, "goal": "fixed"}, "without a porter"),
        ({"num_tables": 1}, "num_tables is a whole number, at least 2, not 1"),
        ({"num_tables": 49}, "48 cells"),
        ({"pick_up": 1.5}, r"pick_up is a probability, 0 \.\.\. 1, not 1.5"),
        ({"stand_still": -0.1}, "stand_still"),
        ({"stand_still": math.nan}, "stand_still"),
        ({"goal_reward": math.inf}, "goal_reward"),
        ({"crash_cost": -1}, "crash_cost is a finite number, at least 0, not -1"),
        ({"crash_cost": "much"}, "crash_cost is a finite number, at least 0, not 'much'"),
        ({"discount": 0}, r"discount is in \(0, 1\], not 0"),
        ({"horizon": 0}, "horizon"),
    ],
)
def test_bad_parameters(numbers, message):
    with pytest.raises(ValueError, match=message):
        CrowdParameters(**numbers)


# --- the shells -----------------------------------------------------------------------------


def test_the_shells_pass_their_arguments_on():
    env = CrowdEnv(goal="fixed", horizon=3, render_backend="flat")
    assert env.mdp.parameters == CrowdParameters(goal="fixed", horizon=3)
    assert env.viewer.backend == "flat"
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    for truncated in (False, False, True):
        assert env.step(Move.STAY)[3] is truncated
    vector_env = CrowdVectorEnv(4, num_agents=20, max_episode_steps=2, render_backend="flat")
    assert vector_env.mdp.parameters.num_agents == 20
    vector_env.reset(seed=0)
    vector_env.step(np.zeros(4, dtype=int))
    assert vector_env.step(np.zeros(4, dtype=int))[3].all()
    with pytest.raises(ValueError, match="did you mean 'num_agents'"):
        CrowdEnv(num_agent=3)


def test_the_exogenous_trajectory_does_not_depend_on_the_robot():
    def trajectory(action):
        env = ExoVectorEnv(CrowdMDP(), 8)
        env.reset(seed=1)
        return [env.step(np.full(8, action))[0]["exogenous"] for _ in range(4)]

    assert np.array_equal(trajectory(Move.UP), trajectory(Move.RIGHT))
