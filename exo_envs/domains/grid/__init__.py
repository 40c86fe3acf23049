"""ExoGrid: the paper's small domain."""

from typing import TYPE_CHECKING, Any

from exo_envs.domains.grid.env import GridEnv, GridVectorEnv
from exo_envs.domains.grid.model import GridMDP, GridParameters

if TYPE_CHECKING:
    from exo_envs.domains.grid.viewer import GridViewer

__all__ = ["GridEnv", "GridMDP", "GridParameters", "GridVectorEnv", "GridViewer"]


def __getattr__(name: str) -> Any:
    """Import the viewer when it is first asked for: who only steps imports no drawing."""
    if name == "GridViewer":
        from exo_envs.domains.grid.viewer import GridViewer

        return GridViewer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
