"""A model that counts what it is asked: the one place where samples are counted."""

from __future__ import annotations

import math

import numpy as np

from exo_envs import ExoMDP, State, Successors
from exo_envs.mdp import BoolArray, FloatArray, IntArray
from planners.successors import given_successors


class CountedMDP(ExoMDP):
    """Passes every question on to a model, and counts the states that it is asked about.

    Attributes:
        model: the model.
        exogenous_samples: how many x' were drawn.
        endogenous_samples: how many n' were drawn.
        reward_samples: in how many states reward terms were asked for.
    """

    def __init__(self, model: ExoMDP) -> None:
        self.model = model
        for name in ExoMDP.__annotations__:
            setattr(self, name, getattr(model, name))
        self.exogenous_samples = self.endogenous_samples = self.reward_samples = 0

    @property
    def samples(self) -> int:
        """All of them: x', n' and rewards."""
        return self.exogenous_samples + self.endogenous_samples + self.reward_samples

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """Of the model; a state to start in is an x like any other."""
        self.exogenous_samples += size
        return self.model.sample_initial(size, rng)

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """Of the model."""
        self.exogenous_samples += math.prod(exogenous.shape[:-1])
        return self.model.sample_exogenous(exogenous, rng)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """Of the model."""
        self.endogenous_samples += math.prod(state.endogenous.shape[:-1])
        return self.model.sample_endogenous(state, action, rng)

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors | None:
        """Of the model; the n' of one state count as one, as if it had been drawn."""
        found = given_successors(self.model, state, action)
        if found is not None:
            self.endogenous_samples += math.prod(state.endogenous.shape[:-1])
        return found

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """Of the model."""
        self.reward_samples += math.prod(state.endogenous.shape[:-1])
        return self.model.reward_terms(state, action)

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """Of the model; it comes with the terms and is not counted again."""
        return self.model.endogenous_reward(endogenous, action)

    def is_terminal(self, state: State) -> BoolArray:
        """Of the model; to look whether an episode is over is no sample."""
        return self.model.is_terminal(state)

    def __repr__(self) -> str:
        """The model's."""
        return repr(self.model)
