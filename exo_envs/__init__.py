"""MDPs with exogenous variables, as Gymnasium environments.

Importing this package registers its environments: ``gym.make("ExoGrid-v0")``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from exo_envs.core.ends import carry_end
from exo_envs.core.mdp import ExoMDP, State, Successors, Variable
from exo_envs.domains import register_envs
from exo_envs.shells.env import ExoEnv
from exo_envs.shells.vector_env import ExoVectorEnv
from exo_envs.sources.simulators.conversion import IgnoredWrapperWarning, as_mdp
from exo_envs.sources.simulators.mdp import AdaptedMDP
from exo_envs.sources.simulators.played import PlayedDifferentlyError, PlayedDifferentlyWarning
from exo_envs.sources.tables.model import TraceMDP

if TYPE_CHECKING:
    from exo_envs.sources.rddl.model import from_rddl

__version__ = "0.1.0"

__all__ = [
    "AdaptedMDP",
    "ExoEnv",
    "ExoMDP",
    "ExoVectorEnv",
    "IgnoredWrapperWarning",
    "PlayedDifferentlyError",
    "PlayedDifferentlyWarning",
    "State",
    "Successors",
    "TraceMDP",
    "Variable",
    "as_mdp",
    "carry_end",
    "from_rddl",
    "register_envs",
]

register_envs()


def __getattr__(name: str) -> Any:
    """What only some users need is imported when it is first asked for."""
    if name == "from_rddl":
        from exo_envs.sources.rddl.model import from_rddl

        return from_rddl
    if name in {"planners", "wrappers"}:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'exo_envs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "from_rddl", "planners", "wrappers"})
