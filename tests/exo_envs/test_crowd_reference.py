"""ExoCrowd: against a slow reference written from its description."""

import math
from collections import Counter

import numpy as np
import pytest
from crowds import CROWDS, FixedNoise, by_name, crowd, some_states

from exo_envs.domains.crowd import CrowdMDP

STEPS = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]


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
