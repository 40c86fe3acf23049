"""The contract of :class:`ExoMDP` as a check that users run on their own models.

>>> import numpy as np
>>> from exo_envs.grid import GridMDP
>>> check_mdp(GridMDP(), rng=np.random.default_rng(0))
"""

from exo_envs.auditing import Audit, Finding, Problem, audit
from exo_envs.errors import ContractError
from exo_envs.testing.check import check_mdp
from exo_envs.testing.quick import check_quickly

__all__ = [
    "Audit",
    "ContractError",
    "Finding",
    "Problem",
    "audit",
    "check_mdp",
    "check_quickly",
]
