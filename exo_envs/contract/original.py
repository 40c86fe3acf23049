"""Models of something that can be played itself, such as an environment that somebody else wrote.

What such a model claims of a policy is one thing, and what the policy earns where it is played is
another. Who reports returns asks the original (:meth:`HasOriginal.play_episodes`), and who needs a
step of the model asks for the reward that was paid in this very step
(:meth:`HasOriginal.sample_outcome`), and not for the mean of what is paid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from exo_envs.core.mdp import FloatArray, IntArray, State

#: The state and the action of a step, and how many steps of the episode came before.
WatchStep: TypeAlias = Callable[[int, State, int], object]


@runtime_checkable
class HasOriginal(Protocol):
    """What a model has that was made of something else."""

    def sample_outcome(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> tuple[IntArray, FloatArray]:
        """Draw n' and the reward of one step of the original, put into each state."""

    def play_episodes(
        self,
        policy: Callable[[State], Any],
        episodes: int,
        seed: int,
        *,
        horizon: int | None = None,
        watch: WatchStep | None = None,
    ) -> Iterator[float]:
        """The discounted return of each episode of the original, as it is played."""

    def check_claims(self) -> None:
        """Refuse, or warn, once, if episodes of the original are not what the model says."""

    def why_different(self, policy: Callable[[State], Any]) -> str:
        """In which way the original is not what the model says, where a policy leads; or ''."""


@runtime_checkable
class HasOwnSteps(HasOriginal, Protocol):
    """A model of an environment that can be put into a state and stepped from there.

    Attributes:
        reference: the pair (n, x) that x' and the reward terms are relative to, without ``done``.
        reference_action: the action with which x' is drawn.
        reward_samples: the number of seeds a reward is averaged over.
        tells_reward_terms: whether the environment says what each term paid.
        differences: whether to "refuse" or to "warn" if its episodes are not what the model says.
    """

    reference: State
    reference_action: int
    reward_samples: int
    tells_reward_terms: bool
    differences: str

    def observed_step(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> tuple[State, FloatArray]:
        """One step of the original itself from each state: s' and the reward."""
