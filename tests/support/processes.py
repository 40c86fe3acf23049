"""Exogenous processes for tests of what predicts what."""

import numpy as np
from sklearn.metrics import mutual_info_score

from exo_envs import ExoMDP, State, Variable


class ProcessMDP(ExoMDP):
    """Exogenous variables that follow a function of x and of noise; the agent does nothing."""

    endogenous_variables = (Variable("n", 1),)
    num_actions = 1
    discount = 0.9

    def __init__(self, sizes, step, *, horizon=20, wasteful=False):
        self.exogenous_variables = tuple(Variable(f"x{i}", size) for i, size in enumerate(sizes))
        self.horizon = horizon
        self.step = step
        self.wasteful = wasteful

    def sample_initial(self, size, rng):
        x = rng.integers(self.exogenous_sizes, size=(size, len(self.exogenous_sizes)))
        return State(np.zeros((size, 1), dtype=np.int64), x)

    def sample_exogenous(self, exogenous, rng):
        if self.wasteful:  # the amount of noise depends on the states
            rng.random(int(exogenous.sum()))
        return self.step(exogenous, rng.random(exogenous.shape)).astype(np.int64)

    def sample_endogenous(self, state, action, rng):
        return state.endogenous.copy()

    def reward_terms(self, state, action):
        return np.zeros(state.exogenous.shape)


def lazily(keep, sizes):
    """Independent variables: each keeps its value or is drawn anew."""

    def step(x, u):
        anew = np.floor((u - keep) / (1 - keep) * np.array(sizes))
        return np.where(u < keep, x, np.minimum(anew, np.array(sizes) - 1))

    return step


def conditional_mutual_information(rows, target, column):
    """By scikit-learn, row by row, times the samples."""
    return sum(
        (rows == row).sum() * mutual_info_score(target[rows == row], column[rows == row])
        for row in np.unique(rows)
    )
