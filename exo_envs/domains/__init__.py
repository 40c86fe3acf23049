"""The environments of the suite, a folder each, and their ids in Gymnasium's registry."""

from __future__ import annotations

import gymnasium as gym

#: id -> the module that holds the environment and its vector twin, and their names.
ENVIRONMENTS = {
    "ExoGrid-v0": ("exo_envs.domains.grid", "GridEnv", "GridVectorEnv"),
    "ExoFactory-v0": ("exo_envs.domains.factory", "FactoryEnv", "FactoryVectorEnv"),
    "ExoCrowd-v0": ("exo_envs.domains.crowd", "CrowdEnv", "CrowdVectorEnv"),
    "ExoSynthetic-v0": ("exo_envs.domains.synthetic", "SyntheticEnv", "SyntheticVectorEnv"),
    "ExoSyntheticReal-v0": (
        "exo_envs.domains.synthetic",
        "RealSyntheticEnv",
        "RealSyntheticVectorEnv",
    ),
}


def register_envs() -> None:
    """Register every environment of the suite; those already registered are left alone.

    The specs carry no time limit: an episode's length is the model's ``horizon``, an argument
    like any other (``gym.make("ExoGrid-v0", horizon=100)``).
    """
    for env_id, (module, env, vector_env) in ENVIRONMENTS.items():
        if env_id not in gym.registry:
            gym.register(
                env_id, entry_point=f"{module}:{env}", vector_entry_point=f"{module}:{vector_env}"
            )
