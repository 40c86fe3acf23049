"""ExoGrid: the paper's small domain."""

from exo_envs.domains.grid.env import GridEnv, GridVectorEnv
from exo_envs.domains.grid.model import GridMDP
from exo_envs.domains.grid.parameters import GridParameters

__all__ = ["GridEnv", "GridMDP", "GridParameters", "GridVectorEnv"]
