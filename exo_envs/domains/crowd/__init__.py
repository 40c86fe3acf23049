"""ExoCrowd: the paper's crowd, in which a robot looks for an object among busy agents."""

from exo_envs.domains.crowd.env import CrowdEnv, CrowdVectorEnv
from exo_envs.domains.crowd.model import CrowdMDP
from exo_envs.domains.crowd.parameters import CrowdParameters

__all__ = ["CrowdEnv", "CrowdMDP", "CrowdParameters", "CrowdVectorEnv"]
