"""ExoCrowd: names and sizes, rewards by hand, the contract, the shells."""

import math

import numpy as np
import pytest
from crowds import assert_consistent, crowd

from exo_envs import State
from exo_envs.domains.crowd import CrowdEnv, CrowdMDP, CrowdParameters, CrowdVectorEnv
from exo_envs.domains.crowd.model import place_tables
from exo_envs.domains.floor import Floor, Move
from exo_envs.testing import check_mdp

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
        with pytest.raises(ValueError, match=r"shape \(1, 123\); it should be \(\.\.\., 124\)"):
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
