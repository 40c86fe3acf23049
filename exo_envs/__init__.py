"""MDPs with exogenous variables, as Gymnasium environments.

Importing this package registers its environments: ``gym.make("ExoGrid-v0")``.
"""

from typing import TYPE_CHECKING, Any

from exo_envs.adapter import (
    AdaptedMDP,
    Agreement,
    IgnoredWrapperWarning,
    PlayedDifferentlyError,
    PlayedDifferentlyWarning,
    as_mdp,
    warn_of_ignored_wrappers,
)
from exo_envs.drawing.viewer import Viewer
from exo_envs.ends import CarriedEnd, carry_end
from exo_envs.env import ExoEnv, Snapshot
from exo_envs.mdp import ExoMDP, State, Successors, Transition, Variable
from exo_envs.registration import register_envs
from exo_envs.trace import TraceMDP
from exo_envs.vector_env import ExoVectorEnv

if TYPE_CHECKING:
    from exo_envs.rddl import RDDLMDP, NoExogenousFluentsWarning, RDDLRefusedError, from_rddl

__version__ = "0.1.0"

__all__ = [
    "RDDLMDP",
    "AdaptedMDP",
    "Agreement",
    "CarriedEnd",
    "ExoEnv",
    "ExoMDP",
    "ExoVectorEnv",
    "IgnoredWrapperWarning",
    "NoExogenousFluentsWarning",
    "PlayedDifferentlyError",
    "PlayedDifferentlyWarning",
    "RDDLRefusedError",
    "Snapshot",
    "State",
    "Successors",
    "TraceMDP",
    "Transition",
    "Variable",
    "Viewer",
    "as_mdp",
    "carry_end",
    "from_rddl",
    "register_envs",
    "warn_of_ignored_wrappers",
]

register_envs()

#: What only some users need is imported when it is first asked for.
_OF_RDDL = ("NoExogenousFluentsWarning", "RDDLMDP", "RDDLRefusedError", "from_rddl")


def __getattr__(name: str) -> Any:
    """The names of :mod:`exo_envs.rddl`."""
    if name in _OF_RDDL:
        from exo_envs import rddl

        return getattr(rddl, name)
    raise AttributeError(f"module 'exo_envs' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names of the package, those that are not imported yet included."""
    return sorted({*globals(), *_OF_RDDL})
