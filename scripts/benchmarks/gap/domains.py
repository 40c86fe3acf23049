"""The domains, and what the parts of the benchmark share about each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np

import exo_envs  # noqa: F401
from exo_envs import ExoMDP, State
from planners import Bracket, Estimate, Mask, Objective, Policy, Scenarios
from planners import bracket as find_bracket
from planners.core.evaluation import paired_difference
from wrappers import CalibratedMaskLearner, Study
from wrappers.fitting.relevance import find_relevance


@dataclass(frozen=True)
class Settings:
    """How much is sampled.

    Attributes:
        rollouts: episodes that policies are judged on, the same for all.
        seed: of everything.
        learning_rollouts: episodes on which learners compare masks.
        data_rollouts: rollouts that models are estimated from; None is the learners' default.
        slow_rollouts: of the rollouts, those that slow policies are judged on.
        simulations: of a tree search that is not short of time.
        small_models: how many there are.
        small_rollouts: that the bracket of each is made on.
    """

    rollouts: int = 2000
    seed: int = 0
    learning_rollouts: int = 500
    data_rollouts: int | None = None
    slow_rollouts: int = 100
    simulations: int = 200
    small_models: int = 100
    small_rollouts: int = 200

    def quick(self) -> Settings:
        """Small enough for a look, or a test."""
        return replace(
            self,
            rollouts=min(self.rollouts, 100),
            learning_rollouts=50,
            data_rollouts=300,
            slow_rollouts=4,
            simulations=10,
            small_models=12,
        )


#: The price of a variable that the learned masks are for; None if none is learned.
DOMAINS: dict[str, float | None] = {
    "ExoGrid": 1.0,
    "ExoFactory": 1.0,
    "ExoCrowd": 3.0,
    "ExoSynthetic": None,
}

#: Variables that other ways to plan are tried with; by the first part of their names.
RIVAL_MASKS: dict[str, tuple[str, ...]] = {
    "ExoFactory": ("",),
    "ExoCrowd": ("occupancy", "object", "porter"),
}


class Domain:
    """A domain with a study of it, and the trajectories that its policies are judged on."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.settings = settings
        self.cost_weight = DOMAINS[name]
        self.study = self.new_study()
        self._learned: dict[float, Mask] = {}

    def new_study(self, **options: Any) -> Study:
        """A study with the settings of the benchmark; the same seed gives the same samples."""
        return Study(
            gym.make(f"{self.name}-v0"),
            self.settings.seed,
            n_rollouts=self.settings.learning_rollouts,
            n_data_rollouts=self.settings.data_rollouts,
            **options,
        )

    @property
    def mdp(self) -> ExoMDP:
        """The full model."""
        return self.study.mdp

    @cached_property
    def scenarios(self) -> Scenarios:
        """Trajectories that no learner has seen."""
        return Scenarios.sample(self.mdp, self.settings.rollouts, [self.settings.seed, 1])

    def some_scenarios(self, count: int) -> Scenarios:
        """The first of these."""
        known = self.scenarios
        return Scenarios(known.endogenous[:count], known.exogenous[:, :count], known.seed)

    def objective(self, mask: Sequence[str], study: Study | None = None) -> Objective:
        """What a mask earns on the trajectories."""
        evaluator = (study or self.study).evaluator
        return evaluator.objective(tuple(mask), scenarios=self.scenarios, thorough=True)

    def learned(self, cost_weight: float, study: Study | None = None) -> Mask:
        """The mask of our learner; learned once for each price, if no other study is given."""
        if study is not None:
            return CalibratedMaskLearner(cost_weight=cost_weight).fit(study).mask_
        if cost_weight not in self._learned:
            self._learned[cost_weight] = self.learned(cost_weight, self.study)
        return self._learned[cost_weight]

    def starting_with(self, parts: tuple[str, ...]) -> Mask:
        """The variables whose names start with one of the parts."""
        return tuple(name for name in self.mdp.exogenous_names if name.startswith(parts))

    @property
    def rival_mask(self) -> Mask | None:
        """The variables that other ways to plan are tried with, if they are."""
        parts = RIVAL_MASKS.get(self.name)
        return None if parts is None else self.starting_with(parts)

    @cached_property
    def relevant(self) -> Mask:
        """All variables that matter, those that pay or move n first."""
        return tuple(find_relevance(self.study).findings)

    @property
    def paying(self) -> Mask:
        """The variables that pay."""
        paying = set(self.study.survey().paying)
        return tuple(name for name in self.mdp.exogenous_names if name in paying)

    def bracket(self, policy: Policy) -> Bracket:
        """What no policy can exceed, on the trajectories."""
        seed = [self.settings.seed, 2]
        return find_bracket(
            self.mdp,
            policy,
            rng=np.random.default_rng(seed),
            scenarios=self.scenarios,
            memory=self.study.memory,
        )

    def states(self, count: int) -> State:
        """States to ask policies about: x from the trajectories, any n that is not terminal."""
        rng = np.random.default_rng([self.settings.seed, 3])
        flat = self.scenarios.exogenous.reshape(-1, self.scenarios.exogenous.shape[-1])
        x = flat[rng.integers(len(flat), size=4 * count)].astype(np.int64)
        state = State(
            rng.integers(self.mdp.endogenous_sizes, size=(len(x), len(self.mdp.endogenous_sizes))),
            x,
        )
        going_on = np.flatnonzero(~self.mdp.is_terminal(state))[:count]
        return State(state.endogenous[going_on], state.exogenous[going_on])


def difference(objective: Objective, other: Objective) -> Estimate:
    """How much more a mask earns than another one, paired."""
    return paired_difference(objective.returns, other.returns)
