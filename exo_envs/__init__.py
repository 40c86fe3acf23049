"""MDPs with exogenous variables, as Gymnasium environments.

Importing this package registers its environments: ``gym.make("ExoGrid-v0")``.
"""

from exo_envs.adapter import AdaptedMDP, as_mdp
from exo_envs.drawing.viewer import Viewer
from exo_envs.env import ExoEnv, Snapshot
from exo_envs.mdp import ExoMDP, State, Successors, Transition, Variable
from exo_envs.registration import register_envs
from exo_envs.vector_env import ExoVectorEnv

__version__ = "0.1.0"

__all__ = [
    "AdaptedMDP",
    "ExoEnv",
    "ExoMDP",
    "ExoVectorEnv",
    "Snapshot",
    "State",
    "Successors",
    "Transition",
    "Variable",
    "Viewer",
    "as_mdp",
    "register_envs",
]

register_envs()
