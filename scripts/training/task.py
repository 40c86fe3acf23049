"""An environment to train in, and what all agents on it have in common."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from exo_envs import ExoMDP, ExoVectorEnv, State, as_mdp
from exo_envs.core.batches import as_mask
from exo_envs.core.mdp import FloatArray
from planners import ReducedMDP, Scenarios, evaluate
from planners.core.files import replacing
from shared.arguments import make_env, parse_mask
from wrappers import CalibratedMaskLearner, LearningStoppedWarning, MaskedVectorObservation

Mask = tuple[str, ...]

#: What an agent may see of the exogenous variables.
OBSERVATIONS = ("full", "learned", "oracle", "none")
#: Where it may be trained; it is always evaluated in the full model.
WORLDS = ("full", "reduced")


@dataclass(frozen=True)
class Task:
    """An environment, and the trajectories on which agents are compared.

    Attributes:
        env_id: what ``gym.make`` takes.
        options: of the environment, ``name=value``.
        rollouts: on how many exogenous trajectories agents are evaluated, the same for all.
        seed: of those trajectories, of the learned mask and of reduced models.
    """

    env_id: str
    options: tuple[str, ...] = ()
    rollouts: int = 500
    seed: int = 0

    @property
    def name(self) -> str:
        """For folders and headings."""
        return ",".join([self.env_id.rpartition(":")[2], *self.options])

    @cached_property
    def mdp(self) -> ExoMDP:
        """The full model."""
        return as_mdp(make_env(self.env_id, self.options))

    @cached_property
    def scenarios(self) -> Scenarios:
        """The trajectories; no learner of masks has seen them."""
        return Scenarios.sample(self.mdp, self.rollouts, np.random.default_rng([self.seed, 1]))

    @cached_property
    def reward_scale(self) -> float:
        """Makes the returns of random actions vary by 1, which suits networks; 1 if they do not."""
        rng = np.random.default_rng([self.seed, 2])
        spread = float(self.evaluate(lambda state: self._at_random(state, rng)).std())
        return 1.0 / spread if spread > 1e-6 else 1.0

    def evaluate(self, policy: Any) -> FloatArray:
        """The returns of a policy of the full model, on the task's trajectories."""
        return evaluate(policy, self.mdp, scenarios=self.scenarios)

    def idle_returns(self) -> FloatArray:
        """What an agent earns that always takes the action which changes n most rarely."""
        rng = np.random.default_rng([self.seed, 3])
        states = self.mdp.sample_initial(self.rollouts, rng)

        def changes(action: int) -> float:
            state, moved = states, 0.0
            for _ in range(self.mdp.horizon):
                actions = np.full(self.rollouts, action)
                following = self.mdp.sample_next(state, actions, rng)
                moved += float((following.endogenous != state.endogenous).any(axis=-1).mean())
                state = following
            return moved

        idle = int(np.argmin([changes(action) for action in range(self.mdp.num_actions)]))
        return self.evaluate(lambda state: np.full(len(state.endogenous), idle))

    def learn_mask(self, cost_weight: float) -> CalibratedMaskLearner:
        """The mask that our learner finds, with the planner's policy for it."""
        learner = CalibratedMaskLearner(cost_weight=cost_weight)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LearningStoppedWarning)
            learner.fit(make_env(self.env_id, self.options), rng=self.seed)
        if learner.status_ == "interrupted":
            raise KeyboardInterrupt
        return learner

    def vector_env(self, mask: Mask | None, world: str, lanes: int, **settings: Any) -> Any:
        """Lanes of the full model with a mask, or of the mask's reduced model; None is no mask."""
        if world == "full":
            env = ExoVectorEnv(self.mdp, lanes, **settings)
            return env if mask is None else MaskedVectorObservation(env, mask)
        kept = self.mdp.exogenous_names if mask is None else mask
        rng = np.random.default_rng([self.seed, 4])
        return ExoVectorEnv(ReducedMDP.estimate(self.mdp, kept, rng=rng), lanes, **settings)

    def _at_random(self, state: State, rng: np.random.Generator) -> Any:
        return rng.integers(self.mdp.num_actions, size=len(state.endogenous))


@dataclass(frozen=True)
class Reference:
    """What agents are compared with: found once for a task, and kept in a file.

    Attributes:
        task: what it belongs to.
        cost_weight: the learner's.
        learned: the mask.
        planner: the returns of the policy that is planned with that mask.
        idle: the returns of always taking the action that changes n most rarely.
    """

    task: dict[str, Any]
    cost_weight: float
    learned: Mask
    planner: list[float]
    idle: list[float]

    @classmethod
    def of(cls, task: Task, cost_weight: float, file: Path) -> Reference:
        """From the file, or learned, planned and played now."""
        described = json.loads(json.dumps(asdict(task)))
        if file.exists():
            known = cls._read(file, task)
            if (known.task, known.cost_weight) != (described, cost_weight):
                raise SystemExit(
                    f"error: {file} is of {known.task} with cost weight {known.cost_weight}; "
                    "choose another --output for other settings"
                )
            return known
        print("learning the mask that the planner gets ...", flush=True)
        learner = task.learn_mask(cost_weight)
        reference = cls(
            described,
            cost_weight,
            learner.mask_,
            task.evaluate(learner.policy_).tolist(),
            task.idle_returns().tolist(),
        )
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as part:
            part.write_text(json.dumps(asdict(reference)), encoding="utf-8")
        return reference

    @classmethod
    def _read(cls, file: Path, task: Task) -> Reference:
        try:
            known = cls(**json.loads(file.read_text(encoding="utf-8")))
            returns = np.array([known.planner, known.idle], dtype=float)
            mask = as_mask(task.mdp, known.learned)
            if returns.shape != (2, known.task["rollouts"]) or not np.isfinite(returns).all():
                raise ValueError("returns are missing")
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise SystemExit(f"error: {file} is damaged ({error}); delete it") from error
        return cls(known.task, known.cost_weight, mask, *returns.tolist())


def check_oracle(task: Task, observations: Sequence[str], given: str | None) -> Mask | None:
    """The mask of ``--observation oracle``: a given one, or what a planted problem tells."""
    names = task.mdp.exogenous_names
    if given is not None:
        return parse_mask(task.mdp, given)
    required: Mask | None = getattr(task.mdp, "required_mask", None)
    if "oracle" in observations and required is None:
        raise SystemExit(
            f"error: {task.name} does not tell which variables are needed; give them, as in "
            f"--mask {names[0]!r} or --mask '{names[0][:3]}*'"
        )
    return required


def masks_of(
    task: Task, reference: Reference, observations: Sequence[str], given: str | None
) -> dict[str, Mask | None]:
    """The masks of the observations; None is no mask at all."""
    masks: dict[str, Mask | None] = {
        "full": None,
        "learned": reference.learned,
        "oracle": check_oracle(task, observations, given),
        "none": (),
    }
    return {observation: masks[observation] for observation in observations}
