"""Random small MDPs given by tables, for the tests of the planners."""

from __future__ import annotations

import copy
import itertools

import numpy as np

from exo_envs import State, Variable
from planners import to_discrete_dp
from planners.core.arrays import joint_index, joint_values
from planners.tables.decision_lists import DecisionLists, Rule
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.factors import Factor
from planners.tables.indexing import num_endogenous_states


def state_index(mdp, state):
    """The index of each state, in the order of ``Plan.values``: shape (...)."""
    x = joint_index(state.exogenous, mdp.exogenous_sizes)
    return x * num_endogenous_states(mdp) + joint_index(state.endogenous, mdp.endogenous_sizes)


def state_at(mdp, index):
    """The states with these indices: arrays of shape (..., k) and (..., m)."""
    x, n = np.divmod(index, num_endogenous_states(mdp))
    return State(joint_values(n, mdp.endogenous_sizes), joint_values(x, mdp.exogenous_sizes))


def independent_moves(moves, sizes):
    """Decision lists that look at no x, from P(n' | n, a) of shape (N, A, N)."""
    lists = [[Rule.from_table((), row[None])] for row in moves.reshape(-1, moves.shape[2])]
    return DecisionLists.from_lists(lists, moves.shape[1], sizes)


def random_mdp(
    rng,
    *,
    sizes=(2, 3),
    endogenous=(4,),
    num_actions=3,
    discount=0.9,
    horizon=12,
    max_parents=2,
    sparse=0.0,
    num_rules=2,
    paying=None,
    moving=None,
    num_terminal=0,
    parents=None,
    joint=(),
):
    """A random FactoredMDP; variables are named by position, in ``joint`` several that pay."""
    m, states = len(sizes), int(np.prod(endogenous))
    everything = tuple(range(m))
    paying = everything if paying is None else paying
    moving = everything if moving is None else moving
    terminal = np.zeros(states, dtype=bool)
    terminal[states - num_terminal :] = True

    def distributions(rows, size):
        table = rng.dirichlet(np.full(size, 0.7), size=rows)
        table[rng.random(table.shape) < sparse] = 0.0
        table[table.sum(axis=-1) == 0, rng.integers(size)] = 1.0
        return table / table.sum(axis=-1, keepdims=True)

    factors = []
    for i, size in enumerate(sizes):
        if parents is None:
            others = [j for j in everything if j != i]
            count = rng.integers(min(max_parents, m))
            chosen = (i, *rng.choice(others, size=count, replace=False)) if others else (i,)
        else:
            chosen = parents[i]
        rows = int(np.prod([sizes[j] for j in chosen], dtype=int))
        factors.append(Factor.from_table(chosen, distributions(rows, size)))

    rules = {}
    for n, a in itertools.product(range(states), range(num_actions)):
        stay = np.zeros((1, states))
        stay[0, n] = 1.0
        if terminal[n]:
            rules[n, a] = [Rule.from_table((), stay)]
            continue
        listed = []
        for _ in range(rng.integers(num_rules + 1) if len(moving) else 0):
            count = rng.integers(1, min(2, len(moving)) + 1)
            looked_at = tuple(int(j) for j in rng.choice(moving, size=count, replace=False))
            rows = int(np.prod([sizes[j] for j in looked_at], dtype=int))
            decides = rng.random((rows, 1)) * (rng.random((rows, 1)) < 0.6)
            listed.append(Rule.from_table(looked_at, decides * distributions(rows, states)))
        rules[n, a] = [*listed, Rule.from_table((), distributions(1, states))]
    terms = {int(i): rng.normal(size=(sizes[i], states, num_actions)) for i in paying}
    base = rng.normal(size=(states, num_actions))
    for table in (*terms.values(), base):
        table[..., terminal, :] = 0.0
    initial = State(
        np.stack(
            np.unravel_index(rng.integers(states - num_terminal, size=20), endogenous), axis=-1
        ),
        rng.integers(sizes, size=(20, m)),
    )
    joint_terms = {}
    for scope in joint:
        rows = int(np.prod([sizes[i] for i in scope]))
        joint_terms[scope] = rng.normal(size=(rows, states, num_actions))
        joint_terms[scope][:, terminal] = 0.0
    return FactoredMDP(
        endogenous_variables=tuple(Variable(f"n{k}", size) for k, size in enumerate(endogenous)),
        exogenous_variables=tuple(Variable(f"x{i}", size) for i, size in enumerate(sizes)),
        num_actions=num_actions,
        discount=discount,
        horizon=horizon,
        factors=factors,
        decision_lists=DecisionLists.from_lists([*rules.values()], num_actions, sizes),
        base_reward=base,
        terms=terms,
        terminal=terminal,
        initial=initial,
        joint_terms=joint_terms,
    )


def to_arrays(mdp):
    """P(s'|s,a) of shape (A, S, S), and R of shape (S, A)."""
    discounted, shape = copy.copy(mdp), (mdp.num_states, mdp.num_actions)
    discounted.discount = 0.5  # QuantEcon warns of 1
    problem = to_discrete_dp(discounted)
    transitions = problem.Q.toarray().reshape(*shape, -1).transpose(1, 0, 2)
    return np.ascontiguousarray(transitions), np.asarray(problem.R).reshape(shape)


def arrays(record):
    """All arrays of records within records."""
    for part in record:
        yield from arrays(part) if isinstance(part, tuple) else [part]
