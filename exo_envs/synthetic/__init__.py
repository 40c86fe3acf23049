"""ExoSynthetic: planted problems, whose right mask is known."""

from exo_envs.synthetic.env import SyntheticEnv, SyntheticVectorEnv
from exo_envs.synthetic.exact import ExactReturn, exact_return
from exo_envs.synthetic.model import SyntheticMDP
from exo_envs.synthetic.parameters import SyntheticParameters
from exo_envs.synthetic.planted import PlantedMDP
from exo_envs.synthetic.real import (
    RealSyntheticEnv,
    RealSyntheticMDP,
    RealSyntheticParameters,
    RealSyntheticVectorEnv,
)

__all__ = [
    "ExactReturn",
    "PlantedMDP",
    "RealSyntheticEnv",
    "RealSyntheticMDP",
    "RealSyntheticParameters",
    "RealSyntheticVectorEnv",
    "SyntheticEnv",
    "SyntheticMDP",
    "SyntheticParameters",
    "SyntheticVectorEnv",
    "exact_return",
]
