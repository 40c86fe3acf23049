"""Distributions of reduced models, and data for any number of masks, for the tests of reduction."""

import numpy as np

from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData


def shared(mdp, seed=0, rollouts=None):
    """Data and a survey for any number of masks."""
    rng = np.random.default_rng(seed)
    data = ExogenousData.collect(mdp, rollouts, rng)
    return {"data": data, "survey": EndogenousSurvey.collect(mdp, data, rng), "rng": rng}


def all_x(mdp):
    """Every joint value of x, shape (X, m)."""
    sizes = mdp.exogenous_sizes
    return np.indices(sizes).reshape(len(sizes), -1).T.astype(np.int64)


def factor_tables(mdp, x):
    """P(x'_i | x) of each variable at each x, shapes (X, size)."""
    tables = []
    for factor, size in zip(mdp.factors, mdp.exogenous_sizes, strict=True):
        row = np.zeros(len(x), dtype=np.int64)
        for j in factor.parents:
            row = row * mdp.exogenous_sizes[j] + x[:, j]
        tables.append(factor.to_table(size)[row])
    return tables


def move_table(mdp, x):
    """P(n' | n, a, x), shape (N, A, X, N)."""
    states, actions = mdp.num_endogenous_states, mdp.num_actions
    n, a, k = np.indices((states, actions, len(x))).reshape(3, -1)
    return mdp.decision_lists.distribution(n, a, x[k]).reshape(states, actions, len(x), states)


def total_variation(first, second):
    return 0.5 * np.abs(first - second).sum(axis=-1)
