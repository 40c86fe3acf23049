"""Policies that know their mask."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import IntArray, State
from planners.core.files import Loaded
from planners.core.observer import Observer

#: Names of exogenous variables, in the order of the model.
Mask: TypeAlias = tuple[str, ...]


class Policy(Loaded, Observer, ABC):
    """Maps observations to actions.

    It looks at the endogenous part and at the exogenous variables of its mask. It can be called
    with a full observation or with one that is masked already, with one or with a batch of any
    shape, as a dictionary or as a :class:`~exo_envs.State`. Parts of a dictionary that it does not
    know are ignored. An observation of an environment that was adapted lacks the model's last
    endogenous variable, ``done`` (:class:`~exo_envs.AdaptedMDP`), which is 0 while the episode
    goes on.

    Args:
        mask: the names of the exogenous variables it looks at.
        full: the names of all exogenous variables of the environment it acts in.
        endogenous_size: the number of endogenous variables.
        variables: the endogenous variables, then those of the mask, if they are known
            (:meth:`variables_of`). Errors then name them and their values.
    """

    @abstractmethod
    def act(self, endogenous: NDArray[np.int64], exogenous: NDArray[np.int64]) -> IntArray:
        """The actions for a batch: (B, k) and the masked (B, len(mask)) give (B,)."""

    def __call__(self, observation: Mapping[str, Any] | State) -> Any:
        """The action for one observation (an int), or the actions for a batch (an array).

        Raises:
            TypeError: if it is no observation, or holds anything but numbers.
            ValueError: if a part is missing, or has a wrong shape or a number that is not whole.
        """
        endogenous, exogenous = self._parts(observation)
        batch_shape = endogenous.shape[:-1]
        lanes = math.prod(batch_shape)
        if not lanes:
            return np.zeros(batch_shape, dtype=np.int64)
        actions = np.asarray(
            self.act(
                # Not -1: an empty mask leaves nothing to count the lanes by.
                endogenous.reshape(lanes, endogenous.shape[-1]),
                exogenous.reshape(lanes, exogenous.shape[-1]),
            )
        )
        if actions.size != lanes:
            raise ArgumentError(
                f"{type(self).__name__}.act gave actions of shape {actions.shape} for {lanes} "
                "observations; there should be one for each"
            )
        return actions.reshape(batch_shape) if batch_shape else int(actions.reshape(-1)[0])

    def predict(
        self,
        observation: Mapping[str, Any] | State,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, Any]:
        """Stable-Baselines3's signature; the policy has no memory and is deterministic."""
        return np.asarray(self(observation)), state
