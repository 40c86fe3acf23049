"""Masks that change with the task, from one episode to the next."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from exo_envs.core.arguments import check_choice, check_flag, check_whole, optional
from exo_envs.core.batches import as_mask
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import ExoMDP, IntArray
from exo_envs.shells.env import ExoEnv
from exo_envs.sources.simulators.conversion import as_mdp
from planners.core.policy import Mask, Policy
from wrappers.learners.base import MaskLearner
from wrappers.learners.calibrated import CalibratedMaskLearner
from wrappers.observation.masked import (
    MaskedObservation,
    Names,
    Observation,
    check_learner,
    check_unmasked,
)

Env = gym.Env[Any, Any]
#: Changes of the environment's keyword arguments, an environment, or a model.
Task = Mapping[str, Any] | Env | ExoMDP


class RemaskingObservation(MaskedObservation):
    """Shows the agent what matters for the task at hand, which may change with every episode.

    Tasks are goals or rewards over the same exogenous process. The mask of the first one is learned
    by ``fit`` and those of the others by :meth:`MaskLearner.refit`, which takes a fraction of the
    time, once each when the wrapper is made. ``reset(options={"task": name})`` begins an episode of
    another task; a reset without goes on with the task before.

    The observation space is always the same. Its part ``"exogenous"`` has the variables of *all*
    masks, in the order of the model. Those that the current mask does not keep are shown as a
    constant, whatever their value: 0, or what is nearest to it. ``info["mask"]`` names those that
    it keeps, and ``info["task"]`` the task, in every reset and step.

    >>> tasks = {"careful": {}, "padded": {"crash_cost": 0.0}}
    >>> learner = CalibratedMaskLearner(cost_weight=2.0)
    >>> env = RemaskingObservation(gym.make("exo_envs:ExoGrid-v0"), tasks, learner, rng=0)
    >>> env.masks
    {'careful': ('object', 'guard'), 'padded': ('object',)}
    >>> state = ([0], [2, 0, 1, 1, 1])
    >>> env.reset(options={"task": "careful", "state": state})[0]["exogenous"]
    array([2, 1])
    >>> observation, info = env.reset(options={"task": "padded", "state": state})
    >>> observation["exogenous"]  # where the guard is does not matter
    array([2, 0])
    >>> info["mask"]
    ('object',)

    Args:
        env: the environment; anything :func:`exo_envs.as_mdp` takes.
        tasks: name -> the task: changes of the keyword arguments that ``env`` was made with (none,
            ``{}``, is ``env`` itself), another environment, or a model. All have the spaces of
            ``env``. Episodes are of the first one until another is asked for.
        learner: by default a :class:`CalibratedMaskLearner`. A clone of it is fitted; one that is
            fitted already, to a task of the same exogenous process, is refitted to all tasks.
        rng: a generator or a seed for it.
        masks: name -> mask of every task, learned before: then nothing is learned.
        observe_task: whether the observation has the number of the task as another part,
            ``"task"``, in the order of ``tasks``: an agent that learns all tasks may need it.
        show_mask: whether pictures have the current mask drawn over them.

    Attributes:
        mask: the variables of all masks: what the observation has.
        masks: name -> the mask of the task.
        task: the name of the current task.
        learners: name -> the learner that was fitted to the task; empty in a copy, or if the masks
            were given.

    Raises:
        ValueError: the tasks have different spaces or exogenous variables, or another P(x' | x).
    """

    def __init__(
        self,
        env: Env,
        tasks: Mapping[str, Task],
        learner: MaskLearner | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        masks: Mapping[str, Any] | None = None,
        observe_task: bool = False,
        show_mask: bool = True,
    ) -> None:
        if not isinstance(env, gym.Env):
            raise ArgumentTypeError(
                f"RemaskingObservation wraps a gymnasium Env, one at a time, not {env!r}"
            )
        self._observes_task = check_flag("observe_task", observe_task)
        self._envs = _environments(env, tasks)
        self.task = next(iter(tasks))
        self.learners: dict[str, MaskLearner] = {}
        if masks is None:
            check_unmasked(env)
            self.learners = _learn(self._envs, learner, rng)
            kept = {name: own.get_support() for name, own in self.learners.items()}
        elif learner is not None:
            raise ArgumentError("give a learner or masks that were learned before, not both")
        elif not isinstance(masks, Mapping) or masks.keys() != tasks.keys():
            raise ArgumentError(f"masks has a mask for each task, {sorted(tasks)}, not {masks!r}")
        else:
            kept = {}  # of each task, which exogenous variables its mask keeps, (m,)
            for name, each in self._envs.items():
                mdp = as_mdp(each)
                kept[name] = np.isin(mdp.exogenous_names, as_mask(mdp, masks[name]))
        union, names = np.any([*kept.values()], axis=0), np.array(as_mdp(env).exogenous_names)
        # What is recorded first counts. Environments and models cannot be written down.
        self._is_recorded = all(isinstance(task, Mapping) for task in tasks.values())
        RecordConstructorArgs.__init__(
            self,
            tasks=dict(tasks) if self._is_recorded else {},
            masks={name: names[own].tolist() for name, own in kept.items()},
            observe_task=self._observes_task,
            show_mask=check_flag("show_mask", show_mask),
        )
        super().__init__(self._envs[self.task], union, show_mask=show_mask)
        #: name -> which variables of the observation the task's mask keeps.
        self._kept = {name: own[union] for name, own in kept.items()}
        seen = np.array(self.mask, dtype=object)
        self.masks = {name: tuple(seen[own].tolist()) for name, own in self._kept.items()}
        self._policies: dict[str, Policy | None] = {}
        self._seeds: dict[str, int] = {}  # for tasks that had no episode since the last seed
        self._blank = _blank(self._single_space["exogenous"]) if self.mask else None
        if self._observes_task:
            parts = dict(self._single_space.spaces)
            if "task" in parts:
                raise ArgumentError(
                    "the observation has a part 'task' already; give observe_task=False"
                )
            self.observation_space = spaces.Dict(parts | {"task": spaces.Discrete(len(tasks))})

    @property
    def current_mask(self) -> Names:
        """The mask of the current task."""
        return self.masks[self.task]

    @property
    def policy(self) -> Policy | None:
        """The policy of the current task; it takes the observations of this environment.

        The first time that it is read for a task, it is planned. None if the masks were given; in
        a copy, also if it was not planned before.
        """
        if self.task not in self._policies and self.task in self.learners:
            learner = self.learners[self.task]
            policy = learner.policy_
            if policy is not None:
                support = np.any([own.get_support() for own in self.learners.values()], axis=0)
                union = tuple(np.array(learner.feature_names_in_)[support].tolist())
                if policy.mask != union:
                    policy = WidenedPolicy(policy, union, learner.study_.mdp)
            self._policies[self.task] = policy
        return self._policies.get(self.task)

    @property
    def spec(self) -> EnvSpec | None:  # type: ignore[override]  # Gymnasium's is one, too
        """With the masks, so that ``gym.make(env.spec)`` learns nothing.

        None if a task is an environment or a model, which cannot be written down.
        """
        if not self._is_recorded:
            return None
        current, self.env = self.env, next(iter(self._envs.values()))
        try:
            return super().spec
        finally:
            self.env = current

    def observation(self, observation: Mapping[str, Any]) -> Observation:
        """An observation, or a batch of them, with constants for all that the task ignores."""
        shown = super().observation(observation)
        if self.mask:
            shown["exogenous"] = np.where(self._kept[self.task], shown["exogenous"], self._blank)
        if self._observes_task:
            batch = np.shape(observation.get("endogenous", observation.get("exogenous")))[:-1]
            number = list(self.masks).index(self.task)
            shown["task"] = np.full(batch, number, dtype=np.int64)[()]
        return shown

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: for the environments of all tasks.
            options: ``"task"`` is the name of the task; everything else is the environment's, such
                as ``"state"``, a full one.
        """
        if options is not None and not isinstance(options, Mapping):
            raise ArgumentTypeError(f"the options of a reset are a dictionary, not {options!r}")
        seed = optional(check_whole)("seed", seed, 0)
        rest = dict(options or {})
        task = rest.pop("task", self.task)
        check_choice("task", task, self._envs)
        if seed is not None:
            streams = np.random.SeedSequence(seed).generate_state(len(self._envs))
            self._seeds = dict(zip(self._envs, map(int, streams), strict=True))
            self._seeds[task] = seed
        self.task, self.env = task, self._envs[task]
        observation, info = super().reset(seed=self._seeds.pop(task, None), options=rest or None)
        return observation, self._told(info)

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, self._told(info)

    def _told(self, info: dict[str, Any]) -> dict[str, Any]:
        return {**info, "task": self.task, "mask": self.current_mask}

    def _drawn_mask(self) -> Names:
        return self.current_mask

    def close(self) -> None:
        for env in self._envs.values():
            env.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "learners": {}}


class WidenedPolicy(Policy):
    """A policy that is shown more variables than it looks at."""

    def __init__(self, policy: Policy, mask: Mask, mdp: ExoMDP) -> None:
        """For observations with the variables of a larger mask of a model."""
        own = policy.variables
        if own is not None:
            more = (mdp.exogenous_variables[j] for j in mdp.exogenous_indices(mask))
            own = (*own[: policy.endogenous_size], *more)
        super().__init__(mask, policy.full, policy.endogenous_size, variables=own)
        self.policy = policy
        self.columns = np.array([mask.index(name) for name in policy.mask], dtype=np.intp)

    def act(self, endogenous: NDArray[np.int64], exogenous: NDArray[np.int64]) -> IntArray:
        """The actions of the policy, which sees its own variables only."""
        return self.policy.act(endogenous, np.ascontiguousarray(exogenous[:, self.columns]))


def _environments(env: Env, tasks: Any) -> dict[str, Env]:
    """The environment of each task, all with the same spaces."""
    if not isinstance(tasks, Mapping) or not tasks:
        raise ArgumentTypeError(
            f"tasks is a mapping from names to tasks, at least one, not {tasks!r}"
        )
    made: dict[str, Env] = {}
    for name, task in tasks.items():
        if not isinstance(name, str):
            raise ArgumentTypeError(f"tasks have names, not {name!r}")
        made[name] = own = _environment(env, name, task)
        for kind in ("observation_space", "action_space"):
            if getattr(own, kind) != getattr(env, kind):
                raise ArgumentError(
                    f"the {kind} of task {name!r} is {getattr(own, kind)}, not {getattr(env, kind)}"
                )
    return made


def _environment(env: Env, name: str, task: Any) -> Env:
    if isinstance(task, gym.Env):
        return task
    if isinstance(task, ExoMDP):
        return ExoEnv(task, render_mode=env.render_mode)
    if not isinstance(task, Mapping):
        raise ArgumentTypeError(
            f"task {name!r} is a mapping of keyword arguments, an environment or a model, "
            f"not {task!r}"
        )
    if not task:
        return env
    if env.spec is None:
        raise ArgumentError(
            f"{env} was not made by gymnasium.make, so task {name!r} cannot be made from keyword "
            "arguments; give an environment or a model"
        )
    spec = copy.deepcopy(env.spec)
    spec.kwargs.update(task)
    return gym.make(spec)


def _learn(
    envs: Mapping[str, Env],
    learner: MaskLearner | None,
    rng: np.random.Generator | int | None,
) -> dict[str, MaskLearner]:
    """Fit to the first task, unless it is fitted, and refit to the others."""
    learner = CalibratedMaskLearner() if learner is None else check_learner(learner)
    found: dict[str, MaskLearner] = {}
    if "mask_" not in vars(learner):
        first = next(iter(envs))
        found[first] = learner = learner.clone().fit(envs[first], rng=rng)
    elif rng is not None:
        raise ArgumentError(
            f"a learner that is fitted has a seed of its own; rng={rng!r} is too much"
        )
    for name, env in envs.items():
        if name not in found:
            found[name] = learner.refit(env)
    return found


def _blank(part: Any) -> NDArray[Any]:
    """The value shown of each variable that is not kept: 0, or the nearest to it."""
    if isinstance(part, spaces.Box):
        return np.clip(np.zeros(part.shape), part.low, part.high)
    return np.clip(0, part.start, part.start + part.nvec - 1)
