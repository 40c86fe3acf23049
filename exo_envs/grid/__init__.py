"""ExoGrid: the paper's small domain."""

from exo_envs.grid.env import GridEnv, GridVectorEnv
from exo_envs.grid.model import GridMDP, GridParameters
from exo_envs.grid.viewer import GridViewer

__all__ = ["GridEnv", "GridMDP", "GridParameters", "GridVectorEnv", "GridViewer"]
