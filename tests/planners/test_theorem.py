"""Theorem 1 of the paper, numerically: when ignoring variables costs nothing, and when it does.

The conditions, for a mask: (1) no other variable pays, (2) no other variable moves the agent, and
(3) the mask's variables are predicted by the mask alone. Variables outside may depend on the mask.
"""

import itertools

import numpy as np
import pytest
from factored import random_mdp
from hypothesis import given
from hypothesis import strategies as st

from exo_envs import State
from planners import ValueIteration
from planners.tables.decision_lists import DecisionLists, Rule
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.factors import Factor

SIZES = (2, 3, 2, 2)
MASK = (0, 1)  # the variables that are kept
CLOSED = [(0, 1), (1,), (2, 0, 3), (3,)]  # the parents of each variable: the mask's are in the mask


def joint_values(sizes):
    return np.array(list(itertools.product(*(range(size) for size in sizes))))


def exogenous_matrix(mdp):
    """P(x'|x) as one matrix."""
    joint = joint_values(mdp.exogenous_sizes)
    matrix = np.ones((len(joint), len(joint)))
    for i, factor in enumerate(mdp.factors):
        rows = np.zeros(len(joint), dtype=int)
        for parent in factor.parents:
            rows = rows * mdp.exogenous_sizes[parent] + joint[:, parent]
        matrix *= factor.to_table(int(mdp.exogenous_sizes[i]))[rows][:, joint[:, i]]
    return matrix


def reduce_exactly(mdp, mask):
    """The reduced model of the definition; dropped variables have their stationary distribution."""
    joint = joint_values(mdp.exogenous_sizes)
    matrix = exogenous_matrix(mdp)
    stationary = np.full(len(joint), 1 / len(joint)) @ np.linalg.matrix_power(matrix, 4096)
    kept = joint_values(mdp.exogenous_sizes[list(mask)])
    member = (joint[:, None, list(mask)] == kept).all(axis=2).astype(float)  # (X, K)
    weights = member * stationary[:, None]
    weights /= weights.sum(axis=0)
    sizes = tuple(int(size) for size in mdp.exogenous_sizes[list(mask)])
    following = weights.T @ matrix @ member  # (K, K)
    # One factor each, given the whole mask: exact for these models, whose variables are
    # independent given all of x, only if nothing dropped links them; checked by the callers.
    factors = [
        Factor.from_table(
            range(len(mask)),
            np.stack([following[:, kept[:, k] == v].sum(axis=1) for v in range(size)], axis=-1),
        )
        for k, size in enumerate(sizes)
    ]
    states, actions = mdp.num_endogenous_states, mdp.num_actions
    rules = {}
    for n, a in itertools.product(range(states), range(actions)):
        moves = mdp.decision_lists.distribution(
            np.full(len(joint), n), np.full(len(joint), a), joint
        )
        stay = np.zeros((1, states))
        stay[0, n] = 1.0
        rules[n, a] = [
            Rule.from_table(tuple(range(len(mask))), weights.T @ moves),
            Rule.from_table((), stay),
        ]
    return FactoredMDP(
        endogenous_variables=mdp.endogenous_variables,
        exogenous_variables=tuple(mdp.exogenous_variables[i] for i in mask),
        num_actions=actions,
        discount=mdp.discount,
        horizon=mdp.horizon,
        factors=factors,
        decision_lists=DecisionLists.from_lists([*rules.values()], actions, sizes),
        base_reward=mdp.base_reward,
        terms={k: mdp.terms[i] for k, i in enumerate(mask) if i in mdp.terms},
        terminal=mdp.terminal,
        initial=State(mdp.initial.endogenous, mdp.initial.exogenous[:, list(mask)]),
    )


def policy_values(mdp, actions):
    """The value of a policy (X, N) in the full model, by solving its linear equations."""
    joint = joint_values(mdp.exogenous_sizes)
    matrix = exogenous_matrix(mdp)
    states = mdp.num_endogenous_states
    size = len(joint) * states
    transition, reward = np.zeros((size, size)), np.zeros(size)
    for n in range(states):
        chosen = actions[:, n]
        move = mdp.decision_lists.distribution(np.full(len(joint), n), chosen, joint)
        rows = np.arange(len(joint)) * states + n
        if mdp.terminal[n]:
            transition[rows, rows] = 1.0
            continue
        transition[rows] = np.einsum("xy,xm->xym", matrix, move).reshape(len(joint), size)
        reward[rows] = mdp.base_reward[n, chosen] + sum(
            table[joint[:, i], n, chosen] for i, table in mdp.terms.items()
        )
    values = np.linalg.solve(np.eye(size) - mdp.discount * transition, reward)
    return values.reshape(len(joint), states)


def loss_of_ignoring(mdp, mask):
    """How much the reduced policy loses in the full model, state by state."""
    planner = ValueIteration(tolerance=1e-9)
    reduced_policy = planner.plan(reduce_exactly(mdp, mask)).policy
    optimal = planner.plan(mdp).values
    joint = joint_values(mdp.exogenous_sizes)
    states = mdp.num_endogenous_states
    n = joint_values(mdp.endogenous_sizes)
    actions = np.stack(
        [reduced_policy(State(n, np.tile(x[list(mask)], (states, 1)))) for x in joint]
    )
    return optimal - policy_values(mdp, actions)


@given(seed=st.integers(0, 2**32))
def test_what_the_theorem_allows_to_ignore_costs_nothing(seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(
        rng,
        sizes=SIZES,
        parents=CLOSED,
        paying=MASK,
        moving=MASK,
        discount=float(rng.uniform(0.5, 0.95)),
        num_terminal=int(rng.integers(2)),
    )
    np.testing.assert_allclose(loss_of_ignoring(mdp, MASK), 0.0, atol=1e-6)


@pytest.mark.parametrize(
    ("condition", "broken"),
    [
        ("1: another variable pays", {"paying": (0, 1, 3)}),
        ("2: another variable moves the agent", {"moving": (0, 1, 3)}),
        ("3: another variable predicts the mask", {"parents": [(0, 1, 3), (1,), (2,), (3,)]}),
    ],
)
def test_each_condition_is_needed(condition, broken):
    """With one broken, some of ten random models lose by ignoring; none can ever gain."""
    arguments = {"parents": CLOSED, "paying": MASK, "moving": MASK, "discount": 0.9} | broken
    losses = [
        loss_of_ignoring(random_mdp(np.random.default_rng(seed), sizes=SIZES, **arguments), MASK)
        for seed in range(10)
    ]
    assert np.min(losses) > -1e-6
    assert np.max(losses) > 1e-2, condition
