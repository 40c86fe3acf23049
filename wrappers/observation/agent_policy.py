"""Agents that were trained, as policies: what reinforcement learning found, where planners' go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv, VectorObservationWrapper, VectorWrapper
from numpy.typing import NDArray

from exo_envs.core.errors import ArgumentTypeError
from exo_envs.core.mdp import ExoMDP, IntArray
from planners.core.policy import Policy
from wrappers.observation.flat import Encoding, FlatWrapper
from wrappers.observation.masked import MaskWrapper, layers


@runtime_checkable
class Predictor(Protocol):
    """An agent with ``predict``, as the models of Stable-Baselines3."""

    def predict(self, observation: Any, *, deterministic: bool) -> tuple[Any, Any]:
        """The actions for a batch of observations, and a state that is ignored."""


Agent: TypeAlias = Predictor | Callable[[Any], Any]


class AgentPolicy(Policy):
    """An agent that was trained on a wrapped environment, as a policy of the model underneath.

    The agent knows the observations of ``env``: masked, flat, or both. The policy takes those of
    the model, full or masked, and shows the agent what it knows. So it goes wherever a planner's
    policy goes: into :func:`planners.evaluate`, on the exogenous trajectories of its rivals, too.
    An agent that was trained in a :class:`planners.ReducedMDP` plays in the full model this way.

    >>> from exo_envs import ExoVectorEnv
    >>> from planners import ReducedMDP, evaluate
    >>> from wrappers import FlatVectorObservation
    >>> mdp = gym.make("exo_envs:ExoGrid-v0").unwrapped.mdp
    >>> reduced = ReducedMDP.estimate(mdp, ["object", "guard"], rng=0)
    >>> env = FlatVectorObservation(ExoVectorEnv(reduced, 64))
    >>> policy = AgentPolicy(lambda flat: np.zeros(len(flat), dtype=int), env)  # or a model of SB3
    >>> policy.mask
    ('object', 'guard')
    >>> evaluate(policy, mdp, 5, rng=0)
    array([0., 0., 0., 0., 0.])

    Args:
        agent: has ``predict(observations, deterministic=...)``, as models of Stable-Baselines3 do,
            or is a function from a batch of observations to actions.
        env: the environment whose observations it knows, single or vector; its model has the
            variables' names. :class:`MaskedObservation`, :class:`FlatObservation` and their twins
            are the only wrappers that may change observations.
        deterministic: is passed on to ``predict``.

    Raises:
        TypeError: if another wrapper changes the observations, or if there is no model.
    """

    def __init__(
        self,
        agent: Agent,
        env: gym.Env[Any, Any] | VectorEnv[Any, Any, Any],
        *,
        deterministic: bool = True,
    ) -> None:
        if not isinstance(agent, Predictor) and not callable(agent):
            raise ArgumentTypeError(
                f"an agent has a method predict or is a function, not {agent!r}"
            )
        mdp = getattr(getattr(env, "unwrapped", None), "mdp", None)
        if not isinstance(mdp, ExoMDP):
            raise ArgumentTypeError(
                f"{env} has no model: wrap ExoEnv(mdp) or ExoVectorEnv(mdp, ...)"
            )
        mask, full, endogenous_size = self.names_of(mdp)
        self._encoding: Encoding | None = None
        for layer in reversed(list(layers(env))):
            if isinstance(layer, MaskWrapper):
                mask = layer.mask
            elif isinstance(layer, FlatWrapper):
                self._encoding = layer.encoding
            elif _changes_observations(layer):
                raise ArgumentTypeError(
                    f"{type(layer).__name__} changes observations in a way of its own"
                )
        seen = [mdp.exogenous_variables[mdp.exogenous_names.index(name)] for name in mask]
        variables = [*mdp.endogenous_variables, *seen]
        super().__init__(mask, full, endogenous_size, variables=variables)
        self.agent = agent
        self.deterministic = deterministic

    def act(self, endogenous: NDArray[np.int64], exogenous: NDArray[np.int64]) -> IntArray:
        """The actions for a batch: (B, k) and the masked (B, len(mask)) give (B,)."""
        self.check_range(endogenous, exogenous)
        parts = {"endogenous": endogenous, "exogenous": exogenous}
        observation: Any = {key: part for key, part in parts.items() if part.shape[-1]}
        if self._encoding is not None:
            observation = self._encoding(observation)
        if isinstance(self.agent, Predictor):
            actions, _ = self.agent.predict(observation, deterministic=self.deterministic)
        else:
            actions = self.agent(observation)
        return np.asarray(actions)


def _changes_observations(layer: Any) -> bool:
    """Whether a wrapper may do so; one that keeps the space and says nothing is believed."""
    if isinstance(layer, (gym.ObservationWrapper, VectorObservationWrapper)):
        return True
    is_wrapper = isinstance(layer, (gym.Wrapper, VectorWrapper))
    return is_wrapper and bool(layer.observation_space != layer.env.observation_space)
