"""ExoSynthetic: planted problems, whose right mask is known."""

from exo_envs.domains.synthetic.env import SyntheticEnv, SyntheticVectorEnv
from exo_envs.domains.synthetic.exact import ExactReturn, exact_return
from exo_envs.domains.synthetic.model import SyntheticMDP
from exo_envs.domains.synthetic.parameters import SyntheticParameters
from exo_envs.domains.synthetic.planted import PlantedMDP
from exo_envs.domains.synthetic.real.env import RealSyntheticEnv, RealSyntheticVectorEnv
from exo_envs.domains.synthetic.real.model import RealSyntheticMDP
from exo_envs.domains.synthetic.real.parameters import RealSyntheticParameters

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
