"""A network for states with two parts: n says what of x matters."""

from __future__ import annotations

from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from exo_envs.core.arguments import check_whole
from exo_envs.core.errors import ArgumentError

#: Numbers that the network makes of an observation, at most.
MAX_NETWORK_WIDTH = 100_000


class GatedExtractor(BaseFeaturesExtractor):
    """Features of a flat observation: readings of x, each weighed by what n makes of it.

    What matters of a crowd depends on where the robot stands. A perceptron has to learn that for
    each place and each variable apart; here every feature is a linear reading of x times a
    factor that n chooses, and that is enough: ``relu(read(x) * (1 + gate(n)) + shift(n))``.

    >>> import gymnasium as gym
    >>> from stable_baselines3 import PPO
    >>> from wrappers import FlatVectorObservation
    >>> from wrappers.sb3 import SB3VecEnv
    >>> env = gym.make_vec("exo_envs:ExoGrid-v0", num_envs=4, autoreset_mode="SameStep")
    >>> env = SB3VecEnv(FlatVectorObservation(env))
    >>> network = {
    ...     "features_extractor_class": GatedExtractor,
    ...     "features_extractor_kwargs": {"endogenous": 13, "width": 32},
    ... }
    >>> model = PPO("MlpPolicy", env, n_steps=8, batch_size=32, policy_kwargs=network, device="cpu")
    >>> model.learn(32).num_timesteps
    32

    Args:
        observation_space: of flat observations, with the columns of n first.
        endogenous: how many columns n takes: one-hot, the sum of ``mdp.endogenous_sizes``.
        width: the number of features.

    Raises:
        ValueError: if the observation is not flat, or has fewer columns than n should take.
    """

    def __init__(
        self, observation_space: spaces.Space[Any], endogenous: int, width: int = 128
    ) -> None:
        shape = getattr(observation_space, "shape", None)
        check_whole("endogenous", endogenous, 0)
        width = check_whole("width", width, 1, MAX_NETWORK_WIDTH)
        if shape is None or len(shape) != 1 or not 1 <= endogenous <= shape[0]:
            raise ArgumentError(
                f"n cannot take {endogenous} columns of the observations of {observation_space}"
            )
        super().__init__(observation_space, width)
        self._endogenous = endogenous
        # Parameters, not layers: SB3 would initialise layers anew, with gates that hardly differ.
        self.gate = nn.Parameter(torch.randn(endogenous, width))
        self.shift = nn.Parameter(0.1 * torch.randn(endogenous, width))
        self.read = nn.Parameter(0.1 * torch.randn(shape[0] - endogenous, width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """The features, shape (B, width), of observations of shape (B, D)."""
        n, x = observations[:, : self._endogenous], observations[:, self._endogenous :]
        readings = torch.addmm(self.bias, x, self.read)
        return torch.relu(readings * (1 + n @ self.gate) + n @ self.shift)
