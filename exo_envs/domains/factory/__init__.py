"""ExoFactory: a robot fulfils tasks that are issued in a stream."""

from exo_envs.domains.factory.env import FactoryEnv, FactoryVectorEnv
from exo_envs.domains.factory.model import FactoryMDP
from exo_envs.domains.factory.parameters import DOWN, UP, WORK, FactoryParameters

__all__ = [
    "DOWN",
    "UP",
    "WORK",
    "FactoryEnv",
    "FactoryMDP",
    "FactoryParameters",
    "FactoryVectorEnv",
]
