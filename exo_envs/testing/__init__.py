"""The contract of :class:`ExoMDP` as a check that users run on their own models.

>>> import numpy as np
>>> from exo_envs.grid import GridMDP
>>> check_mdp(GridMDP(), rng=np.random.default_rng(0))
"""

from exo_envs.testing.check import check_mdp
from exo_envs.testing.probe import ContractError

__all__ = ["ContractError", "check_mdp"]
