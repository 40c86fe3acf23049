"""MDPs with exogenous variables to plan in: random ones, grids, and products of variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from exo_envs import State, Variable
from planners.tables.decision_lists import DecisionLists, Rule
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.factors import Factor

SIDE = 10
STEPS = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)])  # stay, up, down, left, right


def random_problem(num_exogenous: int, discount: float, rng: np.random.Generator) -> FactoredMDP:
    """One exogenous variable with 10 successors a value, 100 n with 3 successors a pair."""
    states, num_actions = SIDE * SIDE, 5
    steps = rng.integers(1, num_exogenous // 10 + 1, size=(num_exogenous, 10))
    values = (rng.integers(num_exogenous, size=(num_exogenous, 1)) + steps.cumsum(axis=1)) % (
        num_exogenous
    )
    values = np.sort(values, axis=1)  # ten different ones: the steps do not go round
    factor = Factor(
        (0,),
        np.arange(num_exogenous + 1) * 10,
        values.reshape(-1),
        rng.dirichlet(np.ones(10), size=num_exogenous).reshape(-1),
    )
    rules = {}
    for n in range(states):
        for a in range(num_actions):
            table = np.zeros((1, states))
            table[0, rng.choice(states, size=3, replace=False)] = rng.dirichlet(np.ones(3))
            rules[n, a] = [Rule.from_table((), table)]
    return _assemble(
        (num_exogenous,),
        [factor],
        rules,
        {0: rng.random((num_exogenous, states, num_actions))},
        discount,
    )


def grid_problem(num_exogenous: int, discount: float, rng: np.random.Generator) -> FactoredMDP:
    """A robot on a 10x10 grid that slips, an obstacle in its way, a goal that changes place.

    500: an obstacle that walks about (100 cells) and the place of the goal (5). 5000: also a tariff
    for moving (10 levels), which goes up and down.
    """
    cells = SIDE * SIDE
    neighbours = np.stack([_move(np.arange(cells), a) for a in range(5)], axis=1)  # (cells, 5)
    walk = np.zeros((cells, cells))
    np.add.at(walk, (np.arange(cells)[:, None], neighbours), 0.2)
    change = 0.98 * np.eye(5) + 0.02 * np.roll(np.eye(5), 1, axis=1)
    factors = [Factor.from_table((0,), walk), Factor.from_table((1,), change)]
    goals = rng.choice(cells, size=5, replace=False)
    goal = np.zeros((5, cells, 5))
    goal[np.arange(5), goals] = 1.0
    bump = np.zeros((cells, cells, 5))
    bump[np.arange(cells), np.arange(cells)] = -1.0
    sizes, terms = [cells, 5], {0: bump, 1: goal}
    if num_exogenous == 5000:
        level = np.arange(10)
        drift = np.zeros((10, 10))
        np.add.at(drift, (level, level), 0.8)
        np.add.at(drift, (level, np.maximum(level - 1, 0)), 0.1)
        np.add.at(drift, (level, np.minimum(level + 1, 9)), 0.1)
        factors.append(Factor.from_table((2,), drift))
        tariff = np.zeros((10, cells, 5))
        tariff[:, :, 1:] = -0.01 * level[:, None, None]
        sizes, terms = [*sizes, 10], {**terms, 2: tariff}
    rules = {}
    for n in range(cells):
        for a in range(5):
            blocked = np.zeros((cells, cells))  # by an obstacle ahead, for each of its places
            blocked[neighbours[n, a], n] = 1.0
            rules[n, a] = [Rule.from_table((0,), blocked), Rule.from_table((), _slip(n, a)[None])]
    return _assemble(tuple(sizes), factors, rules, terms, discount)


def _slip(n: int, action: int) -> np.ndarray:
    """Where a step leads: ahead, or to one of the sides."""
    out = np.zeros(SIDE * SIDE)
    if action == 0:
        out[n] = 1.0
        return out
    out[_move(n, action)] += 0.8
    for side in (3, 4) if action in (1, 2) else (1, 2):
        out[_move(n, side)] += 0.1
    return out


def _move(cell: Any, action: int) -> Any:
    row, column = np.divmod(cell, SIDE)
    row, column = np.clip((row + STEPS[action][0], column + STEPS[action][1]), 0, SIDE - 1)
    return row * SIDE + column


def _assemble(
    sizes: tuple[int, ...],
    factors: list[Factor],
    rules: dict[tuple[int, int], list[Rule]],
    terms: dict[int, np.ndarray],
    discount: float,
) -> FactoredMDP:
    states = SIDE * SIDE
    return FactoredMDP(
        endogenous_variables=(Variable("n", states),),
        exogenous_variables=tuple(Variable(f"x{i}", size) for i, size in enumerate(sizes)),
        num_actions=5,
        discount=discount,
        horizon=100,
        factors=factors,
        decision_lists=DecisionLists.from_lists([*rules.values()], 5, sizes),
        base_reward=np.zeros((states, 5)),
        terms=terms,
        terminal=np.zeros(states, dtype=bool),
        initial=State(np.zeros((1, 1), dtype=int), np.zeros((1, len(sizes)), dtype=int)),
    )


def product_problem(num_variables: int, discount: float, rng: np.random.Generator) -> FactoredMDP:
    """Independent variables of ten values each, every one of which pays somewhere."""
    sizes = (10,) * num_variables
    factors = [
        Factor.from_table((i,), rng.dirichlet(np.full(10, 0.5), size=10))
        for i in range(num_variables)
    ]
    moves = grid_problem(10, discount, rng).decision_lists
    nowhere = np.zeros((1, len(moves.sizes)), dtype=np.int64)
    rules = {
        (n, a): [Rule.from_table((), moves.distribution(np.array([n]), np.array([a]), nowhere))]
        for n in range(SIDE * SIDE)
        for a in range(5)
    }
    terms = {i: rng.normal(size=(10, SIDE * SIDE, 5)) for i in range(num_variables)}
    return _assemble(sizes, factors, rules, terms, discount)


def small_problem(
    rng: np.random.Generator, *, horizon: int, certain: bool, discount: float = 0.9
) -> FactoredMDP:
    """Four n, two variables of two and three values that move n and pay; n' may be certain."""
    states, num_actions, sizes = 4, 3, (2, 3)
    factors = [
        Factor.from_table((0, 1), rng.dirichlet(np.full(2, 0.7), size=6)),
        Factor.from_table((1,), rng.dirichlet(np.full(3, 0.7), size=3)),
    ]
    rules = {}
    for n in range(states):
        for a in range(num_actions):
            if certain:
                table = np.eye(states)[rng.integers(states, size=6)]
            else:
                table = rng.dirichlet(np.full(states, 0.7), size=6)
            rules[n, a] = [Rule.from_table((0, 1), table), Rule.certain(n)]
    pairs = (states, num_actions)
    return FactoredMDP(
        endogenous_variables=(Variable("n", states),),
        exogenous_variables=tuple(Variable(f"x{i}", size) for i, size in enumerate(sizes)),
        num_actions=num_actions,
        discount=discount,
        horizon=horizon,
        factors=factors,
        decision_lists=DecisionLists.from_lists([*rules.values()], num_actions, sizes),
        base_reward=rng.normal(size=pairs),
        terms={i: rng.normal(size=(size, *pairs)) for i, size in enumerate(sizes)},
        terminal=np.zeros(states, dtype=bool),
        initial=State(rng.integers(states, size=(3, 1)), rng.integers((2, 3), size=(3, 2))),
    )
