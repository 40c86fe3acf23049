"""What pays is decided by many bits together: by their majority, or by their parity."""

import numpy as np

from exo_envs import ExoMDP, State, Variable


class VoteMDP(ExoMDP):
    """The pay of the next step is what the bits vote for; each of them changes now and then.

    Args:
        num_bits: how many vote.
        rule: "majority" or "parity".
        moving: whether the vote also decides if the agent moves.
    """

    num_actions, discount, horizon = 2, 0.9, 20
    endogenous_variables = (Variable("place", 2),)

    def __init__(self, num_bits, rule="majority", *, moving=False):
        self.num_bits, self.rule, self.moving = num_bits, rule, moving
        bits = (Variable(f"bit_{i}", 2) for i in range(num_bits))
        noise = (Variable(f"noise_{i}", 2) for i in range(3))
        self.exogenous_variables = (Variable("pay", 2), *bits, *noise)

    def vote(self, exogenous):
        votes = exogenous[..., 1 : 1 + self.num_bits].sum(axis=-1)
        return votes % 2 if self.rule == "parity" else 1 * (2 * votes > self.num_bits)

    def sample_initial(self, size, rng):
        x = rng.integers(2, size=(size, len(self.exogenous_variables)))
        return State(np.zeros((size, 1), np.int64), x)

    def sample_exogenous(self, exogenous, rng):
        following = exogenous ^ (rng.random(exogenous.shape) < 0.2)
        following[..., 0] = self.vote(exogenous)
        return following

    def sample_endogenous(self, state, action, rng):
        goes = self.vote(state.exogenous) if self.moving else 1
        place = np.where(goes, np.asarray(action), state.endogenous[..., 0])
        return place[..., None]

    def reward_terms(self, state, action):
        terms = np.zeros(state.exogenous.shape)
        terms[..., 0] = (2.0 * state.exogenous[..., 0] - 1) * state.endogenous[..., 0]
        return terms
