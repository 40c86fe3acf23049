"""What learners share that are given the same :class:`Study`: findings, and the worth of masks."""

from __future__ import annotations

import json
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from exo_envs.contract.check import check_quickly
from exo_envs.core.clock import check_time_limit
from exo_envs.core.ends import CarriedEnd, EndCarryingMDP, carry_end
from exo_envs.core.mdp import ExoMDP
from exo_envs.sources.simulators.conversion import as_mdp, warn_of_ignored_wrappers
from planners.core.planner import Planner
from planners.findings import Findings
from planners.objective import MaskEvaluator
from planners.reduced.ignored_rewards import IgnoredRewards
from planners.reduced.rewards import Reward

#: How an episode ends of models whose end is known to look at n alone.
KNOWN_ENDS = (ExoMDP.is_terminal, EndCarryingMDP.is_terminal)


class EndCarriedWarning(UserWarning):
    """The end of an episode depends on x, and is carried in n by an endogenous variable."""


class Study(Findings):
    """A model, what was found out about it, and the worth of its masks.

    Exact plans start from one of those before, so they are the same only as far as the planner is
    precise.

    Args:
        mdp_or_env: an :class:`~exo_envs.ExoMDP`, or an environment (:func:`exo_envs.as_mdp`).
        rng: a seed or a generator; by default seed 0.
        n_rollouts: episodes that each policy plays; all play the same exogenous trajectories.
        planner: by default one that chooses by size, as precise as the rollouts can tell.
        planning_time_limit: for one plan, in seconds; the time for compiling does not count.
        n_data_rollouts, reward, ignored_rewards, level, max_parents: see
            :class:`~planners.findings.Findings`.

    Attributes:
        spec: of the environment, as Gymnasium writes it to JSON; None if there is none.
        evaluator: estimates J of masks.
    """

    def __init__(
        self,
        mdp_or_env: ExoMDP | gym.Env[Any, Any],
        rng: np.random.Generator | int | None = None,
        *,
        n_rollouts: int = 500,
        planner: Planner | None = None,
        planning_time_limit: float | None = 60.0,
        n_data_rollouts: int | None = None,
        reward: Reward = "terms",
        ignored_rewards: IgnoredRewards = "average",
        level: float = 0.05,
        max_parents: int = 6,
    ) -> None:
        limit = check_time_limit("planning_time_limit", planning_time_limit, positive=True)
        mdp = as_mdp(mdp_or_env)
        warn_of_ignored_wrappers(mdp_or_env, mdp)
        finding: dict[str, Any] = {
            "n_data_rollouts": n_data_rollouts,
            "reward": reward,
            "ignored_rewards": ignored_rewards,
            "level": level,
            "max_parents": max_parents,
        }
        super().__init__(mdp, rng, **finding)
        self.spec = _spec_of(mdp_or_env)
        self.evaluator = MaskEvaluator(
            self, planner=planner, n_rollouts=n_rollouts, time_limit=limit
        )
        own = {"n_rollouts": n_rollouts, "planner": planner, "planning_time_limit": limit}
        self._settings = {**own, **finding}
        self._is_checked = False
        self._with_end: Study | None = None

    def check(self) -> None:
        """Refuse a model that breaks its contract; it is looked at once."""
        if not self._is_checked:
            check_quickly(self.counted)
            self._is_checked = True

    def of_task(self, mdp_or_env: ExoMDP | gym.Env[Any, Any]) -> Study:
        """A study of another task, with the same seed and settings, that knows nothing yet."""
        return Study(mdp_or_env, self.seed, **self._settings)

    def with_carried_end(self) -> Study:
        """This study, or that of the model with its end in an endogenous variable.

        Learners ask for it first: a planner has to know from n whether an episode is over. If its
        end looks at x, it is carried in n (:func:`exo_envs.carry_end`).
        """
        if self._with_end is None:
            study: Study = self
            carried: ExoMDP = self.counted
            if type(self.mdp).is_terminal not in KNOWN_ENDS:
                carried = carry_end(self.counted, rng=self.rng("end"))
            if isinstance(carried, CarriedEnd):
                study = self.of_task(CarriedEnd(self.mdp, carried.looks_at))
                study.spec = self.spec
                study.counted.add(self.counted)
                warnings.warn(
                    f"the end of an episode depends on {', '.join(map(repr, carried.looks_at))}, "
                    "and a planner has to know it from n. It is carried in the endogenous variable "
                    f"{study.mdp.endogenous_variables[-1].name!r}; give exo_envs.carry_end(mdp) "
                    "to say so yourself",
                    EndCarriedWarning,
                    stacklevel=4,
                )
            self._with_end = study
        return self._with_end

    @property
    def samples(self) -> int:
        """The number of x', n' and rewards asked of the model, by tree search's policies too."""
        return self.counted.samples


def _spec_of(mdp_or_env: Any) -> dict[str, Any] | None:
    """The spec of an environment as Gymnasium writes it; None if it has none that JSON can hold."""
    spec = getattr(mdp_or_env, "spec", None)
    try:
        return json.loads(spec.to_json()) if isinstance(spec, EnvSpec) else None
    except (TypeError, ValueError):
        return None
