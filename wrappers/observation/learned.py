"""Learning as a wrapper."""

from __future__ import annotations

import os
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv
from typing_extensions import Self

from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.sources.simulators.conversion import as_mdp
from planners.core.policy import Policy
from wrappers.fitting.saved import SavedMask
from wrappers.learners.base import MaskLearner
from wrappers.learners.calibrated import CalibratedMaskLearner
from wrappers.observation.masked import MaskedObservation
from wrappers.reports.ignoring import CostOfIgnoring


class LearnedMask(MaskedObservation):
    """Learns which exogenous variables matter in an environment, and shows the agent only those.

    It fits a learner, which may take a while, and is a :class:`MaskedObservation` from then on.
    The environment's spec remembers the mask, so ``gym.make(env.spec)`` does not learn again.
    Copies, pickled ones too, have the mask and the policy, but not the learner with its data; so
    has what :meth:`load` makes of a file that :meth:`save` wrote.

    >>> env = LearnedMask(gym.make("exo_envs:ExoGrid-v0"), rng=0)
    >>> env.mask
    ('object', 'carrier', 'guard', 'guard_intent')

    Args:
        env: the environment; anything :func:`exo_envs.as_mdp` takes.
        learner: by default a :class:`CalibratedMaskLearner`. A clone of it is fitted, so that one
            learner can be given to many environments.
        rng: a generator or a seed for it.
        mask: one that was learned before: then nothing is learned.
        show_mask: whether pictures have the mask drawn over them.

    Attributes:
        mask: the names of the variables that are kept.
        learner: the clone that was fitted; None in a copy, or if the mask was given.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        learner: MaskLearner | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        mask: Any = None,
        show_mask: bool = True,
    ) -> None:
        given: Any = env
        if isinstance(given, VectorEnv):
            raise ArgumentTypeError(
                "LearnedMask learns on one environment, not on a vector environment: learn on "
                "gym.make(...), then MaskedVectorObservation(vector_env, learned.mask)"
            )
        if not isinstance(given, gym.Env):
            raise ArgumentTypeError(f"LearnedMask wraps a gymnasium Env, not {env!r}")
        if learner is not None:
            check_learner(learner)
        self.learner: MaskLearner | None = None
        self._policy: Policy | None = None
        self._saved: SavedMask | None = None  # how the mask was learned, also in copies
        if mask is None:
            self.learner = CalibratedMaskLearner() if learner is None else learner.clone()
            check_unmasked(env)
            self.learner.fit(env, rng=rng)
            self._policy, self._saved = self.learner.policy_, self.learner.saved()
            mask = self.learner.get_support()  # not names: a foreign environment may have others
        elif learner is not None:
            raise ArgumentError("give a learner or a mask that was learned before, not both")
        super().__init__(env, mask, show_mask=show_mask)

    @property
    def policy(self) -> Policy | None:
        """The policy that was planned with the mask; None if the mask was given.

        It takes the observations of this environment, and those of the one underneath.
        """
        return self._policy

    @property
    def cost_of_ignoring(self) -> CostOfIgnoring:
        """The loss of the mask's policy against policies that may look at everything.

        An interval (``low``, ``high``); see :attr:`MaskLearner.cost_of_ignoring_`. It is worked out
        when it is first read, which may take as long as learning did, and remembered.

        Raises:
            ValueError: the mask was given, or this is a copy, which has no learner; or learning
                was stopped before there was a policy.
        """
        if self.learner is None:
            raise ArgumentError(
                "this mask was not learned here: it was given, or this is a copy, and copies do "
                "not carry the learner; ask the one that learned it"
            )
        return self.learner.cost_of_ignoring_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write mask and policy to one file, whatever its suffix, without pickle.

        :meth:`load` reads both back; ``SavedMask.load`` and ``Policy.load`` read one of them. If
        the policy is of a kind that no file can hold, such as tree search, a warning says so and
        the file is the mask's JSON alone. Copies and what :meth:`load` made save the same.

        Raises:
            ValueError: the mask was given, so nobody knows how it was learned.
        """
        if self._saved is None:
            raise ArgumentError(
                "this mask was given, not learned or loaded: there is nothing to save"
            )
        self._saved.save(path, policy=self._policy)

    @classmethod
    def load(cls, env: gym.Env[Any, Any], path: str | os.PathLike[str]) -> Self:
        """Put a mask from a file around an environment with the same exogenous variables.

        The policy is the one that was saved with the mask, or None if it was saved alone.
        """
        saved = SavedMask.load(path)
        mdp = as_mdp(env)
        saved.check(mdp)
        policy = saved.load_policy(path, mdp)
        loaded = cls(env, mask=[name in set(saved.mask) for name in saved.names])
        loaded._policy, loaded._saved = policy, saved
        return loaded

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the learner."""
        return {**self.__dict__, "learner": None}


def check_learner(learner: Any) -> MaskLearner:
    """Refuse what is no learner."""
    if not isinstance(learner, MaskLearner):
        raise ArgumentTypeError(
            f"a learner is a MaskLearner such as CalibratedMaskLearner(), not {learner!r}"
        )
    return learner


def check_unmasked(env: gym.Env[Any, Any]) -> None:
    """Refuse an environment that does not show all of x: nothing can be learned about the rest."""
    seen = getattr(env.observation_space, "spaces", {}).get("exogenous")
    named = len(as_mdp(env).exogenous_names)
    if (0 if seen is None else seen.shape[0]) != named:
        raise ArgumentError(
            f"the observation does not show all {named} exogenous variables; learn on the "
            "environment underneath, and mask it again"
        )
