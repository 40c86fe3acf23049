"""A variable of very many values that decides everything, in one of three roles."""

import numpy as np

from exo_envs import ExoMDP, State, Variable

ROLES = ("pays", "moves", "predicts")


class ManyValuesMDP(ExoMDP):
    """A high price pays, opens a short cut, or announces what pays next; three bits are noise.

    Args:
        size: how many values the price has.
        role: what it does: "pays", "moves" n, or "predicts" what pays.
        rule: when a price is high: above a "threshold", or if its "parity" is odd, which no bin of
            neighbouring prices shows. With "copy" what pays has as many values as the price, and is
            the price of the step before.
    """

    num_actions, discount, horizon = 2, 0.9, 20
    endogenous_variables = (Variable("place", 3),)

    def __init__(self, size, role, rule="threshold"):
        self.size, self.role, self.rule = size, role, rule
        signal = Variable("signal", size if rule == "copy" else 2)
        noise = (Variable(f"noise_{i}", 2) for i in range(3))
        self.exogenous_variables = (Variable("price", size), signal, *noise)

    def is_high(self, price):
        return price % 2 == 1 if self.rule == "parity" else price >= self.size // 2

    def sample_initial(self, size, rng):
        x = rng.integers(self.exogenous_sizes, size=(size, len(self.exogenous_sizes)))
        return State(np.zeros((size, 1), np.int64), x)

    def sample_exogenous(self, exogenous, rng):
        anything = (rng.random(exogenous.shape) * self.exogenous_sizes).astype(np.int64)
        following = np.where(rng.random(exogenous.shape) < 0.8, exogenous, anything)
        if self.role == "predicts":
            price = exogenous[..., 0]
            following[..., 0] = anything[..., 0]
            following[..., 1] = price if self.rule == "copy" else self.is_high(price)
        return following

    def sample_endogenous(self, state, action, rng):
        steps = np.asarray(action)
        if self.role == "moves":
            steps = steps * (1 + self.is_high(state.exogenous[..., 0]))
        return (state.endogenous + steps[..., None]) % 3

    def reward_terms(self, state, action):
        terms, x = np.zeros(state.exogenous.shape), state.exogenous
        if self.role == "pays":
            terms[..., 0] = np.where(self.is_high(x[..., 0]), 1.0, -1.0) * action
        if self.role == "predicts":
            high = 2 * x[..., 1] >= self.exogenous_sizes[1]
            terms[..., 1] = np.where(high, 1.0, -1.0) * action
        return terms

    def endogenous_reward(self, endogenous, action):
        return (endogenous[..., 0] == 2) * float(self.role == "moves")
