"""ExoGrid: the paper's small domain."""

from exo_envs.domains.grid.env import GridEnv, GridVectorEnv
from exo_envs.domains.grid.model import GridMDP, GridParameters
from exo_envs.domains.grid.viewer import GridViewer

__all__ = ["GridEnv", "GridMDP", "GridParameters", "GridVectorEnv", "GridViewer"]
