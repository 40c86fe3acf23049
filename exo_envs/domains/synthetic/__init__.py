"""ExoSynthetic: planted problems, whose right mask is known."""

from exo_envs.domains.synthetic.env import (
    RealSyntheticEnv,
    RealSyntheticVectorEnv,
    SyntheticEnv,
    SyntheticVectorEnv,
)
from exo_envs.domains.synthetic.exact import ExactReturn, exact_return
from exo_envs.domains.synthetic.model import PlantedMDP, SyntheticMDP
from exo_envs.domains.synthetic.parameters import RealSyntheticParameters, SyntheticParameters
from exo_envs.domains.synthetic.real import RealSyntheticMDP

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
