"""A model whose episodes end by what x is, small enough to be solved by hand."""

from __future__ import annotations

import numpy as np

from exo_envs import ExoMDP, State, Successors, Variable

#: The tide rises while the moon is up and falls else, with probability 0.8; else it stays.
MOVES = 0.8
#: The probability that the moon rises or sets.
TURNS = 0.3


class Closing(ExoMDP):
    """A boat earns more the further it is out; when the tide is lowest it must not be out.

    Three places, the tide (3), the moon (2), and what a radio plays (4). Staying out at low tide
    ends the episode. The tide pays 1 more while it is highest, wherever the boat is.
    """

    endogenous_variables = (Variable("place", 3),)
    exogenous_variables = (Variable("tide", 3), Variable("moon", 2), Variable("radio", 4))
    num_actions, discount, horizon = 3, 0.9, 40

    def sample_initial(self, size, rng):
        """In the harbour at high tide."""
        x = np.stack([np.full(size, 2), rng.integers(2, size=size), rng.integers(4, size=size)], 1)
        return State(np.zeros((size, 1), dtype=np.int64), x)

    def sample_exogenous(self, exogenous, rng):
        """The moon moves the tide; the radio plays anything."""
        tide, moon = exogenous[..., 0], exogenous[..., 1]
        goes = rng.random(tide.shape) < MOVES
        step = np.where(goes, np.where(moon == 1, 1, -1), 0)
        turns = rng.random(tide.shape) < TURNS
        radio = rng.integers(4, size=tide.shape)
        return np.stack([np.clip(tide + step, 0, 2), np.where(turns, 1 - moon, moon), radio], -1)

    def sample_endogenous(self, state, action, rng):
        """Back, stay or out."""
        return np.clip(state.endogenous + np.asarray(action)[..., None] - 1, 0, 2)

    def endogenous_distribution(self, state, action):
        """Certain."""
        return Successors.certain(self.sample_endogenous(state, action, None))

    def reward_terms(self, state, action):
        """What the tide pays."""
        terms = np.zeros(state.exogenous.shape)
        terms[..., 0] = state.exogenous[..., 0] == 2
        return terms

    def endogenous_reward(self, endogenous, action):
        """What is caught."""
        return 2.0 * endogenous[..., 0]

    def is_terminal(self, state):
        """Out at low tide."""
        return (state.exogenous[..., 0] == 0) & (state.endogenous[..., 0] >= 1)


def tide_moves():
    """P(tide', moon' | tide, moon), shape (6, 6); the pair is 2 * tide + moon."""
    table = np.zeros((6, 6))
    for tide in range(3):
        for moon in range(2):
            to = min(max(tide + (1 if moon else -1), 0), 2)
            for following, chance in ((to, MOVES), (tide, 1 - MOVES)):
                for after, turning in ((1 - moon, TURNS), (moon, 1 - TURNS)):
                    table[2 * tide + moon, 2 * following + after] += chance * turning
    return table


def values_of(choose):
    """The values of a policy in all (place, 2 * tide + moon), without a horizon, shape (3, 6).

    Args:
        choose: takes the values of all actions, (3, 6, 3), to those of the chosen ones, (3, 6).
    """
    table, values = tide_moves(), np.zeros((3, 6))
    place, pair = np.indices((3, 6))
    over = (pair // 2 == 0) & (place >= 1)
    for _ in range(400):
        following = values @ table.T  # (place', pair)
        actions = np.stack([following[np.clip(place + a - 1, 0, 2), pair] for a in range(3)], -1)
        paid = 2.0 * place + (pair // 2 == 2)
        values = np.where(over, 0.0, choose(paid[..., None] + 0.9 * actions))
    return values
