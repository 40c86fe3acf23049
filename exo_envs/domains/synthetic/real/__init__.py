"""ExoSyntheticReal: planted problems with real variables, whose right mask is known."""

from exo_envs.domains.synthetic.real.env import RealSyntheticEnv, RealSyntheticVectorEnv
from exo_envs.domains.synthetic.real.generator import RealNode
from exo_envs.domains.synthetic.real.model import RealSyntheticMDP
from exo_envs.domains.synthetic.real.parameters import RealSyntheticParameters

__all__ = [
    "RealNode",
    "RealSyntheticEnv",
    "RealSyntheticMDP",
    "RealSyntheticParameters",
    "RealSyntheticVectorEnv",
]
