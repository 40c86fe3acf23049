"""What the relaxation asks the model about all (n, a) at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exo_envs.contract.checked_mdp import checked
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray, IntArray, State
from planners.core.arrays import Ints, joint_index, joint_values
from planners.tables.indexing import num_endogenous_states


class Answers(NamedTuple):
    """What a model says about all (n, a) at each of some x."""

    rewards: FloatArray  # (B, N, A)
    terminal: BoolArray  # (B, N)
    targets: Ints  # (B, N, A, K) the n' that may follow, or draws of it
    probabilities: FloatArray  # (B, N, A, K)


def gives_successors(mdp: ExoMDP) -> bool:
    """Whether a model gives the probabilities of n', found out by asking once."""
    model = checked(mdp)
    state = model.sample_initial(1, np.random.default_rng(0))
    return model.endogenous_distribution(state, np.zeros(1, np.int64)) is not None


class Questions:
    """Asks a model, and remembers whether its n' was certain.

    Args:
        mdp: the model.
        num_draws: draws of n' for each (x, n, a), if the model does not give the probabilities.
        rng: for these draws.
    """

    def __init__(self, mdp: ExoMDP, num_draws: int, rng: np.random.Generator) -> None:
        self.mdp = checked(mdp)
        self.num_draws = num_draws
        self.rng = rng
        self.differed = False
        self.num_states = num_endogenous_states(mdp)
        self._n = joint_values(np.arange(self.num_states), mdp.endogenous_sizes)
        self.given = gives_successors(mdp)

    def ask(self, exogenous: Ints) -> Answers:
        """About all (n, a) at these x, shape (B, m)."""
        mdp, count, num_actions = self.mdp, len(exogenous), self.mdp.num_actions
        shape = (count, self.num_states, num_actions)
        x = np.repeat(exogenous, self.num_states * num_actions, axis=0)
        n = np.tile(np.repeat(self._n, num_actions, axis=0), (count, 1))
        state, action = State(n, x), np.tile(np.arange(num_actions), count * self.num_states)
        rewards = mdp.reward(state, action)
        ended = mdp.is_terminal(State(n[::num_actions], x[::num_actions]))
        targets, probabilities = (self._given if self.given else self._drawn)(state, action)
        return Answers(
            rewards.reshape(shape),
            ended.reshape(shape[:2]),
            targets.reshape(*shape, -1),
            probabilities.reshape(*shape, -1),
        )

    def _given(self, state: State, action: Ints) -> tuple[Ints, FloatArray]:
        found = self.mdp.endogenous_distribution(state, action)
        if found is None:
            raise ArgumentError(
                f"{self.mdp!r} gives the probabilities of n' in one state and not in another"
            )
        return self._index(found.endogenous), found.probabilities

    def _drawn(self, state: State, action: Ints) -> tuple[Ints, FloatArray]:
        draws = [
            self._index(self.mdp.sample_endogenous(state, action, self.rng))
            for _ in range(self.num_draws)
        ]
        targets = np.stack(draws, axis=-1)
        self.differed = self.differed or bool((targets != targets[:, :1]).any())
        return targets, np.full(targets.shape, 1.0 / self.num_draws)

    def _index(self, endogenous: IntArray) -> Ints:
        return joint_index(endogenous, self.mdp.endogenous_sizes)
