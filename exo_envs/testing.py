"""Checks that users run on their own models and environments.

>>> import numpy as np
>>> from exo_envs.domains.grid import GridMDP
>>> check_mdp(GridMDP(), rng=np.random.default_rng(0))
"""

from exo_envs.audit.audit import audit
from exo_envs.audit.results import Audit, Finding, Problem
from exo_envs.contract.check import check_mdp
from exo_envs.core.errors import ContractError

__all__ = ["Audit", "ContractError", "Finding", "Problem", "audit", "check_mdp"]
