"""A model that counts what it is asked: the one place where samples are counted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.check import check_quickly
from exo_envs.contract.checked_mdp import CheckedMDP
from exo_envs.core.clock import tick
from exo_envs.core.mdp import (
    BoolArray,
    ExoMDP,
    FloatArray,
    IntArray,
    State,
    Successors,
    as_pair,
    batch_shape,
)
from exo_envs.core.original import Outcome


class CountedMDP(CheckedMDP):
    """Passes every question on to a model, checks the answers, and counts what it is asked about.

    Before every question the time may be up (:func:`exo_envs.core.clock.tick`).

    Attributes:
        model: the model.
        exogenous_samples: how many x' were drawn.
        endogenous_samples: how many n' were drawn.
        reward_samples: in how many states reward terms were asked for.
    """

    def __init__(self, model: ExoMDP, *, check: bool = True) -> None:
        super().__init__(model, check=check)
        self.exogenous_samples = self.endogenous_samples = self.reward_samples = 0

    def check_contract(self) -> None:
        """Look if the model keeps its contract; that takes samples and ticks like anything else.

        Raises:
            ContractError: it breaks a rule.
        """
        unchecked = CountedMDP(self.model, check=False)
        try:
            check_quickly(unchecked)
        finally:
            self.add(unchecked)

    def add(self, other: CountedMDP) -> None:
        """Count what another one was asked as well."""
        self.exogenous_samples += other.exogenous_samples
        self.endogenous_samples += other.endogenous_samples
        self.reward_samples += other.reward_samples

    @property
    def samples(self) -> int:
        """All of them: x', n' and rewards."""
        return self.exogenous_samples + self.endogenous_samples + self.reward_samples

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """Of the model; a state to start in is an x like any other."""
        tick()
        state = super().sample_initial(size, rng)
        self.exogenous_samples += int(size)  # without a check it may be no State
        return state

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """Of the model."""
        tick()
        self.exogenous_samples += math.prod(batch_shape(exogenous))
        return super().sample_exogenous(exogenous, rng)

    def write_exogenous(
        self, x: NDArray[Any], rng: np.random.Generator, following: NDArray[Any]
    ) -> None:
        """Of the model."""
        tick()
        self.exogenous_samples += len(x)
        super().write_exogenous(x, rng, following)

    def trajectories(
        self, size: int, num_steps: int, rng: np.random.Generator
    ) -> tuple[State, Iterator[IntArray]]:
        """Of the model; each x of a record counts as if it had been drawn."""
        state, following = super().trajectories(size, num_steps, rng)
        if not self.is_recorded:
            return state, following
        self.exogenous_samples += int(size)

        def counted() -> Iterator[IntArray]:
            for x in following:
                tick()
                self.exogenous_samples += len(x)
                yield x

        return state, counted()

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """Of the model."""
        tick()
        self.endogenous_samples += math.prod(batch_shape(as_pair(state).endogenous))
        return super().sample_endogenous(state, action, rng)

    def sample_outcome(self, state: State, action: IntArray, rng: np.random.Generator) -> Outcome:
        """Of the model; of one that was made of something else, n' and the reward are one step."""
        if self.original is None:
            return super().sample_outcome(state, action, rng)
        tick()
        self.endogenous_samples += math.prod(batch_shape(as_pair(state).endogenous))
        return super().sample_outcome(state, action, rng)

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors | None:
        """Of the model; the n' of one state count as one, as if it had been drawn."""
        tick()
        found = super().endogenous_distribution(state, action)
        if found is not None:
            self.endogenous_samples += math.prod(batch_shape(as_pair(state).endogenous))
        return found

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """Of the model; endogenous rewards come with the terms and are not counted again."""
        tick()
        self.reward_samples += math.prod(batch_shape(as_pair(state).endogenous))
        return super().reward_terms(state, action)

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """Of the model."""
        tick()
        return super().endogenous_reward(endogenous, action)

    def is_terminal(self, state: State) -> BoolArray:
        """Of the model; to look whether an episode is over is no sample."""
        tick()
        return super().is_terminal(state)
