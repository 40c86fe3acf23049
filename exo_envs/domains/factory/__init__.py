"""ExoFactory: a robot fulfils tasks that are issued in a stream."""

from exo_envs.domains.factory.env import FactoryEnv, FactoryVectorEnv
from exo_envs.domains.factory.model import DOWN, UP, WORK, FactoryMDP, FactoryParameters
from exo_envs.domains.factory.viewer import FactoryViewer

__all__ = [
    "DOWN",
    "UP",
    "WORK",
    "FactoryEnv",
    "FactoryMDP",
    "FactoryParameters",
    "FactoryVectorEnv",
    "FactoryViewer",
]
