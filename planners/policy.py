"""Policies that know their mask."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exo_envs import ExoMDP, State
from exo_envs.mdp import IntArray

#: Names of exogenous variables, in the order of the model.
Mask: TypeAlias = tuple[str, ...]


class Policy(ABC):
    """Maps observations to actions.

    It looks at the endogenous part and at the exogenous variables of its mask. It can be called
    with a full observation or with one that is masked already, with one or with a batch of any
    shape, as a dictionary or as a :class:`~exo_envs.State`.

    Args:
        mask: the names of the exogenous variables it looks at.
        full: the names of all exogenous variables of the environment it acts in.
        endogenous_size: the number of endogenous variables.
    """

    def __init__(self, mask: Mask, full: Mask, endogenous_size: int) -> None:
        self.mask = tuple(mask)
        self.full = tuple(full)
        self.endogenous_size = endogenous_size
        position = {name: i for i, name in enumerate(self.full)}
        self._columns = np.array([position[name] for name in self.mask], dtype=np.intp)

    @classmethod
    def names_of(cls, mdp: ExoMDP) -> tuple[Mask, Mask, int]:
        """The names a policy planned in ``mdp`` has: a reduced model knows what it reduces."""
        mask = mdp.exogenous_names
        return mask, getattr(mdp, "full_names", mask), len(mdp.endogenous_variables)

    @abstractmethod
    def act(self, endogenous: NDArray[np.int64], exogenous: NDArray[np.int64]) -> IntArray:
        """The actions for a batch: (B, k) and the masked (B, len(mask)) give (B,)."""

    def __call__(self, observation: Mapping[str, Any] | State) -> Any:
        """The action for one observation (an int), or the actions for a batch (an array)."""
        endogenous, exogenous = self._parts(observation)
        batch_shape = endogenous.shape[:-1]
        actions = self.act(
            # Not -1: an empty mask leaves nothing to count the lanes by.
            endogenous.reshape(math.prod(batch_shape), endogenous.shape[-1]),
            exogenous.reshape(math.prod(batch_shape), exogenous.shape[-1]),
        )
        return actions.reshape(batch_shape) if batch_shape else int(actions[0])

    def predict(
        self,
        observation: Mapping[str, Any] | State,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, Any]:
        """Stable-Baselines3's signature; the policy has no memory and is deterministic."""
        return np.asarray(self(observation)), state

    def _parts(
        self, observation: Mapping[str, Any] | State
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if isinstance(observation, State):
            observation = observation._asdict()
        endogenous = np.asarray(observation["endogenous"], dtype=np.int64)
        if endogenous.ndim == 0 or endogenous.shape[-1] != self.endogenous_size:
            raise ValueError(
                f"the endogenous part has shape {endogenous.shape}; its last dimension should be "
                f"{self.endogenous_size}"
            )
        given = observation.get("exogenous")  # an empty mask drops the key
        if given is None:
            exogenous = np.zeros((*endogenous.shape[:-1], 0), dtype=np.int64)
        else:
            exogenous = np.asarray(given, dtype=np.int64)
        if exogenous.shape[-1] == len(self.full):
            exogenous = exogenous[..., self._columns]
        elif exogenous.shape[-1] != len(self.mask):
            raise ValueError(
                f"the exogenous part has {exogenous.shape[-1]} variables; it should have the "
                f"{len(self.mask)} of the mask or all {len(self.full)}"
            )
        return endogenous, exogenous
