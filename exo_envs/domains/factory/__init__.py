"""ExoFactory: a robot fulfils tasks that are issued in a stream."""

from typing import TYPE_CHECKING, Any

from exo_envs.domains.factory.env import FactoryEnv, FactoryVectorEnv
from exo_envs.domains.factory.model import DOWN, UP, WORK, FactoryMDP, FactoryParameters

if TYPE_CHECKING:
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


def __getattr__(name: str) -> Any:
    """Import the viewer when it is first asked for: who only steps imports no drawing."""
    if name == "FactoryViewer":
        from exo_envs.domains.factory.viewer import FactoryViewer

        return FactoryViewer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
