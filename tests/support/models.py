"""Small models for the tests of everything that is generic."""

from __future__ import annotations

import numpy as np

from exo_envs import ExoMDP, State, Variable


class CounterMDP(ExoMDP):
    """Without noise: a position counts the actions, a clock ticks, and a die never changes.

    The episode ends at the last position. The clock pays its value, the die costs one a step.
    """

    endogenous_variables = (Variable("position", 6), Variable("last_action", 3))
    exogenous_variables = (Variable("clock", 4), Variable("die", 6))
    num_actions = 3
    discount = 0.9
    horizon = 7

    def sample_initial(self, size, rng):
        """Everything at zero, except the die."""
        return State(np.zeros((size, 2), dtype=np.int64), np.tile(np.array([0, 3]), (size, 1)))

    def sample_exogenous(self, exogenous, rng):
        """The clock ticks."""
        following = exogenous.copy()
        following[..., 0] = (exogenous[..., 0] + 1) % 4
        return following

    def sample_endogenous(self, state, action, rng):
        """The position moves on by the action."""
        position = np.minimum(state.endogenous[..., 0] + action, 5)
        return np.stack(np.broadcast_arrays(position, action), axis=-1)

    def reward_terms(self, state, action):
        """The clock pays its value, the die costs one."""
        terms = state.exogenous.astype(float)
        terms[..., 1] = -1.0
        return terms

    def endogenous_reward(self, endogenous, action):
        """A bonus for the largest action."""
        return 0.5 * (np.asarray(action) == 2)

    def is_terminal(self, state):
        """The last position ends the episode."""
        return np.equal(state.endogenous[..., 0], 5)


class CoinMDP(ExoMDP):
    """All noise: two coins are thrown anew each step, and so is the agent's die."""

    endogenous_variables = (Variable("die", 6),)
    exogenous_variables = (Variable("coin_a", 2), Variable("coin_b", 2))
    num_actions = 2
    discount = 1.0
    horizon = 1000

    def sample_initial(self, size, rng):
        """Thrown."""
        return State(rng.integers(6, size=(size, 1)), rng.integers(2, size=(size, 2)))

    def sample_exogenous(self, exogenous, rng):
        """Thrown."""
        return rng.integers(2, size=exogenous.shape)

    def sample_endogenous(self, state, action, rng):
        """Thrown; action 1 throws twice, so it uses up more random numbers."""
        shape = state.endogenous.shape
        first, second = rng.integers(6, size=shape), rng.integers(6, size=shape)
        if np.any(action):
            rng.random(17)
        return np.where(np.asarray(action)[..., None] == 1, np.maximum(first, second), first)

    def reward_terms(self, state, action):
        """A coin pays if the action names its side."""
        return np.equal(state.exogenous, np.asarray(action)[..., None]).astype(float)
