"""Any model as tables, for planners that plan in tables."""

from __future__ import annotations

import numpy as np

from exo_envs import ExoMDP
from planners.reduction.reduced_mdp import ReducedMDP
from planners.tables.factored_mdp import FactoredMDP


def as_factored(mdp: ExoMDP, rng: np.random.Generator | None = None) -> FactoredMDP:
    """The model itself if it is given by tables, else an estimate with all its variables.

    Args:
        mdp: the model.
        rng: for that estimate; by default seed 0.
    """
    if isinstance(mdp, FactoredMDP):
        return mdp
    return ReducedMDP.estimate(mdp, mdp.exogenous_names, rng=0 if rng is None else rng)
