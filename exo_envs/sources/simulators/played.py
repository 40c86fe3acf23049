"""Whether an adapted environment is what its model says, by episodes of the environment itself.

A model of somebody else's environment makes claims that nobody has checked: that n and x are all
of its state, that x moves by itself, that n' does not look at x', and that the reward is what its
terms add up to. :func:`check_played` plays the environment as it is (reset and step, no state is
set) and compares every step with what the model says of the same state and action.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from exo_envs.core.errors import ContractError
from exo_envs.core.mdp import State
from exo_envs.sources.simulators.comparison import NUM_DRAWS, Comparison, Difference

if TYPE_CHECKING:
    from exo_envs.sources.simulators.playing import PlayableMDP

#: Steps of the environment itself that are compared.
NUM_STEPS = 300
#: Seconds after which fewer steps are compared.
SECONDS = 10.0


class PlayedDifferentlyError(ContractError):
    """Episodes of an adapted environment are not what its model says of them.

    Attributes:
        reason: "coarse state", "hidden state", "joint rewards", "noise in the reward",
            "exogeneity" or "looks ahead".
    """

    def __init__(self, difference: Difference) -> None:
        """Say why the model is not what is played."""
        super().__init__("played", f"{difference.message} (reason: {difference.reason})")
        self.reason = difference.reason


class PlayedDifferentlyWarning(UserWarning):
    """The same, of a model that is meant as an approximation."""


def check_played(
    mdp: PlayableMDP,
    *,
    num_steps: int = NUM_STEPS,
    seed: int = 0,
    seconds: float = SECONDS,
) -> None:
    """Refuse a model of which episodes of the environment itself differ (or warn, as it says).

    Learners and :func:`planners.estimate_objective` do this once for each model, before anything
    is learned or planned. What is certain is compared exactly, what depends on chance by tests that
    refuse a right model with a probability of at most 1e-6 each.

    Args:
        mdp: the model.
        num_steps: how many steps of the environment are compared.
        seed: of its episodes.
        seconds: where steps are slow, fewer are compared, so that it takes about that long.

    Raises:
        PlayedDifferentlyError: its ``reason`` says why, and its message what to do about it.
    """
    if mdp.is_played_as_claimed:
        return
    found = next(find_differences(mdp, num_steps=num_steps, seed=seed, seconds=seconds), None)
    if found is not None and mdp.differences == "refuse":
        raise PlayedDifferentlyError(found)
    mdp.is_played_as_claimed = True
    if found is not None:
        warnings.warn(
            f"{found.message} (reason: {found.reason}); the model is an approximation: "
            "compare what it claims with what AdaptedMDP.play earns",
            PlayedDifferentlyWarning,
            stacklevel=3,
        )


def find_differences(
    mdp: PlayableMDP,
    *,
    num_steps: int = NUM_STEPS,
    seed: int = 0,
    seconds: float = SECONDS,
    policy: Callable[[State], Any] | None = None,
) -> Iterator[Difference]:
    """All that :func:`check_played` looks for, the deepest cause first.

    With a policy the episodes are its own, but for one random action in ten.
    """
    start = time.perf_counter()
    episodes = mdp.record(min(num_steps, 32), seed, policy)
    a_step = (time.perf_counter() - start) / len(episodes)
    affordable = int(seconds / (a_step * (2 + 2 * NUM_DRAWS)))
    episodes = mdp.record(max(32, min(num_steps, affordable)), seed, policy)
    comparison = Comparison(mdp, episodes, np.random.default_rng([seed, 1]))
    for look in (
        comparison.hidden_state,
        comparison.joint_rewards,
        comparison.noisy_rewards,
        comparison.exogeneity,
        comparison.looks_ahead,
    ):
        found = look()
        if found is not None:
            yield found


def find_moved(mdp: PlayableMDP, *, num_steps: int = NUM_STEPS, seed: int = 0) -> str | None:
    """An exogenous variable that does not move by itself, or whose next value n' looks at."""
    episodes = mdp.record(num_steps, seed)
    comparison = Comparison(mdp, episodes, np.random.default_rng([seed, 1]))
    found = comparison.exogeneity() or comparison.looks_ahead()
    return None if found is None else found.variable
