"""Models whose returns are rough, with the exact value of every policy in them.

Chains of a few values that move by themselves, and an n that is moved without noise: so the
distribution of the state can be followed step by step, and what a policy earns is known exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from exo_envs import ExoMDP, State, Variable
from exo_envs.core.mdp import FloatArray, IntArray


class ChainsMDP(ExoMDP):
    """Independent chains, each with a matrix of its own."""

    discount = 0.95

    def __init__(self, chains: dict[str, FloatArray], horizon: int) -> None:
        self.horizon = horizon
        self.exogenous_variables = tuple(Variable(name, len(own)) for name, own in chains.items())
        self._chains = list(chains.values())
        self._steps = [own.cumsum(axis=1) for own in self._chains]

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """Every chain begins at 0, and so does n."""
        k, m = len(self.endogenous_variables), len(self.exogenous_variables)
        return State(np.zeros((size, k), np.int64), np.zeros((size, m), np.int64))

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """A step of each chain."""
        uniform = rng.random(exogenous.shape)
        return np.stack(
            [
                np.minimum((uniform[..., [j]] >= own[exogenous[..., j]]).sum(-1), len(own) - 1)
                for j, own in enumerate(self._steps)
            ],
            axis=-1,
        )

    def true_value(self, policy: Callable[[State], Any]) -> float:
        """The expected return of a policy, by following the distribution of the state."""
        sizes = (*self.endogenous_sizes.tolist(), *self.exogenous_sizes.tolist())
        k = len(self.endogenous_sizes)
        values = np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), axis=-1)
        state = State(values[:, :k], values[:, k:])
        action = np.asarray(policy(state))
        reward, ended = self.reward(state, action), self.is_terminal(state)
        following = self.sample_endogenous(state, action, np.random.default_rng(0))
        following = np.where(ended[:, None], state.endogenous, following)
        n = np.ravel_multi_index(tuple(following.T), sizes[:k])
        shape = (int(np.prod(sizes[:k])), *sizes[k:])
        mass, total = np.zeros(len(values)), 0.0
        mass[0] = 1.0
        for t in range(self.horizon):
            total += self.discount**t * float(mass @ reward)
            moved = np.zeros(shape)
            np.add.at(moved, (n, *values[:, k:].T), mass)
            for axis, own in enumerate(self._chains, 1):
                moved = np.moveaxis(np.moveaxis(moved, axis, -1) @ own, -1, axis)
            mass = moved.reshape(-1)
        return total


def switching(stay: float, size: int = 2) -> FloatArray:
    """A chain that keeps its value with some probability, and else has any other."""
    away = (1.0 - stay) / (size - 1)
    return np.full((size, size), away) + (stay - away) * np.eye(size)


def thrown(*probabilities: float) -> FloatArray:
    """A chain that forgets: each value with its probability, whatever came before."""
    return np.tile(np.array(probabilities), (len(probabilities), 1))


class QuakeMDP(ChainsMDP):
    """Who is out when the earth quakes pays dearly, and nobody sees it coming.

    Being out pays the demand, 0 or 2. A quake comes with probability ``rate`` in every step and
    costs ``loss``.
    """

    num_actions = 2  # go in, go out
    endogenous_variables = (Variable("out", 2),)

    def __init__(self, rate: float = 1e-4, loss: float = 3_000.0, horizon: int = 12) -> None:
        self.loss = loss
        chains = {"demand": switching(0.8), "quake": thrown(1 - rate, rate), "wind": switching(0.5)}
        super().__init__(chains, horizon)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """Where the agent wants to be."""
        return np.broadcast_to(action, state.endogenous.shape[:-1])[..., None].astype(np.int64)

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """Demand pays who is out, a quake costs."""
        terms, is_out = np.zeros(state.exogenous.shape), state.endogenous[..., 0]
        terms[..., 0] = 2.0 * state.exogenous[..., 0] * is_out
        terms[..., 1] = -self.loss * state.exogenous[..., 1] * is_out
        return terms


class DamMDP(ChainsMDP):
    """A river rises step by step, seldom to the top, where the works are lost: that ends it all.

    The works earn the demand, 0 or 1, at any level. The agent may shut them down, which saves
    nothing: the loss is a matter of n alone, which x moves.
    """

    num_actions = 2  # shut down, run
    endogenous_variables = (Variable("works", 3),)  # standing, being lost, gone

    def __init__(self, rise: float = 0.022, loss: float = 4_000.0, horizon: int = 25) -> None:
        self.loss = loss
        river = np.array(
            [
                [1 - rise, rise, 0.0, 0.0],
                [0.6, 0.4 - rise, rise, 0.0],
                [0.6, 0.0, 0.4 - rise, rise],
                [1.0, 0.0, 0.0, 0.0],
            ]
        )
        super().__init__({"river": river, "demand": switching(0.7)}, horizon)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """The works are lost at the top."""
        n, is_flooded = state.endogenous[..., 0], state.exogenous[..., 0] == 3
        return np.where(n == 0, is_flooded.astype(np.int64), 2)[..., None]

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """Demand pays if the works run."""
        terms = np.zeros(state.exogenous.shape)
        terms[..., 1] = state.exogenous[..., 1] * (state.endogenous[..., 0] == 0) * action
        return terms

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """The loss, once."""
        return -self.loss * (endogenous[..., 0] == 1)

    def is_terminal(self, state: State) -> Any:
        """When the works are gone."""
        return np.equal(state.endogenous[..., 0], 2)


class ClaimsMDP(ChainsMDP):
    """Claims with heavy tails: each is 1.55 times the one before it and half as likely.

    Who insures earns 2.2 and pays the claim.
    """

    num_actions = 2  # rest, insure
    endogenous_variables = (Variable("open", 2),)

    def __init__(self, size: int = 16, growth: float = 1.55, horizon: int = 20) -> None:
        self.claims = growth ** np.arange(size) - 1.0
        likely = 0.5 ** np.arange(1, size + 1)
        chains = {"claim": thrown(*(likely / likely.sum())), "demand": switching(0.8)}
        super().__init__(chains, horizon)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """Open or not."""
        return np.broadcast_to(action, state.endogenous.shape[:-1])[..., None].astype(np.int64)

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """Who is open pays the claim and earns what the demand pays."""
        terms, is_open = np.zeros(state.exogenous.shape), state.endogenous[..., 0]
        terms[..., 0] = -self.claims[state.exogenous[..., 0]] * is_open
        terms[..., 1] = 2.2 * (1 + state.exogenous[..., 1]) * is_open
        return terms
