"""ExoCrowd: the paper's crowd, in which a robot looks for an object among busy agents."""

from typing import TYPE_CHECKING, Any

from exo_envs.domains.crowd.env import CrowdEnv, CrowdVectorEnv
from exo_envs.domains.crowd.model import CrowdMDP
from exo_envs.domains.crowd.parameters import CrowdParameters

if TYPE_CHECKING:
    from exo_envs.domains.crowd.viewer import CrowdViewer

__all__ = ["CrowdEnv", "CrowdMDP", "CrowdParameters", "CrowdVectorEnv", "CrowdViewer"]


def __getattr__(name: str) -> Any:
    """Import the viewer when it is first asked for: who only steps imports no drawing."""
    if name == "CrowdViewer":
        from exo_envs.domains.crowd.viewer import CrowdViewer

        return CrowdViewer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
